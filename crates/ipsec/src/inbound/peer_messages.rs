//! What a peer itself has to say inside ESP: reports of what it received, probes, what changed there. Order means nothing to it.

use core::time::Duration;

use strait_scheduler::Budget;
use strait_wire::condition::Condition;
use strait_wire::delivery::Delivery;
use strait_wire::lane::LaneHeader;
use strait_wire::missing::MissingRanges;
use strait_wire::sessionless::Acknowledgement;
use strait_wire::{Esn, aggfrag, probe};

use super::payload::Unpacker;
use super::{Inlet, Origin};
use crate::orders::SenderOrder;
use crate::reports::ReceivedReport;
use crate::{LanePacket, Notice, Payloads, Reason};

/// Reports come no more often than every 20 ms; half of that leaves room for what the path changes.
const HEARD_APART: Duration = Duration::from_millis(10);
/// A peer reports a changed condition once a second at most; half of that leaves room for clocks that differ.
const CONDITIONS_APART: Duration = Duration::from_millis(500);

/// Probes a second that a peer may send, and so many at once: a search for the path's size halves what is left of 9,000 bytes in a
/// dozen steps, and asks for a lost one again after more than a second.
const PROBES: u64 = 4;
const PROBES_BURST: u64 = 16;

/// A peer's budget of probes and answers.
pub(super) fn probes() -> Budget {
    Budget::new(PROBES, PROBES_BURST)
}

/// Requests a second for what is missing, and so many at once: one for each datagram that may be lost of 10 Mbit/s at a loss of one in
/// five, and a burst.
const REQUESTS: u64 = 200;
const REQUESTS_BURST: u64 = 64;

/// A peer's budget of requests for what is missing there.
pub(super) fn requests() -> Budget {
    Budget::new(REQUESTS, REQUESTS_BURST)
}

/// Questions a second for what is held of a byte cache, and so many at once: each takes hashing of 4 MiB at most, so that they take a
/// thirtieth of a processor that hashes 1 GiB a second.
const QUESTIONS: u64 = 10;
const QUESTIONS_BURST: u64 = 8;

/// A peer's budget of questions for what is held of its byte caches.
pub(super) fn questions() -> Budget {
    Budget::new(QUESTIONS, QUESTIONS_BURST)
}

/// Acknowledgements of headers a second, and so many at once: one of each of four kinds in 100 ms.
const ACKNOWLEDGEMENTS: u64 = 40;
const ACKNOWLEDGEMENTS_BURST: u64 = 16;

/// A peer's budget of acknowledgements.
pub(super) fn acknowledgements() -> Budget {
    Budget::new(ACKNOWLEDGEMENTS, ACKNOWLEDGEMENTS_BURST)
}

/// Pieces of streams a second, and so many at once: a keyboard repeats a key that is held down 30 times a second (PS/2,
/// command 0xF3), on each of eight lanes.
const PIECES: u64 = 240;
const PIECES_BURST: u64 = 64;

/// A peer's budget of pieces.
pub(super) fn pieces() -> Budget {
    Budget::new(PIECES, PIECES_BURST)
}

/// Where a delivery report is.
struct ReportPad<'a> {
    /// The pad block.
    pad: &'a [u8],
    /// When it left, on the peer's clock.
    tval: u32,
    /// Whether no packets are before it.
    alone: bool,
}

