//! The reference model: which packets there are, and where each of them is.

use std::collections::BTreeMap;

use strait_clock::Time;
use strait_wire::ip::{self, Packet, Version};
use strait_wire::{Ecn, Tos};

use super::{Held, SITES, hold};
use crate::packet::put16;

/// One inner packet.
#[derive(Debug)]
struct InnerPacket {
    from: usize,
    to: usize,
    /// The flow whose order is kept, and its place in it.
    flow: Option<(u16, u64)>,
    ecn: Ecn,
    /// In which unit the witness found it.
    unit: Option<usize>,
    /// The number of times that it left, and came to the receiver: again only at the end of an outage.
    left: u32,
    came: u32,
    /// Whether it may be missing although all that it needs arrived.
    excused: bool,
}

/// What makes datagrams of use only together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Together {
    /// Nothing: there is one.
    Alone,
    /// They are parts of one block, in any order.
    Block,
    /// They are pieces of one packet, one behind another.
    Chain,
}

/// Datagrams that are of use only together.
#[derive(Clone, Copy, Debug)]
pub(super) struct UnitOnLink {
    /// Whether one of them was lost, changed, or came where nothing takes it.
    pub(super) spoiled: bool,
    /// Whether one of them was on its way when the order there changed.
    pub(super) displaced: bool,
    /// Why they are of use only together.
    pub(super) together: Together,
    /// When the latest of them came.
    pub(super) touched: Option<Time>,
}

impl UnitOnLink {
    /// Whether what is in it may be missing. Pieces of a packet have to come one behind another.
    fn may_miss(&self) -> bool {
        self.spoiled || self.displaced && self.together == Together::Chain
    }
}

/// All packets that hosts sent, and what the receivers are to have of them.
#[derive(Debug, Default)]
pub(super) struct ReferenceModel {
    packets: Vec<InnerPacket>,
    by_bytes: BTreeMap<Vec<u8>, usize>,
    pub(super) units: Vec<UnitOnLink>,
    /// By site: packets given to its sender, and those of them that left.
    given: [u64; SITES],
    left: [u64; SITES],
    /// By site: packets that its host was given.
    received: [u64; SITES],
    /// By link: packets that left.
    left_on: [[u64; SITES]; SITES],
    /// The last place in each flow at the witness, and at the receiver.
    order: BTreeMap<(usize, usize, u16, bool), u64>,
}

impl ReferenceModel {
    /// The host at `from` gives its sender a packet, which the host at `to` is to be given as it is here.
    pub(super) fn give(&mut self, (from, to): (usize, usize), flow: Option<u16>, bytes: &[u8]) -> Held {
        let place = self.packets.len();
        let flow = flow.map(|flow| (flow, place as u64));
        let ecn = ecn_of(bytes);
        let packet = InnerPacket { from, to, flow, ecn, unit: None, left: 0, came: 0, excused: false };
        self.packets.push(packet);
        self.given[from] += 1;
        let before = self.by_bytes.insert(canonical(bytes), place);
        hold(before.is_none(), || "the driver made the same packet twice".to_owned())
    }

    /// The host gives its sender a packet that must not leave.
    pub(super) const fn give_oddity(&mut self, from: usize) {
        self.given[from] += 1;
    }

    /// The witness at `at` found a packet in the datagrams of `unit`.
    pub(super) fn leaves(&mut self, at: usize, bytes: &[u8], unit: usize) -> Held {
        let place = self.place(at, bytes)?;
        let packet = &mut self.packets[place];
        packet.unit.get_or_insert(unit);
        packet.left += 1;
        let (from, to, flow) = (packet.from, packet.to, packet.flow.filter(|_| packet.left == 1));
        self.left[from] += 1;
        self.left_on[from][to] += 1;
        self.in_order((from, to), flow, true)
    }

    /// The host at `at` is given a packet; `ordered` says which links to it kept the order of
    /// datagrams.
    pub(super) fn arrives(&mut self, at: usize, bytes: &[u8], ordered: [bool; SITES]) -> Held {
        let place = self.place(at, bytes)?;
        let packet = &mut self.packets[place];
        packet.came += 1;
        hold(packet.came <= packet.left, || {
            format!("packet {place} arrived {} times and left {} times", packet.came, packet.left)
        })?;
        let (from, to, flow) = (packet.from, packet.to, packet.flow.filter(|_| packet.left == 1));
        self.received[at] += 1;
        if ordered[from] { self.in_order((from, to), flow, false) } else { Ok(()) }
    }

    /// Which packet this is; its congestion mark alone may have changed.
    fn place(&self, at: usize, bytes: &[u8]) -> Result<usize, String> {
        let place = self.by_bytes.get(&canonical(bytes)).copied();
        let place = place.ok_or_else(|| {
            let start = bytes.get(..60.min(bytes.len()));
            format!("site {at} was given what none sent, {} bytes, {start:02x?}", bytes.len())
        })?;
        let packet = &self.packets[place];
        hold(packet.to == at, || format!("packet {place} came to site {at}, not {}", packet.to))?;
        let (before, after) = (packet.ecn, ecn_of(bytes));
        let kept = before == after || before != Ecn::NotEct && after == Ecn::Ce;
        hold(kept, || format!("packet {place} was {before:?} and is {after:?}"))?;
        hold(header_is_right(bytes), || format!("packet {place} has a wrong header checksum"))?;
        Ok(place)
    }

