//! What one end can and wants.

use strait_compress::history::cache::CacheCapacity;
use strait_compress::{Codec, CodecSet, EndpointCosts, PeerCosts, PerByteCost};
use strait_crypto::{Ranking, Suite, SuiteSet};
use strait_ipsec::{CacheList, DomainCache, DomainTag, HistoryTerms, IvMode, ReportWish};
use strait_scheduler::{LinkRate, Rate};
use strait_wire::history::CACHES_MAX;

use super::fields::{FieldWriter, Fields};
use super::{Expansion, MessageError};

pub(super) const SUITES: u8 = 2;
pub(super) const COSTS: u8 = 3;
pub(super) const CODECS: u8 = 4;
pub(super) const BLOCK_CAP: u8 = 5;
pub(super) const IV: u8 = 6;
pub(super) const FORMAT: u8 = 7;
pub(super) const INNER_MTU: u8 = 8;
pub(super) const DOWN: u8 = 9;
pub(super) const EXPANSION: u8 = 10;
pub(super) const DELIVERY: u8 = 11;
pub(super) const REPORTS: u8 = 13;
pub(super) const REPAIR: u8 = 12;
pub(super) const HISTORY: u8 = 14;
pub(super) const DIRECT: u8 = 15;
pub(super) const CACHES: u8 = 16;
pub(super) const LANES: u8 = 17;

/// The bit of the repair field that says that the link out has a rate.
const PACED: u8 = 1;

/// Most suites whose costs are read, known ones and others.
const MOST_COSTS: usize = 32;
/// Most codecs whose speed is read, known ones and others.
const MOST_CODECS: usize = 64;

/// What ESP may carry beside raw packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PayloadFormat {
    /// Bundles and Strait blocks.
    #[default]
    Strait,
    /// Only what other IPsec implementations read: IPComp with DEFLATE.
    Standard,
}

/// Whether one end tells the other what arrives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DeliveryReporting {
    /// In reports, while data comes (AGGFRAG sub-type 1).
    #[default]
    Reported,
    /// It does not know how.
    Untold,
}

/// Whether one end repairs losses: asks for what is missing, and sends again what it is asked for while it paces.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LossRepair {
    /// It does, and its link out has no rate that is given.
    #[default]
    Unpaced,
    /// It does, and its link out has a given rate, so that it keeps what it sends.
    Paced,
    /// It does not, or does not know how.
    Off,
}

/// Whether one end takes ESP directly behind IP (protocol 50), without UDP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DirectEsp {
    /// It does not, or does not know how.
    #[default]
    Off,
    /// It has the sockets for it, and its configuration wants it with this peer.
    Taken,
}

/// What one end can and wants, as it tells the other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// Suites it allows.
    pub suites: SuiteSet,
    /// What each suite costs it.
    pub ranking: Ranking,
    /// Codecs it expands.
    pub codecs: CodecSet,
    /// Most bytes it expands a block to.
    pub block_cap: u32,
    /// Where it wants the IV; explicit if either end does.
    pub iv: IvMode,
    /// What it reads inside ESP; standard if either end wants that.
    pub format: PayloadFormat,
    /// Its interface's MTU.
    pub inner_mtu: u16,
    /// The rate of its link in.
    pub down: LinkRate,
    /// Whether it tells what arrives, so that others can find out how fast the way to it is.
    pub delivery: DeliveryReporting,
    /// What it does with reports of what it sent, but where the other end wants its rate in to be estimated.
    pub reports: ReportWish,
    /// Whether it repairs losses; nothing is repaired unless both ends do.
    pub repair: LossRepair,
    /// What it keeps of packets that it has delivered, for those to come; the fewer contexts of both ends count. It is said in a
    /// handshake only.
    pub history: HistoryTerms,
    /// Whether it takes ESP directly behind IP; nothing is sent so unless both ends do. It is said in a handshake only.
    pub direct: DirectEsp,
    /// True if it takes pieces of streams inside ESP. It is said in a handshake only.
    pub lanes: bool,
    /// How fast it expands; may say nothing.
    pub expansion: Expansion,
}

