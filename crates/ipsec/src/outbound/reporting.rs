//! When the peer is told what arrived from it: with a datagram that goes there anyway, else alone.

use core::time::Duration;

use strait_clock::Time;
use strait_scheduler::Rate;

use super::return_budget::ReturnBudget;
use crate::PeerCounters;
use crate::reports::Reception;

/// How long a report waits for a datagram that goes to the peer anyway, where there was one within that time; and one that is
/// pressing.
const RIDE_WITHIN: Duration = Duration::from_millis(200);
const PRESSING_WITHIN: Duration = Duration::from_millis(50);
/// The least time between two reports, and half a round trip: a sender that is told more often only hears of the same step again.
const APART: Duration = Duration::from_millis(20);
/// Reports take at most a fiftieth of the link that they take, where that is known: it may be far slower than the one that they
/// report of.
const LINK_PART: u32 = 50;
/// Bytes that may be on a slow link before what is answered: four full packets, as many as TCP sends unasked on any
/// (RFC 5681 section 3.1).
const BEFORE: u64 = 6_000;

/// What is known of the path that reports take.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ReturnPath {
    pub(super) round_trip: Option<Duration>,
    /// The rate of the link, if it was given or found.
    pub(super) rate: Option<Rate>,
}

impl ReturnPath {
    /// How long after a report of so many bytes the next may leave.
    pub(super) fn apart(&self, bytes: usize) -> Duration {
        let round = self.round_trip.unwrap_or_default() / 2;
        let link = self.rate.map_or(Duration::ZERO, |rate| rate.time_for(bytes as u64));
        APART.max(round).max(link.saturating_mul(LINK_PART))
    }

    /// Returns how long an answer may take, at `least`: two round trips, or what is in front of it on a slow link.
    pub(super) fn patience(&self, least: Duration) -> Duration {
        let link = self.rate.map_or(Duration::ZERO, |rate| rate.time_for(BEFORE));
        least.max(2 * self.round_trip.unwrap_or_default()).max(link)
    }
}

/// Reports to one peer.
#[derive(Debug, Default)]
pub(crate) struct Reporting {
    /// What all that goes back unasked may cost.
    pub(super) budget: ReturnBudget,
    waiting: Option<WaitingReport>,
    /// No other before then.
    not_before: Time,
    /// Whether the link is among those whose reports are due at some time.
    pub(super) listed: bool,
    traffic: PacketsBack,
}

/// What is to be reported.
#[derive(Clone, Copy, Debug)]
struct WaitingReport {
    reception: Reception,
    /// When it was first to be reported.
    since: Time,
    /// When it leaves alone; nothing where it costs too much, until more came.
    due: Option<Time>,
}

/// When packets last went to the peer, as far as that is looked at.
#[derive(Clone, Copy, Debug, Default)]
struct PacketsBack {
    packets: u64,
    at: Option<Time>,
}

/// Bytes that a riding report takes, and some for alignment.
const RIDING: usize = 48;

impl Reporting {
    /// There is something to report.
    pub(super) fn note(&mut self, mut reception: Reception, counters: &PeerCounters, now: Time) {
        self.budget.note(counters.in_wire.get(), reception.pressing);
        let packets = counters.out_packets.get();
        if packets != self.traffic.packets {
            self.traffic = PacketsBack { packets, at: Some(now) };
        }
        let before = self.waiting.map(|waiting| (waiting.since, waiting.reception));
        let since = before.map_or(now, |(since, _)| since);
        if let Some((_, before)) = before {
            reception.marked |= before.marked;
            reception.pressing |= before.pressing;
        }
        let within = if reception.pressing { PRESSING_WITHIN } else { RIDE_WITHIN };
        let rides = self.traffic.at.is_some_and(|at| now.since(at) <= within);
        let ride_until = if rides { since + within } else { now };
        let due = ride_until.max(self.not_before);
        self.waiting = Some(WaitingReport { reception, since, due: Some(due) });
    }

    /// When a report leaves alone, if one waits.
    pub(super) fn due(&self) -> Option<Time> {
        self.waiting?.due
    }

    /// Takes the report that waits, if `bytes` more to the peer are within what may go back. Where they are not, it waits for a
    /// datagram that goes there anyway, or until more came.
    pub(super) fn take_due(&mut self, bytes: usize, path: ReturnPath, now: Time) -> Option<Reception> {
        let waiting = self.waiting.as_mut().filter(|waiting| waiting.due.is_some_and(|due| due <= now))?;
        waiting.due = None;
        self.take(bytes, path, now)
    }

    /// Takes the report that waits for a datagram that goes to the peer anyway, which it makes longer by `bytes`.
    pub(super) fn take_riding(&mut self, bytes: usize, path: ReturnPath, now: Time) -> Option<Reception> {
        if self.not_before > now { None } else { self.take(bytes, path, now) }
    }

    fn take(&mut self, bytes: usize, path: ReturnPath, now: Time) -> Option<Reception> {
        let WaitingReport { reception, .. } = self.waiting?;
        if !self.budget.take(bytes, reception.pressing) {
            return None;
        }
        (self.waiting, self.not_before) = (None, now + path.apart(bytes));
        Some(reception)
    }

    /// Whether a report waits that may leave with the next datagram to the peer.
    pub(super) fn may_ride(&self, now: Time) -> bool {
        let rides = |waiting: &WaitingReport| self.budget.has(RIDING, waiting.reception.pressing);
        self.not_before <= now && self.waiting.as_ref().is_some_and(rides)
    }

    /// Whether a report waits.
    pub(super) const fn is_waiting(&self) -> bool {
        self.waiting.is_some()
    }

    /// Forgets what was to be reported: the association is another, or there is none.
    pub(super) fn renew(&mut self) {
        self.waiting = None;
    }
}
