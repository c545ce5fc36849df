//! Step 6 for AGGFRAG payloads: whole packets and fragments of packets (RFC 9347).

use std::ops::Range;

use strait_wire::aggfrag::{self, DataBlock};
use strait_wire::{Esn, ip};

use super::associations::Inbox;
use super::fragment::PartialPacket;
use super::payload::{OpenedPayload, Unpacker};
use super::{Inlet, Origin};
use crate::Reason;

impl<I: Inlet> Unpacker<'_, I> {
    /// All that one payload holds.
    pub(super) fn bundle(&mut self, opened: OpenedPayload<'_>) -> Result<(), Reason> {
        let payload = aggfrag::Payload::parse(opened.payload()).map_err(|_| Reason::MalformedEsp)?;
        let mut offset = usize::from(payload.header.offset());
        let mut at = opened.range.end - payload.region.len();
        let OpenedPayload { origin, esn, bytes, range, .. } = opened;
        while at < range.end {
            let region = bytes.get(at..range.end).unwrap_or_default();
            let (kind, len) = next_block(region, core::mem::take(&mut offset));
            match kind {
                BundlePart::Whole => {
                    let peer = &self.inbox.counters;
                    if let Err(reason) = self.host.packet(origin, peer, bytes, at..at + len, self.inlet) {
                        self.counters.refuse(reason);
                    }
                }
                BundlePart::Continuation => self.go_on(origin, esn, bytes, at..at + len),
                BundlePart::Start => self.start(origin, esn, bytes.get(at..at + len).unwrap_or_default()),
                BundlePart::Pad => break,
                BundlePart::Bad => return Err(Reason::MalformedInner),
            }
            at += len;
        }
        Ok(())
    }

    fn start(&mut self, origin: Origin, esn: Esn, bytes: &[u8]) {
        let fragment = self.inbox.fragment.get_or_insert_with(|| Box::new(PartialPacket::new()));
        if fragment.start(esn, origin.tos.ecn(), bytes) {
            self.counters.refuse(Reason::FragmentIncomplete);
        }
    }

    /// More of a packet that began in an earlier payload.
    fn go_on(&mut self, origin: Origin, esn: Esn, bytes: &mut [u8], range: Range<usize>) {
        let more = bytes.get(range).unwrap_or_default();
        let Inbox { fragment, counters, .. } = &mut *self.inbox;
        let grown = fragment.as_mut().and_then(|fragment| fragment.go_on(esn, origin.tos.ecn(), more));
        let Some((packet, ecn)) = grown else {
            return self.counters.refuse(Reason::FragmentIncomplete);
        };
        let origin = Origin { tos: origin.tos.with_ecn(ecn), ..origin };
        let len = ip::declared_len(packet).unwrap_or(usize::MAX);
        if len > packet.len() {
            return;
        }
        self.host.finish(bytes, self.inlet);
        if let Err(reason) = self.host.packet(origin, counters, packet, 0..len, self.inlet) {
            self.counters.refuse(reason);
        }
        self.host.finish(packet, self.inlet);
        if let Some(fragment) = fragment {
            fragment.finish();
        }
    }
}

/// What stands next in a bundle.
enum BundlePart {
    Whole,
    Continuation,
    Start,
    Pad,
    Bad,
}

fn next_block(region: &[u8], offset: usize) -> (BundlePart, usize) {
    let offset = u16::try_from(offset).unwrap_or(u16::MAX);
    let payload = aggfrag::Payload { header: aggfrag::Header::Plain { offset }, region };
    match payload.blocks().next() {
        Some(DataBlock::Whole(packet)) => (BundlePart::Whole, packet.len()),
        Some(DataBlock::Continuation(bytes)) => (BundlePart::Continuation, bytes.len()),
        Some(DataBlock::Start { bytes, .. }) => (BundlePart::Start, bytes.len()),
        Some(DataBlock::Pad) | None => (BundlePart::Pad, region.len()),
        Some(DataBlock::Bad(_)) => (BundlePart::Bad, region.len()),
    }
}
