//! Counters of the packet path, for screens, JSON and metrics.
//!
//! All are relaxed atomics: written by the packet threads, read by the control plane.

mod carrier;
mod history;
mod queue;
mod repair;
mod services;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use strait_compress::Codec;
use strait_compress::history::KeptMemory;
use strait_wire::ip::Version;

use crate::{Drops, LatestEndpoint, PathState, Reason, StreamLink};
pub use carrier::{CarrierCounters, CarrierState};
pub use history::HistoryCounters;
pub use queue::{QueueCounters, QueueDelay};
pub use repair::RepairCounters;
pub use services::{ServiceClass, ServiceCounters, ServiceTally};

/// A number that only grows.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// Adds `amount`.
    pub fn add(&self, amount: u64) {
        self.0.fetch_add(amount, Ordering::Relaxed);
    }

    /// Its value.
    #[must_use]
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// A number that only grows, which one thread adds to and any may read.
#[derive(Debug, Default)]
pub struct Tally(AtomicU64);

impl Tally {
    /// Adds `amount`; of two threads that add at once, one may be lost.
    pub fn add(&self, amount: u64) {
        // One writer: a plain addition suffices. A locked one, four of them a packet, took a tenth of the time
        // of a packet received.
        self.0.store(self.get() + amount, Ordering::Relaxed);
    }

    /// Its value.
    #[must_use]
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Compression counters of one codec.
#[derive(Debug, Default)]
pub struct CodecCounters {
    /// Blocks compressed on trial or to be sent.
    pub tried: Counter,
    /// Blocks that became smaller and were sent compressed.
    pub blocks: Counter,
    /// Inner packets in those blocks.
    pub packets: Counter,
    /// Input bytes of those blocks.
    pub before: Counter,
    /// Output bytes of those blocks.
    pub after: Counter,
    /// Received blocks that were decompressed.
    pub expanded: Counter,
}

/// Counters of one compression rule.
#[derive(Debug, Default)]
pub struct RuleCounters {
    /// Inner packets that matched the rule.
    pub packets: Counter,
    /// Bytes of inner packets that matched the rule.
    pub bytes: Counter,
    /// Input bytes of the blocks sent compressed.
    pub before: Counter,
    /// Output bytes of those blocks.
    pub after: Counter,
    /// Blocks compressed on trial or to be sent.
    pub tried: Counter,
    /// What the sizes of these can tell at most, in thousandths of a bit.
    pub leak: Counter,
    /// Pauses of compressing that its traffic began.
    pub pauses: Counter,
    /// Inner packets that were not compressed because of a pause.
    pub paused: Counter,
}

impl RuleCounters {
    /// What the size of a block can tell an observer at most, in bits: the mean over blocks so far.
    #[must_use]
    pub fn leak_bound(&self) -> Option<f64> {
        let (bits, blocks) = (self.leak.get() as f64 / 1e3, self.tried.get());
        (blocks > 0).then(|| bits / blocks as f64)
    }

    /// The same for 1,000 packets that matched the rule.
    #[must_use]
    pub fn leak_bound_of_1000_packets(&self) -> Option<f64> {
        let (bits, packets) = (self.leak.get() as f64 / 1e3, self.packets.get());
        (packets > 0).then(|| bits * 1e3 / packets as f64)
    }

    /// Counts a block that may have had so many sizes.
    pub(crate) fn note_sizes(&self, sizes: usize) {
        self.tried.add(1);
        // Upwards, so that it stays a bound.
        self.leak.add(((sizes.max(1) as f64).log2() * 1e3).ceil() as u64);
    }
}

/// The least inner packet that always passes (RFC 8200 section 5).
pub(crate) const INNER_MIN: usize = 1280;

/// Counters of the traffic with one peer, and what else the threads share of it.
#[derive(Debug, Default)]
pub struct PeerCounters {
    /// Inner packets sent.
    pub out_packets: Tally,
    /// Bytes of inner packets sent.
    pub out_bytes: Tally,
    /// Datagrams sent.
    pub out_datagrams: Tally,
    /// Bytes on the wire sent, outer IP header included.
    pub out_wire: Tally,
    /// Datagrams sent with several packets in them, not compressed: AGGFRAG bundles, or blocks with header compression only.
    pub out_bundles: Tally,
    /// Compressed Strait blocks sent.
    pub out_blocks: Tally,
    /// Bytes saved by header compression, before payload compression.
    pub out_headers: Tally,
    /// Inner packets received.
    pub in_packets: Tally,
    /// Bytes of inner packets received.
    pub in_bytes: Tally,
    /// Datagrams received.
    pub in_datagrams: Tally,
    /// Bytes on the wire received, outer IP header included.
    pub in_wire: Tally,
    /// Bytes in the queue before the link.
    pub queued: AtomicU64,
    /// Counters of that queue.
    pub queue: QueueCounters,
    /// Inner MTU towards the peer, in bytes.
    pub inner_mtu: AtomicU64,
    /// Delivery reports sent to the peer.
    pub reports_out: Tally,
    /// Bytes on the wire that they took: whole datagrams, or what they made others longer.
    pub reports_wire: Tally,
    /// Delivery reports received from the peer.
    pub reports_in: Tally,
    /// Packets that left alone, coded against earlier ones.
    pub history: HistoryCounters,
    /// What carries ESP.
    pub carrier: CarrierCounters,
    /// Losses and their repair.
    pub repair: RepairCounters,
    /// The state of the path, from the reports received.
    pub path: PathState,
    /// Where the peer is, as it was heard last.
    pub endpoint: LatestEndpoint,
    /// What the makers of stream datagrams follow.
    pub stream: StreamLink,
}

impl PeerCounters {
    /// The largest inner packet of this version to the peer, as far as the sender has shown it.
    pub(crate) fn inner_mtu(&self, version: Version) -> usize {
        let shown = usize::try_from(self.inner_mtu.load(Ordering::Relaxed)).unwrap_or(usize::MAX);
        if shown == 0 || version == Version::V6 { shown.max(INNER_MIN) } else { shown }
    }

    /// Bytes sent before encapsulation: of inner packets, and of datagrams of streams, which are on the wire as they are.
    #[must_use]
    pub fn sent_bytes(&self) -> u64 {
        self.out_bytes.get().saturating_add(self.stream.sent())
    }
}

/// Everything that is counted for the whole node, but for its rules, which count for themselves.
#[derive(Debug, Default)]
pub struct Counters {
    /// The memory for what is kept of all peers' data.
    pub memory: Arc<KeptMemory>,
    /// Drops by reason.
    pub drops: Drops,
    /// By codec, indexed by the codec's number on the wire.
    pub codecs: [CodecCounters; Codec::ALL.len()],
    /// What was sent, by service.
    pub services: ServiceCounters,
    /// Control datagrams sent and received, in wire bytes.
    pub control_wire: Counter,
    /// How many they were.
    pub control_datagrams: Counter,
    /// Times that this machine was found to be another copy than before: an earlier one may go on with the same keys and numbers.
    pub generations: Counter,
}

impl Counters {
    /// Nothing counted, and so many bytes for what is kept of all peers' data.
    #[must_use]
    pub fn within(memory: usize) -> Counters {
        Counters { memory: Arc::new(KeptMemory::new(memory)), ..Counters::default() }
    }

    /// Counts one that is dropped.
    pub fn refuse(&self, reason: Reason) {
        self.drops.count(reason, 1);
    }
}
