//! Steps 3 and 4: packets that wait become one block, compressed if that is smaller.

use core::num::NonZeroU32;

use strait_clock::Time;
use strait_compress::{Allowed, Codec, Coding, Method, Outcome, RuleId, THRESHOLD, Unit};
use strait_wire::flow::Flow;
use strait_wire::{Protocol, Tos, aggfrag, block};

use super::job::{Job, Task};
use super::link::{Link, Sealed};
use super::plain::{Flows, Part, Plain};
use super::{Lost, Outlet, Way, Works};
use crate::block::{BLOCK_MAX, PARTS_MAX};
use crate::{Notice, Payloads, PeerId, Reason};

impl Works {
    /// What to compress `len` bytes with, of which these come first.
    pub(super) fn method(&mut self, way: &mut Way<'_, impl Outlet>, lead: &Lead, len: usize) -> Method {
        if len < THRESHOLD {
            return Method::NONE;
        }
        let Lead { flow, rule, allowed, waited } = lead;
        let unit = Unit { flow, to: way.link.spec.id.0, rule: self.rule(*rule), allowed: *allowed };
        // IPComp is not for workers: what it makes is sealed as it is made.
        let engines = if way.link.takes_blocks() { self.engines.side_by_side() } else { NonZeroU32::MIN };
        let mut road = way.link.road(self.settings.up, self.settings.overhead, engines);
        road.waiting |= waited;
        let method = self.chooser.choose(&unit, len, &road, way.now);
        self.tell_changes(way.outlet);
        method
    }

    /// Says what is decided otherwise than before, if anything is.
    pub(super) fn tell_changes(&mut self, outlet: &mut impl Outlet) {
        if let Some(decision) = self.chooser.changed() {
            outlet.notice(Notice::Decided(Box::new(decision)));
        }
    }

    /// The rule in this place of those that are in force.
    pub(super) const fn rule(&self, place: u16) -> RuleId {
        RuleId { place, edition: self.edition }
    }

    /// The gathered packets: as one compressed block if that is smaller, else as they are.
    pub(super) fn block(
        &mut self,
        way: &mut Way<'_, impl Outlet>,
        allowed: Allowed,
        method: Method,
    ) -> Result<(), Lost> {
        let below = self.block_below(way.link, method);
        let predicted = self.plain.predicted() as u64;
        let mut job = self.engines.idle();
        let headers = way.link.takes_headers();
        let task = Task { headers, below, predicted, ..Task::new(way.link.spec.id, allowed, method) };
        job.take(&mut self.plain, task);
        self.squeeze(way, job)
    }

    /// How small the gathered packets have to become to be a block (RFC 3173 section 2.2): smaller with the headers of all
    /// its parts, which also keeps the parts no more than the packets. 0 where they are not to be compressed.
    fn block_below(&self, link: &Link, method: Method) -> usize {
        let Some(Payloads::Strait { codecs, .. }) = link.sa.as_ref().map(|sa| sa.payloads) else { return 0 };
        let before = self.plain.len();
        if method.codec == Codec::None || !codecs.contains(method.codec) || before < THRESHOLD {
            return 0;
        }
        before.saturating_sub(block::HEADER_LEN * before.div_ceil(part_room(link)))
    }

    /// Steps 5 and 6 for what an engine has done.
    pub(super) fn finish(&mut self, way: &mut Way<'_, impl Outlet>, job: &mut Job) -> Result<(), Lost> {
        let packets = job.plain.packets();
        if let Some(outcome) = job.outcome {
            let Task { to, allowed, .. } = job.task;
            self.account(&Attempt { to, allowed, packets, outcome }, &job.plain.flows(), way.now);
        }
        let before = way.link.sealed;
        let sent = self.seal_unit(way, job);
        if sent.is_ok() {
            self.settle(way.link, &job.plain, before);
        }
        sent
    }

    fn seal_unit(&mut self, way: &mut Way<'_, impl Outlet>, job: &mut Job) -> Result<(), Lost> {
        let packets = job.plain.packets();
        // The association may be another than when the unit was gathered.
        let block = job.block().filter(|(made, _)| takes(way.link, made.coding, job.plain.len()));
        let Some((made, bytes)) = block else { return self.unsqueezed(way, job) };
        self.parts(way, made.coding, bytes, job.plain.tos()).map_err(|reason| Lost { reason, packets })?;
        let counters = &way.link.spec.counters;
        counters.out_blocks.add(1);
        counters.out_headers.add((job.plain.len() - made.coded) as u64);
        way.link.note_sent(packets, job.plain.len());
        way.outlet.sealed(job.plain.bytes());
        Ok(())
    }

    /// What a unit became is what the next of its kind is expected to become, and who is in it pays for it.
    fn settle(&self, link: &mut Link, plain: &Plain, before: Sealed) {
        let Some((group, receipts)) = plain.charged() else { return };
        let payload = link.sealed.payload - before.payload;
        let aim = (self.aim(link, group), link.payload_room());
        link.fill.learn(group, plain.len(), payload, aim);
        if let Some(queue) = &mut link.queue {
            queue.settle(receipts, link.sealed.wire - before.wire);
        }
    }

