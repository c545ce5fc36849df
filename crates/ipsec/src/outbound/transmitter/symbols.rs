//! Repair symbols (AGGFRAG sub-type 0xF5), on a path that is too long to ask for what is missing.

use strait_wire::{Protocol, Tos};

use super::Transmitter;
use crate::fec::PlannedSymbol;
use crate::outbound::context::{Outlet, TxContext};

impl Transmitter {
    /// Sends the repair symbols that are due behind a payload. They are paced as it is, and cost its flow as much.
    pub(super) fn send_symbols(&mut self, tx: &mut TxContext<'_, impl Outlet>, tos: Tos) {
        while let Some(planned) = next_symbol(tx) {
            // The payloads that it covers are read from the repair while the link is borrowed for sealing.
            let Some(repair) = tx.link.repair.take() else { return };
            let before = tx.link.sealed;
            let sent = self.seal_fresh(tx, Protocol::AGGFRAG, planned.payload(), tos, |payload| {
                repair.symbols.iter().for_each(|symbols| symbols.write(&planned, payload));
            });
            tx.link.repair = Some(repair);
            if sent.is_err() {
                return;
            }
            // What units become is not told by it.
            tx.link.sealed.payload = before.payload;
            let counters = &tx.link.spec.counters.repair;
            counters.symbols_out.add(1);
            counters.wire.add((tx.link.sealed.wire - before.wire) as u64);
        }
    }

    /// Sends the symbols over the last payloads if nothing left for a while; false where none are due.
    pub(super) fn end_with_symbols(&mut self, tx: &mut TxContext<'_, impl Outlet>) -> bool {
        let symbols = tx.link.repair.as_mut().and_then(|repair| repair.symbols.as_mut());
        let Some(symbols) = symbols.filter(|symbols| symbols.pause_at().is_some_and(|at| at <= tx.now))
        else {
            return false;
        };
        symbols.pause(tx.now);
        self.send_symbols(tx, Tos(0));
        self.departure.depart(tx);
        true
    }
}

/// The next symbol that is due.
fn next_symbol(tx: &mut TxContext<'_, impl Outlet>) -> Option<PlannedSymbol> {
    let (number, room) = next_datagram(tx)?;
    let symbols = tx.link.repair.as_mut()?.symbols.as_mut()?;
    let planned = symbols.next(number, room, tx.now);
    tx.link.association.for_symbols = symbols.reserve();
    planned
}

/// The number of the next datagram, and the longest payload that it takes.
fn next_datagram(tx: &TxContext<'_, impl Outlet>) -> Option<(u64, usize)> {
    let association = &tx.link.association;
    let number = association.sa.as_ref()?.numbers.last().0.checked_add(1)?;
    Some((number, association.whole_room()))
}
