//! The lines about a peer that are written: so many, as it can begin handshakes, let them fail and move as fast as it can send; and none
//! that says again what keeps this node from a session.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;

use strait_clock::Time;
use strait_ipsec::PeerId;
use strait_keying::{ControlEvent, HandshakeFailure};
use strait_scheduler::Budget;

/// Lines a second on one peer, and so many at once: the log of a peer that comes and goes stays readable, and a hundred peers write
/// less than 20 kB a second.
const LINES: u64 = 2;
const LINES_BURST: u64 = 20;
/// Addresses that are remembered to be in the log: twice as many as a name may have.
const TRIED: usize = 2 * strait_keying::MOST_ADDRESSES;

/// The lines that may be written on each peer.
#[derive(Debug, Default)]
pub(super) struct LogBudget(BTreeMap<PeerId, PeerLines>);

#[derive(Debug)]
struct PeerLines {
    budget: Budget,
    skipped: u64,
    said: SaidLines,
}

/// The lines in the log since the last session, or the start, that say why there is none.
#[derive(Debug, Default)]
struct SaidLines {
    /// The last reason for which the name was not looked up.
    unresolved: Option<String>,
    /// The last reason for which a handshake failed.
    failed: Option<HandshakeFailure>,
    /// The addresses at which handshakes were begun.
    tried: BTreeSet<SocketAddr>,
}

impl SaidLines {
    /// Returns true if the line about `event` says something that the last of its kind did not.
    fn is_news(&mut self, event: &ControlEvent) -> bool {
        match event {
            ControlEvent::Established { .. } => *self = SaidLines::default(),
            ControlEvent::HandshakeStarted { to, .. } => {
                return self.tried.len() >= TRIED || self.tried.insert(*to);
            }
            ControlEvent::Unresolved { why, .. } => {
                return self.unresolved.replace(why.clone()).as_ref() != Some(why);
            }
            // That is said already.
            ControlEvent::Failed { why: HandshakeFailure::Unresolved(_), .. } => return false,
            ControlEvent::Failed { why, retry: Some(_), .. } => {
                return self.failed.replace(why.clone()).as_ref() != Some(why);
            }
            _ => {}
        }
        true
    }
}

impl LogBudget {
    /// Returns how many lines on `peer` had no room since the last one, if the line about `event` is written: it has something new to
    /// say, and room. Peers that `known` does not know are forgotten.
    pub(super) fn take(
        &mut self,
        peer: PeerId,
        event: &ControlEvent,
        now: Time,
        known: impl Fn(PeerId) -> bool,
    ) -> Option<u64> {
        if !self.0.contains_key(&peer) {
            self.0.retain(|peer, _| known(*peer));
        }
        let new =
            || PeerLines { budget: Budget::new(LINES, LINES_BURST), skipped: 0, said: SaidLines::default() };
        let lines = self.0.entry(peer).or_insert_with(new);
        if !lines.said.is_news(event) {
            return None;
        }
        if lines.budget.take(1, now) {
            return Some(core::mem::take(&mut lines.skipped));
        }
        lines.skipped += 1;
        None
    }
}

#[cfg(test)]
mod tests {
    use strait_keying::Role;

    use super::*;

    fn moved(peer: PeerId) -> ControlEvent {
        ControlEvent::Moved { peer, to: SocketAddr::from(([192, 0, 2, 7], 5)), unlogged: 0 }
    }

    #[test]
    fn what_keeps_a_node_from_a_session_is_said_once_until_it_is_something_else() {
        let (mut log, peer) = (LogBudget::default(), PeerId(1));
        let mut now = Time::ZERO;
        let mut is_written = |event: ControlEvent| {
            now += std::time::Duration::from_secs(60);
            log.take(peer, &event, now, |_| true).is_some()
        };
        let unresolved =
            |why: &str| ControlEvent::Unresolved { peer, name: "b:5".to_owned(), why: why.to_owned() };
        let failed = |why| ControlEvent::Failed {
            peer,
            role: Role::Initiator,
            why,
            failures: 1,
            retry: Some(std::time::Duration::from_secs(1)),
        };
        let started =
            |host| ControlEvent::HandshakeStarted { peer, to: SocketAddr::from(([192, 0, 2, host], 5)) };
        for (event, written) in [
            (unresolved("no resolver"), true),
            (failed(HandshakeFailure::Unresolved("no resolver".to_owned())), false),
            (unresolved("no resolver"), false),
            (unresolved("no answer"), true),
            (unresolved("no resolver"), true),
            (started(1), true),
            (failed(HandshakeFailure::TimedOut), true),
            (started(1), false),
            (failed(HandshakeFailure::TimedOut), false),
            (started(2), true),
            (failed(HandshakeFailure::WrongKey), true),
            (unresolved("no resolver"), false),
            (moved(peer), true),
            (moved(peer), true),
        ] {
            assert_eq!(is_written(event.clone()), written, "{event}");
        }
        let established = ControlEvent::Established {
            peer,
            role: Role::Initiator,
            suite: strait_crypto::Suite::Aes256Gcm,
            inbound: strait_wire::Spi(1),
            outbound: strait_wire::Spi(2),
            replaces: None,
        };
        assert!(is_written(established));
        assert!(is_written(started(1)) && is_written(unresolved("no resolver")));
    }

    #[test]
    fn a_peer_that_begins_handshakes_without_end_fills_no_log() {
        let mut log = LogBudget::default();
        let lines = |log: &mut LogBudget, peer, from: u64| {
            let at = (0..10_000).map(|at| Time::from_millis(from + at));
            at.filter_map(|now| log.take(peer, &moved(peer), now, |_| true)).collect::<Vec<_>>()
        };
        let written = lines(&mut log, PeerId(1), 1_000);
        assert!((39..=40).contains(&written.len()), "{} lines in 10 s", written.len());
        assert!(written.iter().sum::<u64>() > 9_400, "what was not written is said");
        assert_eq!(lines(&mut log, PeerId(2), 1_000).len(), written.len(), "another peer has its own");
        assert_eq!(
            log.take(PeerId(1), &moved(PeerId(1)), Time::from_millis(60_000), |_| true)
                .map(|skipped| skipped > 0),
            Some(true)
        );
        let third = moved(PeerId(3));
        let at = Time::from_millis(60_000);
        assert_eq!(log.take(PeerId(3), &third, at, |peer| peer == PeerId(1)), Some(0));
        assert_eq!(log.0.len(), 2, "a peer that is gone is forgotten");
    }
}
