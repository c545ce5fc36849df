//! Segments on their way, and which of them are lost.

use core::time::Duration;
use std::collections::{BTreeSet, VecDeque};

use strait_clock::Time;

/// Segments beyond one that have arrived for it to count as lost without more time (RFC 6675, `DupThresh`).
const OVERTAKEN: usize = 3;

/// Where a segment is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TcpFate {
    UnderWay,
    Arrived,
    Lost,
}

#[derive(Clone, Copy, Debug)]
struct SentSegment {
    at: Time,
    fate: TcpFate,
    again: bool,
}

/// Segments from the first that is not acknowledged on.
#[derive(Debug, Default)]
pub(super) struct TcpFlight {
    first: u64,
    segments: VecDeque<SentSegment>,
    /// Those on their way, by when they were sent.
    under_way: BTreeSet<(Time, u64)>,
    lost: BTreeSet<u64>,
    arrived: usize,
    /// The segment sent last of those that arrived, and its round-trip time (RFC 8985 section 5.2).
    newest: Option<((Time, u64), Duration)>,
    /// Whether a segment came late that was not sent again.
    reordered: bool,
    highest: u64,
}

impl TcpFlight {
    /// The first segment that is not acknowledged.
    pub(super) const fn first(&self) -> u64 {
        self.first
    }

    /// Segments that were sent and are not acknowledged, those that arrived beyond a gap as well.
    pub(super) fn len(&self) -> u64 {
        self.segments.len() as u64
    }

    /// Segments on their way.
    pub(super) fn under_way(&self) -> usize {
        self.under_way.len()
    }

    /// Segments that arrived beyond a gap.
    pub(super) const fn arrived(&self) -> usize {
        self.arrived
    }

    /// The first that counts as lost.
    pub(super) fn first_lost(&self) -> Option<u64> {
        self.lost.first().copied()
    }

    /// The first segment that was never sent.
    pub(super) fn end(&self) -> u64 {
        self.first + self.segments.len() as u64
    }

    fn at(&mut self, number: u64) -> Option<&mut SentSegment> {
        let place = number.checked_sub(self.first)?;
        self.segments.get_mut(usize::try_from(place).ok()?)
    }

    /// A segment leaves; whether it did before.
    pub(super) fn sent(&mut self, number: u64, at: Time) -> bool {
        self.under_way.insert((at, number));
        let again = self.lost.remove(&number);
        match self.at(number) {
            Some(segment) => *segment = SentSegment { at, fate: TcpFate::UnderWay, again },
            None => self.segments.push_back(SentSegment { at, fate: TcpFate::UnderWay, again }),
        }
        again
    }

    /// A segment has arrived; its round-trip time, where that can be told and it is news.
    pub(super) fn arrives(&mut self, number: u64, least: Duration, now: Time) -> Option<Duration> {
        let highest = self.highest.max(number);
        let late = number < self.highest;
        let segment = self.at(number).filter(|segment| segment.fate != TcpFate::Arrived)?;
        let SentSegment { at, fate, again } = *segment;
        segment.fate = TcpFate::Arrived;
        self.arrived += 1;
        self.highest = highest;
        self.reordered |= late && !again;
        if fate == TcpFate::Lost {
            self.lost.remove(&number);
        } else {
            self.under_way.remove(&(at, number));
        }
        let took = now.since(at);
        // An acknowledgement of what was sent before.
        if again && took < least {
            return None;
        }
        if self.newest.is_none_or(|(newest, _)| (at, number) > newest) {
            self.newest = Some(((at, number), took));
        }
        (!again).then_some(took)
    }

    pub(super) fn drop_before(&mut self, first: u64) {
        while self.first < first && self.segments.pop_front().is_some() {
            self.first += 1;
            self.arrived -= 1;
        }
    }

    /// Marks as lost what was sent so long before what arrived; whether something was.
    pub(super) fn find_lost(&mut self, slack: Duration, recovers: bool, now: Time) -> bool {
        let Some((newest, took)) = self.newest else { return false };
        let sure = !self.reordered && (recovers || self.arrived >= OVERTAKEN);
        let patience = took + if sure { Duration::ZERO } else { slack };
        let mut found = false;
        while let Some(oldest) = self.under_way.first().copied() {
            if oldest >= newest || now.since(oldest.0) < patience {
                break;
            }
            self.under_way.remove(&oldest);
            self.lost.insert(oldest.1);
            if let Some(segment) = self.at(oldest.1) {
                segment.fate = TcpFate::Lost;
            }
            found = true;
        }
        found
    }

    pub(super) fn lose_all(&mut self) {
        for (_, number) in core::mem::take(&mut self.under_way) {
            self.lost.insert(number);
            if let Some(segment) = self.at(number) {
                segment.fate = TcpFate::Lost;
            }
        }
    }
}
