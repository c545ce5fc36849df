//! The last payloads of an association as source symbols.

use strait_clock::Time;
use strait_wire::{Protocol, symbol};

use super::{SOURCE_MAX, SPAN};

/// The source symbols with the highest numbers, at most 128 numbers apart.
#[derive(Debug)]
pub(super) struct SourceWindow {
    slots: Box<[SourceSlot]>,
    /// The highest number that is or was here.
    newest: u64,
}

/// A place for one of the numbers that are the same modulo 128.
#[derive(Clone, Debug, Default)]
struct SourceSlot {
    /// 0 for none: no datagram has this number (RFC 4303 section 2.2).
    number: u64,
    at: Time,
    /// Keeps its memory, so that nothing is allocated once all slots have been used.
    symbol: Vec<u8>,
}

impl SourceWindow {
    pub(super) fn new() -> SourceWindow {
        SourceWindow { slots: vec![SourceSlot::default(); SPAN].into_boxed_slice(), newest: 0 }
    }

    /// Keeps a payload; false where it cannot be a source, or newer ones have taken its place.
    pub(super) fn put(&mut self, number: u64, next: Protocol, payload: &[u8], now: Time) -> bool {
        let Some(header) = symbol::source_header(next, payload.len()) else { return false };
        self.put_symbol(number, [&header, payload], now)
    }

    /// Keeps a source symbol of which these are the parts.
    pub(super) fn put_symbol(&mut self, number: u64, parts: [&[u8]; 2], now: Time) -> bool {
        let len: usize = parts.iter().map(|part| part.len()).sum();
        let Some(slot) = self.slots.get_mut(index(number)) else { return false };
        if len > SOURCE_MAX || number <= slot.number {
            return false;
        }
        slot.symbol.clear();
        parts.iter().for_each(|part| slot.symbol.extend_from_slice(part));
        (slot.number, slot.at) = (number, now);
        self.newest = self.newest.max(number);
        true
    }

    /// The source symbol `number`.
    pub(super) fn get(&self, number: u64) -> Option<&[u8]> {
        self.slots
            .get(index(number))
            .filter(|slot| slot.number == number && number != 0)
            .map(|slot| &*slot.symbol)
    }

    /// Whether the place of `number` has been taken by a newer one.
    pub(super) fn is_past(&self, number: u64) -> bool {
        self.slots.get(index(number)).is_none_or(|slot| slot.number > number)
    }

    /// When the source symbol `number` came here.
    pub(super) fn came(&self, number: u64) -> Option<Time> {
        self.slots.get(index(number)).filter(|slot| slot.number == number && number != 0).map(|slot| slot.at)
    }
}

/// A number's slot.
const fn index(number: u64) -> usize {
    (number % SPAN as u64) as usize
}
