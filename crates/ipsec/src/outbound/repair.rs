//! What a sender keeps to repair losses with, and what it is to send again.

use core::time::Duration;
use std::collections::VecDeque;

use strait_clock::Time;
use strait_scheduler::{Budget, Rate};
use strait_wire::missing::{MissingRange, MissingRanges};
use strait_wire::{Esn, Spi, Tos};

use crate::fec::{HOLD_MAX, LossPattern, SymbolSender};
use crate::repair::{
    FlowRates, REPAIR_ROUND_MAX, RepairState, Urgency, is_prompt_block, is_pure_acknowledgement,
    is_repeatable,
};
use crate::{OutboundSa, PayloadStore, Reason, RepairTerms, StoredPayload};

/// Bytes of payloads that are kept for one peer, at least and at most: some round trips of a slow link, and two of 100 ms at 160 Mbit/s.
const STORE_MIN: usize = 64 * 1024;
const STORE_MAX: usize = 4 * 1024 * 1024;
/// The round trip that is assumed until one was measured: the longest that a repair is of use for, and its reports.
const ROUND: Duration = Duration::from_millis(150);
/// Round trips for which payloads are kept, and what a request may take beside them.
const ROUNDS: u32 = 2;
const REQUEST: Duration = Duration::from_millis(100);
/// A payload that waited longer than this since it was sealed is of no use any more: twice what a receiver holds others back for.
const USEFUL: Duration = Duration::from_millis(300);
/// How often a payload is sent again at most: for two requests, twice where much is lost.
const REPEATS_MAX: u8 = 3;
/// Where a repair takes longer than this, the receiver has no time to ask a second time.
const ONE_CHANCE: Duration = Duration::from_millis(60);
/// Numbers a second that a peer may ask for, and so many at once: those of 10 Mbit/s without any, each of which is looked up.
const ASKED: u64 = 4_096;
const ASKED_BURST: u64 = 2_048;
/// Ranges that may wait to be sent again.
const WANTED_MAX: usize = 64;
/// The share of the link that repetitions may take, as a divisor: enough for a loss of one in five.
const SHARE: u64 = 4;
/// Bytes of repetitions at once, at least.
const BURST_MIN: u64 = 32 * 1024;
/// Above this loss, a payload is sent again twice: what both copies lose is then below one in a thousand also in bursts.
const LOSS_TWICE: f64 = 0.02;
/// Above this share of lost datagrams, some packet waits for a repair most of the time: at 10 Mbit/s, one in 500 is one in 600 ms.
pub(super) const LOSSY: f64 = 0.002;
/// How long after the first the second copy leaves: longer than a burst of five datagrams lasts at 5 Mbit/s.
const SPACED: Duration = Duration::from_millis(12);
/// How much shorter than what a receiver holds packets back for a round trip is, at which it asks again after symbols were sent.
const SHORTER: Duration = Duration::from_millis(30);
/// Payload bytes after which a pause is worth a notice to the receiver, in case that the last of them were lost: with 64 bytes it is a
/// quarter of a percent.
const NOTICE_BYTES: usize = 24 * 1024;
/// What such a notice takes of the link, with all headers.
const NOTICE_WIRE: u64 = 64;
/// How long nothing is sent before that.
const PAUSE: Duration = Duration::from_millis(20);

/// Memory of the payloads that are kept for all peers, beyond the least of each.
#[derive(Debug)]
pub(super) struct StoreMemory {
    used: usize,
    /// Bytes beyond the least that are kept for all peers together: one whose path seems long takes nothing from the least of others.
    most: usize,
}

/// What is kept and to be sent again on the association with one peer.
#[derive(Debug)]
pub(crate) struct OutboundRepair {
    spi: Spi,
    /// Whether the peer knows that payloads are kept.
    told: bool,
    store: Option<PayloadStore>,
    rates: FlowRates,
    /// Whether the payload that is sealed next is of no use later.
    fleeting: bool,
    /// First and last numbers of what the peer asks for.
    wanted: VecDeque<(u64, u64)>,
    /// When what is to leave in its second copy.
    second: VecDeque<(Time, Esn)>,
    /// Bytes of repetitions, for this rate.
    budget: (Rate, Budget),
    /// Numbers that may be asked for.
    asked: Budget,
    /// Payload bytes since the receiver was told of the last number.
    untold: usize,
    /// When it is to be told.
    notice_at: Option<Time>,
    /// What makes repair symbols, where the path is so long that they are sent instead.
    pub(super) symbols: Option<Box<SymbolSender>>,
}

