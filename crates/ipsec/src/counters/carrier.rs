//! What carries ESP to and from a peer: UDP, or IP itself.

use std::sync::atomic::{AtomicU8, Ordering};

use super::Tally;

/// Whether ESP goes directly behind IP (protocol 50), and why not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum CarrierState {
    /// It was not agreed with the peer, or there is no session yet.
    #[default]
    NotAgreed,
    /// Probes are on their way; data goes in UDP.
    Trying,
    /// Data goes directly behind IP.
    InUse,
    /// It was in use and may pass no longer; data goes in UDP.
    Doubted,
    /// Probes were sent and not answered; data goes in UDP.
    NoAnswer,
    /// The system refused to send; data goes in UDP.
    Refused,
}

impl CarrierState {
    const ALL: [CarrierState; 6] = [
        CarrierState::NotAgreed,
        CarrierState::Trying,
        CarrierState::InUse,
        CarrierState::Doubted,
        CarrierState::NoAnswer,
        CarrierState::Refused,
    ];
}

/// ESP directly behind IP, of one peer.
#[derive(Debug, Default)]
pub struct CarrierCounters {
    state: AtomicU8,
    /// Datagrams sent directly behind IP.
    pub out_direct: Tally,
    /// Datagrams received directly behind IP.
    pub in_direct: Tally,
}

impl CarrierCounters {
    /// Whether it is in use towards the peer.
    #[must_use]
    pub fn state(&self) -> CarrierState {
        let state = self.state.load(Ordering::Relaxed);
        CarrierState::ALL.get(usize::from(state)).copied().unwrap_or_default()
    }

    pub(crate) fn show(&self, state: CarrierState) {
        self.state.store(state as u8, Ordering::Relaxed);
    }
}