impl<I: Inlet> Unpacker<'_, I> {
    /// A report of what the peer received, if there is one in `payload`, a congestion report of RFC 9347; true when there is nothing
    /// else in it. One that rides is in the pad block behind the data, which is taken apart as any.
    pub(super) fn take_report(&mut self, origin: Origin, payload: &[u8]) -> Result<bool, Reason> {
        let Some(ReportPad { pad, tval, alone }) = self.report_pad(payload)? else { return Ok(false) };
        // Where losses are repaired, one that rides was taken when its datagram came.
        if !alone && self.inbox.repairs {
            return Ok(false);
        }
        match Delivery::parse(pad) {
            Ok(delivery) => self.hear(origin, delivery, tval),
            Err(_) if alone => return Err(Reason::MalformedEsp),
            // Padding that is nothing but padding, or says what this node does not know: the data counts.
            Err(_) => {}
        }
        Ok(alone)
    }

    /// A report that rides in a datagram that has just come, whose packets may have to wait for missing ones. It tells of times, so it
    /// is not to wait with them. What is wrong with the packets is told when they are taken apart.
    pub(super) fn take_riding(&mut self, origin: Origin, payload: &[u8]) {
        if let Ok(Some(ReportPad { pad, tval, alone: false })) = self.report_pad(payload)
            && let Ok(delivery) = Delivery::parse(pad)
        {
            self.hear(origin, delivery, tval);
        }
    }

    /// The pad block of a congestion report, where such reports were agreed.
    fn report_pad<'b>(&self, payload: &'b [u8]) -> Result<Option<ReportPad<'b>>, Reason> {
        if !matches!(self.inbox.payloads, Payloads::Strait { .. }) {
            return Ok(None);
        }
        let payload = aggfrag::Payload::parse(payload).map_err(|_| Reason::MalformedEsp)?;
        let aggfrag::Header::Congestion { report, .. } = payload.header else { return Ok(None) };
        let found = payload.padding();
        Ok(found.map(|pad| ReportPad { pad, tval: report.tval, alone: pad.len() == payload.region.len() }))
    }

    /// Passes a report on to the sender.
    fn hear(&mut self, origin: Origin, delivery: Delivery, tval: u32) {
        let Some(memory) = self.peers.get_mut(&origin.peer) else { return };
        memory.echo = Some((tval, origin.now));
        // One that comes too soon behind another is ignored, and nothing is lost with it: the next says the same and more.
        if memory.heard_at.is_none_or(|at| origin.now.since(at) >= HEARD_APART) {
            memory.heard_at = Some(origin.now);
            self.inlet.order(SenderOrder::Delivered(origin.peer, ReceivedReport { delivery, tval }));
        }
    }

    /// The peer asks for a sign of life, answers, or is being stopped.
    pub(super) fn probe(&mut self, origin: Origin, payload: &[u8]) -> Result<(), Reason> {
        let probe = probe::Probe::parse(payload).map_err(|_| Reason::MalformedEsp)?;
        let Some(memory) = self.peers.get_mut(&origin.peer) else { return Ok(()) };
        if !memory.probes.take(1, origin.now) {
            return Err(Reason::TooOften);
        }
        self.inlet.order(match probe.kind {
            probe::ProbeKind::Request => SenderOrder::AnswerProbe(origin.peer, probe.id, probe.size),
            probe::ProbeKind::Answer => SenderOrder::ProbeAnswered(origin.peer, probe.id, probe.size),
            probe::ProbeKind::Goodbye => {
                self.inlet.notice(Notice::Stopped(origin.peer, self.inbox.spi));
                return Ok(());
            }
        });
        Ok(())
    }

    /// The peer asks for what did not arrive there.
    pub(super) fn missing(&mut self, origin: Origin, payload: &[u8]) -> Result<(), Reason> {
        if !self.inbox.repairs {
            return Err(Reason::UnknownPayload);
        }
        let missing = MissingRanges::parse(payload).map_err(|_| Reason::MalformedEsp)?;
        let Some(memory) = self.peers.get_mut(&origin.peer) else { return Ok(()) };
        if !memory.requests.take(1, origin.now) {
            return Err(Reason::TooOften);
        }
        self.inlet.order(SenderOrder::Repeat(origin.peer, Box::new(missing)));
        Ok(())
    }

    /// Whether the peer took a header of this node's.
    pub(super) fn acknowledgement(&mut self, origin: Origin, payload: &[u8]) -> Result<(), Reason> {
        let acknowledgement = Acknowledgement::parse(payload).map_err(|_| Reason::MalformedEsp)?;
        let Some(memory) = self.peers.get_mut(&origin.peer) else { return Ok(()) };
        if !memory.acknowledgements.take(1, origin.now) {
            return Err(Reason::TooOften);
        }
        self.inlet.notice(Notice::Acknowledged(origin.peer, acknowledgement));
        Ok(())
    }

    /// A piece of a stream, or what the peer took of one.
    pub(super) fn lane(&mut self, origin: Origin, esn: Esn, payload: &[u8]) -> Result<(), Reason> {
        if !matches!(self.inbox.payloads, Payloads::Strait { .. }) {
            return Err(Reason::UnknownPayload);
        }
        let (header, piece) = LaneHeader::parse(payload).map_err(|_| Reason::MalformedEsp)?;
        let Some(memory) = self.peers.get_mut(&origin.peer) else { return Ok(()) };
        if !memory.pieces.take(1, origin.now) {
            return Err(Reason::TooOften);
        }
        let packet = LanePacket { peer: origin.peer, generation: self.inbox.generation, esn, header, piece };
        self.inlet.notice(Notice::Lane(Box::new(packet)));
        Ok(())
    }

    /// What changed at the peer.
    pub(super) fn condition(&mut self, origin: Origin, payload: &[u8]) -> Result<(), Reason> {
        let condition = Condition::parse(payload).map_err(|_| Reason::MalformedEsp)?;
        let Some(memory) = self.peers.get_mut(&origin.peer) else { return Ok(()) };
        if memory.condition_at.is_some_and(|at| origin.now.since(at) < CONDITIONS_APART) {
            return Err(Reason::TooOften);
        }
        memory.condition_at = Some(origin.now);
        self.inlet.notice(Notice::Reported(origin.peer, condition));
        Ok(())
    }
}
