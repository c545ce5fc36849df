//! Drop reasons: every dropped packet has a reason, every reason a counter.

use core::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

macro_rules! reasons {
    ($($(#[$doc:meta])* $name:ident = $text:literal,)+) => {
        /// Why a packet or datagram was dropped.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Reason { $($(#[$doc])* $name,)+ }

        impl Reason {
            /// All of them, in the order they are shown.
            pub const ALL: &'static [Reason] = &[$(Reason::$name,)+];

            /// A short name for tables and metrics.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Reason::$name => $text,)+ }
            }
        }
    };
}

reasons! {
    /// From the host: not a whole IP packet.
    MalformedPacket = "malformed-packet",
    /// From the host: the device's offload header in front of the packet is cut short.
    MalformedOffload = "malformed-offload",
    /// From the host: no peer has this destination address.
    NoPeer = "no-peer",
    /// From the host: the peer with this address is being looked up, and the queue for it is full.
    NoPeerYet = "no-peer-queue-full",
    /// From the host: the peer has no security association yet and its queue is full.
    NoSa = "no-sa-queue-full",
    /// From the host: the peer's endpoint is not known.
    NoEndpoint = "no-endpoint",
    /// From the host: the queue before the link is full.
    QueueFull = "queue-overflow",
    /// From the host: dropped by CoDel (RFC 8289).
    QueueDelay = "queue-aqm",
    /// From the host: the cap on bytes, or the daily window for bulk traffic, does not let its class leave now.
    Metered = "metered",
    /// From the host: larger than the path MTU; the sender gets ICMP "too big".
    TooBig = "too-big",
    /// All sequence numbers of the association are used.
    Exhausted = "sequence-exhausted",
    /// Sequence numbers are used faster than they are reserved on disk.
    NotReserved = "sequence-not-reserved",
    /// From the host: for a transport-mode association, but not between its two hosts.
    NotBetweenHosts = "not-between-hosts",
    /// From the network: neither ESP nor QUIC nor a keepalive, nor a header that this node reads.
    UnknownDatagram = "unknown-datagram",
    /// From the network: ESP too short or with broken padding.
    MalformedEsp = "malformed-esp",
    /// From the network: invalid AH, or headers before it that AH cannot cover.
    MalformedAh = "malformed-ah",
    /// From the network: not a whole IP packet.
    MalformedOuter = "malformed-outer",
    /// From the network: a protocol that was agreed is missing.
    Unprotected = "unprotected",
    /// From the network: an invalid outer fragment.
    MalformedFragment = "malformed-fragment",
    /// From the network: outer fragments that overlap (RFC 5722).
    FragmentsOverlap = "fragments-overlap",
    /// From the network: outer fragments still incomplete at the timeout or the memory limit.
    FragmentsIncomplete = "fragments-incomplete",
    /// From the network: no association has the SPI.
    UnknownSpi = "unknown-spi",
    /// From the network: this sequence number was received before.
    Replayed = "replayed",
    /// From the network: older than the replay window.
    TooOld = "too-old",
    /// From the network: above the mark that is on disk, which is written too slowly.
    AboveMark = "above-mark",
    /// From the network: the integrity check failed.
    Forged = "forged",
    /// From the network: an inconsistent delivery report.
    AbsurdReport = "invalid-report",
    /// From the network: a control datagram from an unknown address, beyond what the node takes of those.
    StrangerOverBudget = "stranger-over-budget",
    /// From the network: a header that no association is known by, or a key packet, beyond what the node takes of those.
    HeaderOverBudget = "header-over-budget",
    /// From the network: the first datagram of a handshake without the pre-shared token.
    NoToken = "no-token",
    /// To the network: an answer to an unknown sender, beyond its share of the link, or of a handshake that sends the same again and
    /// again.
    AnswerOverBudget = "answer-over-budget",
    /// A next header that this association does not carry.
    UnknownPayload = "unknown-payload",
    /// Inside: not a whole IP packet.
    MalformedInner = "malformed-inner",
    /// Inside: the source address is not one of the peer's.
    ForeignSource = "foreign-source",
    /// Inside: between a peer and an address that this node does not forward to or from: another peer's, or one of a
    /// network that is not named.
    NotForwarding = "not-forwarding",
    /// Inside: a congestion mark on a packet that cannot carry it (RFC 6040 section 4.2).
    CongestionMark = "congestion-mark",
    /// A Strait block or IPComp payload that cannot be decompressed.
    MalformedBlock = "malformed-block",
    /// A block that decompresses to more than the agreed maximum.
    BlockTooLong = "block-too-long",
    /// A block of more than 2,048 packets.
    TooManyPackets = "block-too-many-packets",
    /// A block that costs more than its peer may while others wait.
    OverBudget = "over-budget",
    /// A probe, a condition or a handshake that comes more often than its peer may send it.
    TooOften = "too-often",
    /// A repair symbol that cannot be, or that contradicts what came.
    UnfitSymbol = "repair-symbol-unfit",
    /// A repair symbol beyond the work or the memory that a peer's symbols may take.
    SymbolOverBudget = "repair-symbol-over-budget",
    /// A request for payloads that were never sent.
    AbsurdRequest = "absurd-request",
    /// Payloads that a peer asks for again and again, or more of them than may be sent again.
    RepeatOverBudget = "repair-over-budget",
    /// A packet coded against one that is not held any more.
    HistoryGone = "history-gone",
    /// A packet with more history than was agreed.
    HistoryOverBudget = "history-over-budget",
    /// A codec that was not negotiated.
    UnknownCodec = "unknown-codec",
    /// Parts of a block without the other parts.
    BlockIncomplete = "block-incomplete",
    /// A part of a block that was delivered, refused or given up before it came.
    BlockOver = "block-over",
    /// A fragment of an AGGFRAG packet without the other fragments.
    FragmentIncomplete = "fragment-incomplete",
    /// The host refused the packet.
    HostRefused = "host-refused",
    /// The network refused the datagram.
    NetworkRefused = "network-refused",
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// One counter a reason.
#[derive(Debug)]
pub struct Drops([AtomicU64; Reason::ALL.len()]);

impl Default for Drops {
    fn default() -> Drops {
        Drops(core::array::from_fn(|_| AtomicU64::new(0)))
    }
}

impl Drops {
    /// Counts `packets` dropped for `reason`.
    pub fn count(&self, reason: Reason, packets: u64) {
        if let Some(counter) = self.0.get(reason as usize) {
            counter.fetch_add(packets, Ordering::Relaxed);
        }
    }

    /// How many were dropped for `reason`.
    #[must_use]
    pub fn get(&self, reason: Reason) -> u64 {
        self.0.get(reason as usize).map_or(0, |counter| counter.load(Ordering::Relaxed))
    }

    /// Every reason with its count, also those with 0.
    pub fn iter(&self) -> impl Iterator<Item = (Reason, u64)> {
        Reason::ALL.iter().map(|&reason| (reason, self.get(reason)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_drop_reason_has_its_own_counter() {
        let drops = Drops::default();
        for (index, reason) in Reason::ALL.iter().enumerate() {
            drops.count(*reason, u64::try_from(index).unwrap() + 1);
        }
        assert!(drops.iter().enumerate().all(|(index, (_, count))| count == index as u64 + 1));
        let mut names: Vec<_> = Reason::ALL.iter().map(|reason| reason.name()).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), Reason::ALL.len());
    }
}
