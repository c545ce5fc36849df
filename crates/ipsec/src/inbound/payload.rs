//! Steps 5 and 6: what is inside an ESP packet, down to whole IP packets.

use std::ops::Range;
use std::time::Duration;

use strait_clock::Time;
use strait_compress::{Algorithm, BlockError, Blocks, Codec, Coding, Gauge, Ipcomp};
use strait_wire::aggfrag::{self, Block, Subtype};
use strait_wire::condition::Condition;
use strait_wire::ip::{self, Packet};
use strait_wire::{Cpi, Esn, Protocol, block, ipcomp, probe, tos};

use super::assembly::{Arrival, Assembly, Whole};
use super::fragment::Fragment;
use super::{Inbound, Inlet, Origin};
use crate::block::BLOCK_MAX;
use crate::orders::SenderOrder;
use crate::{Notice, Payloads, Reason};

/// A peer says what changed once a second at most; half of that leaves room for clocks that differ.
const CONDITIONS_APART: Duration = Duration::from_millis(500);

impl Inbound {
    /// The payload at `range` of `bytes`, by ESP's next header.
    pub(super) fn payload(
        &mut self,
        origin: Origin,
        esn: Esn,
        next: Protocol,
        bytes: &mut [u8],
        range: Range<usize>,
        inlet: &mut impl Inlet,
    ) -> Result<(), Reason> {
        if next != Protocol::AGGFRAG {
            self.settle(origin.now, inlet);
        }
        match next {
            Protocol::IPIP | Protocol::IPV6 => self.packet(origin, bytes, range, inlet),
            Protocol::AGGFRAG => self.aggfrag(origin, esn, bytes, range, inlet),
            Protocol::IPCOMP => self.ipcomp(origin, bytes, range, inlet),
            // A dummy packet (RFC 4303 section 2.6).
            Protocol::NO_NEXT => Ok(()),
            _ => Err(Reason::UnknownPayload),
        }
    }

    /// One IP packet: checked, marked, and on its way to the host.
    pub(super) fn packet(
        &mut self,
        origin: Origin,
        bytes: &mut [u8],
        range: Range<usize>,
        inlet: &mut impl Inlet,
    ) -> Result<(), Reason> {
        let whole = bytes.get(range.clone()).unwrap_or_default();
        let packet = Packet::parse(whole).map_err(|_| Reason::MalformedInner)?;
        let (len, inner) = (packet.bytes().len(), packet.tos().ecn());
        self.admission.check(&self.policies, origin.peer, packet.src(), packet.dst())?;
        let ecn = tos::decapsulate(inner, origin.tos.ecn()).map_err(|_| Reason::CongestionMark)?;
        let range = range.start..range.start + len;
        if ecn != inner
            && let Some(packet) = bytes.get_mut(range.clone())
        {
            ip::set_ecn(packet, ecn);
        }
        self.heard.1.in_packets.add(1);
        self.heard.1.in_bytes.add(len as u64);
        let counters = &self.counters;
        self.run.offer(bytes, range, &mut |header, pieces| {
            if let Err(reason) = inlet.deliver(header, pieces) {
                counters.refuse(reason);
            }
        });
        Ok(())
    }

    /// Delivers what was held back to be joined with more; to be called before `bytes` change.
    pub(super) fn finish(&mut self, bytes: &mut [u8], inlet: &mut impl Inlet) {
        let counters = &self.counters;
        self.run.finish(bytes, &mut |header, pieces| {
            if let Err(reason) = inlet.deliver(header, pieces) {
                counters.refuse(reason);
            }
        });
    }

