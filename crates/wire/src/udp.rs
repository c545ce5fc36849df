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