/// What the link is like on which something is sent again.
#[derive(Clone, Copy, Debug)]
pub(super) struct Way {
    /// How fast it is.
    pub(super) rate: Rate,
    /// The round trip, once it was measured.
    pub(super) round: Option<Duration>,
    /// Whether nothing else waits.
    pub(super) idle: bool,
    /// Whether payloads are sent again twice.
    pub(super) twice: bool,
}

/// What is to be sent next for the sake of repair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Repeat {
    /// The payload with this number.
    Payload(Esn),
    /// That so many numbers from this one on are not sent again.
    Nothing(Esn, u16),
    /// The highest number so far.
    Notice,
}

impl StoreMemory {
    /// Nothing of so many bytes yet.
    pub(super) const fn new(most: usize) -> StoreMemory {
        StoreMemory { used: 0, most }
    }

    /// Takes memory for a store of `capacity` bytes, or as much as there is; gives `back` back first.
    fn exchange(&mut self, back: usize, capacity: usize) -> usize {
        self.used -= back.saturating_sub(STORE_MIN);
        let more = capacity.saturating_sub(STORE_MIN).min(self.most.saturating_sub(self.used));
        self.used += more;
        capacity.min(STORE_MIN) + more
    }

    /// The peer is gone, with what was kept for it.
    pub(super) fn release(&mut self, repair: Option<&OutboundRepair>) {
        self.used -= repair.map_or(0, OutboundRepair::capacity).saturating_sub(STORE_MIN);
    }
}

impl OutboundRepair {
    /// For an association, where repair was agreed.
    pub(crate) fn new(sa: &OutboundSa, rate: Rate, seed: u64) -> OutboundRepair {
        let (share, burst) = repetitions(rate);
        OutboundRepair {
            spi: sa.spi,
            told: sa.repair == RepairTerms::Kept,
            store: None,
            rates: FlowRates::new(seed),
            fleeting: false,
            wanted: VecDeque::with_capacity(WANTED_MAX),
            second: VecDeque::with_capacity(WANTED_MAX),
            budget: (rate, Budget::new(share, burst)),
            asked: Budget::new(ASKED, ASKED_BURST),
            untold: 0,
            notice_at: None,
            symbols: None,
        }
    }

    /// Chooses how losses are repaired: by symbols on a path that loses so and takes so long for a round trip, if that is too long to
    /// ask for what is missing. A path that is as long as that is not taken for another at every report.
    pub(super) fn choose(&mut self, pattern: Option<LossPattern>, round: Option<Duration>) {
        let longest = if self.symbols.is_some() { HOLD_MAX - SHORTER } else { REPAIR_ROUND_MAX };
        let pattern = pattern.filter(|_| round.is_some_and(|round| round > longest));
        match (pattern, &mut self.symbols) {
            (Some(pattern), Some(symbols)) => symbols.set_pattern(pattern),
            (Some(pattern), none) => *none = Some(Box::new(SymbolSender::new(pattern))),
            (None, symbols) => *symbols = None,
        }
    }

    /// What is done about losses on a path with this round trip.
    pub(super) fn state(&self, round: Option<Duration>) -> RepairState {
        match &self.symbols {
            Some(_) => RepairState::ErrorCorrection,
            None if round.is_some_and(|round| round > REPAIR_ROUND_MAX) => RepairState::FewLosses,
            None => RepairState::Retransmission,
        }
    }

    /// The same for the next association: numbers begin anew.
    pub(crate) fn renew(&mut self, sa: &OutboundSa) {
        (self.spi, self.told) = (sa.spi, sa.repair == RepairTerms::Kept);
        self.forget();
    }

    /// Forgets what was kept and asked for: nothing is kept any more.
    pub(crate) fn forget(&mut self) {
        self.store.iter_mut().for_each(PayloadStore::clear);
        self.wanted.clear();
        self.second.clear();
        (self.untold, self.notice_at) = (0, None);
        self.symbols.iter_mut().for_each(|symbols| symbols.renew());
    }

