//! What reports say of the path to a peer: delay, loss, and how much arrived how fast.

use core::time::Duration;

use strait_clock::Time;

use super::PathSample;
use super::least::Least;
use super::sent::{APART, SentLog, SentMark};
use crate::Rate;

/// The weight of a new measurement in a smoothed one: of the round-trip time as in RFC 6298 section 2.
const SMOOTH: f64 = 1.0 / 8.0;
/// Datagrams after which a share that was lost is believed as much as all before: some hundred, or a single loss on a
/// slow link would look like a bad link.
const LOSS_MEMORY: f64 = 128.0;
/// Datagrams of a unit on a slow link, which latency-sensitive packets overtake.
const OVERTAKEN: f64 = 4.0;
/// The far end's clock counts microseconds, and is fast by one of so many at most: two clocks are set by 500 ppm each (adjtimex(2)).
const TICK: Duration = Duration::from_micros(1);
const FAST: u32 = 1000;
/// Later than any clock that began with its machine: 2^53 microseconds are 285 years.
const CLOCK_MAX: u64 = 1 << 53;

/// What the far end counted of the association in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeliveryCount {
    /// Datagrams received.
    pub datagrams: u64,
    /// Bytes of their ESP packets.
    pub bytes: u64,
    /// The highest sequence number received.
    pub highest: u64,
    /// When that number arrived, in microseconds of the far end's clock.
    pub received_at: u64,
    /// How long after that the report left.
    pub held: Duration,
}

/// Why a report has no effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReportRefused {
    /// Overtaken by a later one, or of packets sent too long ago.
    Late,
    /// Impossible: more received than sent, or time running backwards.
    Absurd,
}

/// What is known of the path to a peer, from what was sent there and what was reported of it.
#[derive(Clone, Debug)]
pub struct Path {
    log: SentLog,
    bytes: u64,
    allowed: u64,
    allowed_until: Time,
    /// The last report that was believed, with what had been sent by then.
    last: Option<(DeliveryCount, SentMark)>,
    /// One-way delay in microseconds, from this clock to that one.
    one_way: Least,
    /// RTT in microseconds.
    round: Least,
    round_trip: Option<f64>,
    loss: f64,
    /// Datagrams that are missing and may still come; below zero where more came late than was known to be missing.
    doubted: f64,
    refused: u64,
}

impl Path {
    /// A path of which nothing is known.
    #[must_use]
    pub fn new() -> Path {
        Path {
            log: SentLog::new(),
            bytes: 0,
            allowed: 0,
            allowed_until: Time::ZERO,
            last: None,
            one_way: Least::default(),
            round: Least::default(),
            round_trip: None,
            loss: 0.0,
            doubted: 0.0,
            refused: 0,
        }
    }

    /// Another association from now on: numbers begin anew, and so may the far end's clock.
    pub fn renew(&mut self) {
        self.log.clear();
        (self.bytes, self.allowed, self.last) = (0, 0, None);
        (self.one_way, self.doubted) = (Least::default(), 0.0);
    }

    /// The peer is somewhere else, or this end is: another way, with another delay.
    pub fn moved(&mut self) {
        (self.one_way, self.round) = (Least::default(), Least::default());
    }

    /// Another path, on which this share of datagrams was lost at an earlier time.
    pub fn begin_again(&mut self, loss: f64) {
        self.moved();
        (self.round_trip, self.loss) = (None, loss);
    }

    /// Datagrams up to sequence number `number` were sent, with `bytes` of ESP packets, while the pacer let `limit`
    /// pass.
    pub fn sent(&mut self, number: u64, bytes: u64, limit: Option<Rate>, now: Time) {
        let free = now.since(self.allowed_until);
        let allowed = limit.map_or(0, |rate| rate.bytes_in(free));
        self.allowed = self.allowed.saturating_add(allowed);
        // What is less than a byte is allowed later.
        if allowed > 0 || limit.is_none() {
            self.allowed_until = now;
        }
        self.bytes = self.bytes.saturating_add(bytes);
        // What was sealed earlier and sent later does not count backwards.
        let number = self.log.last().map_or(number, |last| last.number.max(number));
        self.log.note(SentMark { number, at: now, bytes: self.bytes, allowed: self.allowed });
    }

    /// Takes a report; what happened since the one before, if enough did. Each datagram has `around` bytes on the wire
    /// around its ESP packet.
    ///
    /// # Errors
    /// [`ReportRefused`] when it has no effect.
    pub fn report(
        &mut self,
        report: &DeliveryCount,
        around: usize,
        now: Time,
    ) -> Result<Option<PathSample>, ReportRefused> {
        let taken = self.check(report).and_then(|()| self.take(report, around, now));
        self.refused += u64::from(taken == Err(ReportRefused::Absurd));
        taken
    }

