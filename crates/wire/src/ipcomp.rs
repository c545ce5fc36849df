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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn parse_ignores_flags() {
        for flags in [0, 1, 0x80, 0xff] {
            let bytes = [6, flags, 0, 2, 7, 8];
            let (header, rest) = Header::parse(&bytes).unwrap();
            assert_eq!(header, Header { next: Protocol::TCP, cpi: Cpi::DEFLATE });
            assert_eq!(rest, [7, 8]);
        }
    }

    #[test]
    fn emit_zeroes_flags() {
        let mut buf = [0xff; 5];
        Header { next: Protocol::IPIP, cpi: Cpi::LZS }.emit(&mut buf).unwrap();
        assert_eq!(buf, [4, 0, 0, 3, 0xff]);
    }

    #[test]
    fn truncation() {
        for len in 0..HEADER_LEN {
            assert!(Header::parse(&[0; HEADER_LEN][..len]).is_err(), "{len} bytes");
            let header = Header { next: Protocol::IPIP, cpi: Cpi::LZS };
            assert!(header.emit(&mut [0; HEADER_LEN][..len]).is_err(), "buffer of {len}");
        }
    }

    proptest! {
        #[test]
        fn round_trip(next in any::<u8>(), cpi in any::<u16>()) {
            let header = Header { next: Protocol(next), cpi: Cpi(cpi) };
            let mut buf = [0xff; HEADER_LEN];
            header.emit(&mut buf).unwrap();
            prop_assert_eq!(Header::parse(&buf).unwrap(), (header, &[][..]));
        }
    }
}
