//! Payloads that come back out of repair symbols, on a path that is too long to ask for them.

use core::time::Duration;

use strait_clock::Time;
use strait_wire::symbol::RepairSymbol;

use super::super::Origin;
use super::gaps::Filled;
use super::held::HeldMemory;
use super::{InboundRepair, is_repeatable};
use crate::fec::{DECODER_MEMORY, SymbolDecoder, SymbolRefused};
use crate::layers::Inside;
use crate::{InboundSa, PeerCounters, Reason};

/// How long after the last symbol payloads are kept for another: longer than the pauses of a transfer.
const KEPT_FOR: Duration = Duration::from_secs(10);

/// What is kept while the peer sends repair symbols.
#[derive(Debug)]
pub(super) struct KeptForSymbols {
    decoder: Box<SymbolDecoder>,
    /// When the last symbol came.
    at: Time,
}

impl InboundRepair {
    /// Whether losses come back by symbols.
    pub(super) const fn has_symbols(&self) -> bool {
        self.symbols.is_some()
    }

    /// Keeps nothing any more.
    pub(super) fn forget_symbols(&mut self, memory: &mut HeldMemory) {
        if self.symbols.take().is_some() {
            memory.give_back(DECODER_MEMORY);
        }
    }

    /// A repair symbol came in the datagram `inside`.
    pub(super) fn symbol(
        &mut self,
        sa: &mut InboundSa,
        (origin, inside, payload): (Origin, Inside, &[u8]),
        memory: &mut HeldMemory,
        counters: &PeerCounters,
    ) -> Result<(), Reason> {
        let read = RepairSymbol::parse(payload).map_err(|_| Reason::UnfitSymbol)?;
        let now = origin.now;
        let kept = match &mut self.symbols {
            Some(kept) => kept,
            none => {
                if !memory.take(DECODER_MEMORY) {
                    return Err(Reason::SymbolOverBudget);
                }
                none.insert(KeptForSymbols { decoder: Box::new(SymbolDecoder::new()), at: now })
            }
        };
        kept.at = now;
        let result = match kept.decoder.symbol(inside.esn, payload, now) {
            Ok(()) | Err(SymbolRefused::Late) => Ok(()),
            Err(SymbolRefused::Malformed) => Err(Reason::UnfitSymbol),
            Err(SymbolRefused::OverBudget) => Err(Reason::SymbolOverBudget),
        };
        counters.repair.symbols_in.add(1);
        self.settle_between(inside.esn.0, &read, counters);
        self.take_recovered(sa, (origin, inside), memory, counters);
        result
    }

    /// What lies between the payloads that a symbol covers, and is not covered itself, is nothing that a symbol brings back: another
    /// symbol, or a message of the peer's own. Nothing waits for it.
    fn settle_between(&mut self, number: u64, read: &RepairSymbol<'_>, counters: &PeerCounters) {
        if self.gaps.first().is_none() {
            return;
        }
        let mut above = number;
        for covered in read.numbers(number) {
            let between = (covered + 1..above).filter(|between| self.gaps.fill(*between) != Filled::No);
            counters.repair.without_payload.add(between.count() as u64);
            above = covered;
        }
    }

    /// A payload came that symbols may cover.
    pub(super) fn keep_for_symbols(
        &mut self,
        sa: &mut InboundSa,
        (origin, inside, payload): (Origin, Inside, &[u8]),
        memory: &mut HeldMemory,
        counters: &PeerCounters,
    ) {
        let Some(kept) = &mut self.symbols else { return };
        if origin.now.since(kept.at) > KEPT_FOR {
            return self.forget_symbols(memory);
        }
        kept.decoder.arrived(inside.esn, inside.next, payload, origin.now);
        self.take_recovered(sa, (origin, inside), memory, counters);
    }

    /// Puts payloads that came back in their places among those that are held.
    fn take_recovered(
        &mut self,
        sa: &mut InboundSa,
        (origin, inside): (Origin, Inside),
        memory: &mut HeldMemory,
        counters: &PeerCounters,
    ) {
        let InboundRepair { symbols, gaps, held, .. } = self;
        let Some(kept) = symbols else { return };
        while let Some((number, next, payload)) = kept.decoder.take() {
            let is_new = is_repeatable(next, payload)
                && held.has_room(payload.len(), memory)
                && sa.admit_repeated(number, inside.proof) == Ok(true);
            if !is_new {
                continue;
            }
            // What was given up before was counted then.
            counters.repair.recovered.add(u64::from(gaps.fill(number.0) != Filled::No));
            held.push(origin, (number, next), payload, memory);
        }
    }
}

#[cfg(test)]
mod tests;
