//! Blocks of one association that came in several datagrams, until all parts are here; bounded in number, bytes and time.

use core::time::Duration;

use strait_clock::Time;
use strait_wire::{Ecn, Esn, block};

use crate::Reason;
use crate::block::{BLOCK_MAX, PARTS_MAX};

/// Blocks in the making at once: reordering spans a block or two, loss leaves some. With [`BLOCK_MAX`] each, an association takes
/// 512 KiB for them at most.
const SLOTS: usize = 8;
/// Parts that lie further apart than this, in sequence numbers, are of two blocks with the same number,
/// which comes again after 2^16 blocks.
const SPREAD_MAX: u64 = 1 << 15;
/// After this nothing that is missing comes any more: longer than reordering on any path.
const PATIENCE: Duration = Duration::from_secs(5);

/// A whole block, its parts in order.
pub(super) struct WholeBlock<'a> {
    pub(super) bytes: &'a [u8],
    /// The worst mark of its parts.
    pub(super) ecn: Ecn,
}

/// How and when one part came.
#[derive(Clone, Copy, Debug)]
pub(super) struct PartArrival {
    pub(super) esn: Esn,
    pub(super) ecn: Ecn,
    pub(super) now: Time,
}

#[derive(Debug)]
struct BlockSlot {
    /// The block's number; nothing while the slot is free.
    id: Option<u16>,
    codec: u8,
    parts: usize,
    got: usize,
    /// Where each part lies in `bytes`.
    places: [Option<(usize, usize)>; PARTS_MAX],
    bytes: Vec<u8>,
    started: Time,
    /// The sequence number of the part that came first.
    esn: Esn,
    ecn: Ecn,
}

/// All blocks in the making; without memory until there is one.
#[derive(Debug, Default)]
pub(super) struct Assembly {
    slots: Vec<BlockSlot>,
    /// Where parts that came out of order are put in order.
    ordered: Vec<u8>,
}

impl Assembly {
    /// Adds one part; gives the block when it was the last one missing. `lost` is told how many
    /// blocks were given up to make room.
    pub(super) fn add(
        &mut self,
        arrival: PartArrival,
        header: block::Header,
        part: &[u8],
        lost: &mut u64,
    ) -> Result<Option<WholeBlock<'_>>, Reason> {
        let (index, parts) = (usize::from(header.part), usize::from(header.parts));
        if parts > PARTS_MAX || part.is_empty() {
            return Err(Reason::MalformedBlock);
        }
        let at = self.slot_for(arrival, header, lost);
        let slot = self.slots.get_mut(at).ok_or(Reason::MalformedBlock)?;
        let place = slot.places.get_mut(index).ok_or(Reason::MalformedBlock)?;
        if slot.codec != header.codec || slot.parts != parts || place.is_some() {
            return Err(Reason::MalformedBlock);
        }
        if slot.bytes.len() + part.len() > BLOCK_MAX {
            slot.id = None;
            return Err(Reason::BlockTooLong);
        }
        *place = Some((slot.bytes.len(), slot.bytes.len() + part.len()));
        slot.bytes.extend_from_slice(part);
        slot.got += 1;
        slot.ecn = worst(slot.ecn, arrival.ecn);
        if slot.got < slot.parts {
            return Ok(None);
        }
        slot.id = None;
        Ok(Some(whole(slot, &mut self.ordered)))
    }

    /// The slot of this part's block, an empty one if it is the block's first.
    fn slot_for(&mut self, arrival: PartArrival, header: block::Header, lost: &mut u64) -> usize {
        let mut best = None;
        for (at, slot) in self.slots.iter_mut().enumerate() {
            if slot.id.is_some() && slot.is_over(header.id, arrival) {
                slot.id = None;
                *lost += 1;
            }
            match (slot.id, best) {
                (Some(of), _) if of == header.id => return at,
                (None, _) => best = Some((at, None)),
                (Some(_), None) => best = Some((at, Some(slot.started))),
                (Some(_), Some((_, Some(oldest)))) if slot.started < oldest => {
                    best = Some((at, Some(slot.started)));
                }
                _ => {}
            }
        }
        let at = match best {
            Some((at, None)) => at,
            Some((at, Some(_))) if self.slots.len() >= SLOTS => {
                *lost += 1;
                at
            }
            _ => {
                self.slots.push(BlockSlot::empty());
                self.slots.len() - 1
            }
        };
        if let Some(slot) = self.slots.get_mut(at) {
            slot.start(arrival, header);
        }
        at
    }
}

impl BlockSlot {
    fn empty() -> BlockSlot {
        BlockSlot {
            id: None,
            codec: 0,
            parts: 0,
            got: 0,
            places: [None; PARTS_MAX],
            bytes: Vec::new(),
            started: Time::ZERO,
            esn: Esn(0),
            ecn: Ecn::NotEct,
        }
    }

    /// Whether what is missing will not come any more, as `arrival` of a part of block `id` shows.
    fn is_over(&self, id: u16, arrival: PartArrival) -> bool {
        let again = self.id == Some(id) && self.esn.0.abs_diff(arrival.esn.0) > SPREAD_MAX;
        again || self.started + PATIENCE < arrival.now
    }

