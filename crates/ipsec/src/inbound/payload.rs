//! Steps 5 and 6: what is inside an ESP packet, by its next header.

use std::collections::BTreeMap;
use std::ops::Range;

use strait_compress::{Codec, Coding, Ipcomp, IpcompAlgorithm};
use strait_wire::aggfrag::{self, Subtype};
use strait_wire::{Cpi, Esn, Protocol, block, ipcomp};

use super::assembly::{BlockMemory, PartArrival, WholeBlock};
use super::associations::{Inbox, PeerMemory};
use super::expand::{
    BlockExpander, CompressedBlock, ExpandJob, ExpandScratch, ExpandUnit, UnitOrigin, WaitingPayload, refused,
};
use super::history::SaidOfBlock;
use super::host::HostWriter;
use super::work::{self, WorkingTime};
use super::{Inlet, Origin};
use crate::block::BLOCK_MAX;
use crate::{Counters, Payloads, PeerId, Reason};

/// A payload that was authentic: what it is, and where it lies.
#[derive(Debug)]
pub(super) struct OpenedPayload<'a> {
    pub(super) origin: Origin,
    pub(super) esn: Esn,
    pub(super) next: Protocol,
    pub(super) bytes: &'a mut [u8],
    pub(super) range: Range<usize>,
}

impl OpenedPayload<'_> {
    /// It alone.
    pub(super) fn payload(&self) -> &[u8] {
        self.bytes.get(self.range.clone()).unwrap_or_default()
    }
}

/// What takes payloads of one association apart.
#[derive(Debug)]
pub(super) struct Unpacker<'a, I> {
    pub(super) inbox: &'a mut Inbox,
    pub(super) peers: &'a mut BTreeMap<PeerId, PeerMemory>,
    pub(super) blocks: &'a mut BlockMemory,
    pub(super) expander: &'a mut BlockExpander,
    pub(super) host: &'a mut HostWriter,
    pub(super) counters: &'a Counters,
    pub(super) working: &'a mut WorkingTime,
    pub(super) inlet: &'a mut I,
}

