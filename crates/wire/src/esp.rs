//! Encapsulating Security Payload: the header in front, the trailer inside (RFC 4303 section 2).
//!
//! ```text
//! SPI (4) | sequence number (4) | IV (8 or none) | payload | 1 2 3 .. | pad length | next header | ICV (16)
//!                                                 '------------- encrypted ---------------------'
//! ```

use crate::{Malformed, Protocol, SeqLow, Spi, field};

/// SPI and sequence number.
pub const HEADER_LEN: usize = 8;
/// The explicit IV of AES-GCM and ChaCha20-Poly1305 (RFC 4106 section 3.1, RFC 7634 section 2).
pub const IV_LEN: usize = 8;
/// The integrity check value of the same (RFC 4106 section 6, RFC 7634 section 2).
pub const ICV_LEN: usize = 16;

/// Pad length and next header: what a trailer has besides padding.
const TRAILER_LEN: usize = 2;

/// SPI and the low half of the sequence number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Header {
    /// The receiver's name for the security association.
    pub spi: Spi,
    /// The sent half of the sequence number.
    pub seq: SeqLow,
}

impl Header {
    /// The header, and what follows it.
    ///
    /// # Errors
    /// [`Malformed`] when there are fewer than 8 bytes.
    pub fn parse(bytes: &[u8]) -> Result<(Header, &[u8]), Malformed> {
        let (&[a, b, c, d, e, f, g, h], rest) = field::split_header("esp header", bytes)?;
        let spi = Spi(u32::from_be_bytes([a, b, c, d]));
        let seq = SeqLow(u32::from_be_bytes([e, f, g, h]));
        Ok((Header { spi, seq }, rest))
    }

    /// Writes the header at the start of `buf`.
    ///
    /// # Errors
    /// [`Malformed`] when `buf` is shorter than 8 bytes.
    pub fn emit(self, buf: &mut [u8]) -> Result<(), Malformed> {
        let ([a, b, c, d], [e, f, g, h]) = (self.spi.0.to_be_bytes(), self.seq.0.to_be_bytes());
        field::emit_header("buffer for an esp header", buf, [a, b, c, d, e, f, g, h])
    }
}

/// How many pad bytes make payload, padding, pad length and next header a multiple of `align`
/// (RFC 4303 section 2.4); an `align` of 0 means 1.
#[must_use]
pub const fn pad_len(payload_len: usize, align: usize) -> usize {
    let align = if align == 0 { 1 } else { align };
    // Each term is below `align`, which keeps the sum from overflowing.
    let over = (payload_len % align + TRAILER_LEN % align) % align;
    (align - over) % align
}

/// Fills `buf`, which is the trailer and no more, with 1, 2, 3 and so on, the pad length and the next header
/// (RFC 4303 section 2.4).
///
/// # Errors
/// [`Malformed`] when `buf` is shorter than 2 bytes or longer than 257.
pub fn emit_trailer(buf: &mut [u8], next: Protocol) -> Result<(), Malformed> {
    let len = buf.len();
    let malformed = Malformed { what: "buffer for an esp trailer", len };
    let Some((pad, [pad_len, next_header])) = buf.split_last_chunk_mut::<TRAILER_LEN>() else {
        return Err(malformed);
    };
    *pad_len = u8::try_from(pad.len()).map_err(|_| malformed)?;
    *next_header = next.0;
    for (byte, value) in pad.iter_mut().zip(1..=u8::MAX) {
        *byte = value;
    }
    Ok(())
}

