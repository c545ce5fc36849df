//! How fast datagrams may leave for one peer: a rate that is given, or one that is estimated from what the peer reports (RFC 9347
//! section 6.1.2).

use core::time::Duration;

use strait_clock::Time;
use strait_scheduler::{self as scheduler, Estimate, Pace, Pacer, Path, PathSample, Rate};
use strait_wire::delivery::Delivery;
use strait_wire::{demux, esp};

use super::marks::MarkWatch;
use super::reporting::ReturnPath;
use super::train::Train;
use crate::fec::{LossCount, LossEstimate};
use crate::reports::ReceivedReport;
use crate::{LossPattern, OutboundSa, PathState, PeerCounters};

/// Delay in seconds above the minimum, beside the time for a full datagram, that is a queue on the path; and reports in a row that have
/// to tell of it before hosts are to know: a burst is over sooner.
const DELAYED: f64 = 0.03;
const DELAYED_REPORTS: u8 = 4;
/// Wire bytes of a full datagram on an ordinary path.
const DATAGRAM: u64 = 1500;

/// Seconds in which what was carried at most is forgotten: as long as a minimum delay counts at least.
const CARRIED: f64 = 5.0;
/// Bits a second below which losses are repaired where nothing is paced, and those at which that ends. A TCP connection that loses one
/// datagram in a hundred stays below the first where a round trip takes 3 ms or more (1.2 / sqrt(p) segments in each, RFC 3649
/// section 2); from the second on nothing is ever paced, and packets are not to be copied either.
const UNPACED_REPAIR: (f64, f64) = (60e6, 500e6);

/// What is known of the path to a peer, and the pacer that follows from it.
#[derive(Debug, Default)]
pub(crate) struct Pacing {
    pub(super) pacer: Option<Pacer>,
    /// Nothing where the peer does not report.
    path: Option<Box<Path>>,
    estimate: Option<Estimate>,
    /// What the rate of the path was found to be at an earlier time.
    remembered: Option<Rate>,
    /// The share of datagrams that is lost on the path, 0 to 1.
    loss: f64,
    /// How datagrams are lost while no queue stands.
    pub(super) losses: LossEstimate,
    /// The ECN marks that the path leaves or clears.
    pub(super) marks: MarkWatch,
    /// The last few reports in a row that told of a standing delay.
    delayed: u8,
    /// Bits a second that arrived lately, at most.
    carried: f64,
}

impl Pacing {
    /// Another association, with a peer that reports or not.
    pub(super) fn renew(&mut self, reports: bool) {
        self.losses.renew();
        self.marks.renew();
        match (&mut self.path, reports) {
            (Some(path), true) => path.renew(),
            (path, true) => {
                let mut known = Path::default();
                known.begin_again(self.loss);
                *path = Some(Box::new(known));
            }
            (path, false) => *path = None,
        }
    }

    /// The peer is somewhere else.
    pub(super) fn moved(&mut self) {
        self.marks.new_path();
        if let Some(path) = &mut self.path {
            path.moved();
        }
    }

    /// Paces so from now on.
    pub(super) fn set(&mut self, pace: Pace, now: Time) {
        let known = self.pacer.as_ref().map(Pacer::rate).or(self.remembered);
        match (pace, &mut self.estimate) {
            (Pace::Estimated { at_most }, Some(estimate)) => estimate.set_ceiling(at_most),
            (Pace::Estimated { at_most }, estimate) => *estimate = Some(Estimate::new(known, at_most, now)),
            (_, estimate) => *estimate = None,
        }
        self.pace_at(self.estimate.as_ref().map_or(pace.given(), Estimate::pacing), now);
    }

    /// Datagrams take another path, which had this rate and loss at an earlier time; `shown` no longer tells of the one before.
    pub(super) fn new_path(&mut self, known: (Option<Rate>, LossPattern), shown: &PathState, now: Time) {
        let (rate, losses) = known;
        let loss = losses.share;
        (self.remembered, self.loss) = (rate, loss);
        self.losses.begin_again(losses);
        self.marks.new_path();
        shown.show_marks(self.marks.is_clearing());
        self.carried = 0.0;
        if let Some(path) = &mut self.path {
            path.begin_again(loss);
        }
        if let Some(estimate) = &mut self.estimate {
            estimate.begin_again(rate, now);
            let pacing = estimate.pacing();
            self.pace_at(pacing, now);
        }
        if let Some(path) = self.path.as_ref().filter(|_| shown.get().is_some()) {
            shown.show(path, self.estimate.as_ref());
        }
    }

