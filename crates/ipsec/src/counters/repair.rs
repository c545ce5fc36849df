//! Counters of the repair of losses between two nodes.

use super::Tally;

/// What was lost between this node and a peer, what came back, and what that took.
#[derive(Debug, Default)]
pub struct RepairCounters {
    /// Numbers of the peer's datagrams that were missing when later ones came.
    pub missing: Tally,
    /// Of these, the payloads that the peer sent again and that came.
    pub repaired: Tally,
    /// Of these, the payloads that came back out of repair symbols.
    pub recovered: Tally,
    /// Of these, the datagrams that carried no payload: repair symbols, and messages of the peer's own.
    pub without_payload: Tally,
    /// Of these, the datagrams that came after all: the network had only delayed them.
    pub late: Tally,
    /// Of these, those that were given up.
    pub lost: Tally,
    /// Payloads that came again although they had come: a second copy, or one that was only late.
    pub duplicates: Tally,
    /// Payloads that were held back until what is before them had come or was given up.
    pub held: Tally,
    /// Requests for missing payloads that were sent to the peer.
    pub requests: Tally,
    /// Payloads that were sent to the peer again.
    pub repeated: Tally,
    /// Repair symbols that came from the peer.
    pub symbols_in: Tally,
    /// Repair symbols that were sent to the peer.
    pub symbols_out: Tally,
    /// Wire bytes that requests, repetitions, notices and repair symbols to the peer took.
    pub wire: Tally,
    /// The same of those from the peer.
    pub wire_in: Tally,
}
