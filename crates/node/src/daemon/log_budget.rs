//! How many lines a peer can have written about itself: it can begin handshakes, let them fail and move as fast as it can send.

use std::collections::BTreeMap;

use strait_clock::Time;
use strait_ipsec::PeerId;
use strait_scheduler::Budget;

/// Lines a second on one peer, and so many at once: the log of a peer that comes and goes stays readable, and a hundred peers write
/// less than 20 kB a second.
const LINES: u64 = 2;
const LINES_BURST: u64 = 20;

/// The lines that may be written on each peer.
#[derive(Debug, Default)]
pub(super) struct LogBudget(BTreeMap<PeerId, PeerLines>);

#[derive(Debug)]
struct PeerLines {
    budget: Budget,
    skipped: u64,
}

impl LogBudget {
    /// Whether a line on `peer` may be written; if so, how many were not since the last one. Peers that `known` does not know are
    /// forgotten.
    pub(super) fn take(&mut self, peer: PeerId, now: Time, known: impl Fn(PeerId) -> bool) -> Option<u64> {
        if !self.0.contains_key(&peer) {
            self.0.retain(|peer, _| known(*peer));
        }
        let new = || PeerLines { budget: Budget::new(LINES, LINES_BURST), skipped: 0 };
        let lines = self.0.entry(peer).or_insert_with(new);
        if lines.budget.take(1, now) {
            return Some(core::mem::take(&mut lines.skipped));
        }
        lines.skipped += 1;
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peer_that_begins_handshakes_without_end_fills_no_log() {
        let mut log = LogBudget::default();
        let lines = |log: &mut LogBudget, peer, from: u64| {
            let at = (0..10_000).map(|at| Time::from_millis(from + at));
            at.filter_map(|now| log.take(peer, now, |_| true)).collect::<Vec<_>>()
        };
        let written = lines(&mut log, PeerId(1), 1_000);
        assert!((39..=40).contains(&written.len()), "{} lines in 10 s", written.len());
        assert!(written.iter().sum::<u64>() > 9_400, "what was not written is said");
        assert_eq!(lines(&mut log, PeerId(2), 1_000).len(), written.len(), "another peer has its own");
        assert_eq!(
            log.take(PeerId(1), Time::from_millis(60_000), |_| true).map(|skipped| skipped > 0),
            Some(true)
        );
        assert_eq!(log.take(PeerId(3), Time::from_millis(60_000), |peer| peer == PeerId(1)), Some(0));
        assert_eq!(log.0.len(), 2, "a peer that is gone is forgotten");
    }
}
