//! Controlled delay (`CoDel`, RFC 8289): a queue that stands for longer than it should loses packets, or marks them, at growing
//! frequency until it does not.

use core::time::Duration;

use strait_clock::Time;

use crate::Rate;

/// RFC 8289 section 4.3: about the round trip of a transfer across the world. Beyond the tunnel a flow may have as much of it to go.
const INTERVAL: Duration = Duration::from_millis(100);
/// RFC 8289 section 4.4: a twentieth of the interval.
const TARGET: Duration = Duration::from_millis(5);
/// Of the tunnel's own round trip the target is this part. After a loss a transfer keeps 0.7 of what is in flight (CUBIC, RFC 9438 section
/// 4.6), which is less than the link takes unless 0.43 of a round trip stood in the queue. RFC 8289 section 4.4 has a twentieth to a
/// tenth, for a queue that all flows wait in; in this one a flow waits behind itself alone. One flow at 10 Mbit/s and 100 ms filled
/// 0.95 of the link with a tenth, 0.96 with a fifth, and 0.99 with this.
const TARGET_OF_TRIP: f64 = 0.4;
/// RFC 8289 section 4.4 wants the target above a packet's time on slow links; by half, as `cake_set_rate` of Linux has it. What leaves
/// at once here is a unit.
const UNITS: (u64, u64) = (3, 2);
/// How many intervals after the last drop the queue is still the same bad queue (RFC 8289 section 5.5).
const STILL: u32 = 16;

/// After so many signals, each with time for a reaction, the law of RFC 8289 section 5.3 holds: a sender that reacts leaves 0.7 of its
/// window each time (RFC 9438 section 4.6), so these make what it may have in flight out of three times as much, the most after slow
/// start.
const SIGNALS_MAX: u8 = 3;

/// What a queue of one rate should be like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CodelTerms {
    /// How long packets may wait.
    pub(super) target: Duration,
    /// For how long they may wait longer.
    pub(super) interval: Duration,
    /// Bytes that are no queue: one unit's.
    pub(super) least: usize,
    /// How long it takes until fewer packets come after a signal (a drop or a mark); zero where the round trip is not known.
    pub(super) feedback: Duration,
}

impl CodelTerms {
    /// However long packets wait, that is not too long.
    pub(super) const NONE: CodelTerms = CodelTerms {
        target: Duration::MAX,
        interval: Duration::MAX,
        least: usize::MAX,
        feedback: Duration::ZERO,
    };

    /// For a link of `rate` with `unit` wire bytes that leave at once, on a path with this round trip. The interval is the longest
    /// round trip of a flow through the queue (RFC 8289 section 4.2): the path's and that of a transfer across the world. It is never
    /// less than two targets, as `cake_set_rate` has it. Without a rate nothing waits for the link.
    pub(super) fn new(rate: Option<Rate>, unit: usize, round_trip: Duration) -> CodelTerms {
        let (times, of) = UNITS;
        let slow = rate.map_or(Duration::ZERO, |rate| rate.time_for(unit as u64 * times / of));
        let target = slow.max(TARGET + round_trip.mul_f64(TARGET_OF_TRIP));
        let interval = (INTERVAL + round_trip).max(target * 2);
        CodelTerms { target, interval, least: unit, feedback: round_trip }
    }

    /// When the next packet goes, after `count` (RFC 8289 section 5.3): TCP's rate falls with the root of its losses.
    fn law(&self, from: Time, count: u32) -> Time {
        from + self.interval.div_f64(f64::from(count.max(1)).sqrt())
    }
}

/// The queue that is controlled.
pub(super) trait CodelQueue {
    /// A packet.
    type Packet;

    /// Takes the first packet, how long it waited, and the bytes still behind it.
    fn take(&mut self) -> Option<(Self::Packet, Duration, usize)>;

    /// Marks the packet and gives it back, or drops it.
    fn strike(&mut self, packet: Self::Packet) -> Option<Self::Packet>;
}

/// What is remembered of one queue; the names are those of RFC 8289 section 5.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Codel {
    first_above: Option<Time>,
    drop_next: Time,
    count: u32,
    last_count: u32,
    dropping: bool,
    /// What came before this time says nothing of how the sender reacted to the last signal.
    reaction_at: Time,
    /// Signals since the queue was last short enough.
    signals: u8,
}

impl Codel {
    /// The packet to send (RFC 8289 section 5.5). Where a mark replaces a drop, that packet is sent (RFC 8290 section 4.2).
    pub(super) fn dequeue<S: CodelQueue>(
        &mut self,
        source: &mut S,
        now: Time,
        terms: &CodelTerms,
    ) -> Option<S::Packet> {
        let (mut packet, waited, mut standing) = self.next(source, now, terms)?;
        if !self.dropping {
            if !standing {
                return Some(packet);
            }
            self.begin(now, terms);
            // It hears of the signal a round trip later, and sends less until what was in flight then has arrived (RFC 6937).
            self.reaction_at = now + terms.feedback * 2 + waited;
            self.signals = self.signals.saturating_add(1);
            return match source.strike(packet) {
                Some(marked) => Some(marked),
                None => self.next(source, now, terms).map(|(packet, ..)| packet),
            };
        }
        self.dropping = standing;
        while self.dropping && now >= self.drop_next {
            self.count = self.count.saturating_add(1);
            if let Some(marked) = source.strike(packet) {
                self.drop_next = terms.law(self.drop_next, self.count);
                return Some(marked);
            }
            (packet, _, standing) = self.next(source, now, terms)?;
            self.dropping = standing;
            if standing {
                self.drop_next = terms.law(self.drop_next, self.count);
            }
        }
        Some(packet)
    }

    /// The first packet, and whether the queue has stood for an interval (RFC 8289 section 5.4).
    fn next<S: CodelQueue>(
        &mut self,
        source: &mut S,
        now: Time,
        terms: &CodelTerms,
    ) -> Option<(S::Packet, Duration, bool)> {
        let Some((packet, waited, behind)) = source.take() else {
            self.first_above = None;
            self.dropping = false;
            return None;
        };
        if waited < terms.target || behind <= terms.least {
            self.first_above = None;
            self.signals = 0;
            return Some((packet, waited, false));
        }
        let is_due = terms.feedback.is_zero() || self.signals >= SIGNALS_MAX;
        if !is_due && now < self.reaction_at + waited {
            return Some((packet, waited, false));
        }
        let since = *self.first_above.get_or_insert(now + terms.interval);
        Some((packet, waited, now >= since))
    }

    /// Enters the dropping state, where it left off if that was lately.
    fn begin(&mut self, now: Time, terms: &CodelTerms) {
        let delta = self.count.saturating_sub(self.last_count);
        let lately = now.since(self.drop_next) < terms.interval * STILL;
        self.dropping = true;
        self.count = if delta > 1 && lately { delta } else { 1 };
        self.drop_next = terms.law(now, self.count);
        self.last_count = self.count;
    }
}

#[cfg(test)]
mod tests;
