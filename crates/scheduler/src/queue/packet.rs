//! Packets that wait, and who knows what they are.

use strait_clock::Time;

use super::Tin;
use super::flows::FlowId;

/// Why a packet was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    /// It waited too long, and its sender learns that only from a loss.
    Delay,
    /// The queue was full, and no flow had more in it.
    Overflow,
}

/// Whose packets wait: who knows what they are.
pub trait PacketOwner<N> {
    /// The wire bytes that this packet is going to take.
    fn predict(&self, packet: &Queued<N>) -> usize;

    /// Marks the packet as having met congestion (RFC 3168), if it is capable of that; else it is dropped.
    fn mark(&mut self, packet: &mut Queued<N>) -> bool;

    /// A packet is dropped.
    fn lost(&mut self, note: N, loss: Loss);
}

/// A packet that is to enter the queue.
#[derive(Clone, Copy, Debug)]
pub struct Newcomer {
    /// The hash of its flow, by a key that the network does not know. Packets with one hash leave in the order in which they came, and
    /// share one fate.
    pub hash: u64,
    /// Its class of service.
    pub tin: Tin,
    /// Its length in bytes.
    pub len: usize,
    /// When it enters the queue.
    pub at: Time,
    /// Whether it may wait for others although the link has room.
    pub may_wait: bool,
}

/// A packet that waits or waited.
#[derive(Debug)]
pub struct Queued<N> {
    pub(super) buffer: Box<[u8]>,
    pub(super) len: usize,
    /// What the owner remembers of it.
    pub note: N,
    pub(super) entered: Time,
    pub(super) may_wait: bool,
    pub(super) receipt: Receipt,
}

impl<N> Queued<N> {
    /// Its bytes.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        self.buffer.get(..self.len).unwrap_or_default()
    }

    /// The packet's bytes, to change them in place.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        self.buffer.get_mut(..self.len).unwrap_or_default()
    }

    /// When it entered the queue.
    #[must_use]
    pub const fn entered(&self) -> Time {
        self.entered
    }

    /// What it was charged for.
    #[must_use]
    pub const fn receipt(&self) -> Receipt {
        self.receipt
    }

    /// Takes `part` of `whole` out of what it was charged for, as that much of it goes on its own.
    #[must_use]
    pub fn split_receipt(&mut self, part: usize, whole: usize) -> Receipt {
        self.receipt.split(part, whole)
    }
}

/// Who was charged for a packet, and how much.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Receipt {
    pub(super) flow: FlowId,
    pub(super) tin: Tin,
    pub(super) by_share: bool,
    pub(super) predicted: usize,
}

impl Receipt {
    /// The wire bytes that were predicted.
    #[must_use]
    pub const fn predicted(&self) -> usize {
        self.predicted
    }

    /// The class in which it waited.
    #[must_use]
    pub const fn tin(&self) -> Tin {
        self.tin
    }

    /// Takes `part` of `whole` out: that much of the packet goes on its own.
    fn split(&mut self, part: usize, whole: usize) -> Receipt {
        let predicted =
            (self.predicted * part).checked_div(whole).unwrap_or(self.predicted).min(self.predicted);
        self.predicted -= predicted;
        Receipt { predicted, ..*self }
    }

    /// Adds what another packet of the same flow was charged; false when it was of another, or charged otherwise.
    #[must_use]
    pub fn join(&mut self, other: &Receipt) -> bool {
        let same = (self.flow, self.tin, self.by_share) == (other.flow, other.tin, other.by_share);
        self.predicted += if same { other.predicted } else { 0 };
        same
    }
}
