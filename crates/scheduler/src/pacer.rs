//! A token bucket in wire bytes, so that the queue stands here and not in a modem.

use core::time::Duration;

use strait_clock::Time;

use crate::Rate;

/// How much link time may be sent at once: covers the granularity of a kernel timer (about 1 ms on
/// `HZ=1000`, 4 ms on `HZ=250`) without building a noticeable queue behind the pacer.
const BURST: Duration = Duration::from_millis(4);

/// The most that another rate makes of a debt, in seconds: a full datagram at the slowest rate that is paced at.
const DEBT_MAX: f64 = 24.0;

/// A bucket that fills at the link's rate and may go into debt by what one send took.
///
/// A send is allowed while the bucket is not in debt, and charged whole afterwards, so a datagram
/// larger than the bucket still leaves, and the long-run rate is exact.
#[derive(Clone, Debug)]
pub struct Pacer {
    rate: Rate,
    /// The bucket is full at this time; later than now by what is missing.
    full_at: Time,
}

impl Pacer {
    /// A full bucket for a link of `rate`.
    #[must_use]
    pub const fn new(rate: Rate, now: Time) -> Pacer {
        Pacer { rate, full_at: now }
    }

    /// The rate it paces at.
    #[must_use]
    pub const fn rate(&self) -> Rate {
        self.rate
    }

    /// Paces what is sent after this call at another rate; debts stay what they were in bytes.
    pub fn set_rate(&mut self, rate: Rate, now: Time) {
        let debt = self.full_at.since(now).as_secs_f64() * self.rate.bits() as f64 / rate.bits() as f64;
        if self.rate != rate && debt > 0.0 {
            self.full_at = now + Duration::from_secs_f64(debt.min(DEBT_MAX));
        }
        self.rate = rate;
    }

    /// Whether something may be sent at `now`.
    #[must_use]
    pub fn has_room(&self, now: Time) -> bool {
        self.full_at <= now + BURST
    }

    /// When something may be sent next (in the past when it may already).
    #[must_use]
    pub fn room_at(&self) -> Time {
        Time::from_nanos(self.full_at.as_nanos().saturating_sub(nanos(BURST)))
    }

    /// Whether something may be sent at `now` behind `bytes` that are about to be sent.
    #[must_use]
    pub fn has_room_behind(&self, bytes: u64, now: Time) -> bool {
        self.room_behind_at(bytes, Duration::ZERO).is_some_and(|at| at <= now)
    }

    /// From when on something that is made so long `ahead` may be begun, for it to be sent behind `bytes` that are about to be sent;
    /// `None` where these alone take longer than that.
    #[must_use]
    pub fn room_behind_at(&self, bytes: u64, ahead: Duration) -> Option<Time> {
        let (taken, within) = (self.rate.time_for(bytes), ahead + BURST);
        let full = self.full_at + taken;
        (taken <= within).then(|| Time::from_nanos(full.as_nanos().saturating_sub(nanos(within))))
    }

    /// Takes `bytes` that were sent ahead of everything at `now` out of the bucket, as long as what went so before has not
    /// put it so far into debt; what was sent beyond that waits before the link, and is not paid for.
    pub fn charge_ahead(&mut self, bytes: u64, most: Duration, now: Time) {
        if self.full_at <= now + BURST + most {
            self.charge(bytes, now);
        }
    }

    /// Takes `bytes` that were sent at `now` out of the bucket.
    pub fn charge(&mut self, bytes: u64, now: Time) {
        self.full_at = self.full_at.max(now) + self.rate.time_for(bytes);
    }
}

const fn nanos(span: Duration) -> u64 {
    span.as_secs() * 1_000_000_000 + span.subsec_nanos() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mbit() -> Rate {
        Rate::from_bits(1_000_000).expect("in range")
    }

    #[test]
    fn the_long_run_rate_is_exact() {
        let mut now = Time::from_millis(5);
        let mut pacer = Pacer::new(mbit(), now);
        let mut sent = 0_u64;
        let end = now + Duration::from_secs(10);
        while now < end {
            if pacer.has_room(now) {
                pacer.charge(1250, now);
                sent += 1250;
            } else {
                now = pacer.room_at();
            }
        }
        let expected = mbit().bytes_in(Duration::from_secs(10));
        assert!(sent >= expected && sent <= expected + mbit().bytes_in(BURST) + 1250, "{sent} {expected}");
    }

    #[test]
    fn an_idle_bucket_does_not_overflow() {
        let mut pacer = Pacer::new(mbit(), Time::ZERO);
        let late = Time::from_millis(60_000);
        let mut burst = 0_u64;
        while pacer.has_room(late) {
            pacer.charge(100, late);
            burst += 100;
        }
        assert!(burst <= mbit().bytes_in(BURST) + 100, "{burst}");
        assert!(pacer.room_at() > late);
    }

    #[test]
    fn debt_is_paid_at_the_new_rate() {
        let now = Time::from_millis(5);
        let mut pacer = Pacer::new(mbit(), now);
        pacer.charge(12_500, now);
        assert!(!pacer.has_room(now + Duration::from_millis(95)));
        pacer.set_rate(Rate::from_bits(10_000_000).expect("in range"), now);
        assert!(!pacer.has_room(now + Duration::from_millis(5)));
        assert!(pacer.has_room(now + Duration::from_millis(6)), "10 ms of the faster link, 4 in advance");
        pacer.set_rate(mbit(), now + Duration::from_millis(5));
        assert!(!pacer.has_room(now + Duration::from_millis(50)));
        assert!(pacer.has_room(now + Duration::from_millis(51)), "and the half that was left on the slower");
    }

    #[test]
    fn what_goes_ahead_leaves_a_bounded_debt() {
        let mut pacer = Pacer::new(mbit(), Time::ZERO);
        for _ in 0..1000 {
            pacer.charge_ahead(1250, Duration::from_millis(50), Time::ZERO);
        }
        // A datagram takes 10 ms; the bucket covers the first 4.
        assert!(!pacer.has_room(Time::from_millis(50)) && pacer.has_room(Time::from_millis(60)));
    }

    #[test]
    fn a_datagram_larger_than_the_bucket_leaves_and_is_paid_for() {
        let mut pacer = Pacer::new(mbit(), Time::ZERO);
        pacer.charge(65_000, Time::ZERO);
        assert!(!pacer.has_room(Time::from_millis(500)));
        assert!(pacer.has_room(Time::from_millis(520)));
    }
}