impl<I: Inlet> Unpacker<'_, I> {
    /// A payload that has just come.
    pub(super) fn payload(&mut self, opened: OpenedPayload<'_>) -> Result<(), Reason> {
        match opened.next {
            Protocol::AGGFRAG => self.aggfrag(opened),
            Protocol::IPIP | Protocol::IPV6 | Protocol::IPCOMP => self.in_order(opened),
            // A dummy packet (RFC 4303 section 2.6).
            Protocol::NO_NEXT => Ok(()),
            _ => Err(Reason::UnknownPayload),
        }
    }

    /// Next header 144: a bundle, a part of a block, or what the peer itself has to say, for which order means nothing.
    fn aggfrag(&mut self, opened: OpenedPayload<'_>) -> Result<(), Reason> {
        let payload = opened.payload();
        match aggfrag::subtype(payload).ok_or(Reason::MalformedEsp)? {
            Subtype::Congestion if self.take_report(opened.origin, payload)? => Ok(()),
            Subtype::Plain | Subtype::Congestion => self.in_order(opened),
            Subtype::Block => self.block(opened),
            Subtype::Lone => {
                self.riding_receipts(opened.origin, payload)?;
                self.in_order(opened)
            }
            Subtype::Receipts => self.receipts(opened.origin, payload),
            Subtype::CacheQuestion => self.cache_question(opened.origin, payload),
            Subtype::CacheDigests => self.cache_digests(opened.origin, payload),
            Subtype::Probe => self.probe(opened.origin, payload),
            Subtype::Condition => self.condition(opened.origin, payload),
            Subtype::Missing => self.missing(opened.origin, payload),
            Subtype::Acknowledgement => self.acknowledgement(opened.origin, payload),
            Subtype::Lane => self.lane(opened.origin, opened.esn, payload),
            // Only as what the peer sent is it taken apart, not inside another, and not where repair was not agreed.
            Subtype::Repetition | Subtype::RepairSymbol | Subtype::Unknown(_) => Err(Reason::UnknownPayload),
        }
    }

    /// Packets, which keep their order: now, or behind all that is under way.
    fn in_order(&mut self, opened: OpenedPayload<'_>) -> Result<(), Reason> {
        if self.expander.is_idle() {
            return self.unpack(opened);
        }
        let memory = self.peers.get_mut(&opened.origin.peer);
        let Some(memory) = memory.filter(|memory| !memory.under_way.is_empty()) else {
            return self.unpack(opened);
        };
        let what = (opened.esn, opened.next);
        self.expander.keep(&mut memory.under_way, opened.origin, what, opened.payload());
        Ok(())
    }

    /// Packets whose turn it is.
    fn unpack(&mut self, opened: OpenedPayload<'_>) -> Result<(), Reason> {
        let OpenedPayload { origin, next, .. } = opened;
        match next {
            Protocol::AGGFRAG if aggfrag::subtype(opened.payload()) == Some(Subtype::Lone) => {
                self.lone(opened)
            }
            Protocol::AGGFRAG => self.bundle(opened),
            Protocol::IPCOMP => self.ipcomp(opened),
            _ => self.host.packet(origin, &self.inbox.counters, opened.bytes, opened.range, self.inlet),
        }
    }

    /// A part of a Strait block, and the block when it is the last.
    fn block(&mut self, opened: OpenedPayload<'_>) -> Result<(), Reason> {
        self.host.finish(opened.bytes, self.inlet);
        let (header, part) = block::Header::parse(opened.payload()).map_err(|_| Reason::MalformedBlock)?;
        let padded = header.codec & block::PADDED != 0;
        let prompt = if self.inbox.repairs { block::PROMPT } else { 0 };
        let coding = Coding::from_id(header.codec & !(block::PADDED | prompt)).ok_or(Reason::UnknownCodec)?;
        let cap = cap(self.inbox.payloads, coding, padded)?;
        let (mut origin, mut bytes) = (opened.origin, part);
        let Inbox { assembly, .. } = &mut *self.inbox;
        if header.parts > 1 {
            let arrival = PartArrival { esn: opened.esn, ecn: origin.tos.ecn(), now: origin.now };
            let mut lost = 0;
            let added = assembly.add(arrival, header, part, self.blocks, &mut lost);
            self.counters.drops.count(Reason::BlockIncomplete, lost);
            let Some(WholeBlock { bytes: whole, ecn }) = added? else { return Ok(()) };
            (origin.tos, bytes) = (origin.tos.with_ecn(ecn), whole);
        }
        let pays = work::pays(bytes.len(), header.parts.into());
        if padded {
            bytes = block::without_padding(bytes).map_err(|_| Reason::MalformedBlock)?;
        }
        let packets_max = self.working.packets_max(pays, self.peers.len());
        let (history, bytes) = SaidOfBlock::parse(header.kind, opened.esn, bytes)?;
        if let Some(said) = &history {
            let memory = self.peers.get_mut(&origin.peer).ok_or(Reason::UnknownSpi)?;
            memory.history.prefix(
                self.inbox.history.terms,
                said,
                &mut self.expander.scratch.buffers.prefix,
            )?;
        }
        let block = CompressedBlock { coding, bytes, cap, packets_max, pays, history };
        if self.expander.has_workers() {
            let memory = self.peers.get_mut(&origin.peer).ok_or(Reason::UnknownSpi)?;
            self.expander.submit(&mut memory.under_way, origin, block, self.inlet);
            return Ok(());
        }
        let len = self.expander.expand(block, origin.now)?;
        count_expanded(self.counters, coding.codec);
        let scratch = &mut self.expander.scratch;
        let (mut room, mut kept) =
            (core::mem::take(&mut scratch.expanded), core::mem::take(&mut scratch.buffers.kept));
        let how = (coding.headers, packets_max, pays);
        let delivered = self.deliver_block(origin, (history, how), (&mut room, cap, len), &mut kept);
        let scratch = &mut self.expander.scratch;
        (scratch.expanded, scratch.buffers.kept) = (room, kept);
        delivered
    }

    /// Delivers the packets of a block that expanded to `len` bytes, at most `cap`, and keeps what it says is to be kept.
    fn deliver_block(
        &mut self,
        origin: Origin,
        (said, (headers, most, pays)): (Option<SaidOfBlock>, (bool, usize, u64)),
        (expanded, cap, mut len): (&mut [u8], usize, usize),
        kept: &mut Vec<u8>,
    ) -> Result<(), Reason> {
        if let Some(said) = said.as_ref().filter(|said| said.cache.is_some()) {
            let room = expanded.get_mut(..cap).ok_or(Reason::BlockTooLong)?;
            len = self.unstage(origin.peer, (said, headers, most), (room, len), kept)?;
        }
        let packets = expanded.get(..len).unwrap_or_default();
        let cost = work::cost_of_block(packets)?;
        self.working.limit((cost, pays), origin.peer, self.peers)?;
        let delivered = self.host.packets(origin, &self.inbox.counters, expanded, len, self.inlet);
        if let Some(said) = said {
            self.keep(origin.peer, &said, kept);
        }
        delivered
    }

    /// Delivers a unit that is done and whose turn it is.
    pub(super) fn deliver(mut self, of: UnitOrigin, job: &mut ExpandJob) {
        match of {
            UnitOrigin::Block(origin) => {
                if let Err(reason) = self.expanded(origin, job) {
                    self.counters.refuse(reason);
                }
            }
            UnitOrigin::Payloads => self.waited(&mut job.work),
        }
    }

    /// The packets of a block that an engine has expanded.
    fn expanded(&mut self, origin: Origin, job: &mut ExpandJob) -> Result<(), Reason> {
        let took = job.took;
        let (said, how, cap) = (job.work.history.take(), job.work.how(), job.work.cap());
        let mut kept = core::mem::take(&mut job.work.buffers.kept);
        let (codec, len, bytes) = job.work.expanded()?;
        self.expander.gauge.learn(codec, len, took, origin.now);
        count_expanded(self.counters, codec);
        let delivered = self.deliver_block(origin, (said, how), (bytes, cap, len), &mut kept);
        job.work.buffers.kept = kept;
        delivered
    }

    /// Payloads that waited behind a block.
    fn waited(&mut self, unit: &mut ExpandUnit) {
        let mut at = 0;
        while let Some((waiting, bytes)) = unit.payload(at) {
            let WaitingPayload { origin, esn, next, range } = waiting;
            if let Err(reason) = self.unpack(OpenedPayload { origin, esn, next, bytes, range }) {
                self.counters.refuse(reason);
            }
            at += 1;
        }
        self.host.finish(unit.input(), self.inlet);
    }

    /// One compressed packet (RFC 3173).
    fn ipcomp(&mut self, opened: OpenedPayload<'_>) -> Result<(), Reason> {
        let ExpandScratch { ipcomp, expanded, .. } = &mut self.expander.scratch;
        let found = decompress(ipcomp, self.inbox.payloads, opened.payload(), expanded, self.counters);
        self.host.finish(opened.bytes, self.inlet);
        let (next, len) = found?;
        let pays = work::pays(opened.range.len(), 1);
        self.working.limit((work::cost(1, len), pays), opened.origin.peer, self.peers)?;
        let result = match next {
            Protocol::IPIP | Protocol::IPV6 => {
                self.host.packet(opened.origin, &self.inbox.counters, expanded, 0..len, self.inlet)
            }
            _ => Err(Reason::UnknownPayload),
        };
        self.host.finish(expanded, self.inlet);
        result
    }
}

