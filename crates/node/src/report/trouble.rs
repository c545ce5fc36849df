//! The obstacles between a node and a peer, and the peer's state in words.

use serde::{Deserialize, Serialize};
use strait_clock::Time;
use strait_keying::{HandshakeFailure, PeerState, PeerStatus};

use super::PeerReport;
use crate::units;

/// The obstacles between a node and a peer.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TroubleReport {
    /// Seconds since the first packet that it has not answered, or since it said that it is being stopped; none while it answers.
    pub away_seconds: Option<f64>,
    /// The least number of inner packets that it has not answered; none while it answers.
    pub unanswered_packets: Option<u64>,
    /// Seconds until the next handshake begins; none while one is under way or none is wanted.
    pub next_attempt_seconds: Option<f64>,
    /// The reason of the last failure of a handshake; none if none failed since one succeeded.
    pub failure: Option<String>,
    /// Seconds since then.
    pub failure_age_seconds: Option<f64>,
}

impl TroubleReport {
    pub(crate) fn of(status: &PeerStatus, now: Time) -> Option<TroubleReport> {
        let ago = |at: Time| now.since(at).as_secs_f64();
        let failure = status.last_failure.as_ref();
        let next = status.next_attempt.filter(|at| *at > now);
        let report = TroubleReport {
            away_seconds: status.away_since.map(ago),
            unanswered_packets: status.unanswered_packets,
            next_attempt_seconds: next.map(|at| at.since(now).as_secs_f64()),
            failure: failure.map(|(why, _)| why.to_string()),
            failure_age_seconds: failure.map(|(_, at)| ago(*at)),
        };
        (report != TroubleReport::default()).then_some(report)
    }
}

/// The state of a peer with keys of sessions, which there is a route to or not.
pub(crate) fn state(status: &PeerStatus, has_route: bool) -> &'static str {
    // Another node may be in the place of one that said that it was being stopped.
    let since = status.last_failure.as_ref().is_some_and(|(_, at)| Some(*at) > status.away_since);
    match (status.state, status.last_failure.as_ref().map(|(why, _)| why)) {
        (PeerState::NoAnswer | PeerState::Connecting, _) if status.endpoint.is_some() && !has_route => {
            "no-route"
        }
        (PeerState::Connecting, Some(HandshakeFailure::WrongKey | HandshakeFailure::RefusedThere { .. })) => {
            "refused"
        }
        (PeerState::Down, Some(HandshakeFailure::WrongKey | HandshakeFailure::RefusedThere { .. }))
            if since =>
        {
            "refused"
        }
        (PeerState::Connecting, Some(HandshakeFailure::Unresolved(_))) => "name-not-found",
        (state, _) => state.name(),
    }
}

impl PeerReport {
    /// Returns true if packets to it are answered, as far as is known.
    #[must_use]
    pub fn is_up(&self) -> bool {
        self.state == "up"
    }

    /// Its state in words: `up`, `no answer for 12 s`, `connecting (attempt 4, next in 7 s)`.
    #[must_use]
    pub fn condition(&self) -> String {
        let trouble = self.trouble.as_ref();
        let failure = || trouble.and_then(|it| it.failure.clone()).unwrap_or_default();
        let away = || trouble.and_then(|it| it.away_seconds).map(units::seconds);
        match self.state.as_str() {
            "no-answer" => away().map_or("no answer".to_owned(), |since| format!("no answer for {since}")),
            "down" => away().map_or("down".to_owned(), |since| format!("down, stopped there {since} ago")),
            "connecting" => {
                let attempt = self.handshake_failures + 1;
                let next = trouble.and_then(|it| it.next_attempt_seconds).map(units::seconds);
                let next = next.map_or(String::new(), |next| format!(", next in {next}"));
                format!("connecting (attempt {attempt}{next})")
            }
            "refused" => format!("refused: {}", failure()),
            "name-not-found" => "name not found".to_owned(),
            "no-route" => {
                format!("no route to {}", self.endpoint.as_deref().unwrap_or("its endpoint"))
            }
            other => other.to_owned(),
        }
    }