    /// Whether it can be.
    fn check(&self, report: &DeliveryCount) -> Result<(), ReportRefused> {
        let last = self.log.last().ok_or(ReportRefused::Absurd)?;
        let too_much = report.highest > last.number
            || report.datagrams > report.highest
            || report.bytes > self.bytes
            || report.received_at > CLOCK_MAX;
        if too_much || report.datagrams == 0 {
            return Err(ReportRefused::Absurd);
        }
        let Some((before, _)) = self.last else { return Ok(()) };
        if report.datagrams == before.datagrams && report.bytes == before.bytes {
            return Err(ReportRefused::Late);
        }
        let later = report.datagrams > before.datagrams;
        let agree = (report.bytes > before.bytes) == later
            && (report.highest == before.highest || (report.highest > before.highest) == later)
            && (report.received_at == before.received_at
                || (report.received_at > before.received_at) == later);
        match (agree, later) {
            (true, true) => Ok(()),
            (true, false) => Err(ReportRefused::Late),
            (false, _) => Err(ReportRefused::Absurd),
        }
    }

    fn take(
        &mut self,
        report: &DeliveryCount,
        around: usize,
        now: Time,
    ) -> Result<Option<PathSample>, ReportRefused> {
        let sent = self.log.with(report.highest).ok_or(ReportRefused::Late)?;
        // A report is never held back for longer than since the datagrams it tells of were sent, by a clock that may be fast.
        if report.held > now.since(sent.at) + APART + TICK + report.held / FAST {
            return Err(ReportRefused::Absurd);
        }
        let Some((before, sent_before)) = self.last else {
            self.last = Some((*report, sent));
            self.delay(report, sent, now);
            self.round(report, sent, now);
            return Ok(None);
        };
        // Nothing newer, or all in one instant: it counts with what comes next.
        if sent.number == sent_before.number || report.received_at == before.received_at {
            return Ok(None);
        }
        self.last = Some((*report, sent));
        let delay = self.delay(report, sent, now);
        let round = self.round(report, sent, now);
        let numbers = (report.highest - before.highest) as f64;
        let arrived = report.datagrams - before.datagrams;
        let lost = self.lost(numbers - arrived as f64);
        let wire = |bytes: u64, datagrams: u64| bytes as f64 + datagrams as f64 * around as f64;
        let sent_last = self.log.last().unwrap_or(sent);
        let between = |from: SentMark, to: SentMark| {
            wire(to.bytes.saturating_sub(from.bytes), to.number.saturating_sub(from.number))
        };
        self.note_loss(numbers, lost);
        let passed = between(sent_before, sent);
        Ok(Some(PathSample {
            // Not what was counted: that was later than the highest number came, if others overtook it or it overtook them.
            bytes: passed * (1.0 - lost / numbers).max(0.0),
            span: (report.received_at - before.received_at) as f64 / 1e6,
            sent: passed,
            sent_span: sent.at.since(sent_before.at).as_secs_f64(),
            allowed: sent.allowed.saturating_sub(sent_before.allowed) as f64,
            sent_from: sent_before.at,
            sent_at: sent.at,
            numbers,
            lost,
            delay,
            unreported: between(sent, sent_last),
            due: round + report.held.as_secs_f64(),
        }))
    }

    /// Seconds beyond the minimum one-way delay.
    fn delay(&mut self, report: &DeliveryCount, sent: SentMark, now: Time) -> f64 {
        let one_way = micros(Duration::from_micros(report.received_at)) - micros(sent.at.since(Time::ZERO));
        (one_way - self.one_way.note(one_way, now)) as f64 / 1e6
    }

    /// The minimum RTT in seconds.
    fn round(&mut self, report: &DeliveryCount, sent: SentMark, now: Time) -> f64 {
        let round = now.since(sent.at).saturating_sub(report.held);
        let smoothed = self
            .round_trip
            .map_or(round.as_secs_f64(), |before| before + (round.as_secs_f64() - before) * SMOOTH);
        self.round_trip = Some(smoothed);
        self.round.note(micros(round), now) as f64 / 1e6
    }

    /// How many are lost of those that are `missing` (fewer than none where some came late). The last few may have been
    /// overtaken and still come.
    fn lost(&mut self, missing: f64) -> f64 {
        let missing = missing + self.doubted;
        self.doubted = missing.min(OVERTAKEN);
        missing - self.doubted
    }

    fn note_loss(&mut self, numbers: f64, lost: f64) {
        let weight = numbers / (numbers + LOSS_MEMORY);
        self.loss += ((lost / numbers).min(1.0) - self.loss) * weight;
    }

    /// The share of datagrams that is lost, smoothed; 0 while nothing was reported.
    #[must_use]
    pub const fn loss(&self) -> f64 {
        self.loss
    }

    /// The round-trip time, smoothed.
    #[must_use]
    pub fn round_trip(&self) -> Option<Duration> {
        self.round_trip.map(Duration::from_secs_f64)
    }

    /// The least round-trip time of the last seconds.
    #[must_use]
    pub fn least_round_trip(&self) -> Option<Duration> {
        self.round.get().and_then(|micros| u64::try_from(micros).ok()).map(Duration::from_micros)
    }

    /// Reports that could not be.
    #[must_use]
    pub const fn refused(&self) -> u64 {
        self.refused
    }
}

impl Default for Path {
    fn default() -> Path {
        Path::new()
    }
}

fn micros(span: Duration) -> i64 {
    i64::try_from(span.as_micros()).unwrap_or(i64::MAX / 2)
}
