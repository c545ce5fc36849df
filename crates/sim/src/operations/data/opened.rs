//! What is in a datagram, as an observer with the keys sees it: which datagrams are of use only together.

use std::collections::BTreeMap;

use strait_crypto::{Key, KeyMaterial, Suite};
use strait_ipsec::{IvMode, Payloads, SaSpec};
use strait_wire::{Protocol, SeqLow, Spi, aggfrag, block, esp};

use super::model::{ReferenceModel, Together, UnitOnLink};
use super::{Held, hold};
use crate::NodeId;

/// Where the numbers of associations begin.
const FIRST_SPI: u32 = 0x0400_0001;

/// An association as both ends agreed on it.
struct Agreed {
    from: usize,
    to: usize,
    key: Key,
    iv: IvMode,
    /// The units of its datagrams.
    numbers: BTreeMap<SeqLow, usize>,
    /// The units of blocks, by number.
    blocks: BTreeMap<u16, (usize, u8)>,
}

/// All associations there ever were.
#[derive(Default)]
pub(super) struct AllAgreed(Vec<Agreed>);

/// Which association a datagram is of, and which unit.
#[derive(Clone, Copy, Debug)]
pub(super) struct OpenedDatagram {
    pub(super) from: usize,
    pub(super) to: usize,
    pub(super) spi: Spi,
    pub(super) seq: SeqLow,
    pub(super) unit: usize,
}

impl AllAgreed {
    /// A new association's number.
    pub(super) fn agree(&mut self, (from, to): (usize, usize), iv: IvMode) -> Option<Spi> {
        let spi = Spi(FIRST_SPI + u32::try_from(self.0.len()).ok()?);
        let (numbers, blocks) = (BTreeMap::new(), BTreeMap::new());
        self.0.push(Agreed { from, to, key: Key::new(&material(spi)?), iv, numbers, blocks });
        Some(spi)
    }

    /// What makes that association, for the end that knows the other as `peer`.
    pub(super) fn spec(&self, spi: Spi, peer: usize, payloads: Payloads) -> Option<SaSpec> {
        let agreed = self.0.get(usize::try_from(spi.0.checked_sub(FIRST_SPI)?).ok()?)?;
        Some(SaSpec::session(NodeId::of(peer).peer(), spi, material(spi)?, agreed.iv, payloads))
    }

    /// Looks into a datagram as it leaves; nothing if it is not ESP.
    pub(super) fn open(
        &mut self,
        bytes: &[u8],
        model: &mut ReferenceModel,
    ) -> Result<Option<OpenedDatagram>, String> {
        let Ok((header, sealed)) = esp::Header::parse(bytes) else { return Ok(None) };
        let at = header.spi.0.checked_sub(FIRST_SPI).and_then(|at| usize::try_from(at).ok());
        let Some(agreed) = at.and_then(|at| self.0.get_mut(at)) else { return Ok(None) };
        hold(!agreed.numbers.contains_key(&header.seq), || {
            format!("number {:?} of {:?} was used twice", header.seq, header.spi)
        })?;
        let mut sealed = sealed.get(agreed.iv.wire_len()..).unwrap_or_default().to_vec();
        hold(sealed.len() >= agreed.key.suite().icv_len(), || "what left is no ESP packet".to_owned())?;
        // None of these associations lives for 2^32 packets.
        let esn = u64::from(header.seq.0);
        let aad = [&header.spi.0.to_be_bytes()[..], &esn.to_be_bytes()].concat();
        let opened = agreed.key.open(esn, &aad, &mut sealed).map_err(|_| "what left is not authentic")?;
        let next = opened.last().copied().map(Protocol);
        let unit = agreed.unit(header.seq, next, opened, &mut model.units)?;
        agreed.numbers.insert(header.seq, unit);
        let esp::Header { spi, seq } = header;
        Ok(Some(OpenedDatagram { from: agreed.from, to: agreed.to, spi, seq, unit }))
    }
}

impl Agreed {
    fn unit(
        &mut self,
        seq: SeqLow,
        next: Option<Protocol>,
        payload: &[u8],
        units: &mut Vec<UnitOnLink>,
    ) -> Result<usize, String> {
        if next == Some(Protocol::AGGFRAG)
            && let Ok((header, _)) = block::Header::parse(payload)
        {
            return self.block(header, units);
        }
        let goes_on = next == Some(Protocol::AGGFRAG)
            && aggfrag::Payload::parse(payload).is_ok_and(|payload| payload.header.offset() > 0);
        let before = self.numbers.get(&SeqLow(seq.0.wrapping_sub(1))).filter(|_| goes_on);
        let Some(unit) = before.copied() else { return Ok(new_unit(units, Together::Alone)) };
        units[unit].together = Together::Chain;
        Ok(unit)
    }

    fn block(&mut self, header: block::Header, units: &mut Vec<UnitOnLink>) -> Result<usize, String> {
        let (unit, came) = match self.blocks.get(&header.id) {
            Some((unit, came)) if *came < header.parts => (*unit, *came),
            _ => {
                let together = if header.parts > 1 { Together::Block } else { Together::Alone };
                (new_unit(units, together), 0)
            }
        };
        self.blocks.insert(header.id, (unit, came + 1));
        let held: Held = hold(header.part == came, || format!("part {} came as number {came}", header.part));
        held.map(|()| unit)
    }
}

fn new_unit(units: &mut Vec<UnitOnLink>, together: Together) -> usize {
    units.push(UnitOnLink { spoiled: false, displaced: false, together, touched: None });
    units.len() - 1
}

fn material(spi: Spi) -> Option<KeyMaterial> {
    let bytes = [spi.0.to_be_bytes(); 5].concat();
    KeyMaterial::new(Suite::Aes128Gcm, bytes.get(..Suite::Aes128Gcm.key_material_len())?).ok()
}
