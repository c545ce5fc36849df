//! Controlled delay (`CoDel`, RFC 8289): a queue that stands for longer than it should loses packets, or marks them, at growing
//! frequency until it does not.

use core::time::Duration;

use strait_clock::Time;

use crate::Rate;

/// RFC 8289 section 4.3: about the round trip of a transfer across the world.
const INTERVAL: Duration = Duration::from_millis(100);
/// RFC 8289 section 4.4: a twentieth of the interval.
const TARGET: Duration = Duration::from_millis(5);
/// RFC 8289 section 4.4 wants the target above a packet's time on slow links; by half, as `cake_set_rate` of Linux has it. What leaves
/// at once here is a unit.
const UNITS: (u64, u64) = (3, 2);
/// How many intervals after the last drop the queue is still the same bad queue (RFC 8289 section 5.5).
const STILL: u32 = 16;

/// What a queue of one rate should be like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CodelTerms {
    /// How long packets may wait.
    pub(super) target: Duration,
    /// For how long they may wait longer.
    pub(super) interval: Duration,
    /// Bytes that are no queue: one unit's.
    pub(super) least: usize,
}

impl CodelTerms {
    /// However long packets wait, that is not too long.
    pub(super) const NONE: CodelTerms =
        CodelTerms { target: Duration::MAX, interval: Duration::MAX, least: usize::MAX };

    /// For a link of `rate` with `unit` wire bytes that leave at once. The interval is never less than two targets, as
    /// `cake_set_rate` has it. Without a rate nothing waits for the link.
    pub(super) fn new(rate: Option<Rate>, unit: usize) -> CodelTerms {
        let (times, of) = UNITS;
        let slow = rate.map_or(Duration::ZERO, |rate| rate.time_for(unit as u64 * times / of));
        let target = slow.max(TARGET);
        CodelTerms { target, interval: INTERVAL.max(target * 2), least: unit }
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
}

impl Codel {
    /// The packet to send (RFC 8289 section 5.5). Where a mark replaces a drop, that packet is sent (RFC 8290 section 4.2).
    pub(super) fn dequeue<S: CodelQueue>(
        &mut self,
        source: &mut S,
        now: Time,
        terms: &CodelTerms,
    ) -> Option<S::Packet> {
        let (mut packet, mut standing) = self.next(source, now, terms)?;
        if !self.dropping {
            if !standing {
                return Some(packet);
            }
            self.begin(now, terms);
            return match source.strike(packet) {
                Some(marked) => Some(marked),
                None => self.next(source, now, terms).map(|(packet, _)| packet),
            };
        }
        self.dropping = standing;
        while self.dropping && now >= self.drop_next {
            self.count = self.count.saturating_add(1);
            if let Some(marked) = source.strike(packet) {
                self.drop_next = terms.law(self.drop_next, self.count);
                return Some(marked);
            }
            (packet, standing) = self.next(source, now, terms)?;
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
    ) -> Option<(S::Packet, bool)> {
        let Some((packet, waited, behind)) = source.take() else {
            self.first_above = None;
            self.dropping = false;
            return None;
        };
        if waited < terms.target || behind <= terms.least {
            self.first_above = None;
            return Some((packet, false));
        }
        let since = *self.first_above.get_or_insert(now + terms.interval);
        Some((packet, now >= since))
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
