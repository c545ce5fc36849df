//! An ordinary file as the packets that would carry it: TCP segments of one connection, 1,400 bytes each, back to back.

use std::io::Read;
use std::net::Ipv4Addr;

use strait_clock::Time;
use strait_wire::checksum::pseudo_v4;
use strait_wire::ip::{V4_HEADER_LEN, V4Header};
use strait_wire::{Protocol, Tos, tcp};

use super::window::ReadWindow;
use super::{CapturedFrame, ReadError};
use crate::LinkType;

/// What a path of 1,500 bytes carries inside ESP and UDP, rounded down; codecs and ciphers are measured at it too.
const PACKET: usize = 1_400;
const HEADERS: usize = V4_HEADER_LEN + tcp::MIN_HEADER_LEN;
/// Sender and receiver: addresses for documentation (RFC 5737).
const ENDS: [Ipv4Addr; 2] = [Ipv4Addr::new(192, 0, 2, 1), Ipv4Addr::new(192, 0, 2, 2)];
/// Ports of a transfer: FTP's for data (RFC 959 section 8), to one that systems hand out.
const PORTS: [u16; 2] = [20, 49_152];

/// How gzip (RFC 1952), Zstandard (RFC 8878), xz and bzip2 begin.
const PACKED: [&[u8]; 4] =
    [&[0x1f, 0x8b], &[0x28, 0xb5, 0x2f, 0xfd], &[0xfd, b'7', b'z', b'X', b'Z', 0], b"BZh"];

/// Whether a file that begins so was compressed.
pub(super) fn is_packed(first: &[u8]) -> bool {
    PACKED.iter().any(|magic| first.starts_with(magic))
}

/// Makes packets of a file's bytes.
#[derive(Debug)]
pub(super) struct File {
    pub(super) is_packed: bool,
    packet: Box<[u8; PACKET]>,
    /// TCP's sequence number of the next byte.
    seq: u32,
    id: u16,
}

impl File {
    pub(super) fn new(is_packed: bool) -> File {
        File { is_packed, packet: Box::new([0; PACKET]), seq: 1, id: 0 }
    }

    pub(super) fn frame<R: Read>(
        &mut self,
        window: &mut ReadWindow<R>,
    ) -> Result<Option<CapturedFrame<'_>>, ReadError> {
        let at = window.position();
        let data = window.peek(PACKET - HEADERS)?;
        let len = data.len();
        if len == 0 {
            return Ok(None);
        }
        if let Some(room) = self.packet.get_mut(HEADERS..HEADERS + len) {
            room.copy_from_slice(data);
        }
        window.rest(len, "the file", at)?;
        self.head(len);
        // As many bytes as a file may have: numbers begin again, as TCP's do.
        self.seq = self.seq.wrapping_add(u32::try_from(len).unwrap_or(0));
        self.id = self.id.wrapping_add(1);
        let bytes = self.packet.get(..HEADERS + len).unwrap_or_default();
        Ok(Some(CapturedFrame { at: Time::ZERO, link: LinkType::RAW, bytes, len: bytes.len() }))
    }

    /// Writes the headers in front of `len` bytes of data.
    fn head(&mut self, len: usize) {
        let [src, dst] = ENDS;
        let payload_len = tcp::MIN_HEADER_LEN + len;
        let header = V4Header {
            src,
            dst,
            tos: Tos(0),
            id: self.id,
            dont_fragment: true,
            protocol: Protocol::TCP,
            payload_len,
        };
        let Some((ip, segment)) = self.packet.split_at_mut_checked(V4_HEADER_LEN) else { return };
        // 20 bytes are there, and 1,400 are no packet that is too long.
        let _ = header.emit(ip);
        let Some(segment) = segment.get_mut(..payload_len) else { return };
        let [from, to] = PORTS.map(u16::to_be_bytes);
        let [a, b, c, d] = self.seq.to_be_bytes();
        let flags = tcp::TcpFlags::ACK.bits();
        let fields =
            [from[0], from[1], to[0], to[1], a, b, c, d, 0, 0, 0, 1, 5 << 4, flags, 0xff, 0xff, 0, 0, 0, 0];
        if let Some(room) = segment.first_chunk_mut() {
            *room = fields;
        }
        let covered = u32::try_from(payload_len).unwrap_or(0);
        let sum = pseudo_v4(src, dst, Protocol::TCP, covered).add_bytes(segment).finish().to_be_bytes();
        if let Some(room) = segment.get_mut(tcp::CHECKSUM) {
            room.copy_from_slice(&sum);
        }
    }
}
