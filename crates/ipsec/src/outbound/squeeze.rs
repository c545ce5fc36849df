//! Steps 3 and 4: packets that wait become one block or bundle, compressed if that is smaller.

use strait_clock::Time;
use strait_compress::{Codec, Compressor, Method, RuleId, THRESHOLD, Unit};
use strait_wire::block;
use strait_wire::{Cpi, Protocol, Tos, aggfrag, ip, ipcomp};

use super::link::{Link, Waiting};
use super::plain::BLOCK_MAX;
use super::{Outlet, Way, Works};
use crate::offload::SuperPacket;
use crate::{Payloads, Reason};

impl Works {
    /// One packet that need not wait: its segments go straight into the datagrams they leave in.
    pub(super) fn straight(
        &mut self,
        way: &mut Way<'_, impl Outlet>,
        packet: &SuperPacket<'_>,
        waiting: &Waiting,
    ) -> Result<(), Reason> {
        if !waiting.group.compresses() {
            return self.raw(way, packet, 0);
        }
        let mut next = 0;
        while next < packet.count() {
            self.plain.clear();
            let after = self.plain.take(packet, next, block_limit(way.link));
            if after == next {
                return self.raw(way, packet, next);
            }
            next = after;
            if let Some(rule) = waiting.rule {
                self.plain.note_flow(waiting.flow, rule);
            }
            self.block(way, waiting.group.method)?;
        }
        Ok(())
    }

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
    fn head(&mut self, link: &mut Link) -> Option<(super::link::Group, bool)> {
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

    /// The first packet of the queue, as it is.
    fn raw_head(&mut self, way: &mut Way<'_, impl Outlet>) -> Result<(), Reason> {
        // The queue is lent out while the link is used; nothing is allocated.
        let Some(mut queue) = way.link.queue.take() else { return Ok(()) };
        let sent = queue.front().map_or(Ok(()), |(bytes, waiting)| {
            let packet = SuperPacket::new(bytes, &waiting.offload).map_err(|_| Reason::MalformedPacket)?;
            self.raw(way, &packet, waiting.next_segment)
        });
        queue.pop();
        way.link.queue = Some(queue);
        sent
    }

    /// The gathered packets: as one compressed block if that is smaller, else as they are.
    fn block(&mut self, way: &mut Way<'_, impl Outlet>, method: Method) -> Result<(), Reason> {
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
    fn account(&mut self, method: Method, before: usize, after: Option<usize>, now: Time) {
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
    fn parts(
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

    /// The gathered packets without compression: several in a datagram where they fit.
    fn uncompressed(&mut self, way: &mut Way<'_, impl Outlet>, method: Method) -> Result<(), Reason> {
        let plain = core::mem::replace(&mut self.plain, super::plain::Plain::lent());
        let mut rest = plain.bytes();
        let mut sent = Ok(());
        while !rest.is_empty() && sent.is_ok() {
            let (len, packets) = fitting(way.link, rest);
            let (now_bytes, later) = rest.split_at_checked(len).unwrap_or((rest, &[]));
            sent = match packets {
                0 | 1 => self.single(way, method, now_bytes, plain.tos()),
                _ => self.bundle(way, now_bytes, packets, plain.tos()),
            };
            rest = later;
        }
        self.plain = plain;
        sent
    }

    /// One whole packet in a datagram of its own, or in several if no datagram carries it.
    fn single(
        &mut self,
        way: &mut Way<'_, impl Outlet>,
        method: Method,
        packet: &[u8],
        tos: Tos,
    ) -> Result<(), Reason> {
        way.link.spec.counters.out_packets.add(1);
        way.link.spec.counters.out_bytes.add(packet.len() as u64);
        if packet.len() > way.link.payload_room() && way.link.takes_blocks() {
            return self.parts(way, Codec::None, packet, tos);
        }
        if !way.link.takes_blocks() && method.codec == Codec::Deflate && packet.len() >= THRESHOLD {
            return self.ipcomp(way, method, packet, tos);
        }
        let next = next_header(packet);
        self.emit(way, next, packet.len(), tos, |payload| put(payload, 0, packet))
    }

    /// One packet as IPComp (RFC 3173), for a peer that knows nothing private.
    fn ipcomp(
        &mut self,
        way: &mut Way<'_, impl Outlet>,
        method: Method,
        packet: &[u8],
        tos: Tos,
    ) -> Result<(), Reason> {
        let next = next_header(packet);
        let mut squeezed = core::mem::take(&mut self.squeezed);
        let room = packet.len().saturating_sub(ipcomp::HEADER_LEN + 1);
        let after = squeezed.get_mut(..room).and_then(|output| self.codecs.compress(method, packet, output));
        self.account(method, packet.len(), after, way.now);
        let sent = match after.and_then(|len| squeezed.get(..len)) {
            None => self.emit(way, next, packet.len(), tos, |payload| put(payload, 0, packet)),
            Some(bytes) => {
                let header = ipcomp::Header { next, cpi: Cpi::DEFLATE };
                let len = ipcomp::HEADER_LEN + bytes.len();
                self.emit(way, Protocol::IPCOMP, len, tos, |payload| {
                    let _ = header.emit(payload);
                    put(payload, ipcomp::HEADER_LEN, bytes);
                })
            }
        };
        self.squeezed = squeezed;
        sent
    }

    /// Several whole packets in one datagram (RFC 9347).
    fn bundle(
        &mut self,
        way: &mut Way<'_, impl Outlet>,
        packets: &[u8],
        count: u64,
        tos: Tos,
    ) -> Result<(), Reason> {
        way.link.spec.counters.out_bundles.add(1);
        way.link.spec.counters.out_packets.add(count);
        way.link.spec.counters.out_bytes.add(packets.len() as u64);
        let len = aggfrag::PLAIN_LEN + packets.len();
        self.emit(way, Protocol::AGGFRAG, len, tos, |payload| {
            let _ = aggfrag::emit_plain(payload, 0);
            put(payload, aggfrag::PLAIN_LEN, packets);
        })
    }

    /// The segments of a super-packet from `from` on, each written and sealed where it leaves.
    fn raw(
        &mut self,
        way: &mut Way<'_, impl Outlet>,
        packet: &SuperPacket<'_>,
        from: usize,
    ) -> Result<(), Reason> {
        if packet.len(from) > way.link.payload_room() {
            return self.cut(way, packet, from);
        }
        let tos = Tos::encapsulate(packet.ip().tos());
        let next = next_header(packet.ip().bytes());
        let count = packet.count();
        for index in from..count {
            let len = packet.len(index);
            self.emit(way, next, len, tos, |payload| packet.write(index, payload))?;
            way.link.spec.counters.out_bytes.add(len as u64);
        }
        way.link.spec.counters.out_packets.add((count - from) as u64);
        Ok(())
    }

    /// Segments that no datagram of this path carries whole, as blocks in several parts.
    fn cut(
        &mut self,
        way: &mut Way<'_, impl Outlet>,
        packet: &SuperPacket<'_>,
        from: usize,
    ) -> Result<(), Reason> {
        if !way.link.takes_blocks() {
            return Err(Reason::TooBig);
        }
        let mut next = from;
        while next < packet.count() {
            self.plain.clear();
            let after = self.plain.take(packet, next, packet.len(next).max(1) * 2);
            if after == next {
                return Err(Reason::TooBig);
            }
            next = after;
            self.uncompressed(way, Method::NONE)?;
        }
        Ok(())
    }
}

/// The most that a block to this peer may hold.
fn block_limit(link: &Link) -> usize {
    match link.sa.as_ref().map(|sa| sa.payloads) {
        Some(Payloads::Strait { block_cap, .. }) => {
            usize::try_from(block_cap).unwrap_or(BLOCK_MAX).min(BLOCK_MAX)
        }
        _ => BLOCK_MAX,
    }
}

/// How many bytes, and packets, from the front of `bytes` one datagram takes; at least one packet.
fn fitting(link: &Link, bytes: &[u8]) -> (usize, u64) {
    let room = link.payload_room().saturating_sub(aggfrag::PLAIN_LEN);
    let (mut len, mut count) = (0, 0);
    for packet in block::packets(bytes).map_while(Result::ok) {
        let alone = count == 0;
        if !alone && (len + packet.len() > room || !link.takes_blocks()) {
            break;
        }
        len += packet.len();
        count += 1;
    }
    if count == 0 { (bytes.len(), 1) } else { (len, count) }
}

/// ESP's next header for an IP packet (RFC 4303 section 2.6).
fn next_header(packet: &[u8]) -> Protocol {
    match ip::version_of(packet) {
        Some(ip::Version::V6) => Protocol::IPV6,
        _ => Protocol::IPIP,
    }
}

fn put(payload: &mut [u8], at: usize, bytes: &[u8]) {
    if let Some(room) = payload.get_mut(at..at + bytes.len()) {
        room.copy_from_slice(bytes);
    }
}
