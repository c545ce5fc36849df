//! A rate that was recorded: at which moments a link took how much.

use core::fmt;
use core::str::FromStr;
use core::time::Duration;
use std::collections::VecDeque;
use std::sync::Arc;

use strait_clock::Time;
use strait_scheduler::Rate;

/// Bytes that one opportunity carries: a full IP packet and four bytes of a tunnel's header, as in the records of mahimahi
/// (Netravali et al., USENIX ATC 2015; `mm-link(1)`).
const OPPORTUNITY: u64 = 1504;
/// Opportunities that a record has at most: an hour at 10 Mbit/s.
const OPPORTUNITIES_MAX: usize = 3_000_000;

/// A recorded rate: the milliseconds at which a link had room for 1,504 bytes, and after which the record begins again.
/// Clones share it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RateTrace {
    /// In milliseconds from the start, never falling; not empty, and the last is not zero.
    at: Arc<[u32]>,
}

/// Text that is no record of a rate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InvalidTrace {
    /// A line, counted from one, is no number of milliseconds.
    Number(usize),
    /// A line, counted from one, is earlier than the one before.
    Backwards(usize),
    /// It has no line with a time after zero, so it would never end.
    Empty,
    /// It has too many lines.
    TooLong,
}

impl fmt::Display for InvalidTrace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            InvalidTrace::Number(line) => write!(f, "line {line} is not a whole number of milliseconds"),
            InvalidTrace::Backwards(line) => write!(f, "line {line} is earlier than the line before"),
            InvalidTrace::Empty => f.write_str("no line has a time after zero"),
            InvalidTrace::TooLong => write!(f, "more than {OPPORTUNITIES_MAX} lines"),
        }
    }
}

impl core::error::Error for InvalidTrace {}

impl FromStr for RateTrace {
    type Err = InvalidTrace;

    /// Reads mahimahi's format: a line for each opportunity to send a full packet, in milliseconds; empty lines and lines that
    /// begin with `#` mean nothing.
    fn from_str(text: &str) -> Result<RateTrace, InvalidTrace> {
        let mut at: Vec<u32> = Vec::new();
        for (number, line) in (1..).zip(text.lines().map(str::trim)) {
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let time: u32 = line.parse().map_err(|_| InvalidTrace::Number(number))?;
            if at.last().is_some_and(|last| time < *last) {
                return Err(InvalidTrace::Backwards(number));
            }
            if at.len() == OPPORTUNITIES_MAX {
                return Err(InvalidTrace::TooLong);
            }
            at.push(time);
        }
        if at.last().is_none_or(|last| *last == 0) {
            return Err(InvalidTrace::Empty);
        }
        Ok(RateTrace { at: at.into() })
    }
}

impl RateTrace {
    /// What a shared medium of `rate` leaves beside recorded traffic: packets by their time, never falling, and their bytes. What
    /// comes faster than the medium carries takes its room later.
    ///
    /// # Errors
    /// [`InvalidTrace::Empty`] when nothing is left, [`InvalidTrace::TooLong`] when it is too much.
    pub fn beside(
        rate: Rate,
        traffic: impl IntoIterator<Item = (Duration, u64)>,
    ) -> Result<RateTrace, InvalidTrace> {
        let step = Duration::from_millis(1);
        let (room, mut at, mut owed, mut left) = (rate.bytes_in(step), Vec::new(), 0_u64, 0_u64);
        let (mut now, mut millis) = (Duration::ZERO, 0_u32);
        for (time, bytes) in traffic {
            while now + step <= time {
                left += room.saturating_sub(owed);
                owed = owed.saturating_sub(room);
                (now, millis) = (now + step, millis.saturating_add(1));
                for _ in 0..left / OPPORTUNITY {
                    at.push(millis);
                }
                left %= OPPORTUNITY;
                if at.len() > OPPORTUNITIES_MAX {
                    return Err(InvalidTrace::TooLong);
                }
            }
            owed = owed.saturating_add(bytes);
        }
        if at.is_empty() { Err(InvalidTrace::Empty) } else { Ok(RateTrace { at: at.into() }) }
    }

    /// How long it takes until it begins again.
    #[must_use]
    pub fn length(&self) -> Duration {
        Duration::from_millis(self.at.last().copied().unwrap_or(0).into())
    }

    /// Bits a second over the whole record.
    #[must_use]
    pub fn mean_bits(&self) -> f64 {
        (OPPORTUNITY * 8 * self.at.len() as u64) as f64 / self.length().as_secs_f64()
    }

    /// Bits that it has room for from one time to another.
    #[must_use]
    pub fn bits_between(&self, from: Time, to: Time) -> u64 {
        self.first_from(to).saturating_sub(self.first_from(from)) * OPPORTUNITY * 8
    }

    /// When opportunity `number`, counted through all repetitions, comes.
    fn time(&self, number: u64) -> Time {
        let count = self.at.len() as u64;
        let (round, place) = (number / count, number % count);
        let at = usize::try_from(place).ok().and_then(|place| self.at.get(place)).copied().unwrap_or(0);
        Time::ZERO + self.length().saturating_mul(u32::try_from(round).unwrap_or(u32::MAX)) + millis(at)
    }

    /// The first opportunity that does not come before `time`.
    fn first_from(&self, time: Time) -> u64 {
        let (length, since) = (self.length().as_nanos().max(1), u128::from(time.as_nanos()));
        let rest = since % length;
        // An opportunity at the very end of the record comes at the same time as one at zero, so none is passed over.
        let place = self.at.partition_point(|at| millis(*at).as_nanos() < rest) as u64;
        u64::try_from(since / length).unwrap_or(u64::MAX).saturating_mul(self.at.len() as u64) + place
    }
}

fn millis(at: u32) -> Duration {
    Duration::from_millis(at.into())
}

/// The place in a record, and what waits for its opportunities.
#[derive(Clone, Debug)]
pub(super) struct TraceBottleneck {
    record: RateTrace,
    /// The opportunity that the last datagram used, and what it has left.
    used: Option<(u64, u64)>,
    /// When each datagram leaves that had not left when the last one came, and its bytes.
    queued: VecDeque<(Time, u64)>,
    bytes: u64,
}

impl TraceBottleneck {
    pub(super) const fn new(record: RateTrace) -> TraceBottleneck {
        TraceBottleneck { record, used: None, queued: VecDeque::new(), bytes: 0 }
    }

    /// Bytes that have not left yet.
    pub(super) fn waiting(&mut self, now: Time) -> u64 {
        while let Some((_, bytes)) = self.queued.pop_front_if(|(leaves, _)| *leaves <= now) {
            self.bytes -= bytes;
        }
        self.bytes
    }

    /// Takes a datagram of `wire` bytes, at least one, and says when it leaves: with the opportunity that takes its last byte.
    /// Small datagrams share one; what an opportunity has left when nothing waits is lost.
    pub(super) fn leave(&mut self, wire: u64, now: Time) -> Time {
        let (mut number, mut left) = match self.used {
            Some((number, left)) if self.record.time(number) >= now => (number, left),
            _ => (self.record.first_from(now), OPPORTUNITY),
        };
        let mut rest = wire;
        while rest > left {
            rest -= left;
            (number, left) = (number + 1, OPPORTUNITY);
        }
        self.used = Some((number, left - rest));
        let leaves = self.record.time(number);
        self.queued.push_back((leaves, wire));
        self.bytes += wire;
        leaves
    }
}
