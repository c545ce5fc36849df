//! The memory of blocks in the making, which all associations share.

use crate::block::BLOCK_MAX;

/// What an association may hold whatever others do: the largest block in the making while the next one begins, with their slots.
pub(super) const FLOOR: usize = 2 * BLOCK_MAX + 4096;
/// What an association may hold at most: at 1 Gbit/s what comes in 64 ms, at 100 Mbit/s in more than half a second.
pub(super) const CEILING: usize = 8 << 20;
/// Most bytes of buffers that no block uses.
const SPARE: usize = 4 << 20;
/// The smallest buffer; each class has twice as much as the one before, up to [`BLOCK_MAX`].
const SMALLEST: usize = 256;
const CLASSES: usize = (BLOCK_MAX / SMALLEST).ilog2() as usize + 1;

/// Buffers for blocks in the making, and who may have how much.
#[derive(Debug)]
pub(in crate::inbound) struct BlockMemory {
    /// Bytes that associations hold beyond their floors, and that they may hold. With 32 MiB and the four inbound associations that a peer
    /// has at most, the blocks of 40 peers take 53 MiB at most, those of 250 peers 161 MiB.
    shared: usize,
    most: usize,
    /// Buffers that no block uses, by size, and their bytes.
    spare: [Vec<Vec<u8>>; CLASSES],
    spare_bytes: usize,
    /// The block that was completed last.
    whole: Vec<u8>,
    /// Where its parts are put in order if they came out of order.
    pub(super) ordered: Vec<u8>,
}

impl BlockMemory {
    /// Nothing of so many bytes yet.
    pub(in crate::inbound) fn new(most: usize) -> BlockMemory {
        let spare = Default::default();
        BlockMemory { shared: 0, most, spare, spare_bytes: 0, whole: Vec::new(), ordered: Vec::new() }
    }

    /// Lets an association that has `held` bytes hold `more`; false when that is too much.
    pub(super) fn grant(&mut self, held: &mut usize, more: usize) -> bool {
        let after = *held + more;
        let shared = self.shared + beyond(after) - beyond(*held);
        let grants = after <= FLOOR || after <= CEILING && shared <= self.most;
        if grants {
            (self.shared, *held) = (shared, after);
        }
        grants
    }

    /// Takes back `less` of the `held` bytes of an association.
    pub(super) fn give_back(&mut self, held: &mut usize, less: usize) {
        let after = held.saturating_sub(less);
        self.shared -= beyond(*held) - beyond(after);
        *held = after;
    }

    /// Whether associations should give up now what is of no use any more.
    pub(in crate::inbound) const fn is_short(&self) -> bool {
        self.shared > self.most / 2
    }

    /// An empty buffer with [`room_for`] so many bytes.
    pub(super) fn buffer(&mut self, len: usize) -> Vec<u8> {
        let spare = self.spare.get_mut(class(len)).and_then(Vec::pop);
        match spare {
            Some(buffer) => {
                self.spare_bytes -= buffer.capacity();
                buffer
            }
            None => Vec::with_capacity(room_for(len)),
        }
    }

    /// Keeps a buffer for another block.
    pub(super) fn put_back(&mut self, mut buffer: Vec<u8>) {
        let room = buffer.capacity();
        if room < SMALLEST || self.spare_bytes + room > SPARE {
            return;
        }
        buffer.clear();
        // By what it holds for certain: an allocator may give more.
        if let Some(spare) = self.spare.get_mut((room / SMALLEST).ilog2() as usize) {
            self.spare_bytes += room;
            spare.push(buffer);
        }
    }

    /// Keeps the bytes of a block that is complete, until the next one is.
    pub(super) fn keep_whole(&mut self, bytes: Vec<u8>) {
        let before = core::mem::replace(&mut self.whole, bytes);
        self.put_back(before);
    }

    /// The block that was completed last.
    pub(super) fn whole(&self) -> &[u8] {
        &self.whole
    }
}

#[cfg(test)]
impl Default for BlockMemory {
    fn default() -> BlockMemory {
        BlockMemory::new(32 << 20)
    }
}

#[cfg(test)]
impl BlockMemory {
    /// Bytes of all buffers beyond the floors, and of those that no block uses.
    pub(in crate::inbound) const fn bytes(&self) -> (usize, usize) {
        (self.shared, self.spare_bytes)
    }
}

/// What of `held` bytes is beyond the floor.
const fn beyond(held: usize) -> usize {
    held.saturating_sub(FLOOR)
}

/// The bytes of a buffer for `len` bytes.
pub(super) fn room_for(len: usize) -> usize {
    SMALLEST << class(len)
}

fn class(len: usize) -> usize {
    let smallest = len.div_ceil(SMALLEST).max(1).next_power_of_two();
    (smallest.ilog2() as usize).min(CLASSES - 1)
}
