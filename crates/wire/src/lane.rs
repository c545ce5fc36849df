//! A lane: short pieces of one stream that travel inside ESP, beside the QUIC connection that carries the stream, under ESP next
//! header 144.
//!
//! ```text
//! sub-type 0xF8 + lane (3 bits) | opened 0x80, read 0x40, number (3 bits), awaited (3 bits) | read (4), if its bit is set | piece
//! ```
//!
//! Of a piece of 16 bytes, zeros at its end are left out four by four.

use core::fmt;

use crate::{Malformed, field};

/// The private AGGFRAG sub-type of lane 0; the others follow.
pub const SUBTYPE: u8 = 0xf8;
/// Lanes that one end may have with another at once.
pub const LANES: u8 = 8;
/// Numbers of pieces, which begin again behind the last.
pub const NUMBERS: u8 = 8;
/// Length in bytes of the header without what is read, and of that.
const HEADER_LEN: usize = 2;
const READ_LEN: usize = 4;
/// Length of the longest packet in bytes.
pub const PACKET_MAX: usize = HEADER_LEN + READ_LEN + PIECE_MAX;
/// Bytes of a piece at least: those of a keystroke's message.
pub const PIECE_MIN: usize = 16;
/// Bytes of a piece at most: an echo of 48 bytes with what is around it.
pub const PIECE_MAX: usize = 64;

/// Steps in which zeros are left out.
const STEP: usize = 4;
/// The bit that says that the sender opened the stream.
const OPENED: u8 = 0x80;
/// The bit that says that what is read follows.
const READ: u8 = 0x40;

/// The header in front of a piece.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct LaneHeader {
    /// The lane, of those that the opener of the stream has, below [`LANES`].
    pub lane: u8,
    /// True if the sender opened the stream.
    pub opened: bool,
    /// The piece's number, below [`NUMBERS`]; without a piece, that of the next.
    pub number: u8,
    /// The number of the next piece that the sender takes: it has all before it.
    pub awaited: u8,
    /// Bytes that the sender has read of the stream as QUIC carries it, counted from the stream's own number, the lowest 32 bits.
    pub read: Option<u32>,
}

impl LaneHeader {
    /// Reads it, and the piece if there is one.
    ///
    /// # Errors
    /// [`Malformed`] when it is short, has another sub-type, or a piece of a length that none has.
    pub fn parse(bytes: &[u8]) -> Result<(LaneHeader, LanePiece), Malformed> {
        let (&[subtype, numbers], rest) = field::split_header::<HEADER_LEN>("lane", bytes)?;
        let lane = subtype.checked_sub(SUBTYPE).ok_or(Malformed::new("lane sub-type", bytes))?;
        let (read, piece) = if numbers & READ == 0 {
            (None, rest)
        } else {
            let (read, piece) = field::split_header::<READ_LEN>("what is read of a lane's stream", rest)?;
            (Some(u32::from_be_bytes(*read)), piece)
        };
        let piece = LanePiece::restored(piece).ok_or(Malformed::new("length of a piece", bytes))?;
        let (number, awaited) = ((numbers >> 3) % NUMBERS, numbers % NUMBERS);
        Ok((LaneHeader { lane, opened: numbers & OPENED != 0, number, awaited, read }, piece))
    }

    /// Writes it with a piece at the start of `buf`; returns how many bytes both have.
    pub fn emit(self, piece: &LanePiece, buf: &mut [u8; PACKET_MAX]) -> usize {
        let opened = if self.opened { OPENED } else { 0 };
        let reads = if self.read.is_some() { READ } else { 0 };
        let numbers = opened | reads | ((self.number % NUMBERS) << 3) | (self.awaited % NUMBERS);
        let front = [SUBTYPE + self.lane % LANES, numbers];
        let read = self.read.map(u32::to_be_bytes);
        let all = front.iter().chain(read.iter().flatten()).chain(piece.carried());
        let mut len = 0;
        for (room, byte) in buf.iter_mut().zip(all) {
            *room = *byte;
            len += 1;
        }
        len
    }
}

/// Bytes of a stream that travel together, 16 to 64; or none, where only the header travels.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct LanePiece {
    bytes: [u8; PIECE_MAX],
    len: usize,
}

impl LanePiece {
    /// No bytes.
    pub const NONE: LanePiece = LanePiece { bytes: [0; PIECE_MAX], len: 0 };