    /// Next header 144: a bundle, a part of a block, or a probe.
    fn aggfrag(
        &mut self,
        origin: Origin,
        esn: Esn,
        bytes: &mut [u8],
        range: Range<usize>,
        inlet: &mut impl Inlet,
    ) -> Result<(), Reason> {
        let payload = bytes.get(range.clone()).unwrap_or_default();
        match aggfrag::subtype(payload).ok_or(Reason::MalformedEsp)? {
            Subtype::Congestion if self.hear(origin, payload, inlet)? => Ok(()),
            Subtype::Plain | Subtype::Congestion => {
                self.settle(origin.now, inlet);
                self.bundle(origin, esn, bytes, range, inlet)
            }
            Subtype::Block => self.block(origin, esn, bytes, range, inlet),
            Subtype::Probe => {
                let probe = probe::Probe::parse(payload).map_err(|_| Reason::MalformedEsp)?;
                inlet.order(match probe.kind {
                    probe::Kind::Request => SenderOrder::AnswerProbe(origin.peer, probe.id, probe.size),
                    probe::Kind::Answer => SenderOrder::ProbeAnswered(origin.peer, probe.id, probe.size),
                });
                Ok(())
            }
            Subtype::Condition => {
                let condition = Condition::parse(payload).map_err(|_| Reason::MalformedEsp)?;
                let Some(sender) = self.peers.get_mut(&origin.peer) else { return Ok(()) };
                // Whoever says more than it has to say is heard once in a while.
                if sender.condition_at.is_none_or(|at| origin.now.since(at) >= CONDITIONS_APART) {
                    sender.condition_at = Some(origin.now);
                    inlet.notice(Notice::Reported(origin.peer, condition));
                }
                Ok(())
            }
            Subtype::Unknown(_) => Err(Reason::UnknownPayload),
        }
    }

    /// Whole packets and fragments of packets (RFC 9347).
    fn bundle(
        &mut self,
        origin: Origin,
        esn: Esn,
        bytes: &mut [u8],
        range: Range<usize>,
        inlet: &mut impl Inlet,
    ) -> Result<(), Reason> {
        let payload = bytes.get(range.clone()).unwrap_or_default();
        let payload = aggfrag::Payload::parse(payload).map_err(|_| Reason::MalformedEsp)?;
        let mut at = range.end - payload.region.len();
        let mut offset = usize::from(payload.header.offset());
        while at < range.end {
            let region = bytes.get(at..range.end).unwrap_or_default();
            let (kind, len) = next_block(region, core::mem::take(&mut offset));
            match kind {
                Kind::Whole => {
                    if let Err(reason) = self.packet(origin, bytes, at..at + len, inlet) {
                        self.counters.refuse(reason);
                    }
                }
                Kind::Continuation => self.go_on(origin, esn, bytes, at..at + len, inlet),
                Kind::Start => self.start(origin, esn, bytes.get(at..at + len).unwrap_or_default()),
                Kind::Pad => break,
                Kind::Bad => return Err(Reason::MalformedInner),
            }
            at += len;
        }
        Ok(())
    }

    fn start(&mut self, origin: Origin, esn: Esn, bytes: &[u8]) {
        let Some(receiver) = self.sas.get_mut(&origin.sa) else { return };
        let fragment = receiver.fragment.get_or_insert_with(|| Box::new(Fragment::new()));
        if fragment.start(esn, origin.tos.ecn(), bytes) {
            self.counters.refuse(Reason::FragmentIncomplete);
        }
    }

    /// More of a packet that began in an earlier payload.
    fn go_on(
        &mut self,
        origin: Origin,
        esn: Esn,
        bytes: &mut [u8],
        range: Range<usize>,
        inlet: &mut impl Inlet,
    ) {
        let more = bytes.get(range).unwrap_or_default();
        let Some(mut fragment) = self.sas.get_mut(&origin.sa).and_then(|receiver| receiver.fragment.take())
        else {
            return self.counters.refuse(Reason::FragmentIncomplete);
        };
        let mut complete = false;
        match fragment.go_on(esn, origin.tos.ecn(), more) {
            None => self.counters.refuse(Reason::FragmentIncomplete),
            Some((packet, ecn)) => {
                let origin = Origin { tos: origin.tos.with_ecn(ecn), ..origin };
                let len = ip::declared_len(packet).unwrap_or(usize::MAX);
                complete = len <= packet.len();
                if complete {
                    self.finish(bytes, inlet);
                    if let Err(reason) = self.packet(origin, packet, 0..len, inlet) {
                        self.counters.refuse(reason);
                    }
                    self.finish(packet, inlet);
                }
            }
        }
        if complete {
            fragment.finish();
        }
        if let Some(receiver) = self.sas.get_mut(&origin.sa) {
            receiver.fragment = Some(fragment);
        }
    }

