//! Blocks of one association that came in several datagrams, until all parts are here; bounded in time and bytes.
//!
//! A block in the making takes about as many bytes as came of it, and goes when its missing parts do not come any more. So an
//! association holds what its peer sends in that time: the bound follows from its rate and from the delay of its path. Beyond
//! that each association has a ceiling, and all of them together (memory.rs); one that reaches it gives up its own oldest block.
//! Of a block that was delivered, refused or given up, later parts are refused, and open no slot (fates.rs).

mod fates;
mod memory;
mod slot;

use core::time::Duration;

use strait_clock::Time;
use strait_wire::{Ecn, Esn, block};

use crate::Reason;
use crate::block::{BLOCK_MAX, PARTS_MAX};
use fates::{BlockFate, BlockFates};
pub(super) use memory::BlockMemory;
use memory::{FLOOR, room_for};
use slot::{BlockSlot, PartPlace};

/// How long a missing part may take: no less than this, the shortest time after which TCP sends again what a block was to bring
/// (RFC 6298 section 2.4), and no more than this, which is longer than reordering on any path.
const PATIENCE_MIN: Duration = Duration::from_secs(1);
const PATIENCE_MAX: Duration = Duration::from_secs(5);
/// So many times as long as parts of a block lie apart, as RFC 6298 allows four mean deviations.
const GAPS: u32 = 4;
/// How fast a long gap is forgotten: by this share of it with each part.
const FORGET: u32 = 256;
/// How often blocks are looked for whose time is over.
const LOOK_EVERY: Duration = Duration::from_millis(100);

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

/// What a slot takes beside the bytes of its block.
const SLOT: usize = size_of::<BlockSlot>();

/// All blocks in the making; without memory until there is one.
#[derive(Debug)]
pub(super) struct Assembly {
    slots: Vec<BlockSlot>,
    fates: BlockFates,
    /// Bytes that the slots take.
    held: usize,
    /// The longest time between parts of a block lately.
    gap: Duration,
    looked_at: Time,
}

impl Default for Assembly {
    fn default() -> Assembly {
        let (slots, fates) = (Vec::new(), BlockFates::new());
        Assembly { slots, fates, held: 0, gap: PATIENCE_MAX / GAPS, looked_at: Time::ZERO }
    }
}

