//! The IP payload compression header (RFC 3173 section 3).

use crate::{Cpi, Malformed, Protocol, field};

/// Next header, flags and CPI.
pub const HEADER_LEN: usize = 4;

/// What was compressed, and how.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Header {
    /// What the payload is once expanded.
    pub next: Protocol,
    /// The algorithm or association.
    pub cpi: Cpi,
}

impl Header {
    /// The header, and what follows it; the flags octet is ignored (RFC 3173 section 3.3).
    ///
    /// # Errors
    /// [`Malformed`] when there are fewer than 4 bytes.
    pub fn parse(bytes: &[u8]) -> Result<(Header, &[u8]), Malformed> {
        let (&[next, _flags, a, b], rest) = field::split_header("ipcomp header", bytes)?;
        Ok((Header { next: Protocol(next), cpi: Cpi(u16::from_be_bytes([a, b])) }, rest))
    }

    /// Writes the header at the start of `buf`, flags zero.
    ///
    /// # Errors
    /// [`Malformed`] when `buf` is shorter than 4 bytes.
    pub fn emit(self, buf: &mut [u8]) -> Result<(), Malformed> {
        let [a, b] = self.cpi.0.to_be_bytes();
        field::emit_header("buffer for an ipcomp header", buf, [self.next.0, 0, a, b])
    }
}