    /// Whether it is of this association.
    pub(crate) fn is_of(&self, sa: &OutboundSa) -> bool {
        self.spi == sa.spi
    }

    fn capacity(&self) -> usize {
        self.store.as_ref().map_or(0, PayloadStore::capacity)
    }

    /// How these packets stand to losses before them, which the payload that is sealed next carries.
    pub(super) fn classify(&mut self, packets: &[u8], now: Time) -> Urgency {
        let urgency = self.rates.classify(packets, now);
        self.fleeting = urgency == Urgency::Fleeting;
        urgency
    }

    /// Keeps a payload that is about to be sealed, if it may be asked for. `rate` and `round` are those of the path.
    pub(super) fn keep(
        &mut self,
        payload: &StoredPayload<'_>,
        (rate, round): (Option<Rate>, Option<Duration>),
        memory: &mut StoreMemory,
    ) {
        let StoredPayload { next, at: now, bytes, .. } = *payload;
        if !is_repeatable(next, bytes) {
            return;
        }
        let fleeting = core::mem::take(&mut self.fleeting);
        if let Some(symbols) = &mut self.symbols {
            // What waits for nothing is small, and a symbol is as long as the longest payload that it covers.
            if !fleeting && !is_prompt_block(bytes) && !is_pure_acknowledgement(bytes) {
                symbols.note(payload.number.0, next, bytes, now);
            }
            return;
        }
        if fleeting {
            return;
        }
        self.untold += bytes.len();
        self.notice_at = (self.untold >= NOTICE_BYTES).then_some(now + PAUSE);
        let spans = ROUNDS * round.unwrap_or(ROUND) + REQUEST;
        let store = match &mut self.store {
            Some(store) => store,
            none => none.insert(PayloadStore::new(memory.exchange(0, STORE_MIN))),
        };
        let gone = store.push(payload);
        // What had to go may still be asked for: a larger store from now on, as far as there is memory. It grows with what is sent, and
        // not at once to what the link takes: a hub with a fast link has many peers that get little of it.
        if gone.is_some_and(|at| now.since(at) < spans) && store.capacity() < capacity(rate, spans) {
            let larger = memory.exchange(store.capacity(), capacity(rate, spans).min(2 * store.capacity()));
            if larger > store.capacity() {
                store.grow(larger);
            }
        }
    }

    /// Takes a request of the peer. Of the numbers from `waiting` on, none has left yet.
    pub(super) fn want(
        &mut self,
        missing: &MissingRanges,
        sa: &OutboundSa,
        waiting: Option<Esn>,
        now: Time,
    ) -> Result<(), Reason> {
        if missing.spi != sa.spi || missing.spi != self.spi {
            return Ok(());
        }
        for MissingRange { first, count } in missing.ranges() {
            let last_sent = sa.numbers.last();
            let behind = u64::from(last_sent.low().0.wrapping_sub(first.0));
            let first = last_sent.0.checked_sub(behind).filter(|first| *first > 0);
            let first = first.filter(|_| u64::from(*count) <= behind + 1).ok_or(Reason::AbsurdRequest)?;
            let last = first + u64::from(*count) - 1;
            let last = waiting.map_or(last, |waiting| last.min(waiting.0.saturating_sub(1)));
            if last < first {
                continue;
            }
            if self.wanted.len() >= WANTED_MAX || !self.asked.take(last - first + 1, now) {
                return Err(Reason::RepeatOverBudget);
            }
            self.wanted.push_back((first, last));
        }
        Ok(())
    }

    /// When there is something to send; `idle` says that nothing else waits.
    pub(crate) fn next_at(&self, idle: bool) -> Option<Time> {
        if !self.wanted.is_empty() || !self.told && self.untold >= NOTICE_BYTES {
            return Some(Time::ZERO);
        }
        let pause = self.symbols.as_ref().and_then(|symbols| symbols.pause_at());
        let notice = self.notice_at.into_iter().chain(pause).min().filter(|_| idle);
        self.second.front().map(|(at, _)| *at).into_iter().chain(notice).min()
    }