/// Splits decrypted bytes into the payload and what it is, and checks every pad byte
/// (RFC 4303 sections 2.4 to 2.6).
///
/// # Errors
/// [`Malformed`] when the pad length reaches past the start, or padding is not 1, 2, 3 and so on.
pub fn parse_trailer(plaintext: &[u8]) -> Result<(&[u8], Protocol), Malformed> {
    let Some((padded, &[pad_len, next])) = plaintext.split_last_chunk::<TRAILER_LEN>() else {
        return Err(Malformed::new("esp trailer", plaintext));
    };
    let split = padded.len().checked_sub(usize::from(pad_len));
    let Some((payload, pad)) = split.and_then(|at| padded.split_at_checked(at)) else {
        return Err(Malformed::new("esp pad length", plaintext));
    };
    if pad.iter().zip(1..=u8::MAX).any(|(byte, expected)| *byte != expected) {
        return Err(Malformed::new("esp padding", plaintext));
    }
    Ok((payload, Protocol(next)))
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn parse() {
        let bytes = [4, 0, 0, 1, 0, 0, 0, 2, 9];
        let (header, rest) = Header::parse(&bytes).unwrap();
        assert_eq!(header, Header { spi: Spi(0x0400_0001), seq: SeqLow(2) });
        assert_eq!(rest, [9]);
    }

    #[test]
    fn lengths_of_the_aead_suites() {
        assert_eq!((HEADER_LEN, IV_LEN, ICV_LEN), (8, 8, 16));
    }

    #[test]
    fn truncation() {
        let header = Header { spi: Spi(1), seq: SeqLow(2) };
        for len in 0..HEADER_LEN {
            assert!(Header::parse(&[0; HEADER_LEN][..len]).is_err(), "{len} bytes");
            assert!(header.emit(&mut [0; HEADER_LEN][..len]).is_err(), "buffer of {len}");
        }
    }

    #[test]
    fn pad_len_edges() {
        for (payload_len, align, expected) in [
            (0, 4, 2),
            (1, 4, 1),
            (2, 4, 0),
            (3, 4, 3),
            (4, 4, 2),
            (2, 8, 4),
            (7, 1, 0),
            (7, 0, 0),
            (1, 2, 1),
            (0, 16, 14),
            (14, 16, 0),
            (15, 16, 15),
            (usize::MAX, 4, 3),
        ] {
            assert_eq!(pad_len(payload_len, align), expected, "{payload_len} bytes to {align}");
        }
    }

    #[test]
    fn trailer_bytes() {
        let mut buf = [0xff; 5];
        emit_trailer(&mut buf, Protocol::IPIP).unwrap();
        assert_eq!(buf, [1, 2, 3, 3, 4]);
    }

    #[test]
    fn emit_trailer_edges() {
        for (len, ok) in [(0, false), (1, false), (2, true), (3, true), (257, true), (258, false)] {
            let mut buf = vec![0; len];
            assert_eq!(emit_trailer(&mut buf, Protocol::IPV6).is_ok(), ok, "buffer of {len}");
            assert_eq!(parse_trailer(&buf).is_ok_and(|(payload, _)| payload.is_empty() && len > 0), ok);
        }
    }

    #[test]
    fn parse_trailer_edges() {
        for (plaintext, expected) in [
            (&[][..], Err("esp trailer")),
            (&[0], Err("esp trailer")),
            (&[0, 4], Ok(&[][..])),
            (&[1, 4], Err("esp pad length")),
            (&[255, 4], Err("esp pad length")),
            (&[1, 1, 4], Ok(&[])),
            (&[0, 1, 4], Err("esp padding")),
            (&[2, 1, 4], Err("esp padding")),
            (&[9, 1, 2, 2, 4], Ok(&[9])),
            (&[9, 1, 1, 2, 4], Err("esp padding")),
            (&[9, 1, 2, 3, 4], Err("esp padding")),
            (&[9, 1, 2, 4, 4], Err("esp pad length")),
            (&[9, 1, 2, 0, 4], Ok(&[9, 1, 2])),
        ] {
            let parsed = parse_trailer(plaintext);
            let parsed = parsed.map(|(payload, _)| payload).map_err(|malformed| malformed.what);
            assert_eq!(parsed, expected, "{plaintext:?}");
        }
    }

    proptest! {
        #[test]
        fn round_trip(spi in any::<u32>(), seq in any::<u32>(), rest in vec(any::<u8>(), 0..20)) {
            let header = Header { spi: Spi(spi), seq: SeqLow(seq) };
            let mut bytes = [&[0; HEADER_LEN][..], &rest].concat();
            header.emit(&mut bytes).unwrap();
            prop_assert_eq!(Header::parse(&bytes).unwrap(), (header, &rest[..]));
        }

        #[test]
        fn trailer_round_trip(payload in vec(any::<u8>(), 0..300), align in 1usize..=256, next in any::<u8>()) {
            let pad = pad_len(payload.len(), align);
            prop_assert!(pad < align);
            prop_assert_eq!((payload.len() + pad + 2) % align, 0);
            let mut plaintext = payload.clone();
            plaintext.resize(payload.len() + pad + 2, 0xff);
            emit_trailer(&mut plaintext[payload.len()..], Protocol(next)).unwrap();
            prop_assert_eq!(parse_trailer(&plaintext).unwrap(), (&payload[..], Protocol(next)));
        }
    }
}