impl Capabilities {
    /// What a node with the default settings says on a machine with AES instructions: everything that this version can,
    /// with no rate and no speed measured.
    #[must_use]
    pub fn typical() -> Capabilities {
        Capabilities {
            suites: SuiteSet::UNCUT,
            ranking: Ranking { nanos_per_packet: [1_000, 1_100, 2_000, 3_000] },
            codecs: CodecSet::ALL,
            block_cap: 65_536,
            iv: IvMode::Implicit,
            format: PayloadFormat::Strait,
            inner_mtu: 1420,
            down: LinkRate::Unpaced,
            delivery: DeliveryReporting::Reported,
            reports: ReportWish::Changes,
            repair: LossRepair::Unpaced,
            history: HistoryTerms::NONE,
            direct: DirectEsp::Off,
            lanes: true,
            expansion: Expansion::default(),
        }
    }

    /// Returns the number of the process that says them: each has one of its own, under which it keeps history.
    pub(crate) const fn process(&self) -> u32 {
        self.history.epoch
    }

    pub(super) fn read(fields: &Fields<'_>) -> Result<Capabilities, MessageError> {
        Ok(Capabilities {
            suites: SuiteSet::from_bits(fields.u8(SUITES, "suites")?),
            ranking: read_ranking(fields)?,
            codecs: CodecSet::from_bits(fields.u8(CODECS, "codecs")?),
            block_cap: fields.u32(BLOCK_CAP, "block cap")?,
            iv: match fields.u8(IV, "iv")? {
                0 => IvMode::Implicit,
                1 => IvMode::Explicit,
                given => return Err(MessageError::Value { field: "iv", given: given.into() }),
            },
            format: match fields.u8(FORMAT, "format")? {
                0 => PayloadFormat::Strait,
                1 => PayloadFormat::Standard,
                given => return Err(MessageError::Value { field: "format", given: given.into() }),
            },
            inner_mtu: fields.u16(INNER_MTU, "inner mtu")?,
            down: read_down(fields)?,
            delivery: read_delivery(fields)?.0,
            reports: read_reports(fields)?,
            repair: read_repair(fields)?,
            history: read_history(fields)?,
            direct: read_direct(fields)?,
            lanes: read_lanes(fields)?,
            expansion: read_expansion(fields)?,
        })
    }

    /// Reads what [`Capabilities::to_bytes`] wrote.
    pub(crate) fn from_bytes(bytes: &[u8]) -> Result<Capabilities, MessageError> {
        Capabilities::read(&Fields::parse(bytes, 0)?)
    }

