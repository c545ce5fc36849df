//! TCP segments (RFC 9293 section 3.1).
//!
//! ```text
//! +--------------+--------------+   0
//! | source port  |  dest port   |
//! +--------------+--------------+   4
//! |       sequence number       |
//! +--------------+--------------+   8
//! |    acknowledgement number   |
//! +----+----+----+--------------+  12
//! |off |  0 |flag|    window    |
//! +----+----+----+--------------+  16
//! |   checksum   |  urgent ptr  |
//! +--------------+--------------+  20  options up to the data offset, then data
//! ```

mod acknowledgement;
mod mss;

use std::ops::{BitOr, Range};

use crate::{Malformed, field};
pub use acknowledgement::Acknowledgement;
pub use mss::{ChecksumField, is_syn, lower_mss};

/// The header without options.
pub const MIN_HEADER_LEN: usize = 20;
/// Where the sequence number lies, for rewriting in place.
pub const SEQ: Range<usize> = 4..8;
/// Where the flags octet lies, for rewriting in place.
pub const FLAGS: usize = 13;
/// Where the checksum lies, for rewriting in place.
pub const CHECKSUM: Range<usize> = 16..18;

/// The eight control bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TcpFlags(pub u8);

impl TcpFlags {
    /// No more data from the sender.
    pub const FIN: TcpFlags = TcpFlags(0x01);
    /// Synchronise sequence numbers.
    pub const SYN: TcpFlags = TcpFlags(0x02);
    /// Reset the connection.
    pub const RST: TcpFlags = TcpFlags(0x04);
    /// Push.
    pub const PSH: TcpFlags = TcpFlags(0x08);
    /// The acknowledgement field counts.
    pub const ACK: TcpFlags = TcpFlags(0x10);
    /// The urgent pointer counts.
    pub const URG: TcpFlags = TcpFlags(0x20);
    /// Congestion echo (RFC 3168 section 6.1).
    pub const ECE: TcpFlags = TcpFlags(0x40);
    /// Congestion window reduced (RFC 3168 section 6.1).
    pub const CWR: TcpFlags = TcpFlags(0x80);

    /// Whether every bit of `other` is set.
    #[must_use]
    pub const fn contains(self, other: TcpFlags) -> bool {
        self.0 & other.0 == other.0
    }

    /// The octet.
    #[must_use]
    pub const fn bits(self) -> u8 {
        self.0
    }
}

impl BitOr for TcpFlags {
    type Output = TcpFlags;

    fn bitor(self, other: TcpFlags) -> TcpFlags {
        TcpFlags(self.0 | other.0)
    }
}

/// A segment whose data offset lies within its bytes.
#[derive(Debug, Clone, Copy)]
pub struct Segment<'a> {
    bytes: &'a [u8],
    fixed: &'a [u8; MIN_HEADER_LEN],
    options: &'a [u8],
    payload: &'a [u8],
}

impl<'a> Segment<'a> {
    /// Checks the data offset: at least 5 words, at most all the bytes.
    ///
    /// # Errors
    /// [`Malformed`] when it does not.
    pub fn parse(bytes: &'a [u8]) -> Result<Segment<'a>, Malformed> {
        let (fixed, rest) = field::split_header::<MIN_HEADER_LEN>("tcp header", bytes)?;
        let (options, payload) = usize::from(fixed[12] >> 4)
            .checked_mul(4)
            .and_then(|header_len| header_len.checked_sub(MIN_HEADER_LEN))
            .and_then(|options_len| rest.split_at_checked(options_len))
            .ok_or(Malformed::new("tcp data offset", bytes))?;
        Ok(Segment { bytes, fixed, options, payload })
    }

    /// The whole segment.
    #[must_use]
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Source port.
    #[must_use]
    pub fn src_port(&self) -> u16 {
        u16::from_be_bytes([self.fixed[0], self.fixed[1]])
    }

    /// Destination port.
    #[must_use]
    pub fn dst_port(&self) -> u16 {
        u16::from_be_bytes([self.fixed[2], self.fixed[3]])
    }

    /// Sequence number of the first byte of payload.
    #[must_use]
    pub fn seq(&self) -> u32 {
        u32::from_be_bytes([self.fixed[4], self.fixed[5], self.fixed[6], self.fixed[7]])
    }

    /// Acknowledgement number.
    #[must_use]
    pub fn ack(&self) -> u32 {
        u32::from_be_bytes([self.fixed[8], self.fixed[9], self.fixed[10], self.fixed[11]])
    }

    /// Length of the header with its options, in bytes: 20 to 60.
    #[must_use]
    pub fn header_len(&self) -> usize {
        MIN_HEADER_LEN + self.options.len()
    }

    /// The control bits.
    #[must_use]
    pub fn flags(&self) -> TcpFlags {
        TcpFlags(self.fixed[FLAGS])
    }

    /// The window field, unscaled.
    #[must_use]
    pub fn window(&self) -> u16 {
        u16::from_be_bytes([self.fixed[14], self.fixed[15]])
    }

    /// The checksum field as it stands; not verified.
    #[must_use]
    pub fn checksum(&self) -> u16 {
        u16::from_be_bytes([self.fixed[16], self.fixed[17]])
    }

    /// The options with their padding, 0 to 40 bytes.
    #[must_use]
    pub fn options(&self) -> &'a [u8] {
        self.options
    }

