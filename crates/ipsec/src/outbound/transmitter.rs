//! Step 6: a unit becomes protected packets, each numbered and sealed in the train it leaves in.

mod bundle;
mod headers;
mod history;
mod lane;
mod lone;
mod probes;
mod repeat;
mod report;
mod segments;
mod standard;
mod symbols;

use strait_compress::{Coding, Made};
use strait_wire::block::{self, BlockKind};
use strait_wire::{Esn, Protocol, Tos};

use super::compressor::Compressor;
use super::context::{Lost, Outlet, TxContext};
use super::departure::Departure;
use super::fragment_outer::OuterFragmenter;
use super::job::{CompressJob, CompressUnit};
use super::link::Link;
use super::repair::StoreMemory;
use super::train::Heading;
use crate::block::PARTS_MAX;
use crate::repair::{Urgency, is_pure_acknowledgement};
use crate::sequence::NoNumber;
use crate::wrap::{Head, NotSealed};
use crate::{Notice, Padding, Reason, StoredPayload};

/// What is about to be sealed, but for its bytes.
#[derive(Clone, Copy, Debug)]
struct Unsealed<'a> {
    head: Head<'a>,
    next: Protocol,
    len: usize,
    /// DSCP and ECN of what carries it.
    tos: Tos,
}

/// Numbers and seals what leaves.
#[derive(Debug)]
pub(super) struct Transmitter {
    pub(super) departure: Departure,
    fragmenter: OuterFragmenter,
    /// What is kept of payloads takes so much.
    pub(super) stores: StoreMemory,
}

impl Transmitter {
    /// Sends by `departure`, and keeps so many bytes of payloads to be sent again.
    pub(super) fn new(departure: Departure, kept: usize) -> Transmitter {
        Transmitter { departure, fragmenter: OuterFragmenter::default(), stores: StoreMemory::new(kept) }
    }

    /// Seals a unit that is compressed as far as it goes.
    pub(super) fn send(
        &mut self,
        tx: &mut TxContext<'_, impl Outlet>,
        compressor: &mut Compressor,
        mut job: CompressJob,
    ) -> Result<(), Lost> {
        let before = tx.link.sealed;
        let sent = self.send_work(tx, compressor, &mut job.work);
        if sent.is_ok() {
            tx.link.settle(&job.work.plain, before, tx.own);
            self.departure.note_services(&job.work.plain, tx.link.sealed.outer - before.outer);
            self.ask_of_caches(tx);
        }
        compressor.pool.put_back(job);
        sent
    }

    fn send_work(
        &mut self,
        tx: &mut TxContext<'_, impl Outlet>,
        compressor: &mut Compressor,
        work: &mut CompressUnit,
    ) -> Result<(), Lost> {
        let (packets, len, tos) = (work.plain.packets(), work.plain.len(), work.plain.tos());
        // The association may be another than when the unit was gathered.
        let (association, padding) = (&tx.link.association, work.task.group.policy.padding);
        let expands = |made: &Made| association.expands(made.coding, len) && association.pads(padding);
        let is_current = |work: &CompressUnit| tx.link.counts_cached(work);
        let Some((made, _)) = work.block().filter(|(made, _)| expands(made)).filter(|_| is_current(work))
        else {
            tx.link.not_cached(work);
            return self.send_packets(tx, compressor, work);
        };
        let history = match work.task.plan {
            None => None,
            Some(plan) => match tx.link.commit(&plan, work, tx.now) {
                None => {
                    tx.link.not_cached(work);
                    return self.send_packets(tx, compressor, work);
                }
                history => history,
            },
        };
        let kind = work.write_front(history.as_ref());
        let Some((_, bytes)) = work.block() else { return Ok(()) };
        let group = &work.task.group;
        if packets == 1
            && padding == Padding::None
            && let Some(sent) =
                self.send_lone(tx, work.plain.bytes(), (group, tos), block::HEADER_LEN + bytes.len())
        {
            tx.link.not_cached(work);
            sent.map_err(|reason| Lost { reason, packets })?;
            self.departure.complete(packets);
            tx.link.note_sent(packets, len);
            tx.outlet.sealed(work.plain.bytes());
            return Ok(());
        }
        let codec = made.coding.id() | if padding == Padding::None { 0 } else { block::PADDED };
        let codec = codec | prompt(tx, bytes.len(), work.plain.bytes());
        let first = tx.link.next_number();
        self.send_block(tx, (codec, kind), bytes, tos).map_err(|reason| Lost { reason, packets })?;
        tx.link.sent_block(history.as_ref(), first, work, tx.now);
        let counters = &tx.link.spec.counters;
        counters.out_blocks.add(1);
        counters.out_headers.add((len - made.coded) as u64);
        self.departure.complete(packets);
        tx.link.note_sent(packets, len);
        tx.outlet.sealed(work.plain.bytes());
        Ok(())
    }