    fn in_order(&mut self, (from, to): (usize, usize), flow: Option<(u16, u64)>, witness: bool) -> Held {
        let Some((flow, place)) = flow else { return Ok(()) };
        let before = self.order.insert((from, to, flow, witness), place);
        let who = if witness { "the witness" } else { "the receiver" };
        hold(before.is_none_or(|before| before < place), || {
            format!("packet {place} of flow {flow} came to {who} behind packet {}", before.unwrap_or(0))
        })
    }

    /// What of the flows from `from` to `to` comes next may be any of them.
    pub(super) fn forget_order(&mut self, from: usize, to: usize) {
        self.order.retain(|(source, target, _, witness), _| *witness || (*source, *target) != (from, to));
    }

    /// All that `from` sealed for `to` has left, but for what it counted as dropped, no more than `gone`, when the peer went.
    pub(super) fn all_left(&self, (from, to): (usize, usize), sealed: u64, gone: u64) -> Held {
        let left = self.left_on[from][to];
        hold((left..=left + gone).contains(&sealed), || {
            format!(
                "{from} to {to}: {sealed} packets are counted as sealed, {left} left, {gone} went with the peer"
            )
        })
    }

    /// What has left on this link and is not there may be missing.
    pub(super) fn excuse(&mut self, (from, to): (usize, usize)) {
        let left =
            |packet: &&mut InnerPacket| (packet.from, packet.to) == (from, to) && packet.unit.is_some();
        self.packets.iter_mut().filter(left).for_each(|packet| packet.excused = true);
    }

    /// Packets given to the sender of `site` that neither left nor were dropped, where it dropped so many and gave itself so many
    /// again.
    pub(super) fn waiting(&self, site: usize, dropped: u64, again: u64) -> Result<u64, String> {
        let (given, left) = (self.given[site] + again, self.left[site]);
        given.checked_sub(left + dropped).ok_or_else(|| {
            format!("site {site} got {given} packets, {left} left, {dropped} are counted as dropped")
        })
    }

    /// Packets given, left, received at all sites, each counted once.
    pub(super) fn totals(&self) -> [u64; 3] {
        let count = |what: fn(&InnerPacket) -> bool| self.packets.iter().filter(|it| what(it)).count() as u64;
        [self.given.iter().sum(), count(|packet| packet.left > 0), count(|packet| packet.came > 0)]
    }

    /// Packets that the host of `site` was given.
    pub(super) const fn received(&self, site: usize) -> u64 {
        self.received[site]
    }

    /// Everything that left has arrived, but for what shared its fate with datagrams that did not.
    pub(super) fn all_arrived(&self) -> Held {
        for (place, packet) in self.packets.iter().enumerate() {
            let Some(unit) = packet.unit else { continue };
            let may_miss = packet.came > 0 || packet.excused || self.units[unit].may_miss();
            hold(may_miss, || format!("packet {place}, {packet:?}, left and did not arrive"))?;
        }
        Ok(())
    }

    /// Whether any datagram was lost or came in another order.
    pub(super) fn lost_any(&self) -> bool {
        self.units.iter().any(|unit| unit.spoiled || unit.displaced)
    }

    /// Packets that left and will not arrive.
    pub(super) fn missing(&self) -> u64 {
        self.packets.iter().filter(|packet| packet.unit.is_some() && packet.came == 0).count() as u64
    }
}

fn ecn_of(bytes: &[u8]) -> Ecn {
    Packet::parse(bytes).map_or(Ecn::NotEct, |packet| packet.tos().ecn())
}

/// The packet without what may change on its way: the congestion mark, and of IPv4 the identification where it says
/// nothing (RFC 6864), with the header checksum over both.
fn canonical(bytes: &[u8]) -> Vec<u8> {
    let mut canonical = bytes.to_vec();
    match ip::version_of(bytes) {
        Some(Version::V4) => {
            if let Some(tos) = canonical.get_mut(1) {
                *tos = Tos(*tos).with_ecn(Ecn::NotEct).0;
            }
            let flags = bytes.get(6..8).map_or(0, |word| u16::from_be_bytes([word[0], word[1]]));
            // Whole, and not to be cut.
            if flags == 0x4000 {
                put16(&mut canonical, 4, 0);
            }
            put16(&mut canonical, 10, 0);
        }
        _ => {
            if let Some(class) = canonical.get_mut(1) {
                *class &= 0xcf;
            }
        }
    }
    canonical
}

fn header_is_right(bytes: &[u8]) -> bool {
    let sum = |bytes: &[u8]| strait_wire::checksum::Sum::ZERO.add_bytes(bytes).is_valid();
    ip::version_of(bytes) != Some(Version::V4) || bytes.get(..20).is_some_and(sum)
}
