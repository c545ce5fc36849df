//! Losses between this node and a peer, and their repair, as they are shown.

use serde::{Deserialize, Serialize};
use strait_ipsec::PeerCounters;

/// What was lost, what came back and how, and what that took.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RepairReport {
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
}

impl RepairReport {
    /// What was counted; nothing while nothing was missing at either end.
    #[must_use]
    pub fn of(counters: &PeerCounters) -> Option<RepairReport> {
        let counted = &counters.repair;
        let report = RepairReport {
            missing_datagrams: counted.missing.get(),
            repaired_datagrams: counted.repaired.get(),
            recovered_datagrams: counted.recovered.get(),
            empty_datagrams: counted.without_payload.get(),
            late_datagrams: counted.late.get(),
            lost_datagrams: counted.lost.get(),
            held_payloads: counted.held.get(),
            requests_sent: counted.requests.get(),
            repeated_payloads: counted.repeated.get(),
            symbols_received: counted.symbols_in.get(),
            symbols_sent: counted.symbols_out.get(),
            symbols_per_payload: counters.path.symbols_each(),
            wire_bytes: counted.wire.get(),
        };
        (report != RepairReport::default()).then_some(report)
    }
}
