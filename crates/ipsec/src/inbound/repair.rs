//! Between steps 4 and 5 on a path whose losses are repaired: what comes behind a gap in the numbers is held back, the gap is asked for,
//! and a payload that the peer sends again takes its place.

mod gaps;
mod held;
mod symbols;

use core::time::Duration;

use strait_clock::{Deadline, Time};
use strait_scheduler::Tin;
use strait_wire::aggfrag::{self, Subtype};
use strait_wire::repetition::{self, Repeated, Repetition};
use strait_wire::{Esn, Protocol, Tos};

use super::intake::Intake;
use super::{Inlet, Origin};
use crate::layers::Inside;
use crate::orders::SenderOrder;
use crate::repair::{is_prompt_block, is_pure_acknowledgement, is_repeatable};
use crate::sa::SaId;
use crate::{InboundSa, PeerCounters, Reason, RepairTerms};

use gaps::{Filled, GapTracker};
pub(super) use held::HeldMemory;
use held::{HeldPayload, HeldPayloads};
use symbols::KeptForSymbols;

/// Numbers that are asked for in vain before the peer is taken to keep nothing: three losses in a row of one in three, and some more.
const VAIN_MAX: u64 = 32;
/// How long a measured repair is believed.
const BELIEVED: Duration = Duration::from_secs(30);
/// The weight of a new measurement (RFC 6298 section 2).
const SMOOTH: u32 = 8;

/// What is missing of one association, and what waits for it.
#[derive(Debug)]
pub(super) struct InboundRepair {
    gaps: GapTracker,
    held: HeldPayloads,
    /// Whether the peer keeps what it sends.
    kept: bool,
    /// Numbers that were given up since the peer sent anything again.
    vain: u64,
    /// What is kept while the peer sends repair symbols, so that nothing is asked for.
    symbols: Option<KeptForSymbols>,
}

/// How long one repair takes with a peer: from the request until the payload is there.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RepairRound {
    smoothed: Option<Duration>,
    measured_at: Time,
}

/// What becomes of a payload.
#[derive(Clone, Copy, Debug)]
enum Next {
    /// It goes on.
    Pass(Inside),
    /// It was held back, or said something of the peer's own.
    Done,
}

impl RepairRound {
    fn note(&mut self, took: Duration, now: Time) {
        let smoothed = self.smoothed.map_or(took, |before| before - before / SMOOTH + took / SMOOTH);
        (self.smoothed, self.measured_at) = (Some(smoothed), now);
    }

    /// As it was measured of late, or else as long as the round trip of what this node sends.
    fn get(&self, counters: &PeerCounters, now: Time) -> Option<Duration> {
        let measured = self.smoothed.filter(|_| now.since(self.measured_at) < BELIEVED);
        measured.or_else(|| counters.path.get().and_then(|path| path.round_trip))
    }

    /// Whether a repair can come in time: the least round trip counts, or those that came late would be the last that are asked for,
    /// and nothing would tell of shorter ones.
    fn is_useful(&self, counters: &PeerCounters, now: Time) -> bool {
        let least = || counters.path.get().and_then(|path| path.least_round_trip);
        gaps::is_useful(self.get(counters, now)) || least().is_some_and(|least| gaps::is_useful(Some(least)))
    }
}

impl InboundRepair {
    /// For an association with these terms.
    pub(super) fn new(terms: RepairTerms) -> Option<Box<InboundRepair>> {
        (terms != RepairTerms::Off).then(|| {
            let (gaps, held) = (GapTracker::new(), HeldPayloads::default());
            Box::new(InboundRepair { gaps, held, kept: terms == RepairTerms::Kept, vain: 0, symbols: None })
        })
    }

    /// Gives up what is held back; how many payloads.
    pub(super) fn close(&mut self, memory: &mut HeldMemory) -> u64 {
        self.forget_symbols(memory);
        self.held.close(memory)
    }

    /// A datagram with this number came, which left after all before it if it is `in_order`.
    fn note_number(
        &mut self,
        (number, in_order): (Esn, bool),
        is_useful: bool,
        counters: &PeerCounters,
        now: Time,
    ) {
        if !(self.has_symbols() || self.kept && is_useful) {
            return self.gaps.skip_to(number);
        }
        let (filled, missing, lost) = self.gaps.arrived(number, in_order, now);
        counters.repair.missing.add(missing);
        self.note_lost(lost, counters);
        if filled != Filled::No {
            counters.repair.late.add(1);
        }
        if matches!(filled, Filled::Asked(..)) {
            self.gaps.note_late();
        }
    }

