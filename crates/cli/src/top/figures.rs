//! What the screen shows, from two answers of a daemon: rates are differences of counters, the rest is as the newer one has it.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::time::Duration;

use strait_node::report::{DaemonReport, DecisionReport, PeerReport, TrafficReport};

/// Flows that are kept of a peer, the busiest: more than any terminal has lines.
pub(super) const FLOWS_MAX: usize = 200;

/// An answer, and when it came: since the command began.
#[derive(Clone, Debug)]
pub(super) struct Poll {
    pub(super) report: DaemonReport,
    pub(super) at: Duration,
}

/// The last two answers of one run of the daemon, and its drops when the first came.
#[derive(Clone, Debug)]
pub(super) struct Polls {
    now: Poll,
    before: Option<Poll>,
    first_drops: BTreeMap<String, u64>,
}

/// Packets dropped for one reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Drops {
    pub(super) reason: String,
    /// Since this command began, or the daemon after it.
    pub(super) since: u64,
    /// Since the answer before.
    pub(super) last: u64,
}

/// The rate of the link to a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LinkRate {
    /// In bit/s, from the configuration.
    Configured(u64),
    /// In bit/s, found.
    Estimated(u64),
    /// Neither.
    Unknown,
}

/// What crosses the link to a peer now.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct LinkFigures {
    pub(super) rate: LinkRate,
    /// In bit/s of wire bytes; none before the second answer.
    pub(super) sent: Option<f64>,
    /// The same in the other direction.
    pub(super) received: Option<f64>,
}

/// Inner bytes beside wire bytes, since the daemon started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Savings {
    pub(super) bytes: u64,
    pub(super) wire_bytes: u64,
}

/// One flow, or service, of a peer.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Flow {
    pub(super) decision: DecisionReport,
    /// Bytes a second behind compression, as the decision expects them; none where it has no estimate.
    pub(super) after: Option<u64>,
    /// The expected compression ratio; none where nothing is compressed.
    pub(super) ratio: Option<f64>,
}

/// The flows of a peer.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Flows {
    /// At most [`FLOWS_MAX`], those with more traffic first.
    pub(super) rows: Vec<Flow>,
    /// How many there are besides.
    pub(super) more: usize,
    /// Whether the sender had no time to tell them.
    pub(super) untold: bool,
}

impl Polls {
    pub(super) fn new(first: Poll) -> Polls {
        Polls { first_drops: drops_of(&first.report), before: None, now: first }
    }

    /// Takes the next answer. One of another run of the daemon begins anew: all its counters began at 0.
    pub(super) fn take(&mut self, next: Poll) {
        let (was, is) = (&self.now.report.node, &next.report.node);
        if was.pid != is.pid || is.uptime_seconds < was.uptime_seconds {
            *self = Polls { now: next, before: None, first_drops: BTreeMap::new() };
            return;
        }
        self.before = Some(std::mem::replace(&mut self.now, next));
    }

    /// The newest answer.
    pub(super) fn report(&self) -> &DaemonReport {
        &self.now.report
    }

    /// What crosses the link to `peer`.
    pub(super) fn link(&self, peer: &PeerReport) -> LinkFigures {
        let estimated = peer.path.as_ref().and_then(|path| path.estimated_rate_bits_per_second);
        let rate = match (estimated, peer.link_rate_bits_per_second) {
            (Some(bits), _) => LinkRate::Estimated(bits),
            (None, Some(bits)) => LinkRate::Configured(bits),
            (None, None) => LinkRate::Unknown,
        };
        let before = self.before.as_ref().and_then(|poll| {
            let same = poll.report.peers.iter().find(|it| it.name == peer.name)?;
            Some((same, self.now.at.saturating_sub(poll.at)))
        });
        let rate_of = |counter: &dyn Fn(&PeerReport) -> TrafficReport| {
            let (before, span) = before?;
            // A peer that was removed and came back has new counters.
            let bytes = counter(peer).wire_bytes.checked_sub(counter(before).wire_bytes)?;
            (!span.is_zero()).then(|| bytes as f64 * 8.0 / span.as_secs_f64())
        };
        LinkFigures { rate, sent: rate_of(&|peer| peer.sent), received: rate_of(&|peer| peer.received) }
    }

