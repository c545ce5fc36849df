//! UDP datagrams (RFC 768).

use crate::{Malformed, field};

/// Ports, length and checksum.
pub const HEADER_LEN: usize = 8;

/// A datagram trimmed to its own length field.
#[derive(Debug, Clone, Copy)]
pub struct Datagram<'a> {
    bytes: &'a [u8],
    header: &'a [u8; HEADER_LEN],
    payload: &'a [u8],
}

impl<'a> Datagram<'a> {
    /// Checks the length field, at least 8 and at most the bytes given, and trims to it.
    ///
    /// # Errors
    /// [`Malformed`] when it is not; a length of 0 (a jumbogram's, RFC 2675 section 4) is refused too.
    pub fn parse(bytes: &'a [u8]) -> Result<Datagram<'a>, Malformed> {
        let (header, rest) = field::split_header::<HEADER_LEN>("udp header", bytes)?;
        let len = usize::from(u16::from_be_bytes([header[4], header[5]]));
        let payload = len.checked_sub(HEADER_LEN).and_then(|payload_len| rest.get(..payload_len));
        match (payload, bytes.get(..len)) {
            (Some(payload), Some(bytes)) => Ok(Datagram { bytes, header, payload }),
            _ => Err(Malformed::new("udp length", bytes)),
        }
    }

    /// Header and payload.
    #[must_use]
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Source port.
    #[must_use]
    pub fn src_port(&self) -> u16 {
        u16::from_be_bytes([self.header[0], self.header[1]])
    }

    /// Destination port.
    #[must_use]
    pub fn dst_port(&self) -> u16 {
        u16::from_be_bytes([self.header[2], self.header[3]])
    }

    /// Length of header and payload in bytes, at least 8.
    #[must_use]
    #[expect(clippy::len_without_is_empty, reason = "the field's name; a datagram has at least its header")]
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// The checksum field as it stands, 0 for none; not verified.
    #[must_use]
    pub fn checksum(&self) -> u16 {
        u16::from_be_bytes([self.header[6], self.header[7]])
    }

    /// What follows the header.
    #[must_use]
    pub fn payload(&self) -> &'a [u8] {
        self.payload
    }
}

/// Writes a header with checksum 0 for `payload_len` bytes that follow it.
///
/// # Errors
/// [`Malformed`] when `buf` is shorter than the header or the length field cannot hold the whole.
pub fn emit(buf: &mut [u8], src_port: u16, dst_port: u16, payload_len: usize) -> Result<(), Malformed> {
    let len = payload_len.checked_add(HEADER_LEN).and_then(|len| u16::try_from(len).ok());
    let len = len.ok_or(Malformed { what: "udp payload", len: payload_len })?;
    let ([a, b], [c, d], [e, f]) = (src_port.to_be_bytes(), dst_port.to_be_bytes(), len.to_be_bytes());
    field::emit_header("buffer for a udp header", buf, [a, b, c, d, e, f, 0, 0])
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn parse_trims() {
        let bytes = [0x12, 0x34, 0x56, 0x78, 0, 10, 0xab, 0xcd, 1, 2, 3];
        let datagram = Datagram::parse(&bytes).unwrap();
        assert_eq!((datagram.src_port(), datagram.dst_port()), (0x1234, 0x5678));
        assert_eq!((datagram.len(), datagram.checksum()), (10, 0xabcd));
        assert_eq!(datagram.payload(), [1, 2]);
        assert_eq!(datagram.bytes(), &bytes[..10]);
    }

    #[test]
    fn edges() {
        for (field, given, ok) in [
            (0u16, 8, false),
            (1, 8, false),
            (7, 8, false),
            (8, 8, true),
            (9, 8, false),
            (8, 9, true),
            (u16::MAX, 65_534, false),
            (u16::MAX, 65_535, true),
            (u16::MAX, 65_536, true),
        ] {
            let mut bytes = vec![0; given];
            bytes[4..6].copy_from_slice(&field.to_be_bytes());
            assert_eq!(Datagram::parse(&bytes).is_ok(), ok, "length {field} in {given} bytes");
        }
    }

    #[test]
    fn truncation() {
        let mut bytes = [0; 12];
        emit(&mut bytes, 1, 2, 4).unwrap();
        for len in 0..bytes.len() {
            assert!(Datagram::parse(&bytes[..len]).is_err(), "{len} bytes");
        }
    }

    #[test]
    fn emit_edges() {
        let mut buf = [0xff; 8];
        for (payload_len, ok) in [(0, true), (1, true), (65_527, true), (65_528, false), (usize::MAX, false)]
        {
            assert_eq!(emit(&mut buf, 1, 2, payload_len).is_ok(), ok, "{payload_len} bytes of payload");
        }
        for len in 0..HEADER_LEN {
            assert!(emit(&mut [0; HEADER_LEN][..len], 1, 2, 0).is_err(), "buffer of {len}");
        }
    }

    proptest! {
        #[test]
        fn round_trip(src in any::<u16>(), dst in any::<u16>(), payload in proptest::collection::vec(any::<u8>(), 0..50)) {
            let mut bytes = [&[0xff; 8][..], &payload].concat();
            emit(&mut bytes, src, dst, payload.len()).unwrap();
            let datagram = Datagram::parse(&bytes).unwrap();
            prop_assert_eq!((datagram.src_port(), datagram.dst_port(), datagram.checksum()), (src, dst, 0));
            prop_assert_eq!(datagram.payload(), &payload[..]);
        }
    }
}