    /// A piece of these bytes; nothing where they are too few or too many for one.
    #[must_use]
    pub fn new(bytes: &[u8]) -> Option<LanePiece> {
        let mut piece = LanePiece { len: bytes.len(), ..LanePiece::NONE };
        piece.bytes.get_mut(..bytes.len())?.copy_from_slice(bytes);
        (piece.len >= PIECE_MIN).then_some(piece)
    }

    /// Its bytes.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        self.bytes.get(..self.len).unwrap_or_default()
    }

    /// The bytes that travel of it: all, but for zeros at the end of 16 bytes.
    #[must_use]
    pub fn carried(&self) -> &[u8] {
        let used = self.bytes().iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
        let len = if self.len == PIECE_MIN { used.max(1).next_multiple_of(STEP) } else { self.len };
        self.bytes.get(..len).unwrap_or_default()
    }

    /// The piece of which this travelled.
    fn restored(carried: &[u8]) -> Option<LanePiece> {
        if carried.len() >= PIECE_MIN {
            return LanePiece::new(carried);
        }
        let mut bytes = [0; PIECE_MIN];
        bytes.get_mut(..carried.len())?.copy_from_slice(carried);
        match carried.len() {
            0 => Some(LanePiece::NONE),
            len if len.is_multiple_of(STEP) => LanePiece::new(&bytes),
            _ => None,
        }
    }
}

impl fmt::Debug for LanePiece {
    /// Only its length: the bytes are what a person types.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LanePiece({} bytes)", self.len)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn by_hand() {
        let header = LaneHeader { lane: 3, opened: true, number: 5, awaited: 2, read: None };
        let sixteen = [1, 2, 3, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        let reads = LaneHeader { read: Some(0x0102_0304), ..header };
        for (bytes, header, piece) in [
            (&[0xfb, 0xaa][..], header, &[][..]),
            (&[0xfb, 0xaa, 1, 2, 3, 4], header, &sixteen),
            (&[0xfb, 0xea, 1, 2, 3, 4], reads, &[]),
            (&[0xfb, 0xea, 1, 2, 3, 4, 1, 2, 3, 4], reads, &sixteen),
            (&[[0xfb, 0xaa].as_slice(), &[7; 64]].concat(), header, &[7; 64]),
        ] {
            let (parsed, read) = LaneHeader::parse(bytes).unwrap();
            assert_eq!((parsed, read.bytes()), (header, piece));
        }
        let wrong: [(&[u8], &str); 5] = [
            (&[0xf7, 0], "lane sub-type"),
            (&[0xf8, 0, 1], "length of a piece"),
            (&[0xf8, 0, 1, 2, 3, 4, 5], "length of a piece"),
            (&[0xf8, 0x40, 1, 2, 3], "what is read of a lane's stream"),
            (&[0xf8; 71], "length of a piece"),
        ];
        for (bytes, what) in wrong {
            assert_eq!(LaneHeader::parse(bytes).unwrap_err().what, what, "{bytes:?}");
        }
    }

    #[test]
    fn zeros_at_the_end_of_sixteen_bytes_go_four_by_four() {
        for (used, len) in [(0, 4), (1, 4), (4, 4), (5, 8), (8, 8), (9, 12), (13, 16), (16, 16)] {
            let piece: Vec<u8> = (0..16).map(|at| u8::from(at < used)).collect();
            let piece = LanePiece::new(&piece).unwrap();
            assert_eq!(piece.carried().len(), len, "{used}");
            assert_eq!(LanePiece::restored(piece.carried()), Some(piece));
        }
        assert_eq!(LanePiece::new(&[0; 17]).unwrap().carried().len(), 17);
        assert_eq!([15, 65].map(|len| LanePiece::new(&[1; 65][..len])), [None; 2]);
    }

    #[test]
    fn truncation() {
        let bytes = [0xf8, 0x40, 0, 0, 0, 0];
        for len in 0..bytes.len() {
            assert!(LaneHeader::parse(&bytes[..len]).is_err(), "{len} bytes");
        }
    }

    proptest! {
        #[test]
        fn round_trip(
            (lane, opened, number, awaited) in (0..LANES, any::<bool>(), 0..NUMBERS, 0..NUMBERS),
            read: Option<u32>,
            piece in proptest::collection::vec(0..3_u8, PIECE_MIN..=PIECE_MAX),
        ) {
            let header = LaneHeader { lane, opened, number, awaited, read };
            let mut bytes = [0xff; PACKET_MAX];
            for piece in [LanePiece::new(&piece).unwrap(), LanePiece::NONE] {
                let len = header.emit(&piece, &mut bytes);
                prop_assert_eq!(LaneHeader::parse(&bytes[..len]), Ok((header, piece)));
            }
        }
    }
}