    /// Reasons whose drops grew since this command began; those of the last refresh first, then those with more.
    pub(super) fn drops(&self) -> Vec<Drops> {
        let before = self.before.as_ref().map(|poll| drops_of(&poll.report));
        let before = before.as_ref().unwrap_or(&self.first_drops);
        let of = |all: &BTreeMap<String, u64>, reason: &str| all.get(reason).copied().unwrap_or(0);
        let grown = self.now.report.drops.iter().map(|it| Drops {
            reason: it.reason.clone(),
            since: it.packets.saturating_sub(of(&self.first_drops, &it.reason)),
            last: it.packets.saturating_sub(of(before, &it.reason)),
        });
        let mut grown: Vec<Drops> = grown.filter(|it| it.since > 0).collect();
        grown.sort_by_key(|it| (Reverse(it.last > 0), Reverse(it.since)));
        grown
    }

    /// The flows of `peer`. They are in steps of a factor of 2, and by name within a step: so they keep their places while their
    /// rates change little, and a thin link to the terminal carries less.
    pub(super) fn flows(&self, peer: &str) -> Flows {
        let Some(decisions) = &self.now.report.decisions else {
            return Flows { untold: true, ..Flows::default() };
        };
        let mut all: Vec<&DecisionReport> =
            decisions.iter().filter(|it| it.peer.as_deref() == Some(peer)).collect();
        all.sort_by_key(|it| (it.bytes_per_second.leading_zeros(), it.class.as_str(), it.domain.as_deref()));
        let more = all.len().saturating_sub(FLOWS_MAX);
        all.truncate(FLOWS_MAX);
        Flows { rows: all.into_iter().map(Flow::of).collect(), more, untold: false }
    }
}

impl Flow {
    fn of(decision: &DecisionReport) -> Flow {
        let (after, ratio) = (decision.compressed_bytes_per_second(), decision.chosen_ratio());
        Flow { decision: decision.clone(), after, ratio }
    }

    /// What identifies it among the flows of a peer.
    pub(super) fn key(&self) -> FlowKey {
        (self.decision.class.clone(), self.decision.domain.clone())
    }
}

/// The class of a flow, and its trust domain.
pub(super) type FlowKey = (String, Option<String>);

impl From<TrafficReport> for Savings {
    fn from(traffic: TrafficReport) -> Savings {
        Savings { bytes: traffic.bytes, wire_bytes: traffic.wire_bytes }
    }
}

impl Savings {
    /// Bytes that did not cross the link; negative where encapsulation took more than was saved.
    pub(super) fn saved(self) -> i128 {
        i128::from(self.bytes) - i128::from(self.wire_bytes)
    }

    /// The same in percent of the inner bytes; none before there were any.
    pub(super) fn percent(self) -> Option<f64> {
        (self.bytes > 0).then(|| self.saved() as f64 * 100.0 / self.bytes as f64)
    }
}

fn drops_of(report: &DaemonReport) -> BTreeMap<String, u64> {
    report.drops.iter().map(|it| (it.reason.clone(), it.packets)).collect()
}

#[cfg(test)]
mod tests {
    use strait_node::report::DropReport;

    use super::super::samples::{at, decision, report};
    use super::*;

    #[test]
    fn rates_are_differences_of_wire_bytes() {
        let mut polls = Polls::new(at(0, report()));
        let peer = |polls: &Polls| polls.report().peers[0].clone();
        assert_eq!(polls.link(&peer(&polls)).sent, None, "there is one answer");
        let mut next = report();
        next.peers[0].sent.wire_bytes += 25_000;
        next.peers[0].received.wire_bytes += 1_000;
        polls.take(at(2_000, next));
        let link = polls.link(&peer(&polls));
        assert_eq!((link.sent, link.received), (Some(100_000.0), Some(4_000.0)));
        assert_eq!(link.rate, LinkRate::Estimated(1_492_500));
        let mut told = peer(&polls);
        told.path = None;
        assert_eq!(polls.link(&told).rate, LinkRate::Configured(1_492_500));
        told.link_rate_bits_per_second = None;
        assert_eq!(polls.link(&told).rate, LinkRate::Unknown);
        told.sent.wire_bytes = 1;
        assert_eq!(polls.link(&told).sent, None, "its counters began again");
    }

