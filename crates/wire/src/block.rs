//! The Strait block under ESP next header 144: packets compressed together, sent in parts.
//!
//! ```text
//! sub-type 0xF0 | codec | block id (2) | part | parts | this part of the compressed bytes
//! ```

use crate::{Malformed, field, ip};

/// The private AGGFRAG sub-type of a block's part.
pub const SUBTYPE: u8 = 0xf0;
/// The header of a part.
pub const HEADER_LEN: usize = 6;

/// Which part of which block follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Header {
    /// How the block was compressed; the numbers are those of the compression crate.
    pub codec: u8,
    /// Names the block among those in flight.
    pub id: u16,
    /// Which part, from 0.
    pub part: u8,
    /// How many parts, at least 1.
    pub parts: u8,
}

impl Header {
    /// The header, and the part behind it.
    ///
    /// # Errors
    /// [`Malformed`] when it is short, has another sub-type, or `part` is not below `parts`.
    pub fn parse(bytes: &[u8]) -> Result<(Header, &[u8]), Malformed> {
        let (&[subtype, codec, a, b, part, parts], rest) =
            field::split_header::<HEADER_LEN>("block header", bytes)?;
        if subtype != SUBTYPE {
            return Err(Malformed::new("block sub-type", bytes));
        }
        if part >= parts {
            return Err(Malformed::new("block part", bytes));
        }
        Ok((Header { codec, id: u16::from_be_bytes([a, b]), part, parts }, rest))
    }

    /// Writes the header at the start of `buf`.
    ///
    /// # Errors
    /// [`Malformed`] when `buf` is shorter than 6 bytes or `part` is not below `parts`.
    pub fn emit(self, buf: &mut [u8]) -> Result<(), Malformed> {
        let Header { codec, id, part, parts } = self;
        if part >= parts {
            return Err(Malformed::new("block part", buf));
        }
        let [a, b] = id.to_be_bytes();
        field::emit_header("buffer for a block header", buf, [SUBTYPE, codec, a, b, part, parts])
    }
}

/// Cuts an expanded block, whole IP packets one after the other, by their own length fields.
#[must_use]
pub fn packets(bytes: &[u8]) -> Packets<'_> {
    Packets { rest: bytes }
}

/// The packets of an expanded block; ends after the first error.
#[derive(Debug, Clone)]
pub struct Packets<'a> {
    rest: &'a [u8],
}

impl<'a> Iterator for Packets<'a> {
    type Item = Result<&'a [u8], Malformed>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let cut = ip::declared_len(self.rest).and_then(|len| {
            self.rest.split_at_checked(len).ok_or(Malformed::new("packet cut short in a block", self.rest))
        });
        match cut {
            Ok((packet, rest)) => {
                self.rest = rest;
                Some(Ok(packet))
            }
            Err(malformed) => {
                self.rest = &[];
                Some(Err(malformed))
            }
        }
    }
}

impl std::iter::FusedIterator for Packets<'_> {}