    fn start(&mut self, arrival: PartArrival, header: block::Header) {
        self.id = Some(header.id);
        self.codec = header.codec;
        self.parts = usize::from(header.parts);
        self.got = 0;
        self.places = [None; PARTS_MAX];
        self.bytes.clear();
        self.started = arrival.now;
        self.esn = arrival.esn;
        self.ecn = Ecn::NotEct;
    }
}

/// The parts in order; they are copied only when they came out of order.
fn whole<'a>(slot: &'a BlockSlot, ordered: &'a mut Vec<u8>) -> WholeBlock<'a> {
    let places = slot.places.iter().flatten();
    let in_order = places.clone().zip(places.clone().skip(1)).all(|(one, next)| one.1 == next.0);
    if in_order {
        return WholeBlock { bytes: &slot.bytes, ecn: slot.ecn };
    }
    ordered.clear();
    for (start, end) in places {
        ordered.extend_from_slice(slot.bytes.get(*start..*end).unwrap_or_default());
    }
    WholeBlock { bytes: ordered, ecn: slot.ecn }
}

/// A congestion mark on any part is one on the whole.
pub(super) fn worst(one: Ecn, other: Ecn) -> Ecn {
    if one == Ecn::Ce || other == Ecn::Ce { Ecn::Ce } else { other }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(id: u16, part: u8, parts: u8) -> block::Header {
        block::Header { codec: 3, id, part, parts }
    }

    fn arrival(esn: u64, at: u64) -> PartArrival {
        PartArrival { esn: Esn(esn), ecn: Ecn::NotEct, now: Time::from_millis(at) }
    }

    fn add(
        assembly: &mut Assembly,
        id: u16,
        part: u8,
        parts: u8,
        at: u64,
    ) -> (Result<Option<Vec<u8>>, Reason>, u64) {
        let mut lost = 0;
        let bytes = [part; 3];
        let result = assembly
            .add(arrival(0, at), header(id, part, parts), &bytes, &mut lost)
            .map(|whole| whole.map(|whole| whole.bytes.to_vec()));
        (result, lost)
    }

    #[test]
    fn parts_in_any_order_make_the_block() {
        for order in [[0, 1, 2], [2, 1, 0], [1, 2, 0], [0, 2, 1]] {
            let mut assembly = Assembly::default();
            assert_eq!(add(&mut assembly, 7, order[0], 3, 0).0, Ok(None));
            assert_eq!(add(&mut assembly, 7, order[1], 3, 0).0, Ok(None));
            assert_eq!(add(&mut assembly, 7, order[2], 3, 0).0, Ok(Some(vec![0, 0, 0, 1, 1, 1, 2, 2, 2])));
        }
    }

    #[test]
    fn contradictions_are_refused() {
        let mut assembly = Assembly::default();
        add(&mut assembly, 1, 0, 3, 0).0.unwrap();
        assert_eq!(add(&mut assembly, 1, 0, 3, 0).0, Err(Reason::MalformedBlock));
        assert_eq!(add(&mut assembly, 1, 1, 4, 0).0, Err(Reason::MalformedBlock));
        assert_eq!(add(&mut assembly, 2, 0, 65, 0).0, Err(Reason::MalformedBlock));
    }

    #[test]
    fn memory_is_bounded_in_datagrams_bytes_and_time() {
        let mut assembly = Assembly::default();
        let mut lost = 0;
        for id in 0..100 {
            lost += add(&mut assembly, id, 0, 2, u64::from(id)).1;
        }
        assert_eq!((assembly.slots.len(), lost), (SLOTS, 100 - SLOTS as u64));
        assert_eq!(add(&mut assembly, 500, 0, 2, 60_000).1, SLOTS as u64);
        let big = vec![0; 40_000];
        let mut lost = 0;
        let mut add_big =
            |part| assembly.add(arrival(0, 60_000), header(9, part, 3), &big, &mut lost).map(|_| ());
        assert_eq!(add_big(0), Ok(()));
        assert_eq!(add_big(1), Err(Reason::BlockTooLong));
    }

    #[test]
    fn reused_block_number_starts_another_block() {
        let mut assembly = Assembly::default();
        let mut lost = 0;
        let mut add = |esn, part, byte| {
            let whole = assembly.add(arrival(esn, 0), header(5, part, 2), &[byte], &mut lost);
            (whole.map(|whole| whole.map(|whole| whole.bytes.to_vec())), lost)
        };
        assert_eq!(add(10, 0, 1), (Ok(None), 0));
        assert_eq!(add(10 + (1 << 16), 1, 4), (Ok(None), 1));
        assert_eq!(add(9 + (1 << 16), 0, 3), (Ok(Some(vec![3, 4])), 1));
        assert_eq!(add(20, 1, 2), (Ok(None), 1));
        assert_eq!(add(10, 0, 1), (Ok(Some(vec![1, 2])), 1));
    }

    #[test]
    fn ecn_mark_on_one_part_marks_whole_block() {
        let mut assembly = Assembly::default();
        let mut lost = 0;
        for (part, ecn) in [(0, Ecn::Ect0), (1, Ecn::Ce), (2, Ecn::Ect0)] {
            let whole = assembly
                .add(PartArrival { ecn, ..arrival(0, 0) }, header(1, part, 3), &[1], &mut lost)
                .unwrap();
            assert!(whole.is_none_or(|whole| whole.ecn == Ecn::Ce));
        }
    }
}