    #[test]
    fn two_answers_at_the_same_time_have_no_rate() {
        let mut polls = Polls::new(at(5, report()));
        polls.take(at(5, report()));
        assert_eq!(polls.link(&polls.report().peers[0].clone()).sent, None);
    }

    #[test]
    fn another_run_of_the_daemon_begins_anew() {
        let mut polls = Polls::new(at(0, report()));
        let mut next = report();
        next.node.pid += 1;
        next.drops = vec![DropReport { reason: "forged".to_owned(), packets: 2 }];
        polls.take(at(1_000, next));
        assert_eq!(polls.link(&polls.report().peers[0].clone()).sent, None);
        assert_eq!(polls.drops(), [Drops { reason: "forged".to_owned(), since: 2, last: 2 }]);
    }

    #[test]
    fn drops_are_those_that_grew_the_last_ones_first() {
        let with = |replayed, forged| {
            let mut report = report();
            for (drop, packets) in report.drops.iter_mut().zip([replayed, forged]) {
                drop.packets = packets;
            }
            report
        };
        let mut polls = Polls::new(at(0, with(3, 0)));
        assert_eq!(polls.drops(), []);
        polls.take(at(1_000, with(9, 0)));
        polls.take(at(2_000, with(9, 2)));
        let expected = [("forged", 2, 2), ("replayed", 6, 0)];
        let expected = expected.map(|(reason, since, last)| Drops { reason: reason.to_owned(), since, last });
        assert_eq!(polls.drops(), expected);
    }

    #[test]
    fn flows_are_those_of_the_peer_in_steps_of_a_factor_of_2() {
        let mut told = report();
        let mut other = decision("tcp other", 9_000_000);
        other.peer = Some("site-c".to_owned());
        told.decisions =
            Some(vec![decision("tcp b", 900), other, decision("tcp a", 600), decision("tcp c", 1_100)]);
        let names = |told: &DaemonReport| {
            let flows = Polls::new(at(0, told.clone())).flows("site-b");
            flows.rows.iter().map(|it| it.decision.class.clone()).collect::<Vec<_>>()
        };
        assert_eq!(names(&told), ["tcp c", "tcp a", "tcp b"]);
        if let Some(decisions) = &mut told.decisions {
            decisions[0].bytes_per_second = 512;
        }
        assert_eq!(names(&told), ["tcp c", "tcp a", "tcp b"]);
        told.decisions = None;
        assert!(Polls::new(at(0, told)).flows("site-b").untold);
    }

    #[test]
    fn ten_thousand_flows_are_bounded_and_counted() {
        let mut told = report();
        told.decisions = Some((0..10_000_u64).map(|at| decision(&format!("udp {at}"), at)).collect());
        let flows = Polls::new(at(0, told)).flows("site-b");
        assert_eq!((flows.rows.len(), flows.more), (FLOWS_MAX, 10_000 - FLOWS_MAX));
        assert!(flows.rows.iter().all(|it| it.decision.bytes_per_second >= 8_192), "the busiest");
    }

    #[test]
    fn bytes_behind_compression_follow_the_estimate_of_what_was_chosen() {
        let flow = Flow::of(&decision("tcp", 1_000));
        assert_eq!((flow.after, flow.ratio), (Some(400), Some(2.5)));
        let mut none = decision("tcp", 1_000);
        none.choice = "none".to_owned();
        assert_eq!((Flow::of(&none).after, Flow::of(&none).ratio), (Some(1_000), None));
        let mut fixed = decision("tcp", 1_000);
        fixed.estimate = None;
        assert_eq!((Flow::of(&fixed).after, Flow::of(&fixed).ratio), (None, None));
    }

    #[test]
    fn savings_may_be_negative() {
        let one = |bytes, wire_bytes| Savings { bytes, wire_bytes };
        assert_eq!((one(400, 100).saved(), one(400, 100).percent()), (300, Some(75.0)));
        assert_eq!((one(100, 150).saved(), one(100, 150).percent()), (-50, Some(-50.0)));
        assert_eq!(one(0, 90).percent(), None);
    }
}