    fn pace_at(&mut self, rate: Option<Rate>, now: Time) {
        match (&mut self.pacer, rate) {
            (Some(pacer), Some(rate)) => pacer.set_rate(rate, now),
            (_, rate) => self.pacer = rate.map(|rate| Pacer::new(rate, now)),
        }
    }

    pub(super) const fn is_paced(&self) -> bool {
        self.pacer.is_some()
    }

    pub(super) const fn loss(&self) -> f64 {
        self.loss
    }

    /// Whether a queue stands on the path: what is lost then was more than the path takes, and hosts have to learn of it.
    pub(super) const fn is_congested(&self) -> bool {
        self.delayed >= DELAYED_REPORTS
    }

    /// The round-trip time, where the peer reports.
    pub(super) fn round_trip(&self) -> Option<Duration> {
        self.path.as_ref().and_then(|path| path.round_trip())
    }

    /// The least round-trip time of late, where the peer reports.
    pub(super) fn least_round_trip(&self) -> Option<Duration> {
        self.path.as_ref().and_then(|path| path.least_round_trip())
    }

    /// The rate of the path to the peer, given or estimated.
    pub(super) fn own_rate(&self) -> Option<Rate> {
        let estimated = self.estimate.as_ref().and_then(Estimate::rate);
        estimated.or(self.pacer.as_ref().map(Pacer::rate))
    }

    /// The same, where the node's own link has the rate `up`.
    pub(super) fn rate(&self, up: Option<Rate>) -> Option<Rate> {
        self.own_rate().into_iter().chain(up).min()
    }

    /// The rate by which repair of losses is measured, if they are repaired; `repairs` says whether they were until now. Where the
    /// estimate met no limit yet, they are repaired on a path that loses datagrams without a queue, as TCP in the tunnel takes
    /// them for a limit and never meets the one of the link; the rate is what arrived at most lately.
    /// The node's own link has the rate `up`.
    pub(super) fn repair_rate(&self, repairs: bool, up: Option<Rate>) -> Option<Rate> {
        if self.is_paced() {
            return self.rate(up);
        }
        let (begin, end) = UNPACED_REPAIR;
        let is_slow = self.carried < if repairs { end } else { begin };
        let lossy = self.estimate.is_some() && self.losses.pattern().is_some();
        let carried = (lossy && is_slow).then(|| Rate::from_bits(self.carried as u64).unwrap_or(Rate::MIN));
        carried.map(|rate| up.map_or(rate, |up| rate.min(up)))
    }

    /// The path back to the peer, for reports, where the node's own link has the rate `up`.
    pub(super) fn return_path(&self, up: Option<Rate>) -> ReturnPath {
        let own = match &self.estimate {
            Some(estimate) => estimate.found(),
            None => self.pacer.as_ref().map(Pacer::rate),
        };
        ReturnPath { round_trip: self.round_trip(), rate: own.into_iter().chain(up).min() }
    }

    /// A train that `sa` sealed left at `now`.
    pub(super) fn note_departed(&mut self, train: &Train<'_>, sa: &OutboundSa, now: Time) {
        let Some(path) = &mut self.path else { return };
        let esp = |datagram| match demux::classify(datagram) {
            demux::DatagramKind::Esp => Some(datagram),
            demux::DatagramKind::Sessionless => datagram.get(sa.header_len()..),
            _ => None,
        };
        // Datagrams of streams may be among them, and are numbered and reported by themselves.
        let last = train.datagrams().last().and_then(esp);
        let last = last.or_else(|| train.datagrams().filter_map(esp).last());
        let Some(Ok((header, _))) = last.map(esp::Header::parse) else { return };
        // What was sealed with the association before is of no use.
        if header.spi == sa.spi {
            let last = sa.numbers.last();
            let behind = last.low().0.wrapping_sub(header.seq.0);
            let limit = self.pacer.as_ref().map(Pacer::rate);
            let number = last.0.saturating_sub(u64::from(behind) + sa.base);
            path.sent(number, train.bytes.len() as u64, limit, now);
            self.marks.note_departed(number, train.count(), train.tos);
        }
    }

