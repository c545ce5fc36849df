//! The Strait block under ESP next header 144: packets compressed together, sent in parts.
//!
//! ```text
//! sub-type 0xF0 | codec | block id (2) | part | parts | this part of the compressed bytes
//! ```
//!
//! Of a block with history, the parts have the sub-type [`WITH_HISTORY`] instead, and its bytes begin with what it says of that
//! ([`crate::history::BlockHistory`]). Of a block that copies from a byte cache, they have the sub-type [`WITH_CACHE`]
//! ([`crate::history::BlockCache`]).
//!
//! With [`PADDED`] in the codec byte, the bytes of the whole block end with padding, which the receiver takes off before it expands
//! the block: zeros, and in the last two bytes how many bytes the padding has, these two among them.

use crate::{Malformed, field, ip};

/// The private AGGFRAG sub-type of a block's part.
pub const SUBTYPE: u8 = 0xf0;
/// The same of a block that says something of history.
pub const WITH_HISTORY: u8 = 0xe9;
/// The same of a block whose payloads are copies from a byte cache.
pub const WITH_CACHE: u8 = 0xeb;
/// The header of a part.
pub const HEADER_LEN: usize = 6;
/// The bit of the codec byte that says that the block is padded.
pub const PADDED: u8 = 0x40;
/// The bit of the codec byte of a block of one part that says that its packets need not wait until losses before them are repaired.
/// Only where repair is agreed.
pub const PROMPT: u8 = 0x20;
/// The least padding of a padded block: its own length.
pub const PADDING_MIN: usize = 2;

/// What a block says of earlier ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BlockKind {
    /// Nothing: it stands alone.
    Alone,
    /// Which it is compressed behind.
    History,
    /// Where in a byte cache its payloads are, and which blocks it is compressed behind.
    Cache,
}

/// Which part of which block follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Header {
    /// How the block was made: with what it was compressed, and, by the highest bit, whether the headers of its packets
    /// were coded first; the numbers are those of the compression crate. [`PADDED`] and [`PROMPT`] are other bits of it.
    pub codec: u8,
    /// What the block says of earlier ones.
    pub kind: BlockKind,
    /// Names the block among those in flight.
    pub id: u16,
    /// The number of this part, from 0, below `parts`.
    pub part: u8,
    /// The number of parts of the block, at least 1.
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
        let kind = match subtype {
            SUBTYPE => BlockKind::Alone,
            WITH_HISTORY => BlockKind::History,
            WITH_CACHE => BlockKind::Cache,
            _ => return Err(Malformed::new("block sub-type", bytes)),
        };
        if part >= parts {
            return Err(Malformed::new("block part", bytes));
        }
        Ok((Header { codec, kind, id: u16::from_be_bytes([a, b]), part, parts }, rest))
    }

    /// Writes the header at the start of `buf`.
    ///
    /// # Errors
    /// [`Malformed`] when `buf` is shorter than 6 bytes or `part` is not below `parts`.
    pub fn emit(self, buf: &mut [u8]) -> Result<(), Malformed> {
        let Header { codec, kind, id, part, parts } = self;
        let subtype = match kind {
            BlockKind::Alone => SUBTYPE,
            BlockKind::History => WITH_HISTORY,
            BlockKind::Cache => WITH_CACHE,
        };
        if part >= parts {
            return Err(Malformed::new("block part", buf));
        }
        let [a, b] = id.to_be_bytes();
        field::emit_header("buffer for a block header", buf, [subtype, codec, a, b, part, parts])
    }
}

/// Fills `block` from `len` on with padding: so many bytes at its front are the block itself.
///
/// # Errors
/// [`Malformed`] when there is less room than [`PADDING_MIN`], or more than two bytes can say.
pub fn pad(block: &mut [u8], len: usize) -> Result<(), Malformed> {
    let malformed = Malformed::new("block padding", block);
    let padding = block.get_mut(len..).ok_or(malformed)?;
    let count = u16::try_from(padding.len()).map_err(|_| malformed)?;
    padding.fill(0);
    *padding.last_chunk_mut().ok_or(malformed)? = count.to_be_bytes();
    Ok(())
}

