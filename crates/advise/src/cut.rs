//! Packets that are longer than a link takes, as their sender would have made them.

use strait_ipsec::SuperPacket;
use strait_wire::fragment::Cutter;
use strait_wire::ip::{self, Packet, Version};
use strait_wire::tcp::Segment;
use strait_wire::{Malformed, Protocol, vnet};

/// Where IPv4 has its flags; "don't fragment" among them (RFC 791 section 3.1).
const V4_FLAGS_AT: usize = 6;
const V4_DONT_FRAGMENT: u8 = 0x40;
/// Where the header's checksum is.
const V4_CHECKSUM_AT: usize = 10;

/// Cuts packets; its buffers hold the longest there are.
#[derive(Debug)]
pub struct Scissors {
    piece: Box<[u8]>,
    /// A packet that now may be cut.
    allowed: Vec<u8>,
    /// IPv6's fragments are told apart by a number that the sender gives (RFC 8200 section 4.5).
    id: u32,
}

impl Default for Scissors {
    fn default() -> Scissors {
        let longest = usize::from(u16::MAX) + ip::V6_HEADER_LEN;
        Scissors { piece: vec![0; longest].into_boxed_slice(), allowed: Vec::with_capacity(longest), id: 0 }
    }
}

impl Scissors {
    /// Calls `each` with packets of at most `mtu` bytes that carry the same: the packet itself, when it fits; TCP segments
    /// as a card cuts them, which has joined them; fragments of anything else, whatever it says of being cut, since a
    /// sender who is told of a smaller size makes smaller ones.
    ///
    /// # Errors
    /// [`Malformed`] when it cannot be cut, as headers alone fill the link.
    pub fn cut(
        &mut self,
        packet: &Packet<'_>,
        mtu: usize,
        mut each: impl FnMut(&[u8]),
    ) -> Result<(), Malformed> {
        let bytes = packet.bytes();
        if bytes.len() <= mtu {
            each(bytes);
            return Ok(());
        }
        match segments(packet, mtu) {
            Some(cut) => {
                for index in 0..cut.count() {
                    let len = cut.len(index);
                    let piece = self.piece.get_mut(..len).unwrap_or_default();
                    cut.write(index, piece);
                    each(piece);
                }
                Ok(())
            }
            None => self.fragments(packet, mtu, each),
        }
    }

    fn fragments(
        &mut self,
        packet: &Packet<'_>,
        mtu: usize,
        mut each: impl FnMut(&[u8]),
    ) -> Result<(), Malformed> {
        self.id = self.id.wrapping_add(1);
        self.allowed.clear();
        self.allowed.extend_from_slice(packet.bytes());
        if packet.version() == Version::V4 {
            may_be_cut(&mut self.allowed);
        }
        let mut cutter = Cutter::new(&self.allowed, mtu, self.id)?;
        while let Some(len) = cutter.cut(&mut self.piece)? {
            let piece = self.piece.get(..len).unwrap_or_default();
            // The first has to hold all extension headers (RFC 8200 section 4.5). If it cannot, none leaves.
            Packet::parse(piece)?;
            each(piece);
        }
        Ok(())
    }
}

/// Packet as the segments that fit, if it is a segment itself.
fn segments<'a>(packet: &Packet<'a>, mtu: usize) -> Option<SuperPacket<'a>> {
    if packet.protocol() != Protocol::TCP || packet.is_fragment() {
        return None;
    }
    let headers = packet.header_len() + Segment::parse(packet.payload()).ok()?.header_len();
    let step = u16::try_from(mtu.checked_sub(headers)?).ok().filter(|step| *step > 0)?;
    let gso_type = match packet.version() {
        Version::V4 => vnet::GSO_TCPV4,
        Version::V6 => vnet::GSO_TCPV6,
    };
    let offload = vnet::Header { gso_type, gso_size: step, ..vnet::Header::PLAIN };
    SuperPacket::new(packet.bytes(), &offload).ok()
}

/// Takes "don't fragment" out of an IPv4 header.
fn may_be_cut(packet: &mut [u8]) {
    let header_len = packet.first().map_or(0, |first| usize::from(first & 0x0f) * 4);
    let Some(header) = packet.get_mut(..header_len) else { return };
    if let Some(flags) = header.get_mut(V4_FLAGS_AT) {
        *flags &= !V4_DONT_FRAGMENT;
    }
    let sum = ip::v4_header_checksum(header).to_be_bytes();
    if let Some(room) = header.get_mut(V4_CHECKSUM_AT..V4_CHECKSUM_AT + sum.len()) {
        room.copy_from_slice(&sum);
    }
}

#[cfg(test)]
mod tests;