    /// A part of a Strait block, and the block when it is the last.
    fn block(
        &mut self,
        origin: Origin,
        esn: Esn,
        bytes: &mut [u8],
        range: Range<usize>,
        inlet: &mut impl Inlet,
    ) -> Result<(), Reason> {
        self.finish(bytes, inlet);
        let job = self.idle_expansion(origin.now, inlet);
        // Lent out while what it put together is used.
        let mut assembly = core::mem::take(&mut self.assembly);
        let found = self.whole_block(origin, esn, bytes.get(range).unwrap_or_default(), &mut assembly);
        let here = match (found, job) {
            (Ok(Some((origin, block))), Some(job)) => {
                self.share_out(origin, job, block, inlet);
                Ok(None)
            }
            (Ok(Some((origin, block))), None) => {
                self.bench.expand(block, origin.now).map(|len| Some((origin, block.coding.codec, len)))
            }
            (found, job) => {
                job.into_iter().for_each(|job| self.unused(job));
                found.map(|_| None)
            }
        };
        self.assembly = assembly;
        let Some((origin, codec, len)) = here? else { return Ok(()) };
        self.count_expanded(codec);
        let mut expanded = core::mem::take(&mut self.bench.expanded);
        let result = self.packets(origin, &mut expanded, len, inlet);
        self.bench.expanded = expanded;
        result
    }

    /// The block that is whole with this part, if one is, and where it came from, with the worst mark of its parts.
    fn whole_block<'a>(
        &self,
        origin: Origin,
        esn: Esn,
        payload: &'a [u8],
        assembly: &'a mut Assembly,
    ) -> Result<Option<(Origin, Squeezed<'a>)>, Reason> {
        let (header, part) = block::Header::parse(payload).map_err(|_| Reason::MalformedBlock)?;
        let coding = Coding::from_id(header.codec).ok_or(Reason::UnknownCodec)?;
        let cap = self.cap(origin, coding)?;
        if header.parts == 1 {
            return Ok(Some((origin, Squeezed { coding, bytes: part, cap })));
        }
        let mut lost = 0;
        let arrival = Arrival { sa: origin.sa, esn, ecn: origin.tos.ecn(), now: origin.now };
        let added = assembly.add(arrival, header, part, &mut lost);
        self.counters.drops.count(Reason::BlockIncomplete, lost);
        let Some(Whole { bytes, ecn }) = added? else { return Ok(None) };
        let origin = Origin { tos: origin.tos.with_ecn(ecn), ..origin };
        Ok(Some((origin, Squeezed { coding, bytes, cap })))
    }

    pub(super) fn count_expanded(&self, codec: Codec) {
        if let Some(counters) = self.counters.codecs.get(usize::from(codec.id())) {
            counters.expanded.add(1);
        }
    }

    /// The most that a block may expand to, if it is made as was agreed.
    fn cap(&self, origin: Origin, coding: Coding) -> Result<usize, Reason> {
        let Coding { headers, codec } = coding;
        let payloads = self.sas.get(&origin.sa).map(|receiver| receiver.sa.payloads);
        let Some(Payloads::Strait { codecs, block_cap }) = payloads else {
            return Err(Reason::UnknownPayload);
        };
        if codec != Codec::None && !codecs.contains(codec) || headers && !codecs.has_headers() {
            return Err(Reason::UnknownCodec);
        }
        Ok(usize::try_from(block_cap).unwrap_or(BLOCK_MAX).min(BLOCK_MAX))
    }

    /// The packets in the first `len` bytes of an expanded block, each on its way.
    pub(super) fn packets(
        &mut self,
        origin: Origin,
        expanded: &mut [u8],
        len: usize,
        inlet: &mut impl Inlet,
    ) -> Result<(), Reason> {
        let (mut at, mut result) = (0, Ok(()));
        while at < len {
            let rest = expanded.get(at..len).unwrap_or_default();
            let Ok(packet) = ip::declared_len(rest) else {
                result = Err(Reason::MalformedInner);
                break;
            };
            if packet > rest.len() {
                result = Err(Reason::MalformedInner);
                break;
            }
            if let Err(reason) = self.packet(origin, expanded, at..at + packet, inlet) {
                self.counters.refuse(reason);
            }
            at += packet;
        }
        self.finish(expanded, inlet);
        result
    }

    /// One compressed packet (RFC 3173).
    fn ipcomp(
        &mut self,
        origin: Origin,
        bytes: &mut [u8],
        range: Range<usize>,
        inlet: &mut impl Inlet,
    ) -> Result<(), Reason> {
        let mut expanded = core::mem::take(&mut self.bench.expanded);
        let found = self.decompress(origin, bytes.get(range).unwrap_or_default(), &mut expanded);
        self.finish(bytes, inlet);
        let result = found.and_then(|(next, len)| match next {
            Protocol::IPIP | Protocol::IPV6 => self.packet(origin, &mut expanded, 0..len, inlet),
            _ => Err(Reason::UnknownPayload),
        });
        self.finish(&mut expanded, inlet);
        self.bench.expanded = expanded;
        result
    }

    /// Expands what IPComp compressed, if the association takes it, and says what it is and how long.
    pub(super) fn decompress(
        &mut self,
        origin: Origin,
        payload: &[u8],
        expanded: &mut [u8],
    ) -> Result<(Protocol, usize), Reason> {
        let (header, squeezed) = ipcomp::Header::parse(payload).map_err(|_| Reason::MalformedBlock)?;
        let (algorithm, cap) = match self.sas.get(&origin.sa).map(|receiver| receiver.sa.payloads) {
            Some(Payloads::Standard(Some(agreed))) if header.cpi == agreed.cpi => {
                (agreed.algorithm, BLOCK_MAX)
            }
            Some(Payloads::Strait { .. }) if header.cpi == Cpi::DEFLATE => {
                (Algorithm::Deflate, self.cap(origin, Coding { headers: false, codec: Codec::Deflate })?)
            }
            _ => return Err(Reason::UnknownCodec),
        };
        let room = cap.min(expanded.len());
        let into = expanded.get_mut(..room).ok_or(Reason::BlockTooLong)?;
        let len = self.bench.ipcomp.expand(algorithm, squeezed, into).map_err(refused)?;
        self.count_expanded(match algorithm {
            Algorithm::Deflate => Codec::Deflate,
            Algorithm::Lzs => Codec::Lzs,
        });
        Ok((header.next, len))
    }
}