    /// What is to be sent next, and how many numbers were asked for that are not sent again because they were already, or because the
    /// peer asked for too much. `hides`: whether the loss of such a payload is to be
    /// hidden from the hosts.
    pub(super) fn next(
        &mut self,
        Way { rate, round, idle, twice }: Way,
        hides: impl Fn(Tos) -> bool,
        now: Time,
    ) -> (Option<Repeat>, u64) {
        if self.budget.0 != rate {
            let (share, burst) = repetitions(rate);
            self.budget.0 = rate;
            self.budget.1.set(share, burst, now);
        }
        let mut refused = 0;
        while let Some((first, _)) = self.wanted.front().copied() {
            let number = Esn(first);
            let found = self.store.as_ref().and_then(|store| store.get(number));
            let Some(payload) = found.filter(|payload| now.since(payload.at) <= USEFUL && hides(payload.tos))
            else {
                let nothing = self.nothing();
                if self.budget.1.take(NOTICE_WIRE, now) {
                    return (Some(nothing), refused);
                }
                refused += 1;
                continue;
            };
            let (repeats, since) = (payload.repeats, now.since(payload.repeated_at));
            let len = payload.bytes.len() as u64;
            self.advance();
            // The answer to an earlier request is on its way.
            if repeats > 0 && since < round.unwrap_or(ROUND) / 2 {
                continue;
            }
            if repeats >= REPEATS_MAX || !self.budget.1.take(len, now) {
                refused += 1;
                continue;
            }
            if twice && repeats == 0 && self.second.len() < WANTED_MAX {
                self.second.push_back((now + SPACED, number));
            }
            return (Some(self.repeat(number, now)), refused);
        }
        if let Some((_, number)) = self.second.pop_front_if(|(at, _)| *at <= now) {
            return (Some(self.repeat(number, now)), refused);
        }
        let due =
            !self.told && self.untold >= NOTICE_BYTES || idle && self.notice_at.is_some_and(|at| at <= now);
        if due {
            (self.told, self.untold, self.notice_at) = (true, 0, None);
        }
        (due.then_some(Repeat::Notice), refused)
    }

    /// The payload with this number.
    pub(super) fn payload(&self, number: Esn) -> Option<StoredPayload<'_>> {
        self.store.as_ref()?.get(number)
    }

    /// What is sent now shows the receiver the last number; a pause needs no notice of its own.
    pub(super) const fn forget_pause(&mut self) {
        (self.untold, self.notice_at) = (0, None);
    }

    fn repeat(&mut self, number: Esn, now: Time) -> Repeat {
        self.store.iter_mut().for_each(|store| store.note_repeat(number, now));
        Repeat::Payload(number)
    }

    /// As many numbers from the first that is wanted on as are not kept.
    fn nothing(&mut self) -> Repeat {
        let first = self.wanted.front().map_or(0, |(first, _)| *first);
        let mut count: u16 = 0;
        while let Some((number, _)) = self.wanted.front().copied()
            && number == first + u64::from(count)
            && (count == 0 || self.payload(Esn(number)).is_none())
            && count < u16::MAX
        {
            count += 1;
            self.advance();
        }
        Repeat::Nothing(Esn(first), count)
    }

    /// The first number that is wanted is done with.
    fn advance(&mut self) {
        let done = self.wanted.front_mut().is_some_and(|(first, last)| {
            *first += 1;
            first > last
        });
        if done {
            self.wanted.pop_front();
        }
    }
}

/// Whether one copy is not enough: too much is lost, or there is no time for a second request.
pub(super) fn needs_two(loss: f64, round: Option<Duration>) -> bool {
    loss >= LOSS_TWICE || round.is_some_and(|round| round > ONE_CHANCE)
}

/// Bytes a second that repetitions may take of a link, and bytes at once.
fn repetitions(rate: Rate) -> (u64, u64) {
    let share = rate.bits() / 8 / SHARE;
    (share, BURST_MIN.max(share / 4))
}

/// Bytes of payloads that leave within `span`.
fn capacity(rate: Option<Rate>, span: Duration) -> usize {
    let wanted = rate.map_or(0, |rate| rate.bytes_in(span));
    usize::try_from(wanted).unwrap_or(STORE_MAX).clamp(STORE_MIN, STORE_MAX).next_power_of_two()
}

#[cfg(test)]
mod tests;