    /// Packets that made no block.
    fn unsqueezed(&mut self, way: &mut Way<'_, impl Outlet>, job: &mut Job) -> Result<(), Lost> {
        if way.link.takes_bundles() { self.uncompressed(way, job) } else { self.standard(way, job) }
    }

    /// Tells the chooser and the counters what came of one attempt on packets of these flows.
    pub(super) fn account(&mut self, attempt: &Attempt, flows: &Flows, now: Time) {
        let Attempt { to, allowed, packets, outcome } = *attempt;
        let mut took = outcome.took;
        for Part { flow, rule, bytes } in flows.iter().flatten() {
            let unit = Unit { flow, to: to.0, rule: self.rule(*rule), allowed };
            // The time is one block's, so it counts once.
            let own = Outcome { of: *bytes, took: took.take(), ..outcome };
            self.chooser.learn(&unit, &own, now);
        }
        let Outcome { method, before, after, .. } = outcome;
        let Some(counters) = self.counters.codecs.get(usize::from(method.codec.id())) else { return };
        counters.tried.add(1);
        let Some(after) = after else { return };
        counters.blocks.add(1);
        counters.packets.add(packets);
        counters.before.add(before as u64);
        counters.after.add(after as u64);
        let rule = flows.first().copied().flatten().map_or(usize::MAX, |part| usize::from(part.rule));
        if let Some(rule) = self.rules.counters(rule) {
            rule.before.add(before as u64);
            rule.after.add(after as u64);
        }
    }

    /// A Strait block in as many datagrams as it takes.
    pub(super) fn parts(
        &mut self,
        way: &mut Way<'_, impl Outlet>,
        coding: Coding,
        bytes: &[u8],
        tos: Tos,
    ) -> Result<(), Reason> {
        let step = part_room(way.link);
        let parts = bytes.len().div_ceil(step);
        let parts = u8::try_from(parts).ok().filter(|_| parts <= PARTS_MAX).ok_or(Reason::TooBig)?;
        way.link.block_id = way.link.block_id.wrapping_add(1);
        for (part, chunk) in (0_u8..).zip(bytes.chunks(step)) {
            let header = block::Header { codec: coding.id(), id: way.link.block_id, part, parts };
            self.emit(way, Protocol::AGGFRAG, block::HEADER_LEN + chunk.len(), tos, |payload| {
                let _ = header.emit(payload);
                put(payload, block::HEADER_LEN, chunk);
            })?;
        }
        Ok(())
    }
}

/// The flow that comes first in a unit, with the rule that covers it and what that allows.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lead {
    pub(super) flow: Flow,
    pub(super) rule: u16,
    pub(super) allowed: Allowed,
    /// Whether it waited: alone on an idle link it would have left at once, and without company.
    pub(super) waited: bool,
}

/// What was tried.
#[derive(Clone, Copy, Debug)]
pub(super) struct Attempt {
    pub(super) to: PeerId,
    pub(super) allowed: Allowed,
    pub(super) packets: u64,
    pub(super) outcome: Outcome,
}

/// Whether the peer expands a block that is coded so, to `len` bytes.
fn takes(link: &Link, coding: Coding, len: usize) -> bool {
    let Some(Payloads::Strait { codecs, block_cap }) = link.sa.as_ref().map(|sa| sa.payloads) else {
        return false;
    };
    let known = coding.codec == Codec::None || codecs.contains(coding.codec);
    known
        && (!coding.headers || codecs.has_headers())
        && len <= usize::try_from(block_cap).unwrap_or(BLOCK_MAX)
}

/// Bytes of a block in one datagram.
pub(super) fn part_room(link: &Link) -> usize {
    link.payload_room().saturating_sub(block::HEADER_LEN).max(1)
}

/// The most that packets gathered for this peer may hold together: in a block what it expands to, in as many
/// parts as a block has; in a bundle what one datagram takes; else the one packet of `first` bytes.
pub(super) fn block_limit(link: &Link, first: usize) -> usize {
    match link.sa.as_ref().map(|sa| sa.payloads) {
        Some(Payloads::Strait { block_cap, .. }) => {
            usize::try_from(block_cap).unwrap_or(BLOCK_MAX).min(BLOCK_MAX).min(PARTS_MAX * part_room(link))
        }
        Some(Payloads::Aggfrag) => first.max(link.payload_room().saturating_sub(aggfrag::PLAIN_LEN)),
        _ => first,
    }
}

pub(super) fn put(payload: &mut [u8], at: usize, bytes: &[u8]) {
    if let Some(room) = payload.get_mut(at..at + bytes.len()) {
        room.copy_from_slice(bytes);
    }
}
