//! Losses between this node and a peer, and their repair, as they are shown.

use serde::{Deserialize, Serialize};
use strait_ipsec::{LossPattern, PeerCounters};

/// What is done about losses, what was lost, what came back and how, and what that took.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RepairReport {
    /// What is done about losses of what is sent to the peer: the name of a [`strait_ipsec::RepairState`].
    pub state: String,
    /// The share of datagrams to the peer that is lost while no queue stands on the path, 0 to 1.
    pub loss_ratio: f64,
    /// How many of these are lost one after another, on average; at least 1.
    pub mean_burst_datagrams: f64,
    /// Datagrams of the peer that were missing when later ones came.
    pub missing_datagrams: u64,
    /// Of these, those whose payload came because the peer sent it again.
    pub repaired_datagrams: u64,
    /// Of these, those whose payload came back out of repair symbols.
    pub recovered_datagrams: u64,
    /// Of these, those that carried no payload.
    pub empty_datagrams: u64,
    /// Of these, those that the network had only delayed.
    pub late_datagrams: u64,
    /// Of these, those that were given up: what is lost in spite of repair.
    pub lost_datagrams: u64,
    /// Payloads that came again although they had come.
    pub duplicate_payloads: u64,
    /// Payloads that were held back to keep the order.
    pub held_payloads: u64,
    /// Requests sent to the peer for what is missing here.
    pub requests_sent: u64,
    /// Payloads sent to the peer again.
    pub repeated_payloads: u64,
    /// Repair symbols received from the peer.
    pub symbols_received: u64,
    /// Repair symbols sent to the peer.
    pub symbols_sent: u64,
    /// Repair symbols that are sent for each payload now; 0 where losses are repaired by sending payloads again.
    pub symbols_per_payload: f64,
    /// Wire bytes sent to the peer for the sake of repair: requests, repetitions, notices and repair symbols.
    pub wire_bytes: u64,
    /// The same of those received from the peer.
    pub received_wire_bytes: u64,
}

impl RepairReport {
    /// What is known and was counted; nothing before the first association.
    #[must_use]
    pub fn of(counters: &PeerCounters) -> Option<RepairReport> {
        let (state, counted) = (counters.path.repair()?, &counters.repair);
        let losses = counters.path.get().map_or(LossPattern::NONE, |path| path.losses);
        Some(RepairReport {
            state: state.name().to_owned(),
            loss_ratio: losses.share,
            mean_burst_datagrams: losses.burst,
            missing_datagrams: counted.missing.get(),
            repaired_datagrams: counted.repaired.get(),
            recovered_datagrams: counted.recovered.get(),
            empty_datagrams: counted.without_payload.get(),
            late_datagrams: counted.late.get(),
            lost_datagrams: counted.lost.get(),
            duplicate_payloads: counted.duplicates.get(),
            held_payloads: counted.held.get(),
            requests_sent: counted.requests.get(),
            repeated_payloads: counted.repeated.get(),
            symbols_received: counted.symbols_in.get(),
            symbols_sent: counted.symbols_out.get(),
            symbols_per_payload: counters.path.symbols_each(),
            wire_bytes: counted.wire.get(),
            received_wire_bytes: counted.wire_in.get(),
        })
    }
}
