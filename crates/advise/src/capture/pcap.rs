//! libpcap's format (draft-ietf-opsawg-pcap): one header, then a header a packet.

use std::io::Read;

use strait_clock::Time;

use super::order::ByteOrder;
use super::window::ReadWindow;
use super::{CapturedFrame, FRAME_MAX, ReadError};
use crate::LinkType;

/// The header of the file (section 4).
const FILE_HEADER: usize = 24;
/// The header of a packet (section 5).
const PACKET_HEADER: usize = 16;
/// The link type's share of its field; the rest says how long the frame check sequence is, which no IP packet's length
/// includes (section 4).
const LINK_TYPE: u32 = 0xffff;

/// How numbers and times are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Variant {
    /// As libpcap does, with times whose second part counts so many nanoseconds.
    Plain(ByteOrder, u64),
    /// With longer packet headers, as a kernel patch of 1999 wrote them.
    Patched,
}

/// What the first four bytes say (section 4).
pub(super) fn variant(first: &[u8]) -> Option<Variant> {
    Some(match *first.first_chunk()? {
        [0xd4, 0xc3, 0xb2, 0xa1] => Variant::Plain(ByteOrder::Little, 1_000),
        [0xa1, 0xb2, 0xc3, 0xd4] => Variant::Plain(ByteOrder::Big, 1_000),
        [0x4d, 0x3c, 0xb2, 0xa1] => Variant::Plain(ByteOrder::Little, 1),
        [0xa1, 0xb2, 0x3c, 0x4d] => Variant::Plain(ByteOrder::Big, 1),
        [0x34, 0xcd, 0xb2, 0xa1] | [0xa1, 0xb2, 0xcd, 0x34] => Variant::Patched,
        _ => return None,
    })
}

/// What the file's header says.
#[derive(Debug)]
pub(super) struct Pcap {
    order: ByteOrder,
    nanos: u64,
    link: LinkType,
}

impl Pcap {
    /// Reads the file's header.
    pub(super) fn open<R: Read>(variant: Variant, window: &mut ReadWindow<R>) -> Result<Pcap, ReadError> {
        let Variant::Plain(order, nanos) = variant else {
            return Err(ReadError::Unsupported(
                "a capture in Kuznetzov's variant of pcap; write it anew with `editcap -F pcap`",
            ));
        };
        let header = window.rest(FILE_HEADER, "the file's header", 0)?;
        let link = LinkType((order.u32(header, 20) & LINK_TYPE) as u16);
        Ok(Pcap { order, nanos, link })
    }

    pub(super) fn frame<'w, R: Read>(
        &mut self,
        window: &'w mut ReadWindow<R>,
    ) -> Result<Option<CapturedFrame<'w>>, ReadError> {
        let at = window.position();
        let Some(header) = window.take(PACKET_HEADER, "a packet's header")? else { return Ok(None) };
        let field = |index: usize| self.order.u32(header, index * 4);
        let (seconds, part, captured, len) = (field(0), field(1), field(2), field(3));
        let nanos = u64::from(seconds) * 1_000_000_000 + u64::from(part) * self.nanos;
        let kept = usize::try_from(captured).unwrap_or(usize::MAX);
        if kept > FRAME_MAX {
            let what = "the captured length of a packet";
            return Err(ReadError::Malformed { what, value: captured.into(), at });
        }
        let bytes = window.rest(kept, "a packet", at)?;
        let len = usize::try_from(len).unwrap_or(usize::MAX).max(bytes.len());
        Ok(Some(CapturedFrame { at: Time::from_nanos(nanos), link: self.link, bytes, len }))
    }
}
