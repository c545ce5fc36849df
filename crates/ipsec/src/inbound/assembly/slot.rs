//! One block in the making.

use strait_clock::Time;
use strait_wire::{Ecn, block};

use crate::block::PARTS_MAX;

/// Where a part lies in the bytes of its slot; nowhere while its length is 0.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PartPlace {
    pub(super) start: u16,
    pub(super) len: u16,
}

/// A block in the making.
#[derive(Debug)]
pub(super) struct BlockSlot {
    pub(super) id: u16,
    pub(super) codec: u8,
    pub(super) parts: usize,
    pub(super) got: usize,
    pub(super) places: [PartPlace; PARTS_MAX],
    /// Its parts, in the order in which they came.
    pub(super) bytes: Vec<u8>,
    /// When its latest part came.
    pub(super) touched: Time,
    pub(super) ecn: Ecn,
}

impl BlockSlot {
    /// Nothing yet of the block that `header` names, whose parts go into `bytes`.
    pub(super) const fn new(header: block::Header, bytes: Vec<u8>, now: Time) -> BlockSlot {
        BlockSlot {
            id: header.id,
            codec: header.codec,
            parts: header.parts as usize,
            got: 0,
            places: [PartPlace { start: 0, len: 0 }; PARTS_MAX],
            bytes,
            touched: now,
            ecn: Ecn::NotEct,
        }
    }

    /// Whether its parts came in order.
    pub(super) fn is_in_order(&self) -> bool {
        self.places.iter().take(self.parts).is_sorted_by_key(|place| place.start)
    }

    /// Copies its parts in order.
    pub(super) fn put_in_order(&self, ordered: &mut Vec<u8>) {
        ordered.clear();
        for PartPlace { start, len } in self.places.iter().take(self.parts) {
            let range = usize::from(*start)..usize::from(*start) + usize::from(*len);
            ordered.extend_from_slice(self.bytes.get(range).unwrap_or_default());
        }
    }
}
