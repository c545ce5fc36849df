//! What waits on its way to one peer: packets, units that are being compressed, sealed datagrams.

use core::time::Duration;

use strait_scheduler::Ring;
use strait_wire::Tos;

use super::job::CompressUnit;
use super::queue::LinkQueue;
use super::train::Via;
use crate::pool::{OWN_MOST, Reorder};

/// Sealed datagrams waiting for room: what one unit of the queue makes at most, twice.
const READY_BYTES: usize = 160 * 1024;
const READY_ENTRIES: usize = 512;

/// No block is begun longer before the link has room: half of what a unit may take of a slow link.
const AHEAD_MAX: Duration = Duration::from_millis(50);

/// What is known of a sealed datagram.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReadyNote {
    pub(super) tos: Tos,
    /// What it was made for; where it is to go directly behind IP, it may also go in UDP.
    pub(super) via: Via,
    /// How many inner packets it completes.
    pub(super) packets: u16,
}

/// What waits before one link.
#[derive(Debug, Default)]
pub(crate) struct Backlog {
    /// Packets; made at its first use, since most links never need one.
    pub(super) queue: Option<LinkQueue>,
    /// Units that are being compressed, each with the bytes that it will be on the wire, as far as that can be told.
    pub(super) under_way: Reorder<CompressUnit, u64>,
    ready: Option<Ring<ReadyNote>>,
    /// How long the last block was compressed by a worker, where the link would notice: the next is begun so long before the link has
    /// room for it.
    ahead: Duration,
    /// Whether what left last was promoted before sealed datagrams.
    pub(super) promoted: bool,
    /// Whether the link is in the round of links with something to send.
    pub(super) listed: bool,
}

impl Backlog {
    pub(super) fn is_empty(&self) -> bool {
        !self.has_queued() && self.under_way.is_empty() && !self.has_ready()
    }

    pub(super) fn has_queued(&self) -> bool {
        self.queue.as_ref().is_some_and(|queue| !queue.is_empty())
    }

    pub(super) fn has_ready(&self) -> bool {
        self.ready.as_ref().is_some_and(|ready| !ready.is_empty())
    }

    /// How long before the link has room the next unit is to be begun.
    pub(super) const fn ahead(&self) -> Duration {
        self.ahead
    }

    /// A worker took so long to compress a block; nothing where there was nothing to compress. What the calling thread might have done is
    /// too short for the link to notice.
    pub(super) fn note_compressed(&mut self, took: Option<Duration>) {
        let noticed = took.filter(|took| *took > OWN_MOST).unwrap_or_default();
        self.ahead = noticed.min(AHEAD_MAX);
    }

    /// Bytes that everything that has to leave before the next unit will be on the wire, as far as that can be told.
    pub(super) fn before_next(&self) -> u64 {
        let sealed =
            self.ready.iter().flat_map(|ready| (0..ready.len()).filter_map(|index| ready.get(index)));
        self.predicted() + sealed.map(|(datagram, _)| datagram.len() as u64).sum::<u64>()
    }

    /// Datagrams that are sealed and wait for room.
    pub(super) fn ready(&mut self) -> &mut Ring<ReadyNote> {
        self.ready.get_or_insert_with(|| Ring::new(READY_BYTES, READY_ENTRIES))
    }

    /// Packets in the queue, each segment of a super-packet counted.
    pub(super) fn queued_packets(&self) -> u64 {
        self.queue.as_ref().map_or(0, LinkQueue::packets)
    }

    /// Packets that are sealed and wait for room.
    pub(super) fn ready_packets(&self) -> u64 {
        let Some(ready) = &self.ready else { return 0 };
        (0..ready.len()).filter_map(|index| ready.get(index)).map(|(_, note)| u64::from(note.packets)).sum()
    }

    /// Packets that were gathered, are compressed and have not left.
    pub(super) fn compressed_packets(&self) -> u64 {
        self.under_way.iter().filter_map(|(_, work)| Some(work?.plain.packets())).sum()
    }

    /// Bytes that everything under way will be on the wire, as far as that can be told.
    pub(super) fn predicted(&self) -> u64 {
        self.under_way.iter().map(|(predicted, _)| predicted).sum()
    }
}
