//! Payloads that came behind a gap, until it is filled or given up.

use std::collections::VecDeque;

use strait_wire::{Esn, Protocol};

use super::super::Origin;

/// Bytes that the payloads of one peer may take: what 200 Mbit/s bring in 150 ms.
const PEER_MAX: usize = 4 * 1024 * 1024;
/// Bytes that each association has however much others hold: what 3.5 Mbit/s bring in 150 ms.
const LEAST: usize = 64 * 1024;
/// What an entry takes beside its bytes.
const ENTRY: usize = 128;
/// Buffers that are kept for the next payloads, 1 MiB for all peers: what 40 Mbit/s bring in 100 ms.
const SPARE: usize = 512;
/// The largest of them: any payload on an Ethernet path fits. What is larger is given back at once.
const SPARE_MAX: usize = 2048;

/// Memory of all held payloads of a node.
#[derive(Debug)]
pub(crate) struct HeldMemory {
    used: usize,
    /// Bytes that the payloads of all peers may take together.
    most: usize,
    spare: Vec<Vec<u8>>,
}

impl HeldMemory {
    /// Nothing of so many bytes yet.
    pub(in crate::inbound) const fn new(most: usize) -> HeldMemory {
        HeldMemory { used: 0, most, spare: Vec::new() }
    }

    /// Takes `bytes` for something else that a peer's losses are repaired with; false where there are none left.
    pub(super) const fn take(&mut self, bytes: usize) -> bool {
        let fits = self.used + bytes <= self.most;
        self.used += if fits { bytes } else { 0 };
        fits
    }

    /// Takes the buffer of a payload that was delivered back.
    pub(super) fn recycle(&mut self, bytes: Vec<u8>) {
        if self.spare.len() < SPARE && bytes.capacity() <= SPARE_MAX {
            self.spare.push(bytes);
        }
    }

    /// Gives back what was taken.
    pub(super) const fn give_back(&mut self, bytes: usize) {
        self.used -= bytes;
    }
}

#[cfg(test)]
impl HeldMemory {
    pub(crate) const fn used(&self) -> usize {
        self.used
    }
}

/// A payload that is held back.
#[derive(Debug)]
pub(super) struct HeldPayload {
    pub(super) origin: Origin,
    pub(super) number: Esn,
    pub(super) next: Protocol,
    pub(super) bytes: Vec<u8>,
}

/// The payloads of one association that are held back, in the order of their numbers.
#[derive(Debug, Default)]
pub(super) struct HeldPayloads {
    held: VecDeque<HeldPayload>,
    used: usize,
}

impl HeldPayloads {
    /// Whether `len` more bytes are within the bounds.
    pub(super) const fn has_room(&self, len: usize, memory: &HeldMemory) -> bool {
        let more = len + ENTRY;
        let all = memory.used + more <= memory.most || self.used + more <= LEAST;
        self.used + more <= PEER_MAX && all
    }

    /// Holds a payload back, in its place.
    pub(super) fn push(
        &mut self,
        origin: Origin,
        (number, next): (Esn, Protocol),
        payload: &[u8],
        memory: &mut HeldMemory,
    ) {
        let mut bytes = memory.spare.pop().unwrap_or_default();
        bytes.clear();
        bytes.reserve_exact(payload.len());
        bytes.extend_from_slice(payload);
        self.used += payload.len() + ENTRY;
        memory.used += payload.len() + ENTRY;
        let place = match self.held.back() {
            Some(last) if last.number > number => self.held.partition_point(|held| held.number < number),
            _ => self.held.len(),
        };
        self.held.insert(place, HeldPayload { origin, number, next, bytes });
    }

    /// The first payload, if nothing is missing before it: `missing` is the first missing number.
    pub(super) fn pop(&mut self, missing: Option<Esn>, memory: &mut HeldMemory) -> Option<HeldPayload> {
        let held = self.held.pop_front_if(|held| missing.is_none_or(|missing| held.number < missing))?;
        self.used -= held.bytes.len() + ENTRY;
        memory.used -= held.bytes.len() + ENTRY;
        Some(held)
    }

    /// Gives up all payloads; how many.
    pub(super) fn close(&mut self, memory: &mut HeldMemory) -> u64 {
        memory.used -= core::mem::take(&mut self.used);
        self.held.drain(..).count() as u64
    }

    pub(super) fn is_empty(&self) -> bool {
        self.held.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::PeerId;
    use crate::sa::SaId;
    use strait_clock::Time;
    use strait_wire::{Spi, Tos};

    fn hold(held: &mut HeldPayloads, number: u64, len: usize, memory: &mut HeldMemory) {
        let origin = Origin { sa: SaId::Udp(Spi(1)), peer: PeerId(1), tos: Tos(0), now: Time::ZERO };
        held.push(origin, (Esn(number), Protocol::IPIP), &vec![1; len], memory);
    }

    #[test]
    fn payloads_leave_in_the_order_of_their_numbers_as_far_as_nothing_is_missing() {
        let (mut held, mut memory) = (HeldPayloads::default(), HeldMemory::new(32 << 20));
        for number in [4, 9, 5, 7, 6] {
            hold(&mut held, number, 10, &mut memory);
        }
        let mut popped = Vec::new();
        while let Some(payload) = held.pop(Some(Esn(7)), &mut memory) {
            popped.push(payload.number.0);
            memory.recycle(payload.bytes);
        }
        assert_eq!(popped, [4, 5, 6]);
        assert!(held.pop(Some(Esn(7)), &mut memory).is_none());
        assert_eq!(held.pop(Some(Esn(8)), &mut memory).unwrap().number, Esn(7));
        assert_eq!(held.pop(None, &mut memory).unwrap().number, Esn(9));
        assert!(held.is_empty());
        assert_eq!((memory.used, held.used), (0, 0));
    }

    #[test]
    fn buffers_that_are_kept_are_few_and_small() {
        let (mut held, mut memory) = (HeldPayloads::default(), HeldMemory::new(32 << 20));
        for turn in 0..3 {
            for number in 0..2 * SPARE as u64 {
                hold(&mut held, number, if number % 2 == 0 { 60_000 } else { 40 << turn }, &mut memory);
            }
            while let Some(payload) = held.pop(None, &mut memory) {
                memory.recycle(payload.bytes);
            }
            assert!(memory.spare.len() <= SPARE && !memory.spare.is_empty());
            assert!(memory.spare.iter().all(|bytes| bytes.capacity() <= SPARE_MAX));
        }
    }

    #[test]
    fn both_bounds_hold() {
        let (mut held, mut memory) = (HeldPayloads::default(), HeldMemory::new(32 << 20));
        let len = 2 * LEAST - ENTRY;
        let mut count = 0;
        while held.has_room(len, &memory) {
            count += 1;
            hold(&mut held, count, len, &mut memory);
        }
        assert_eq!(count, 32, "of one association");
        let mut others: Vec<HeldPayloads> = Vec::new();
        while HeldPayloads::default().has_room(len, &memory) {
            let mut other = HeldPayloads::default();
            hold(&mut other, 1, len, &mut memory);
            others.push(other);
        }
        assert_eq!(others.len(), 256 - 32, "of all together");
        let mut small = HeldPayloads::default();
        while small.has_room(1_200, &memory) {
            hold(&mut small, 1, 1_200, &mut memory);
        }
        assert!((48 * 1024..=LEAST).contains(&small.used), "{} bytes, whatever others hold", small.used);
        small.close(&mut memory);
        assert_eq!(held.close(&mut memory), 32);
        assert!(HeldPayloads::default().has_room(len, &memory));
    }
}