    /// Returns the last failure of a handshake with its age and the time until the next; nothing if none failed.
    #[must_use]
    pub fn last_failure(&self) -> Option<String> {
        let trouble = self.trouble.as_ref()?;
        let age =
            trouble.failure_age_seconds.map_or(String::new(), |age| format!("{} ago", units::seconds(age)));
        let next =
            trouble.next_attempt_seconds.map(|next| format!(", next attempt in {}", units::seconds(next)));
        Some(format!("{} ({age}{})", trouble.failure.as_ref()?, next.unwrap_or_default()))
    }
}

#[cfg(test)]
mod tests {
    use strait_keying::PublicKey;

    use super::*;
    use crate::metrics::tests::peer;

    fn status(state: PeerState, failure: Option<HandshakeFailure>) -> PeerStatus {
        PeerStatus {
            remembered: None,
            peer: strait_ipsec::PeerId(1),
            name: "b".to_owned(),
            key: PublicKey::from_bytes([7; 32]),
            endpoint: "198.18.0.2:51820".parse().ok(),
            state,
            association: None,
            away_since: matches!(state, PeerState::NoAnswer | PeerState::Down)
                .then_some(Time::from_millis(1_000)),
            unanswered_packets: None,
            last_handshake: None,
            failures: u32::from(failure.is_some()),
            last_failure: failure.map(|why| (why, Time::from_millis(5_000))),
            next_attempt: Some(Time::from_millis(20_000)),
            pace: strait_scheduler::Pace::None,
            capabilities: None,
        }
    }

    #[test]
    fn each_state_says_what_is_wrong_and_for_how_long() {
        let key = PublicKey::from_bytes([9; 32]);
        for (state, failure, route, word, words) in [
            (PeerState::Idle, None, true, "idle", "idle"),
            (PeerState::Up, None, true, "up", "up"),
            (PeerState::NoAnswer, None, true, "no-answer", "no answer for 12 s"),
            (PeerState::Down, None, true, "down", "down, stopped there 12 s ago"),
            (
                PeerState::Down,
                Some(HandshakeFailure::WrongKey),
                true,
                "refused",
                "refused: the node at this endpoint has another public key; check `public_key` and `endpoint`",
            ),
            (PeerState::Down, Some(HandshakeFailure::TimedOut), true, "down", "down, stopped there 12 s ago"),
            (PeerState::NoAnswer, None, false, "no-route", "no route to 198.18.0.2:51820"),
            (PeerState::Connecting, None, true, "connecting", "connecting (attempt 1, next in 7 s)"),
            (
                PeerState::Connecting,
                Some(HandshakeFailure::TimedOut),
                true,
                "connecting",
                "connecting (attempt 2, next in 7 s)",
            ),
            (
                PeerState::Connecting,
                Some(HandshakeFailure::WrongKey),
                true,
                "refused",
                "refused: the node at this endpoint has another public key; check `public_key` and `endpoint`",
            ),
            (
                PeerState::Connecting,
                Some(HandshakeFailure::Unresolved("no such host".to_owned())),
                true,
                "name-not-found",
                "name not found",
            ),
            (
                PeerState::Connecting,
                Some(HandshakeFailure::RefusedThere { key }),
                false,
                "no-route",
                "no route to 198.18.0.2:51820",
            ),
        ] {
            let (status, now) = (status(state, failure), Time::from_millis(13_000));
            let report = PeerReport {
                state: super::state(&status, route).to_owned(),
                endpoint: status.endpoint.map(|endpoint| endpoint.to_string()),
                handshake_failures: status.failures,
                trouble: TroubleReport::of(&status, now),
                ..peer()
            };
            assert_eq!((report.state.as_str(), report.condition().as_str()), (word, words));
            let failed = report.last_failure();
            assert_eq!(failed.is_some(), status.last_failure.is_some());
            assert!(failed.is_none_or(|line| line.ends_with("(8 s ago, next attempt in 7 s)")));
        }
    }
}