/// The bytes of a padded block without its padding.
///
/// # Errors
/// [`Malformed`] when there is no room for the padding that the block claims, or for its length.
pub fn without_padding(block: &[u8]) -> Result<&[u8], Malformed> {
    let malformed = Malformed::new("block padding", block);
    let count = usize::from(u16::from_be_bytes(*block.last_chunk().ok_or(malformed)?));
    let len = block.len().checked_sub(count).filter(|_| count >= PADDING_MIN).ok_or(malformed)?;
    block.get(..len).ok_or(malformed)
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

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;
    use crate::Protocol;
    use crate::sample;

    #[test]
    fn emit() {
        let mut buf = [0xff; 7];
        Header { codec: 3, kind: BlockKind::Alone, id: 0x0102, part: 0, parts: 4 }.emit(&mut buf).unwrap();
        assert_eq!(buf, [0xf0, 3, 1, 2, 0, 4, 0xff]);
    }

    #[test]
    fn edges() {
        for (part, parts, ok) in [
            (0, 0, false),
            (0, 1, true),
            (1, 1, false),
            (1, 2, true),
            (254, 255, true),
            (255, 255, false),
            (255, 0, false),
        ] {
            let header = Header { codec: 0, kind: BlockKind::Alone, id: 0, part, parts };
            assert_eq!(header.emit(&mut [0; HEADER_LEN]).is_ok(), ok, "emit {part} of {parts}");
            let bytes = [0xf0, 0, 0, 0, part, parts];
            assert_eq!(Header::parse(&bytes).is_ok(), ok, "parse {part} of {parts}");
        }
        assert!(Header::parse(&[0xf1, 0, 0, 0, 0, 1]).is_err());
    }

    #[test]
    fn truncation() {
        let header = Header { codec: 1, kind: BlockKind::Alone, id: 2, part: 0, parts: 1 };
        let mut bytes = [0; HEADER_LEN];
        header.emit(&mut bytes).unwrap();
        for len in 0..HEADER_LEN {
            assert!(Header::parse(&bytes[..len]).is_err(), "{len} bytes");
            assert!(header.emit(&mut [0; HEADER_LEN][..len]).is_err(), "buffer of {len}");
        }
    }

    #[test]
    fn padding_is_zeros_and_its_length() {
        let mut block = [7; 9];
        pad(&mut block, 4).unwrap();
        assert_eq!(block, [7, 7, 7, 7, 0, 0, 0, 0, 5]);
        assert_eq!(without_padding(&block), Ok(&[7; 4][..]));
        pad(&mut block, 7).unwrap();
        assert_eq!((block[6..].to_vec(), without_padding(&block).unwrap().len()), (vec![0, 0, 2], 7));
        for len in [8, 9, 10] {
            assert!(pad(&mut block, len).is_err(), "{len} bytes");
        }
        assert!(pad(&mut vec![0; 65_537], 1).is_err());
        pad(&mut vec![0; 65_536], 1).unwrap();
    }

    #[test]
    fn padding_that_is_not_there_is_malformed() {
        for bytes in [&[][..], &[2], &[0, 0], &[0, 1], &[0, 3], &[9, 0, 4], &[9, 0, 1], &[9, 9, 0xff, 0xff]] {
            assert!(without_padding(bytes).is_err(), "{bytes:?}");
        }
        assert_eq!(without_padding(&[0, 2]), Ok(&[][..]), "the receiver refuses an empty block itself");
    }

    #[test]
    fn packets_are_cut_by_their_lengths() {
        let whole = [
            sample::v4(Protocol::UDP, &[7; 9]),
            sample::v6(Protocol::TCP, &[]),
            sample::v4(Protocol::TCP, &[]),
        ];
        let bytes = whole.concat();
        let cut: Vec<_> = packets(&bytes).map(Result::unwrap).collect();
        assert_eq!(cut, whole);
        assert_eq!(packets(&[]).count(), 0);
    }

    #[test]
    fn packets_end_after_the_first_error() {
        let (first, mut second) = (sample::v4(Protocol::UDP, &[7; 9]), sample::v6(Protocol::TCP, &[8; 5]));
        for keep in 1..second.len() {
            let bytes = [&first[..], &second[..keep]].concat();
            let cut: Vec<_> = packets(&bytes).collect();
            assert_eq!(cut[0], Ok(&first[..]));
            assert!(cut[1].is_err() && cut.len() == 2, "{keep} bytes of the second");
        }
        second[0] = 0x50;
        let bytes = [&second[..], &first].concat();
        let what: Vec<_> = packets(&bytes).map(|packet| packet.map_err(|malformed| malformed.what)).collect();
        assert_eq!(what, [Err("ip version")]);
    }

    proptest! {
        #[test]
        fn round_trip(codec: u8, kind in 0..3_usize, id: u16, parts in 1u8.., part: u8, rest in vec(any::<u8>(), 0..9)) {
            let kind = [BlockKind::Alone, BlockKind::History, BlockKind::Cache][kind];
            let header = Header { codec, kind, id, part: part % parts, parts };
            let mut bytes = [&[0; HEADER_LEN][..], &rest].concat();
            header.emit(&mut bytes).unwrap();
            prop_assert_eq!(Header::parse(&bytes).unwrap(), (header, &rest[..]));
        }

        #[test]
        fn padding_comes_off_whole(bytes in vec(any::<u8>(), 0..50), more in PADDING_MIN..400) {
            let mut block = bytes.clone();
            block.resize(bytes.len() + more, 0xff);
            pad(&mut block, bytes.len()).unwrap();
            prop_assert_eq!(without_padding(&block).unwrap(), &bytes);
        }

        #[test]
        fn packets_cover_a_prefix(bytes in vec(any::<u8>(), 0..200)) {
            let mut covered = 0;
            for packet in packets(&bytes).flatten() {
                prop_assert_eq!(packet, &bytes[covered..covered + packet.len()]);
                covered += packet.len();
            }
        }
    }
}