    /// The fields of a message that say all of this, for a card.
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let mut writer = FieldWriter::new(0, 0);
        self.write(&mut writer);
        writer.finish().split_off(super::HEAD + 2)
    }

    pub(super) fn write(&self, writer: &mut FieldWriter) {
        writer.field(SUITES, &[self.suites.bits()]);
        let costs = Suite::ALL.map(|suite| {
            let [a, b, c, d] = self.ranking.cost(suite).to_be_bytes();
            [suite.id(), a, b, c, d]
        });
        writer.field(COSTS, costs.as_flattened());
        writer.field(CODECS, &[self.codecs.bits()]);
        writer.field(BLOCK_CAP, &self.block_cap.to_be_bytes());
        writer.field(IV, &[u8::from(self.iv == IvMode::Explicit)]);
        writer.field(FORMAT, &[u8::from(self.format == PayloadFormat::Standard)]);
        writer.field(INNER_MTU, &self.inner_mtu.to_be_bytes());
        if let LinkRate::Given(down) = self.down {
            writer.field(DOWN, &down.bits().to_be_bytes());
        }
        if self.delivery == DeliveryReporting::Reported {
            writer.field(DELIVERY, &[u8::from(self.down == LinkRate::Auto)]);
        }
        writer.field(REPORTS, &[u8::from(self.reports == ReportWish::Often)]);
        match self.repair {
            LossRepair::Off => {}
            LossRepair::Unpaced => writer.field(REPAIR, &[0]),
            LossRepair::Paced => writer.field(REPAIR, &[PACED]),
        }
        if self.history.contexts > 0 {
            let ([a, b], [c, d, e, f]) =
                (self.history.contexts.to_be_bytes(), self.history.epoch.to_be_bytes());
            writer.field(HISTORY, &[a, b, c, d, e, f]);
            let caches: Vec<[u8; 12]> = self.history.caches.iter().map(emit_cache).collect();
            if !caches.is_empty() {
                writer.field(CACHES, caches.as_flattened());
            }
        }
        if self.direct == DirectEsp::Taken {
            writer.field(DIRECT, &[1]);
        }
        if self.lanes {
            writer.field(LANES, &[1]);
        }
        let speeds: Vec<[u8; 5]> = self.expansion.iter().map(emit_speed).collect();
        if !speeds.is_empty() {
            writer.field(EXPANSION, speeds.as_flattened());
        }
    }

    /// True if it is sent pieces of streams inside ESP.
    pub(crate) fn takes_lanes(&self) -> bool {
        self.lanes && self.format == PayloadFormat::Strait
    }

    /// What this end and the other do with every byte under `suite`, as far as both have said.
    #[must_use]
    pub fn ends(&self, theirs: &Capabilities, suite: Suite) -> EndpointCosts {
        let handling =
            |ranking: &Ranking| PerByteCost::MEASURED.with_crypto(ranking.cost(suite), Ranking::PACKET_LEN);
        let expand = theirs.expansion.beside(&self.expansion);
        let there = PeerCosts { handling: handling(&theirs.ranking), expand };
        EndpointCosts { here: handling(&self.ranking), there }
    }
}

/// Costs by suite; one that the peer did not name counts as the slowest there is.
fn read_ranking(fields: &Fields<'_>) -> Result<Ranking, MessageError> {
    let mut ranking = Ranking { nanos_per_packet: [u32::MAX; Suite::COUNT] };
    for [id, nanos @ ..] in fields.entries::<5>(COSTS, "costs", MOST_COSTS)? {
        let known = Suite::ALL.iter().position(|suite| suite.id() == id);
        if let Some(cost) = known.and_then(|place| ranking.nanos_per_packet.get_mut(place)) {
            *cost = u32::from_be_bytes(nanos);
        }
    }
    Ok(Ranking { nanos_per_packet: Suite::ALL.map(|suite| ranking.cost(suite)) })
}

/// A rate that is given; or else what an end that tells what arrives wants: to be sent to at what is found out from that.
fn read_down(fields: &Fields<'_>) -> Result<LinkRate, MessageError> {
    if fields.get(DOWN).is_some() {
        let given = fields.u64(DOWN, "down")?;
        return Rate::from_bits(given)
            .map(LinkRate::Given)
            .ok_or(MessageError::Value { field: "down", given });
    }
    Ok(if read_delivery(fields)?.1 { LinkRate::Auto } else { LinkRate::Unpaced })
}

/// Whether what arrives is told, and whether a rate is to be found out from it.
fn read_delivery(fields: &Fields<'_>) -> Result<(DeliveryReporting, bool), MessageError> {
    Ok(match read_switch(fields, DELIVERY, "delivery")? {
        None => (DeliveryReporting::Untold, false),
        Some(auto) => (DeliveryReporting::Reported, auto),
    })
}

/// What is done with reports; an end that does not say it may estimate its rate.
fn read_reports(fields: &Fields<'_>) -> Result<ReportWish, MessageError> {
    Ok(match read_switch(fields, REPORTS, "reports")? {
        Some(false) => ReportWish::Changes,
        None | Some(true) => ReportWish::Often,
    })
}

