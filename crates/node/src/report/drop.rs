//! Dropped packets, and what a person can do about them.

use serde::{Deserialize, Serialize};

/// Dropped packets of one reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DropReport {
    /// The reason.
    pub reason: String,
    /// Packets or datagrams dropped.
    pub packets: u64,
}

/// For each reason that a person can mend, how.
const ADVICE: [(&str, &str); 14] = [
    ("no-peer", "add their destination to a peer's `allowed_ips`"),
    ("no-endpoint", "set the peer's `endpoint`, or let the peer begin"),
    ("no-sa-queue-full", "the peer does not answer; its state says why"),
    ("metered", "a cap or `bulk_between` holds the class back until later"),
    ("sequence-not-reserved", "put `counter_file` on a faster disk"),
    ("above-mark", "put `counter_file` on a faster disk"),
    ("not-between-hosts", "use tunnel mode for networks behind the hosts"),
    ("unprotected", "give both ends the same protocols"),
    ("forged", "give both ends the same keys; or someone tries others"),
    ("no-token", "give both ends the same `token_file`"),
    ("foreign-source", "add the source to the peer's `allowed_ips`"),
    ("not-forwarding", "name peers or networks in `forward`"),
    ("host-refused", "see that the interface is up and has its addresses"),
    ("network-refused", "see that a packet filter lets UDP out, and that a route is there"),
];

impl DropReport {
    /// Returns advice to a person who wants to end these drops, where there is some.
    #[must_use]
    pub fn advice(&self) -> Option<&'static str> {
        ADVICE.iter().find(|(reason, _)| *reason == self.reason).map(|(_, advice)| *advice)
    }
}

#[cfg(test)]
mod tests {
    use strait_ipsec::Reason;

    use super::*;

    #[test]
    fn advice_is_for_reasons_that_there_are() {
        let is_reason = |name: &str| Reason::ALL.iter().any(|reason| reason.name() == name);
        let unknown: Vec<_> = ADVICE.iter().filter(|(name, _)| !is_reason(name)).collect();
        assert!(unknown.is_empty(), "{unknown:?}");
        let drops = |reason: &str| DropReport { reason: reason.to_owned(), packets: 1 };
        assert_eq!(drops("foreign-source").advice(), Some("add the source to the peer's `allowed_ips`"));
        assert_eq!(drops("queue-aqm").advice(), None);
    }
}
