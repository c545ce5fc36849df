//! What carries ESP to a peer, as it is shown.

use serde::{Deserialize, Serialize};
use strait_ipsec::{CarrierCounters, CarrierState};

/// What carries ESP: UDP, or IP itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CarrierReport {
    /// The carrier that the configuration asks for: `udp` or `ip`.
    pub configured: String,
    /// The carrier of packets to the peer now: `udp` or `ip`.
    pub sending: String,
    /// Why it is not the configured one; none where it is.
    pub reason: Option<String>,
    /// Datagrams sent directly behind IP.
    pub sent_datagrams: u64,
    /// Datagrams received directly behind IP.
    pub received_datagrams: u64,
}

impl CarrierReport {
    /// What is known of one peer: whether it is to be `ip`, whether this node has sockets for that, whether there is a session,
    /// and what was counted.
    #[must_use]
    pub fn of(
        wanted: bool,
        has_sockets: bool,
        has_session: bool,
        counters: &CarrierCounters,
    ) -> CarrierReport {
        let state = counters.state();
        let is_direct = has_session && state == CarrierState::InUse;
        let name = |direct: bool| if direct { "ip" } else { "udp" }.to_owned();
        let reason = match (has_sockets, has_session) {
            _ if !wanted || is_direct => None,
            (false, _) => Some("this node has no raw sockets; start it as root"),
            (true, false) => Some("there is no session"),
            (true, true) => why_not(state),
        };
        CarrierReport {
            configured: name(wanted),
            sending: name(is_direct),
            reason: reason.map(str::to_owned),
            sent_datagrams: counters.out_direct.get(),
            received_datagrams: counters.in_direct.get(),
        }
    }
}

/// Why ESP goes in UDP.
const fn why_not(state: CarrierState) -> Option<&'static str> {
    match state {
        CarrierState::InUse => None,
        CarrierState::NotAgreed => Some("not agreed with the peer; it needs `carrier = \"ip\"` too"),
        CarrierState::Trying => Some("being tried"),
        CarrierState::Doubted => Some("it may no longer pass; being tried again"),
        CarrierState::NoAnswer => Some("tried, no answer: a NAT or firewall drops protocol 50"),
        CarrierState::Refused => Some("this system refuses to send protocol 50; see its firewall rules"),
    }
}