fn count_expanded(counters: &Counters, codec: Codec) {
    if let Some(counters) = counters.codecs.get(usize::from(codec.id())) {
        counters.expanded.add(1);
    }
}

/// The most that a block may expand to, if it is made as was agreed.
fn cap(agreed: Payloads, coding: Coding, padded: bool) -> Result<usize, Reason> {
    let Coding { headers, codec } = coding;
    let Payloads::Strait { codecs, block_cap } = agreed else { return Err(Reason::UnknownPayload) };
    let known = codec == Codec::None || codecs.contains(codec);
    if !known || headers && !codecs.has_headers() || padded && !codecs.has_padding() {
        return Err(Reason::UnknownCodec);
    }
    Ok(usize::try_from(block_cap).unwrap_or(BLOCK_MAX).min(BLOCK_MAX))
}

/// Expands what IPComp compressed, if that was agreed, and says what it is and how long.
pub(super) fn decompress(
    tools: &mut Ipcomp,
    agreed: Payloads,
    payload: &[u8],
    expanded: &mut [u8],
    counters: &Counters,
) -> Result<(Protocol, usize), Reason> {
    let (header, compressed) = ipcomp::Header::parse(payload).map_err(|_| Reason::MalformedBlock)?;
    let (algorithm, cap) = match agreed {
        Payloads::Standard(Some(agreed)) if header.cpi == agreed.cpi => (agreed.algorithm, BLOCK_MAX),
        Payloads::Strait { .. } if header.cpi == Cpi::DEFLATE => {
            (IpcompAlgorithm::Deflate, cap(agreed, Coding { headers: false, codec: Codec::Deflate }, false)?)
        }
        _ => return Err(Reason::UnknownCodec),
    };
    let room = cap.min(expanded.len());
    let into = expanded.get_mut(..room).ok_or(Reason::BlockTooLong)?;
    let len = tools.expand(algorithm, compressed, into).map_err(refused)?;
    count_expanded(
        counters,
        match algorithm {
            IpcompAlgorithm::Deflate => Codec::Deflate,
            IpcompAlgorithm::Lzs => Codec::Lzs,
        },
    );
    Ok((header.next, len))
}