    fn note_lost(&mut self, lost: u64, counters: &PeerCounters) {
        counters.repair.lost.add(lost);
        self.vain = self.vain.saturating_add(lost);
        if self.vain >= VAIN_MAX && !self.has_symbols() {
            self.kept = false;
            counters.repair.lost.add(self.gaps.settle(0, u64::MAX));
        }
    }

    /// What the peer sent again, with its own number, or that it will not send something again.
    fn repetition(
        &mut self,
        sa: &mut InboundSa,
        round: &mut RepairRound,
        counters: &PeerCounters,
        (payload, inside, now): (&[u8], Inside, Time),
    ) -> Result<Next, Reason> {
        let (header, repeated) = Repetition::parse(payload).map_err(|_| Reason::MalformedEsp)?;
        let number = inside.esn.0.checked_sub(header.distance.into()).ok_or(Reason::MalformedEsp)?;
        (self.kept, self.vain) = (true, 0);
        let content = match repeated {
            Repeated::Nothing(count) => {
                counters.repair.lost.add(self.gaps.settle(number, count.into()));
                return Ok(Next::Done);
            }
            Repeated::Payload(content) => content,
        };
        if !is_repeatable(header.next, content) {
            return Err(Reason::MalformedEsp);
        }
        if !sa.admit_repeated(Esn(number), inside.proof)? {
            counters.repair.duplicates.add(1);
            return Ok(Next::Done);
        }
        match self.gaps.fill(number) {
            Filled::No => {}
            filled => {
                counters.repair.repaired.add(1);
                self.gaps.note_repaired();
                if let Filled::Asked(Some(at)) = filled {
                    round.note(now.since(at), now);
                }
            }
        }
        let at = inside.at + repetition::HEADER_LEN;
        Ok(Next::Pass(Inside { at, next: header.next, esn: Esn(number), newest: false, ..inside }))
    }

    /// Holds a payload back if it comes behind a gap and has to wait for it.
    fn hold(
        &mut self,
        origin: Origin,
        inside: Inside,
        payload: &[u8],
        memory: &mut HeldMemory,
        counters: &PeerCounters,
    ) -> Next {
        if !self.gaps.is_behind(inside.esn) || passes(inside.next, origin.tos, payload) {
            return Next::Pass(inside);
        }
        while !self.held.has_room(payload.len(), memory) && self.gaps.is_behind(inside.esn) {
            let lost = self.gaps.give_up_first();
            counters.repair.lost.add(lost);
        }
        // What waits in front of it goes first, so it is held in any case.
        self.held.push(origin, (inside.esn, inside.next), payload, memory);
        counters.repair.held.add(1);
        Next::Done
    }
}

/// Whether a payload may have passed datagrams that its sender had sealed before: what is sent again or asked for, and what is promoted.
fn may_pass(next: Protocol, tos: Tos, payload: &[u8]) -> bool {
    let goes_first =
        || matches!(aggfrag::subtype(payload), Some(Subtype::Repetition | Subtype::Missing | Subtype::Lane));
    Tin::of_dscp(tos.dscp()) == Tin::Interactive
        || next == Protocol::AGGFRAG && (goes_first() || is_prompt_block(payload))
}

/// Whether a payload need not wait until losses before it are repaired: the sender says so, or it is of the interactive class, or
/// nothing but an acknowledgement, or a piece of a stream.
fn passes(next: Protocol, tos: Tos, payload: &[u8]) -> bool {
    if Tin::of_dscp(tos.dscp()) == Tin::Interactive {
        return true;
    }
    match next {
        Protocol::IPIP | Protocol::IPV6 => is_pure_acknowledgement(payload),
        Protocol::AGGFRAG if aggfrag::subtype(payload) == Some(Subtype::Lane) => true,
        _ => is_prompt_block(payload),
    }
}

impl Intake {
    /// Steps 5 to 8 for a payload of an association whose losses are repaired.
    pub(super) fn repaired(
        &mut self,
        origin: Origin,
        inside: Inside,
        bytes: &mut [u8],
        inlet: &mut impl Inlet,
    ) -> Result<(), Reason> {
        let payload = bytes.get(inside.range()).unwrap_or_default();
        if inside.next == Protocol::AGGFRAG
            && aggfrag::subtype(payload) == Some(Subtype::Congestion)
            && let Some(mut unpacker) = self.unpacker(origin.sa, inlet)
        {
            unpacker.take_riding(origin, payload);
        }
        let result = match self.place_number(origin, inside, bytes) {
            Ok(Next::Pass(inside)) => self.inside(origin, inside, bytes, None, inlet),
            Ok(Next::Done) => Ok(()),
            Err(reason) => Err(reason),
        };
        self.let_go(origin.sa, origin.now, bytes, inlet);
        result
    }