    /// A Strait block in as many datagrams as it takes.
    fn send_block(
        &mut self,
        tx: &mut TxContext<'_, impl Outlet>,
        (codec, kind): (u8, BlockKind),
        bytes: &[u8],
        tos: Tos,
    ) -> Result<(), Reason> {
        let step = tx.link.association.part_room();
        let parts = bytes.len().div_ceil(step);
        let parts = u8::try_from(parts).ok().filter(|_| parts <= PARTS_MAX).ok_or(Reason::TooBig)?;
        let id = tx.link.association.next_block();
        for (part, chunk) in (0_u8..).zip(bytes.chunks(step)) {
            let header = block::Header { codec, kind, id, part, parts };
            self.seal_fresh(tx, Protocol::AGGFRAG, block::HEADER_LEN + chunk.len(), tos, |payload| {
                let _ = header.emit(payload);
                put(payload, block::HEADER_LEN, chunk);
            })?;
        }
        Ok(())
    }

    /// Seals one packet of `len` bytes as a block of its own that passes those that wait for repairs.
    fn seal_marked(
        &mut self,
        tx: &mut TxContext<'_, impl Outlet>,
        len: usize,
        tos: Tos,
        write: impl FnOnce(&mut [u8]),
    ) -> Result<(), Reason> {
        let codec = Coding::NONE.id() | block::PROMPT;
        let header = block::Header {
            codec,
            kind: BlockKind::Alone,
            id: tx.link.association.next_block(),
            part: 0,
            parts: 1,
        };
        self.seal_fresh(tx, Protocol::AGGFRAG, block::HEADER_LEN + len, tos, |payload| {
            let _ = header.emit(payload);
            write(payload.get_mut(block::HEADER_LEN..).unwrap_or_default());
        })
    }

    /// Seals a payload of `len` bytes behind a header of our own, which `write` puts in its place.
    fn seal_fresh(
        &mut self,
        tx: &mut TxContext<'_, impl Outlet>,
        next: Protocol,
        len: usize,
        tos: Tos,
        write: impl FnOnce(&mut [u8]),
    ) -> Result<(), Reason> {
        let tos = tx.link.pacing.marks.outer(tos);
        self.seal(tx, Unsealed { head: Head::Fresh(tos), next, len, tos }, write)
    }

    /// Seals a payload, which `write` puts in its place.
    fn seal(
        &mut self,
        tx: &mut TxContext<'_, impl Outlet>,
        unsealed: Unsealed<'_>,
        write: impl FnOnce(&mut [u8]),
    ) -> Result<(), Reason> {
        let heading = tx.link.association.heading(unsealed.tos).ok_or(Reason::NoEndpoint)?;
        self.seal_by(tx, heading, unsealed, write)
    }

