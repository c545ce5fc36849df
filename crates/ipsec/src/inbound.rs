//! The journey of a datagram from the network to this host (RFC 4301 section 5.2).
//!
//! ```text
//! 1. find       the association by its SPI                              intake.rs associations.rs
//! 2. peek       could this sequence number be new                       replay.rs
//! 3. open       check and decrypt, in place                             wrap.rs esp.rs ah.rs
//! 4. commit     the window moves, for an authentic packet only          replay.rs
//! 5. expand     blocks, once all their parts are here                   payload.rs assembly.rs expand.rs
//! 6. unbundle   whole IP packets                                        bundle.rs fragment.rs
//! 7. admit      is the source one of the peer's addresses               host.rs admit.rs
//! 8. coalesce   segments of one stream into one write                   host.rs coalesce.rs
//! ```
//!
//! Packets directly behind IP are put together from their fragments first (direct.rs, reassembly.rs); an upper layer gets its
//! headers back (upper_layer.rs). Where losses are repaired, payloads wait for those that are missing before step 5 (repair.rs). Where there are workers, step 5 is a job for the engine that ends first, and nothing waits for
//! it: what comes behind a block of the same peer is kept until the block has left (pool.rs).

mod admit;
mod assembly;
mod associations;
mod bundle;
mod coalesce;
mod direct;
mod epoch;
mod expand;
mod fragment;
mod headers;
mod history;
mod host;
mod intake;
mod payload;
mod peer_messages;
mod reception;
mod repair;
mod strangers;
mod upper_layer;
mod work;

use std::io::IoSlice;
use std::sync::Arc;

use strait_clock::{Deadline, Stopwatch, Time};
use strait_compress::{Calibration, Gauge};
use strait_wire::{Tos, vnet};

use crate::orders::SenderOrder;
use crate::reassembly::Reassembly;
use crate::sa::SaId;
use crate::{Counters, Notice, PeerId, Place, Reason};

pub use crate::orders::{HeldDatagram, ReceiverOrder as Order};
pub use crate::policy::Forwarding;
pub use coalesce::UdpOffload;
pub use expand::{ExpandJob, ExpandTools, ExpandUnit};
pub use headers::HeaderGate;
use intake::Intake;
pub use strangers::{DatagramGate, GateVerdict};

/// Settings of the receiver, fixed while it runs.
#[derive(Clone, Copy, Debug)]
pub struct InboundSettings {
    /// Whether this node forwards packets between peers: a hub.
    pub forwarding: Forwarding,
    /// Which UDP super-packets the host takes.
    pub udp_offload: UdpOffload,
}

/// Datagrams from one sender, as the network brought them in one call.
#[derive(Debug)]
pub struct Batch<'a> {
    /// The outer source address and port, and the outer destination.
    pub from: Place,
    /// The outer header's DSCP and ECN.
    pub tos: Tos,
    /// Bytes of each datagram; the last may be shorter.
    pub segment: usize,
    /// The datagrams one after another; they are decrypted in place.
    pub bytes: &'a mut [u8],
}

/// Where the receiver's output goes.
pub trait Inlet {
    /// One packet, or several as one super-packet, for the host: `pieces` joined.
    ///
    /// # Errors
    /// When the host did not take it.
    fn deliver(&mut self, header: &vnet::Header, pieces: &[IoSlice<'_>]) -> Result<(), Reason>;
    /// A datagram of the control channel, from an address that is known.
    fn control(&mut self, from: Place, tos: Tos, datagram: &[u8]);
    /// A datagram of the control channel from any other address.
    fn stranger(&mut self, from: Place, tos: Tos, datagram: &[u8]) {
        self.control(from, tos, datagram);
    }
    /// A datagram of a connection with a peer whose key is proved, for its streams.
    fn stream(&mut self, from: Place, tos: Tos, datagram: &[u8]) {
        self.control(from, tos, datagram);
    }
    /// A datagram with a header that no association here is known by, or a key packet; false where no key manager takes it.
    fn sessionless(&mut self, _from: Place, _tos: Tos, _datagram: &[u8]) -> bool {
        false
    }
    /// An order for the sender of this node.
    fn order(&mut self, order: SenderOrder);
    /// An event for the key manager.
    fn notice(&mut self, notice: Notice);
    /// A job for this worker, from 1 on, which comes back by [`Inbound::finished`]; gives it back where there is no such
    /// worker or it has no room.
    fn hand_over(&mut self, _worker: usize, job: ExpandJob) -> Option<ExpandJob> {
        Some(job)
    }
}

/// The receiver of the data plane.
#[derive(Debug)]
pub struct Inbound {
    intake: Intake,
    /// Outer fragments; without memory of its own until there are any.
    reassembly: Reassembly,
}

/// Where and how one payload came.
#[derive(Clone, Copy, Debug)]
struct Origin {
    sa: SaId,
    peer: PeerId,
    tos: Tos,
    now: Time,
}

impl Inbound {
    /// A receiver without peers; `gauge` watches how long expanding takes.
    #[must_use]
    pub fn new(settings: InboundSettings, gauge: Gauge, counters: Arc<Counters>) -> Inbound {
        Inbound { intake: Intake::new(settings, gauge, counters), reassembly: Reassembly::new() }
    }

    /// Adds so many workers beside the calling thread, to whom [`Inlet::hand_over`] gives jobs.
    #[must_use]
    pub fn with_workers(
        mut self,
        workers: usize,
        calibration: &Calibration,
        stopwatch: Stopwatch,
    ) -> Inbound {
        self.intake.add_workers(workers, calibration, stopwatch);
        self
    }

    /// Takes datagrams as they came, and says how many bytes of the batch: all of them, unless workers have every job. The rest,
    /// which starts with a whole datagram, is to be given again once [`Inbound::make_room`] says so.
    ///
    /// What they hold for the host is delivered before this returns; behind a block that an engine expands, once that has left.
    pub fn datagrams(&mut self, batch: Batch<'_>, now: Time, inlet: &mut impl Inlet) -> usize {
        self.intake.datagrams(batch, now, inlet)
    }

    /// Whether more may be given: there is a job for it, if need be because the calling thread does one of its own now. If not,
    /// the next [`Inbound::finished`] makes room.
    pub fn make_room(&mut self, now: Time, inlet: &mut impl Inlet) -> bool {
        self.intake.make_room(&mut [], now, inlet)
    }

    /// A worker has done a job; what is in order now is delivered.
    pub fn finished(&mut self, job: ExpandJob, now: Time, inlet: &mut impl Inlet) {
        self.intake.finished(job, now, inlet);
    }

    /// Does the calling thread's jobs; to be called after a run of datagrams.
    pub fn release(&mut self, now: Time, inlet: &mut impl Inlet) {
        self.intake.release(now, inlet);
    }

    /// When [`Inbound::timeout`] has something to do.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Deadline> {
        self.intake.poll_timeout()
    }

    /// Asks for datagrams that are missing, and delivers what has waited for them long enough; to be called at
    /// [`Inbound::poll_timeout`].
    pub fn timeout(&mut self, now: Time, inlet: &mut impl Inlet) {
        self.intake.timeout(now, inlet);
    }

    /// Everything that the network brought has been taken: nothing of any peer waits. Until then, the receiver limits what blocks of
    /// one peer may cost the others.
    pub fn caught_up(&mut self) {
        self.intake.caught_up();
    }

    /// Makes one change.
    pub fn handle(&mut self, order: Order) {
        self.intake.handle(order);
    }
}

#[cfg(test)]
mod tests;