    /// The peer reports what arrived, in datagrams with `around` bytes outside of what it counts; false when that cannot be.
    pub(super) fn take_report(
        &mut self,
        received: &ReceivedReport,
        around: usize,
        counters: &PeerCounters,
        now: Time,
    ) -> bool {
        let own_rate = self.own_rate();
        let Some(path) = &mut self.path else { return true };
        counters.reports_in.add(1);
        let ReceivedReport { delivery, tval } = received;
        // Both are the low half of the same clock.
        let held = tval.wrapping_sub(delivery.received_at as u32);
        let said = scheduler::DeliveryCount {
            datagrams: delivery.datagrams,
            bytes: delivery.bytes,
            highest: delivery.highest,
            received_at: delivery.received_at,
            held: Duration::from_micros(held.into()),
        };
        let taken = path.report(&said, around, now);
        if let Ok(Some(sample)) = &taken {
            self.note_carried(sample);
            let before = self.delayed;
            let datagram = own_rate.map_or(Duration::ZERO, |rate| rate.time_for(DATAGRAM)).as_secs_f64();
            self.delayed = if sample.delay > DELAYED + datagram { before.saturating_add(1) } else { 0 };
            let Delivery { highest, datagrams, gaps, .. } = *delivery;
            // What a queue before the link had no room for is lost while it stands, at one end of what a report tells of at least.
            self.losses.report(LossCount { highest, datagrams, gaps }, before.max(self.delayed) == 0);
            counters.path.show_losses(self.losses.seen());
            self.marks.take_report(delivery);
            counters.path.show_marks(self.marks.is_clearing());
        }
        match (taken, &mut self.estimate) {
            (Ok(Some(sample)), Some(estimate)) => {
                estimate.sample(&sample, now);
                let pacing = estimate.pacing();
                self.pace_at(pacing, now);
            }
            (Err(scheduler::ReportRefused::Absurd), _) => return false,
            (Ok(_) | Err(scheduler::ReportRefused::Late), _) => {}
        }
        let Some(path) = &self.path else { return true };
        self.loss = path.loss();
        counters.path.show(path, self.estimate.as_ref());
        true
    }

    /// Takes how much arrived, never faster than it was sent: more at once, less as what was before is forgotten.
    fn note_carried(&mut self, sample: &PathSample) {
        let arrived = sample.bytes * 8.0 / sample.span.max(sample.sent_span).max(1e-3);
        let weight = sample.span / (sample.span + CARRIED);
        self.carried = arrived.max(self.carried + (arrived - self.carried) * weight);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_path_begins_with_what_is_known_of_it_and_with_nothing_else() {
        let (first, other) = (Rate::from_bits(2_000_000), Rate::from_bits(1_000_000));
        let mut pacing = Pacing::default();
        let shown = PathState::default();
        let losses = |share| LossPattern { share, burst: 2.0 };
        pacing.new_path((first, losses(0.02)), &shown, Time::ZERO);
        pacing.renew(true);
        pacing.set(Pace::Estimated { at_most: None }, Time::ZERO);
        assert_eq!((pacing.own_rate(), pacing.loss(), pacing.is_paced()), (first, 0.02, true));
        assert_eq!(pacing.path.as_ref().map(|path| path.loss()), Some(0.02));
        pacing.new_path((other, losses(0.01)), &shown, Time::ZERO);
        assert_eq!(shown.get(), None, "nothing was reported yet");
        assert_eq!((pacing.own_rate(), pacing.loss()), (other, 0.01));
        assert!(pacing.losses.pattern().is_some_and(|pattern| (pattern.share - 0.01).abs() < 1e-9));
        pacing.new_path((None, LossPattern::NONE), &shown, Time::ZERO);
        assert_eq!((pacing.own_rate(), pacing.loss(), pacing.is_paced()), (None, 0.0, false));
        assert_eq!(pacing.losses.pattern(), None);
        assert_eq!(pacing.path.as_ref().map(|path| path.loss()), Some(0.0));
    }
}