    /// The same with this heading.
    fn seal_by(
        &mut self,
        tx: &mut TxContext<'_, impl Outlet>,
        heading: Heading,
        unsealed: Unsealed<'_>,
        write: impl FnOnce(&mut [u8]),
    ) -> Result<(), Reason> {
        let Unsealed { head, next, len, tos } = unsealed;
        let sa = tx.link.association.sa.as_ref().ok_or(Reason::NoSa)?;
        let front = sa.front_len(head);
        let (at, whole) = (sa.payload_at(front), sa.sealed_len(front, len));
        if !self.departure.train.takes(heading, whole) {
            self.departure.depart(tx);
        }
        let Link { association, repair, pacing, .. } = &mut *tx.link;
        let sa = association.sa.as_mut().ok_or(Reason::NoSa)?;
        let room = self.departure.train.room(whole).ok_or(Reason::TooBig)?;
        if let Some(payload) = room.get_mut(at..at + len) {
            write(payload);
            if association.keeps
                && let Some(repair) = repair
            {
                let number = Esn(sa.numbers.last().0.saturating_add(1));
                let (at, repeats, bytes) = (tx.now, 0, &*payload);
                let kept = StoredPayload { number, next, tos, at, repeats, repeated_at: at, bytes };
                let way = (pacing.repair_rate(true, tx.own.rate), pacing.round_trip());
                repair.keep(&kept, way, &mut self.stores);
            }
        }
        if let Err(why) = sa.seal(head, room, len, next) {
            return Err(refusal(tx, why));
        }
        sa.usage.note(1, whole as u64, tx.now);
        tx.link.sealed.payload += len;
        let outer = whole + tx.link.association.outer_len_by(heading.via);
        tx.link.sealed.outer += outer;
        tx.link.sealed.wire += outer + tx.own.overhead;
        if tx.link.association.must_fragment(whole) {
            return self.fragmenter.fragment(tx, &mut self.departure, whole, tos);
        }
        self.departure.add(heading, whole);
        if tx.link.association.for_symbols > 0 {
            self.send_symbols(tx, tos);
        }
        Ok(())
    }
}

/// Why a packet was not sealed; an association without numbers goes.
fn refusal(tx: &mut TxContext<'_, impl Outlet>, why: NotSealed) -> Reason {
    match why {
        NotSealed::Unsealable => Reason::TooBig,
        NotSealed::NoNumber(NoNumber::NotReserved) => Reason::NotReserved,
        NotSealed::NoNumber(NoNumber::Exhausted) => {
            // What comes now waits for the next association, and asks for it.
            if let Some(sa) = tx.link.association.sa.take() {
                tx.outlet.notice(Notice::Exhausted(sa.peer, sa.spi));
            }
            Reason::Exhausted
        }
    }
}

/// How packets that are about to be sealed stand to losses before them; all wait where payloads are not kept.
fn urgency(tx: &mut TxContext<'_, impl Outlet>, packets: &[u8]) -> Urgency {
    let Link { association, repair, .. } = &mut *tx.link;
    let repair = repair.as_mut().filter(|_| association.keeps);
    repair.map_or(Urgency::Ordered, |repair| repair.classify(packets, tx.now))
}

/// The mark of a block of `len` bytes whose packets need not wait for repairs, if it is one part.
fn prompt(tx: &mut TxContext<'_, impl Outlet>, len: usize, packets: &[u8]) -> u8 {
    let passes = urgency(tx, packets) != Urgency::Ordered && len <= tx.link.association.part_room();
    if passes { block::PROMPT } else { 0 }
}

/// Whether a packet of `len` bytes becomes a block of its own so that it passes those that wait for repairs: 6 bytes more, where
/// so much is lost that some wait most of the time.
fn needs_mark(tx: &mut TxContext<'_, impl Outlet>, packet: &[u8], len: usize) -> bool {
    urgency(tx, packet) != Urgency::Ordered
        && tx.link.is_held_back()
        && len <= tx.link.association.part_room()
        && !is_pure_acknowledgement(packet)
}

fn put(payload: &mut [u8], at: usize, bytes: &[u8]) {
    if let Some(room) = payload.get_mut(at..at + bytes.len()) {
        room.copy_from_slice(bytes);
    }
}
