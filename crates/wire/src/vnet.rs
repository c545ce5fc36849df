//! The virtio network header in front of every packet of an offloading tunnel device
//! (virtio 1.2 section 5.1.6; Linux `include/uapi/linux/virtio_net.h`).

use crate::{Malformed, field};

/// The header without its optional buffer count.
pub const LEN: usize = 10;

/// `flags`: the checksum at `csum_start + csum_offset` is still to be completed.
pub const NEEDS_CSUM: u8 = 1;
/// `flags`: the checksums were verified.
pub const DATA_VALID: u8 = 2;

/// `gso_type`: one ordinary packet.
pub const GSO_NONE: u8 = 0;
/// `gso_type`: TCP over IPv4, to be cut.
pub const GSO_TCPV4: u8 = 1;
/// `gso_type`: UDP over IPv4, to be fragmented.
pub const GSO_UDP: u8 = 3;
/// `gso_type`: TCP over IPv6, to be cut.
pub const GSO_TCPV6: u8 = 4;
/// `gso_type`: UDP, to be cut into datagrams.
pub const GSO_UDP_L4: u8 = 5;
/// `gso_type` bit: the TCP segment has CWR set, for its first piece only.
pub const GSO_ECN: u8 = 0x80;

/// The header, every field as the kernel wrote it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Header {
    /// [`NEEDS_CSUM`], [`DATA_VALID`].
    pub flags: u8,
    /// One of the `GSO_` values, perhaps with [`GSO_ECN`].
    pub gso_type: u8,
    /// Length of the headers to repeat on each piece, a hint only.
    pub hdr_len: u16,
    /// Payload bytes of each segment.
    pub gso_size: u16,
    /// Where summing starts, in bytes from the start of the packet.
    pub csum_start: u16,
    /// Where the sum goes, in bytes from `csum_start`.
    pub csum_offset: u16,
}

impl Header {
    /// Of a packet that is whole as it is.
    pub const PLAIN: Header =
        Header { flags: 0, gso_type: 0, gso_size: 0, hdr_len: 0, csum_start: 0, csum_offset: 0 };

    /// The header, and the packet behind it; host byte order, since it never leaves the machine.
    ///
    /// # Errors
    /// [`Malformed`] when there are fewer than 10 bytes.
    pub fn parse(bytes: &[u8]) -> Result<(Header, &[u8]), Malformed> {
        let (&[flags, gso_type, a, b, c, d, e, f, g, h], rest) =
            field::split_header::<LEN>("virtio network header", bytes)?;
        let header = Header {
            flags,
            gso_type,
            hdr_len: u16::from_ne_bytes([a, b]),
            gso_size: u16::from_ne_bytes([c, d]),
            csum_start: u16::from_ne_bytes([e, f]),
            csum_offset: u16::from_ne_bytes([g, h]),
        };
        Ok((header, rest))
    }

    /// Writes the header in host byte order.
    pub fn emit(&self, buf: &mut [u8; LEN]) {
        let ([a, b], [c, d]) = (self.hdr_len.to_ne_bytes(), self.gso_size.to_ne_bytes());
        let ([e, f], [g, h]) = (self.csum_start.to_ne_bytes(), self.csum_offset.to_ne_bytes());
        *buf = [self.flags, self.gso_type, a, b, c, d, e, f, g, h];
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn emit() {
        let header = Header {
            flags: NEEDS_CSUM,
            gso_type: GSO_TCPV4 | GSO_ECN,
            hdr_len: 0x0102,
            gso_size: 0x0304,
            csum_start: 0x0506,
            csum_offset: 0x0708,
        };
        let mut buf = [0; LEN];
        header.emit(&mut buf);
        let fields = [0x0102u16, 0x0304, 0x0506, 0x0708].map(u16::to_ne_bytes).concat();
        assert_eq!(buf, *[&[1, 0x81][..], &fields].concat());
    }

    #[test]
    fn truncation() {
        for len in 0..LEN {
            assert!(Header::parse(&[0; LEN][..len]).is_err(), "{len} bytes");
        }
    }

    proptest! {
        #[test]
        fn round_trip(bytes: [u8; 13]) {
            let (header, rest) = Header::parse(&bytes).unwrap();
            prop_assert_eq!(rest, &bytes[LEN..]);
            let mut buf = [0; LEN];
            header.emit(&mut buf);
            prop_assert_eq!(&buf, &bytes[..LEN]);
        }
    }

    #[test]
    fn numbers_of_the_kernel() {
        assert_eq!([NEEDS_CSUM, DATA_VALID], [1, 2]);
        let kinds = [GSO_NONE, GSO_TCPV4, GSO_UDP, GSO_TCPV6, GSO_UDP_L4, GSO_ECN];
        assert_eq!(kinds, [0, 1, 3, 4, 5, 0x80]);
    }
}
