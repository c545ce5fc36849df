//! Authentication Header (RFC 4302 section 2), and what of a packet it covers.
//!
//! ```text
//! next header | length | reserved (2) | SPI (4) | sequence number (4) | ICV | padding
//! ```
//!
//! The integrity check value covers, in this order: the headers in front in their [`canonical`] form, this header with
//! zeros for the ICV, padding, everything behind, and the high half of the sequence number if there are 64 bits of it
//! (RFC 4302 section 3.3.3).

use crate::{Malformed, Protocol, SeqLow, Spi, field};

mod canonical;

pub use canonical::canonical;

/// What a header has besides ICV and padding; where the ICV begins.
pub const HEADER_LEN: usize = 12;

/// What a whole header's length is a multiple of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Align {
    /// IPv4 (RFC 4302 section 2.2).
    Four,
    /// IPv6 (RFC 4302 section 2.2); in IPv4 what Linux does unless a state has `flag align4`.
    Eight,
}

/// How long a header with an ICV of `icv_len` bytes is, padding included.
#[must_use]
pub const fn len(icv_len: usize, align: Align) -> usize {
    let align = match align {
        Align::Four => 4,
        Align::Eight => 8,
    };
    icv_len.saturating_add(HEADER_LEN + align - 1) / align * align
}

/// The fields of a header without its ICV.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Header {
    /// What follows.
    pub next: Protocol,
    /// The receiver's name for the security association.
    pub spi: Spi,
    /// The sent half of the sequence number.
    pub seq: SeqLow,
}

impl Header {
    /// Writes the header at the start of `buf`, ICV and padding zero as they are signed, and returns its length.
    ///
    /// # Errors
    /// [`Malformed`] when `buf` is shorter, or the ICV longer than the 1,016 bytes that the length field can say.
    pub fn emit(self, buf: &mut [u8], icv_len: usize, align: Align) -> Result<usize, Malformed> {
        let malformed = Malformed::new("buffer for an authentication header", buf);
        let len = len(icv_len, align);
        let (fixed, check) = buf.get_mut(..len).and_then(<[u8]>::split_first_chunk_mut).ok_or(malformed)?;
        // In 4-byte units, less 2 (RFC 4302 section 2.2).
        let words = u8::try_from(len / 4 - 2).map_err(|_| malformed)?;
        let ([a, b, c, d], [e, f, g, h]) = (self.spi.0.to_be_bytes(), self.seq.0.to_be_bytes());
        *fixed = [self.next.0, words, 0, 0, a, b, c, d, e, f, g, h];
        check.fill(0);
        Ok(len)
    }
}

/// A header that lies within the bytes it was read from, and what follows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct View<'a> {
    /// All but ICV and padding, as it is signed.
    pub fixed: &'a [u8; HEADER_LEN],
    /// ICV and padding; [`View::icv`] tells them apart.
    pub check: &'a [u8],
    /// What follows the header.
    pub payload: &'a [u8],
}

impl<'a> View<'a> {
    /// Reads the header at the start of `bytes`; the reserved field is ignored (RFC 4302 section 2.3).
    ///
    /// # Errors
    /// [`Malformed`] when the header is cut short or its length less than the fixed part's.
    pub fn parse(bytes: &'a [u8]) -> Result<View<'a>, Malformed> {
        let (fixed, behind) = field::split_header::<HEADER_LEN>("authentication header", bytes)?;
        let check_len = ((usize::from(fixed[1]) + 2) * 4).checked_sub(HEADER_LEN);
        let split = check_len.and_then(|len| behind.split_at_checked(len));
        let (check, payload) = split.ok_or(Malformed::new("authentication header length", bytes))?;
        Ok(View { fixed, check, payload })
    }

    /// What the header says.
    #[must_use]
    pub fn header(&self) -> Header {
        let [next, _, _, _, a, b, c, d, e, f, g, h] = *self.fixed;
        let (spi, seq) = (u32::from_be_bytes([a, b, c, d]), u32::from_be_bytes([e, f, g, h]));
        Header { next: Protocol(next), spi: Spi(spi), seq: SeqLow(seq) }
    }

    /// How long the header is, in bytes.
    #[must_use]
    pub fn header_len(&self) -> usize {
        HEADER_LEN + self.check.len()
    }

    /// An ICV of `icv_len` bytes and the padding behind it, whose content is the sender's choice (RFC 4302 section
    /// 3.3.3.2.1); either alignment is taken.
    ///
    /// # Errors
    /// [`Malformed`] when the header has not the length that such an ICV and either alignment make.
    pub fn icv(&self, icv_len: usize) -> Result<(&'a [u8], &'a [u8]), Malformed> {
        let fits = [Align::Four, Align::Eight].map(|align| len(icv_len, align)).contains(&self.header_len());
        let split = self.check.split_at_checked(icv_len).filter(|_| fits);
        split.ok_or(Malformed::new("length of the integrity check value", self.check))
    }
}

#[cfg(test)]
mod tests;