    /// Finds out where a payload belongs.
    fn place_number(&mut self, origin: Origin, inside: Inside, bytes: &[u8]) -> Result<Next, Reason> {
        let (receiving, peer, memory) = self.associations.repairing(origin.sa).ok_or(Reason::UnknownSpi)?;
        let Some(repair) = &mut receiving.repair else { return Ok(Next::Pass(inside)) };
        let counters = &*receiving.inbox.counters;
        let is_useful = peer.repair_round.is_useful(counters, origin.now);
        let payload = bytes.get(inside.range()).unwrap_or_default();
        let in_order = !may_pass(inside.next, origin.tos, payload);
        repair.note_number((inside.esn, in_order), is_useful, counters, origin.now);
        let mut inside = inside;
        if inside.next == Protocol::AGGFRAG && aggfrag::subtype(payload) == Some(Subtype::Repetition) {
            let what = (payload, inside, origin.now);
            match repair.repetition(&mut receiving.sa, &mut peer.repair_round, counters, what)? {
                Next::Pass(original) => inside = original,
                Next::Done => return Ok(Next::Done),
            }
        }
        let payload = bytes.get(inside.range()).unwrap_or_default();
        if inside.next == Protocol::AGGFRAG && aggfrag::subtype(payload) == Some(Subtype::RepairSymbol) {
            let what = (origin, inside, payload);
            return repair.symbol(&mut receiving.sa, what, memory, counters).map(|()| Next::Done);
        }
        if !is_repeatable(inside.next, payload) {
            return Ok(Next::Pass(inside));
        }
        repair.keep_for_symbols(&mut receiving.sa, (origin, inside, payload), memory, counters);
        if !repair.kept && !repair.has_symbols() {
            return Ok(Next::Pass(inside));
        }
        Ok(repair.hold(origin, inside, payload, memory, counters))
    }

    /// Asks for what is missing of an association, gives up what has been for too long, and lets go what need not wait any more.
    /// `bytes` is what packets lie in that were taken last.
    fn let_go(&mut self, sa: SaId, now: Time, bytes: &mut [u8], inlet: &mut impl Inlet) {
        let mut finished = false;
        while let Some(HeldPayload { origin, number, next, bytes: mut held }) =
            self.next_to_go(sa, now, inlet)
        {
            if !finished {
                self.host.finish(bytes, inlet);
                finished = true;
            }
            let inside = Inside { at: 0, end: held.len(), next, esn: number, newest: false, proof: None };
            if let Err(reason) = self.inside(Origin { now, ..origin }, inside, &mut held, None, inlet) {
                self.counters.refuse(reason);
            }
            self.host.finish(&mut held, inlet);
            if let Some((.., memory)) = self.associations.repairing(sa) {
                memory.recycle(held);
            }
        }
    }

    /// The next payload of an association that need not wait any more.
    fn next_to_go(&mut self, sa: SaId, now: Time, inlet: &mut impl Inlet) -> Option<HeldPayload> {
        let (receiving, peer, memory) = self.associations.repairing(sa)?;
        let counters = &receiving.inbox.counters;
        let repair = receiving.repair.as_mut()?;
        if repair.gaps.first().is_some() {
            let by_symbols = repair.has_symbols();
            let round = peer.repair_round.get(counters, now).filter(|_| !by_symbols);
            let lost = repair.gaps.expire(round, now);
            repair.note_lost(lost, counters);
            let missing = if by_symbols { None } else { repair.gaps.ask(receiving.sa.spi, round, now) };
            if let Some(missing) = missing {
                inlet.order(SenderOrder::AskAgain(receiving.sa.peer, Box::new(missing)));
            }
            let next_at = if by_symbols { repair.gaps.ends_at() } else { repair.gaps.next_at(round) };
            self.repair_at = self.repair_at.into_iter().chain(next_at).min();
        }
        if repair.held.is_empty() { None } else { repair.held.pop(repair.gaps.first(), memory) }
    }

    /// When there is something to ask for, or to give up.
    pub(super) fn poll_timeout(&self) -> Option<Deadline> {
        Some(Deadline { at: self.repair_at?, why: "a missing datagram" })
    }

    /// Asks for what is missing, and lets go what has waited long enough.
    pub(super) fn timeout(&mut self, now: Time, inlet: &mut impl Inlet) {
        if self.repair_at.is_none_or(|at| at > now) {
            return;
        }
        self.repair_at = None;
        self.working.begin(now);
        for sa in self.associations.repaired() {
            self.let_go(sa, now, &mut [], inlet);
        }
        // What was let go may be work for this thread, which does nothing else now.
        self.release(now, inlet);
    }
}

#[cfg(test)]
mod tests;