impl Assembly {
    /// Adds one part; gives the block when it was the last one missing. `lost` is told how many blocks were given up.
    pub(super) fn add<'a>(
        &mut self,
        arrival: PartArrival,
        header: block::Header,
        part: &[u8],
        memory: &'a mut BlockMemory,
        lost: &mut u64,
    ) -> Result<Option<WholeBlock<'a>>, Reason> {
        let parts = usize::from(header.parts);
        let len = u16::try_from(part.len()).ok().filter(|len| *len > 0 && parts <= PARTS_MAX);
        let len = len.ok_or(Reason::MalformedBlock)?;
        self.find_or_begin(arrival, header, part.len(), memory, lost)?;
        let added = self.put(arrival, header, (part, len), memory, lost);
        self.expire(arrival.now, memory, lost);
        match added {
            Ok(false) => Ok(None),
            Ok(true) => Ok(self.complete(header.id, memory)),
            Err(reason) => {
                self.end(header.id, memory);
                Err(reason)
            }
        }
    }

    /// Sees to it that the block of this part has a slot.
    fn find_or_begin(
        &mut self,
        arrival: PartArrival,
        header: block::Header,
        len: usize,
        memory: &mut BlockMemory,
        lost: &mut u64,
    ) -> Result<(), Reason> {
        let id = header.id;
        if self.fates.is_another_run(id, arrival.esn) {
            *lost += self.close(memory);
            self.fates.restart(id, arrival.esn);
        }
        for _ in 0..self.fates.ahead(id) {
            if let Some(at) = self.fates.make_way() {
                *lost += self.remove(at.into(), memory);
            }
            self.fates.advance(arrival.esn);
        }
        match self.fates.get(id) {
            BlockFate::InSlot(_) => Ok(()),
            BlockFate::Over => Err(Reason::BlockOver),
            BlockFate::Unseen => {
                self.begin(arrival.now, header, len, memory, lost);
                Ok(())
            }
        }
    }

    /// Opens a slot for the block, a part of which has `len` bytes: with room for all of it at once while that is within the
    /// association's floor, else for what is here.
    fn begin(
        &mut self,
        now: Time,
        header: block::Header,
        len: usize,
        memory: &mut BlockMemory,
        lost: &mut u64,
    ) {
        let whole = (len * usize::from(header.parts)).min(BLOCK_MAX);
        let fits = self.held + SLOT + room_for(whole) <= FLOOR;
        let bytes = memory.buffer(if fits { whole } else { len });
        self.make_room(SLOT + bytes.capacity(), None, memory, lost);
        let at = u16::try_from(self.slots.len()).unwrap_or(u16::MAX);
        self.fates.set(header.id, BlockFate::InSlot(at));
        self.slots.push(BlockSlot::new(header, bytes, now));
    }

    /// Puts a part into its slot; true when none is missing any more.
    fn put(
        &mut self,
        arrival: PartArrival,
        header: block::Header,
        (part, len): (&[u8], u16),
        memory: &mut BlockMemory,
        lost: &mut u64,
    ) -> Result<bool, Reason> {
        let Some(slot) = self.slot(header.id) else { return Err(Reason::BlockIncomplete) };
        let place = slot.places.get_mut(usize::from(header.part)).ok_or(Reason::MalformedBlock)?;
        if slot.codec != header.codec || slot.parts != usize::from(header.parts) || place.len > 0 {
            return Err(Reason::MalformedBlock);
        }
        let after = slot.bytes.len() + part.len();
        let start = u16::try_from(slot.bytes.len()).ok().filter(|_| after <= BLOCK_MAX);
        *place = PartPlace { start: start.ok_or(Reason::BlockTooLong)?, len };
        let gap = arrival.now.since(slot.touched);
        (slot.touched, slot.ecn) = (arrival.now, worst(slot.ecn, arrival.ecn));
        if after > slot.bytes.capacity() && !self.grow(header.id, after, memory, lost) {
            return Ok(false);
        }
        self.gap = self.gap.max(gap) - self.gap.saturating_sub(gap) / FORGET;
        let Some(slot) = self.slot(header.id) else { return Ok(false) };
        slot.bytes.extend_from_slice(part);
        slot.got += 1;
        Ok(slot.got == slot.parts)
    }

    /// Moves a block into a larger buffer; false when the block itself was given up for that.
    fn grow(&mut self, id: u16, len: usize, memory: &mut BlockMemory, lost: &mut u64) -> bool {
        let mut larger = memory.buffer(len);
        let room = larger.capacity();
        if !self.make_room(room, Some(id), memory, lost) {
            memory.put_back(larger);
            return false;
        }
        let Some(slot) = self.slot(id) else { return false };
        larger.extend_from_slice(&slot.bytes);
        let before = core::mem::replace(&mut slot.bytes, larger);
        memory.give_back(&mut self.held, before.capacity());
        memory.put_back(before);
        true
    }

    /// Gives up the oldest blocks until there are `more` bytes; false when `keep` was among them.
    fn make_room(
        &mut self,
        more: usize,
        keep: Option<u16>,
        memory: &mut BlockMemory,
        lost: &mut u64,
    ) -> bool {
        while !memory.grant(&mut self.held, more) {
            let Some(at) = self.fates.oldest() else { return true };
            let id = self.slots.get(usize::from(at)).map(|slot| slot.id);
            *lost += self.remove(at.into(), memory);
            if id == keep {
                return false;
            }
        }
        true
    }

    /// Gives up blocks of which nothing has come for too long.
    pub(super) fn expire(&mut self, now: Time, memory: &mut BlockMemory, lost: &mut u64) {
        if now.since(self.looked_at) < LOOK_EVERY {
            return;
        }
        self.looked_at = now;
        let patience = (self.gap * GAPS).clamp(PATIENCE_MIN, PATIENCE_MAX);
        let mut at = self.slots.len();
        while let Some(before) = at.checked_sub(1) {
            at = before;
            if self.slots.get(at).is_some_and(|slot| slot.touched + patience < now) {
                *lost += self.remove(at, memory);
            }
        }
    }

    /// Gives up all blocks in the making, and says how many.
    pub(super) fn close(&mut self, memory: &mut BlockMemory) -> u64 {
        (0..self.slots.len()).rev().map(|at| self.remove(at, memory)).sum()
    }

    /// The bytes of a block that is whole; they are copied only when they came out of order.
    fn complete<'a>(&mut self, id: u16, memory: &'a mut BlockMemory) -> Option<WholeBlock<'a>> {
        let BlockFate::InSlot(at) = self.fates.get(id) else { return None };
        let slot = self.take(at.into(), memory)?;
        let (in_order, ecn) = (slot.is_in_order(), slot.ecn);
        if !in_order {
            slot.put_in_order(&mut memory.ordered);
        }
        memory.keep_whole(slot.bytes);
        Some(WholeBlock { bytes: if in_order { memory.whole() } else { &memory.ordered }, ecn })
    }

    /// Ends block `id`, if it is in the making.
    fn end(&mut self, id: u16, memory: &mut BlockMemory) {
        if let BlockFate::InSlot(at) = self.fates.get(id) {
            self.remove(at.into(), memory);
        }
    }

    /// Ends the block in this slot; says how many that are.
    fn remove(&mut self, at: usize, memory: &mut BlockMemory) -> u64 {
        let Some(slot) = self.take(at, memory) else { return 0 };
        memory.put_back(slot.bytes);
        1
    }

    /// Takes a slot out, whose block is over; the last one gets its place.
    fn take(&mut self, at: usize, memory: &mut BlockMemory) -> Option<BlockSlot> {
        if at >= self.slots.len() {
            return None;
        }
        let slot = self.slots.swap_remove(at);
        self.fates.set(slot.id, BlockFate::Over);
        if let (Some(moved), Ok(at)) = (self.slots.get(at), u16::try_from(at)) {
            self.fates.set(moved.id, BlockFate::InSlot(at));
        }
        memory.give_back(&mut self.held, SLOT + slot.bytes.capacity());
        Some(slot)
    }

    fn slot(&mut self, id: u16) -> Option<&mut BlockSlot> {
        let BlockFate::InSlot(at) = self.fates.get(id) else { return None };
        self.slots.get_mut(usize::from(at))
    }
}

/// A congestion mark on any part is one on the whole.
pub(super) fn worst(one: Ecn, other: Ecn) -> Ecn {
    if one == Ecn::Ce || other == Ecn::Ce { Ecn::Ce } else { other }
}

#[cfg(test)]
mod tests;