/// What stands next in a bundle.
enum Kind {
    Whole,
    Continuation,
    Start,
    Pad,
    Bad,
}

fn next_block(region: &[u8], offset: usize) -> (Kind, usize) {
    let offset = u16::try_from(offset).unwrap_or(u16::MAX);
    let payload = aggfrag::Payload { header: aggfrag::Header::Plain { offset }, region };
    match payload.blocks().next() {
        Some(Block::Whole(packet)) => (Kind::Whole, packet.len()),
        Some(Block::Continuation(bytes)) => (Kind::Continuation, bytes.len()),
        Some(Block::Start { bytes, .. }) => (Kind::Start, bytes.len()),
        Some(Block::Pad) | None => (Kind::Pad, region.len()),
        Some(Block::Bad(_)) => (Kind::Bad, region.len()),
    }
}

/// A block on its way in, all parts together.
#[derive(Clone, Copy, Debug)]
pub(super) struct Squeezed<'a> {
    pub(super) coding: Coding,
    pub(super) bytes: &'a [u8],
    /// Most bytes that it may expand to.
    pub(super) cap: usize,
}

/// Where blocks are expanded, and how long that takes.
#[derive(Debug)]
pub(super) struct Bench {
    blocks: Blocks,
    ipcomp: Ipcomp,
    pub(super) gauge: Gauge,
    /// What was expanded last.
    pub(super) expanded: Box<[u8]>,
}

impl Bench {
    pub(super) fn new(gauge: Gauge) -> Bench {
        let expanded = vec![0; BLOCK_MAX].into_boxed_slice();
        Bench { blocks: Blocks::new(), ipcomp: Ipcomp::new(), gauge, expanded }
    }

    fn expand(&mut self, block: Squeezed<'_>, now: Time) -> Result<usize, Reason> {
        let Squeezed { coding, bytes, cap } = block;
        let into = self.expanded.get_mut(..cap).ok_or(Reason::BlockTooLong)?;
        let blocks = &mut self.blocks;
        self.gauge.time(coding.codec, now, || blocks.expand(coding, bytes, into)).map_err(refused)
    }
}

pub(super) fn refused(error: impl Into<BlockError>) -> Reason {
    if error.into().is_too_long() { Reason::BlockTooLong } else { Reason::MalformedBlock }
}