/// Whether losses are repaired; bits that this node does not know are of no use to it.
fn read_repair(fields: &Fields<'_>) -> Result<LossRepair, MessageError> {
    if fields.get(REPAIR).is_none() {
        return Ok(LossRepair::Off);
    }
    let paced = fields.u8(REPAIR, "repair")? & PACED != 0;
    Ok(if paced { LossRepair::Paced } else { LossRepair::Unpaced })
}

/// What is kept of earlier packets; an end that does not say it keeps nothing.
fn read_history(fields: &Fields<'_>) -> Result<HistoryTerms, MessageError> {
    if fields.get(HISTORY).is_none() {
        return Ok(HistoryTerms::NONE);
    }
    let [a, b, c, d, e, f] = fields.array(HISTORY, "history")?;
    match u16::from_be_bytes([a, b]) {
        0 => Ok(HistoryTerms::NONE),
        contexts => Ok(HistoryTerms {
            contexts,
            epoch: u32::from_be_bytes([c, d, e, f]),
            caches: read_caches(fields)?,
        }),
    }
}

/// The byte caches of trust domains that are kept, in MiB; none of a size that this node does not know.
fn read_caches(fields: &Fields<'_>) -> Result<CacheList, MessageError> {
    let caches = fields.entries::<12>(CACHES, "caches", CACHES_MAX)?;
    Ok(CacheList::of(caches.filter_map(|[a, b, c, d, e, f, g, h, mib @ ..]| {
        let domain = DomainTag(u64::from_be_bytes([a, b, c, d, e, f, g, h]));
        let capacity = CacheCapacity::new(u64::from(u32::from_be_bytes(mib)) << 20)?;
        Some(DomainCache { domain, capacity })
    })))
}

fn emit_cache(cache: DomainCache) -> [u8; 12] {
    let [a, b, c, d, e, f, g, h] = cache.domain.0.to_be_bytes();
    let mib = u32::try_from(cache.capacity.bytes() >> 20).unwrap_or(u32::MAX);
    let [i, j, k, l] = mib.to_be_bytes();
    [a, b, c, d, e, f, g, h, i, j, k, l]
}

/// Whether ESP may come directly behind IP; an end that does not say it takes none.
fn read_direct(fields: &Fields<'_>) -> Result<DirectEsp, MessageError> {
    Ok(match read_switch(fields, DIRECT, "direct")? {
        None | Some(false) => DirectEsp::Off,
        Some(true) => DirectEsp::Taken,
    })
}

/// True if pieces of streams may come inside ESP; an end that does not say it takes none.
fn read_lanes(fields: &Fields<'_>) -> Result<bool, MessageError> {
    Ok(read_switch(fields, LANES, "lanes")?.unwrap_or(false))
}

/// A field of one byte that is 0 or 1; none where it is not there.
fn read_switch(fields: &Fields<'_>, tag: u8, field: &'static str) -> Result<Option<bool>, MessageError> {
    if fields.get(tag).is_none() {
        return Ok(None);
    }
    match fields.u8(tag, field)? {
        on @ (0 | 1) => Ok(Some(on == 1)),
        given => Err(MessageError::Value { field, given: given.into() }),
    }
}

/// Speeds by codec; those of codecs this node does not know are of no use to it.
fn read_expansion(fields: &Fields<'_>) -> Result<Expansion, MessageError> {
    let entries = fields.entries::<5>(EXPANSION, "expansion", MOST_CODECS)?;
    Ok(entries
        .filter_map(|[id, nanos @ ..]| Some((Codec::from_id(id)?, u32::from_be_bytes(nanos))))
        .collect())
}

fn emit_speed((codec, nanos): (Codec, u32)) -> [u8; 5] {
    let [a, b, c, d] = nanos.to_be_bytes();
    [codec.id(), a, b, c, d]
}
