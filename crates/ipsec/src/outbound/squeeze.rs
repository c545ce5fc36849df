//! Steps 3 and 4: packets that wait become one block, compressed if that is smaller.

use strait_clock::Time;
use strait_compress::{Codec, Compressor, Method, RuleId, THRESHOLD, Unit};
use strait_wire::{Protocol, Tos, aggfrag, block};

use super::link::{Group, Link};
use super::plain::BLOCK_MAX;
use super::{Outlet, Way, Works};
use crate::offload::SuperPacket;
use crate::{Payloads, Reason};

impl Works {
    /// What stands first in the queue, with what may go along.
    pub(super) fn unit(&mut self, way: &mut Way<'_, impl Outlet>) -> Result<(), Reason> {
        let Some((group, lone)) = self.head(way.link) else { return Ok(()) };
        if lone {
            return self.raw_head(way);
        }
        let limit = if group.compresses() {
            block_limit(way.link)
        } else {
            way.link.payload_room().saturating_sub(aggfrag::PLAIN_LEN)
        };
        self.plain.clear();
        self.gather(way.link, limit);
        if self.plain.packets() == 0 {
            return self.raw_head(way);
        }
        self.block(way, group.method)
    }

    /// The group of the packet that stands first, and whether it leaves alone and uncompressed.
    fn head(&mut self, link: &mut Link) -> Option<(Group, bool)> {
        let room = link.payload_room().saturating_sub(aggfrag::PLAIN_LEN);
        let blocks = link.takes_blocks();
        let queue = link.queue();
        let (bytes, waiting) = queue.front()?;
        let group = waiting.group;
        let follows = queue
            .get(1)
            .is_some_and(|(next, other)| other.group == group && bytes.len() + next.len() <= room && blocks);
        Some((group, !group.compresses() && !follows))
    }

    /// Moves packets of the first one's group from the queue into the block, in order.
    fn gather(&mut self, link: &mut Link, limit: usize) {
        let queue = link.queue();
        let Some(group) = queue.front().map(|(_, waiting)| waiting.group) else { return };
        while let Some((bytes, waiting)) = queue.front() {
            if waiting.group != group {
                break;
            }
            let (from, rule, flow) = (waiting.next_segment, waiting.rule, waiting.flow);
            let Ok(packet) = SuperPacket::new(bytes, &waiting.offload) else {
                queue.pop();
                continue;
            };
            let (count, next) = (packet.count(), self.plain.take(&packet, from, limit));
            if next > from
                && let Some(rule) = rule
            {
                self.plain.note_flow(flow, rule);
            }
            if next < count {
                if let Some(waiting) = queue.front_note_mut() {
                    waiting.next_segment = next;
                }
                break;
            }
            queue.pop();
        }
    }

    /// The gathered packets: as one compressed block if that is smaller, else as they are.
    pub(super) fn block(&mut self, way: &mut Way<'_, impl Outlet>, method: Method) -> Result<(), Reason> {
        if let Some(len) = self.squeeze(way.link, method, way.now) {
            let squeezed = core::mem::take(&mut self.squeezed);
            let bytes = squeezed.get(..len).unwrap_or_default();
            let sent = self.parts(way, method.codec, bytes, self.plain.tos());
            self.squeezed = squeezed;
            way.link.spec.counters.out_blocks.add(1);
            way.link.spec.counters.out_packets.add(self.plain.packets());
            way.link.spec.counters.out_bytes.add(self.plain.len() as u64);
            return sent;
        }
        self.uncompressed(way, method)
    }

    /// Compresses the gathered packets; nothing when that is not allowed or not smaller
    /// (RFC 3173 section 2.2).
    fn squeeze(&mut self, link: &Link, method: Method, now: Time) -> Option<usize> {
        let Payloads::Strait { codecs, .. } = link.sa.as_ref()?.payloads else { return None };
        let before = self.plain.len();
        if method.codec == Codec::None || !codecs.contains(method.codec) || before < THRESHOLD {
            return None;
        }
        let room = before.saturating_sub(block::HEADER_LEN + 1);
        let output = self.squeezed.get_mut(..room)?;
        let after = self.codecs.compress(method, self.plain.bytes(), output);
        self.account(method, before, after, now);
        after
    }

    /// Tells the chooser and the counters what came of one attempt.
    pub(super) fn account(&mut self, method: Method, before: usize, after: Option<usize>, now: Time) {
        let became = after.unwrap_or(before);
        for (flow, rule) in self.plain.flows() {
            let unit = Unit { flow: &flow, rule: RuleId(rule), method };
            self.chooser.learn(&unit, before, became, now);
        }
        let Some(counters) = self.counters.codecs.get(usize::from(method.codec.id())) else { return };
        counters.tried.add(1);
        if after.is_none() {
            return;
        }
        counters.blocks.add(1);
        counters.packets.add(self.plain.packets());
        counters.before.add(before as u64);
        counters.after.add(became as u64);
        let rule = self.plain.flows().next().map_or(usize::MAX, |(_, rule)| usize::from(rule));
        if let Some(rule) = self.rules.counters(rule) {
            rule.before.add(before as u64);
            rule.after.add(became as u64);
        }
    }

    /// A Strait block in as many datagrams as it takes.
    pub(super) fn parts(
        &mut self,
        way: &mut Way<'_, impl Outlet>,
        codec: Codec,
        bytes: &[u8],
        tos: Tos,
    ) -> Result<(), Reason> {
        let step = way.link.payload_room().saturating_sub(block::HEADER_LEN).max(1);
        let parts = u8::try_from(bytes.len().div_ceil(step)).map_err(|_| Reason::TooBig)?;
        way.link.block_id = way.link.block_id.wrapping_add(1);
        for (part, chunk) in (0_u8..).zip(bytes.chunks(step)) {
            let header = block::Header { codec: codec.id(), id: way.link.block_id, part, parts };
            self.emit(way, Protocol::AGGFRAG, block::HEADER_LEN + chunk.len(), tos, |payload| {
                let _ = header.emit(payload);
                put(payload, block::HEADER_LEN, chunk);
            })?;
        }
        Ok(())
    }
}

/// The most that a block to this peer may hold.
pub(super) fn block_limit(link: &Link) -> usize {
    match link.sa.as_ref().map(|sa| sa.payloads) {
        Some(Payloads::Strait { block_cap, .. }) => {
            usize::try_from(block_cap).unwrap_or(BLOCK_MAX).min(BLOCK_MAX)
        }
        _ => BLOCK_MAX,
    }
}

pub(super) fn put(payload: &mut [u8], at: usize, bytes: &[u8]) {
    if let Some(room) = payload.get_mut(at..at + bytes.len()) {
        room.copy_from_slice(bytes);
    }
}
