//! What leaves, and which packets left together.

use std::sync::{Arc, Mutex, PoisonError};

use strait_clock::Time;
use strait_compress::Method;
use strait_ipsec::outbound::{Outlet, Train, TransmitRefused};
use strait_ipsec::{Notice, PeerCounters, Usage};
use strait_wire::ip::V4_HEADER_LEN;
use strait_wire::{Tos, udp};

/// What the system puts in front of each datagram.
const OUTER: u64 = (V4_HEADER_LEN + udp::HEADER_LEN) as u64;

/// Packets that left together: one, a bundle, or a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MeteredUnit {
    /// How many.
    pub(crate) packets: u64,
    /// In how many datagrams.
    pub(crate) datagrams: u64,
    /// Bytes on the wire, outer headers included.
    pub(crate) wire: u64,
    /// What they were compressed with, if that made them smaller.
    pub(crate) method: Option<Method>,
}

/// What the chooser was last told, shared with it.
#[derive(Clone, Debug, Default)]
pub(crate) struct MeteredBlock(Arc<Mutex<Option<Method>>>);

impl MeteredBlock {
    /// The block in the making was compressed with this, or did not shrink.
    pub(crate) fn set(&self, method: Option<Method>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = method;
    }

    fn take(&self) -> Option<Method> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// Where datagrams end. How many packets are in them it learns from counters: the sender counts the packets of a unit
/// when all of it is sealed, and sends what it has made of one before it begins another.
#[derive(Debug)]
pub(crate) struct Meter {
    peer: Arc<PeerCounters>,
    usage: Option<Arc<Usage>>,
    compressed: MeteredBlock,
    /// What the counters said when the last unit was complete: packets, datagrams, sealed bytes.
    packets: u64,
    datagrams: u64,
    sealed: u64,
    /// Wire bytes that carried no packets by then.
    unasked: u64,
    /// Datagrams that left, for the other end.
    pub(super) gone: Vec<(Tos, Vec<u8>)>,
    /// Complete, and not accounted for yet; and their packets, one after another.
    pub(super) units: Vec<MeteredUnit>,
    pub(super) bytes: Vec<u8>,
}

impl Meter {
    pub(super) fn new(peer: Arc<PeerCounters>, usage: Option<Arc<Usage>>, compressed: MeteredBlock) -> Meter {
        Meter {
            peer,
            usage,
            compressed,
            packets: 0,
            datagrams: 0,
            sealed: 0,
            unasked: 0,
            gone: Vec::new(),
            units: Vec::new(),
            bytes: Vec::new(),
        }
    }

    /// Notes the unit that is complete, if one is.
    pub(super) fn settle(&mut self) {
        let (Some(usage), packets) = (&self.usage, self.peer.out_packets.get()) else { return };
        if packets == self.packets {
            return;
        }
        let (datagrams, sealed) = (usage.packets(), usage.bytes());
        let unasked = self.unasked();
        let wire = (sealed - self.sealed) + (datagrams - self.datagrams) * OUTER - (unasked - self.unasked);
        self.units.push(MeteredUnit {
            packets: packets - self.packets,
            datagrams: datagrams - self.datagrams,
            wire,
            method: self.compressed.take(),
        });
        (self.packets, self.datagrams, self.sealed) = (packets, datagrams, sealed);
        self.unasked = unasked;
    }

    /// Wire bytes that carried no packets: reports, alone or as far as they made a datagram longer, and receipts alone.
    pub(super) fn unasked(&self) -> u64 {
        self.peer.reports_wire.get() + self.peer.history.receipts_wire.get()
    }

    /// When a datagram last left.
    pub(super) fn sent_at(&self) -> Option<Time> {
        self.usage.as_ref().and_then(|usage| usage.last())
    }

    /// Bytes on the wire by the sender's own count.
    #[cfg(test)]
    pub(super) fn wire(&self) -> u64 {
        self.peer.out_wire.get()
    }
}

impl Outlet for Meter {
    fn transmit(&mut self, train: Train<'_>) -> Result<(), TransmitRefused> {
        self.settle();
        self.gone.extend(train.datagrams().map(|datagram| (train.tos, datagram.to_vec())));
        Ok(())
    }

    fn sealed(&mut self, packets: &[u8]) {
        self.bytes.extend_from_slice(packets);
    }

    /// ICMP for hosts: every packet fits, so there is none.
    fn to_host(&mut self, _: &[u8]) {}

    /// Keys are here and never run out.
    fn notice(&mut self, _: Notice) {}
}