    /// What follows the header.
    #[must_use]
    pub fn payload(&self) -> &'a [u8] {
        self.payload
    }

    /// Returns the sequence number after all of it that the other end acknowledges (RFC 9293 section 3.4): data, a SYN and a FIN.
    #[must_use]
    pub fn end(&self) -> u32 {
        let flag = |flag| usize::from(self.flags().contains(flag));
        let len = self.payload.len() + flag(TcpFlags::SYN) + flag(TcpFlags::FIN);
        self.seq().wrapping_add(u32::try_from(len).unwrap_or(u32::MAX))
    }

    /// Returns true if the other end acknowledges it.
    #[must_use]
    pub fn wants_answer(&self) -> bool {
        self.end() != self.seq() && !self.flags().contains(TcpFlags::RST)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn segment(offset_words: u8, len: usize) -> Vec<u8> {
        let mut bytes: Vec<u8> = (0..=u8::MAX).cycle().take(len).collect();
        bytes[12] = offset_words << 4;
        bytes
    }

    #[test]
    fn data_syn_and_fin_want_an_answer() {
        for (flags, bare, wants) in [
            (0x10, 0, [false, true]),
            (0x02, 1, [true, true]),
            (0x12, 1, [true, true]),
            (0x11, 1, [true, true]),
            (0x14, 0, [false, false]),
        ] {
            for (len, wants) in [0, 1].into_iter().zip(wants) {
                let mut bytes = segment(5, MIN_HEADER_LEN + len as usize);
                bytes[FLAGS] = flags;
                bytes[SEQ].fill(0xff);
                let segment = Segment::parse(&bytes).unwrap();
                assert_eq!(segment.wants_answer(), wants, "{flags:#x}");
                assert_eq!(segment.end(), u32::MAX.wrapping_add(bare + len), "{flags:#x}");
            }
        }
    }

    #[test]
    fn parse() {
        let bytes = segment(6, 30);
        let segment = Segment::parse(&bytes).unwrap();
        assert_eq!((segment.src_port(), segment.dst_port()), (0x0001, 0x0203));
        assert_eq!((segment.seq(), segment.ack()), (0x0405_0607, 0x0809_0a0b));
        assert_eq!((segment.header_len(), segment.flags()), (24, TcpFlags(0x0d)));
        assert_eq!((segment.window(), segment.checksum()), (0x0e0f, 0x1011));
        assert_eq!(segment.options(), &bytes[20..24]);
        assert_eq!(segment.payload(), &bytes[24..]);
        assert_eq!(segment.bytes(), bytes);
    }

    #[test]
    fn constants_point_at_the_fields() {
        let bytes = segment(5, 20);
        let segment = Segment::parse(&bytes).unwrap();
        assert_eq!(bytes[SEQ], segment.seq().to_be_bytes());
        assert_eq!(bytes[FLAGS], segment.flags().bits());
        assert_eq!(bytes[CHECKSUM], segment.checksum().to_be_bytes());
    }

    #[test]
    fn flags() {
        let flags = TcpFlags::SYN | TcpFlags::ACK;
        assert!(flags.contains(TcpFlags::SYN) && flags.contains(flags));
        assert!(!flags.contains(TcpFlags::SYN | TcpFlags::FIN));
        let from_lowest = [
            TcpFlags::FIN,
            TcpFlags::SYN,
            TcpFlags::RST,
            TcpFlags::PSH,
            TcpFlags::ACK,
            TcpFlags::URG,
            TcpFlags::ECE,
            TcpFlags::CWR,
        ];
        for (bit, flag) in from_lowest.into_iter().enumerate() {
            assert_eq!(flag.bits(), 1 << bit);
        }
    }

    #[test]
    fn edges() {
        for (offset_words, len, header_len) in [
            (0, 60, None),
            (1, 60, None),
            (4, 60, None),
            (5, 20, Some(20)),
            (6, 23, None),
            (6, 24, Some(24)),
            (15, 59, None),
            (15, 60, Some(60)),
            (15, 61, Some(60)),
        ] {
            let bytes = segment(offset_words, len);
            let parsed = Segment::parse(&bytes).ok().map(|segment| segment.header_len());
            assert_eq!(parsed, header_len, "{offset_words} words in {len} bytes");
        }
    }

    #[test]
    fn truncation() {
        let bytes = segment(7, 28);
        for len in 0..bytes.len() {
            assert!(Segment::parse(&bytes[..len]).is_err(), "{len} bytes");
        }
    }

    proptest! {
        #[test]
        fn header_and_payload_make_the_whole(bytes in proptest::collection::vec(any::<u8>(), 0..90)) {
            if let Ok(segment) = Segment::parse(&bytes) {
                let joined = [&bytes[..20], segment.options(), segment.payload()].concat();
                prop_assert_eq!(&joined, &bytes);
                prop_assert_eq!(segment.header_len() + segment.payload().len(), bytes.len());
            }
        }
    }
}
