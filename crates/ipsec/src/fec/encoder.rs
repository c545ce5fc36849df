//! The sender's half: repair symbols over the payloads that left last.

use core::time::Duration;

use strait_clock::Time;
use strait_wire::{Protocol, symbol};

use super::galois::{add_scaled, coefficient};
use super::window::SourceWindow;
use super::{HOLD_MAX, SPAN};

/// How far back symbols cover: what is older is delivered or given up when the symbol arrives, but for what the path's jitter adds.
const COVERED_FOR: Duration = HOLD_MAX.saturating_sub(Duration::from_millis(5));

/// What leaves as source symbols, and the repair symbols over them.
#[derive(Debug)]
pub(crate) struct SymbolEncoder {
    window: SourceWindow,
}

/// A repair symbol that can be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PlannedSymbol {
    /// The number of the datagram that it leaves in.
    number: u64,
    covered: u128,
    /// Bytes of the symbol.
    symbol: usize,
}

impl SymbolEncoder {
    pub(crate) fn new() -> SymbolEncoder {
        SymbolEncoder { window: SourceWindow::new() }
    }

    /// A payload left under `number`; false when symbols cannot cover it.
    pub(crate) fn note(&mut self, number: u64, next: Protocol, payload: &[u8], now: Time) -> bool {
        self.window.put(number, next, payload, now)
    }

    /// A symbol that leaves under `number` at `now` in a payload of at most `room` bytes. It covers as many of the last payloads as
    /// are in time and as its map has room for, which may be none.
    pub(crate) fn plan(&self, number: u64, room: usize, now: Time) -> PlannedSymbol {
        let mut planned = PlannedSymbol { number, covered: 0, symbol: 0 };
        for (bit, source) in
            (1..=SPAN as u64).filter_map(|back| Some((SPAN as u64 - back, number.checked_sub(back)?)))
        {
            let Some(bytes) = self.window.get(source) else { continue };
            let in_time = self.window.came(source).is_some_and(|came| now.since(came) <= COVERED_FOR);
            let more = PlannedSymbol {
                covered: planned.covered | 1 << bit,
                symbol: planned.symbol.max(bytes.len()),
                ..planned
            };
            if !in_time || more.payload() > room {
                break;
            }
            planned = more;
        }
        planned
    }

    /// Writes the payload of a planned symbol.
    pub(crate) fn write(&self, planned: &PlannedSymbol, payload: &mut [u8]) {
        let Ok(room) = symbol::emit_header(planned.covered, payload) else { return };
        room.fill(0);
        for source in symbol::covered_numbers(planned.covered, planned.number) {
            if let Some(bytes) = self.window.get(source) {
                add_scaled(room, bytes, coefficient(source, planned.number));
            }
        }
    }
}

impl PlannedSymbol {
    /// How many payloads it covers.
    pub(crate) const fn sources(&self) -> u32 {
        self.covered.count_ones()
    }

    /// Bytes of the payload that it leaves in.
    pub(crate) const fn payload(&self) -> usize {
        symbol::header_len(self.covered) + self.symbol
    }
}
