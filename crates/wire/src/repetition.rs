//! A payload that is sent again under a new number, under ESP next header 144; or the notice that payloads will not be.
//!
//! ```text
//! sub-type 0xF4 | next header | distance (2) | the payload
//! ```
//!
//! The payload's own number is that of the datagram it comes in, less the distance. Next header 59 (no next header) makes it a notice:
//! of as many numbers from that one on as its payload says (2 bytes), none will be sent again.

use crate::{Malformed, Protocol, field};

/// The private AGGFRAG sub-type.
pub const SUBTYPE: u8 = 0xf4;
/// Length of what stands before the payload, in bytes.
pub const HEADER_LEN: usize = 4;
/// Length of a notice in bytes.
pub const NOTICE_LEN: usize = HEADER_LEN + 2;

/// What stands before a payload that is sent again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Repetition {
    /// What the payload is.
    pub next: Protocol,
    /// How many numbers the payload's own number lies before that of the datagram it comes in.
    pub distance: u16,
}

/// What a repetition carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Repeated<'a> {
    /// The payload that has this number.
    Payload(&'a [u8]),
    /// So many numbers from this one on are not sent again; with 0, only that the sender keeps what it sends from now on.
    Nothing(u16),
}

impl Repetition {
    /// Reads the header, and what is behind it; bytes behind a notice are ignored.
    ///
    /// # Errors
    /// [`Malformed`] when it is short or has another sub-type.
    pub fn parse(bytes: &[u8]) -> Result<(Repetition, Repeated<'_>), Malformed> {
        let (&[subtype, next, a, b], rest) = field::split_header::<HEADER_LEN>("repetition", bytes)?;
        if subtype != SUBTYPE {
            return Err(Malformed::new("repetition sub-type", bytes));
        }
        let repetition = Repetition { next: Protocol(next), distance: u16::from_be_bytes([a, b]) };
        if repetition.next != Protocol::NO_NEXT {
            return Ok((repetition, Repeated::Payload(rest)));
        }
        let (count, _) = field::split_header("notice of a repetition", rest)?;
        Ok((repetition, Repeated::Nothing(u16::from_be_bytes(*count))))
    }

    /// Writes the header at the start of `buf`.
    ///
    /// # Errors
    /// [`Malformed`] when `buf` is shorter than 4 bytes.
    pub fn emit(self, buf: &mut [u8]) -> Result<(), Malformed> {
        let [a, b] = self.distance.to_be_bytes();
        field::emit_header("buffer for a repetition", buf, [SUBTYPE, self.next.0, a, b])
    }
}

/// Writes the notice that `count` numbers from `distance` before its own on will not be sent again.
///
/// # Errors
/// [`Malformed`] when `buf` is shorter than 6 bytes.
pub fn emit_notice(buf: &mut [u8], distance: u16, count: u16) -> Result<(), Malformed> {
    let ([a, b], [c, d]) = (distance.to_be_bytes(), count.to_be_bytes());
    field::emit_header("buffer for a notice", buf, [SUBTYPE, Protocol::NO_NEXT.0, a, b, c, d])
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn by_hand() {
        let repetition = Repetition { next: Protocol::IPIP, distance: 258 };
        assert_eq!(Repetition::parse(&[0xf4, 4, 1, 2, 9]), Ok((repetition, Repeated::Payload(&[9]))));
        let notice = Repetition { next: Protocol::NO_NEXT, distance: 3 };
        assert_eq!(Repetition::parse(&[0xf4, 59, 0, 3, 1, 0, 9]), Ok((notice, Repeated::Nothing(256))));
        assert_eq!(Repetition::parse(&[0xf3, 4, 0, 0]).unwrap_err().what, "repetition sub-type");
    }

    #[test]
    fn truncation() {
        let mut notice = [0; NOTICE_LEN];
        emit_notice(&mut notice, 1, 2).unwrap();
        for len in 0..NOTICE_LEN {
            assert!(Repetition::parse(&notice[..len]).is_err(), "{len} bytes");
            assert!(emit_notice(&mut [0; NOTICE_LEN][..len], 1, 2).is_err(), "buffer of {len}");
        }
        let repetition = Repetition { next: Protocol::IPV6, distance: 1 };
        for len in 0..HEADER_LEN {
            assert!(Repetition::parse(&[SUBTYPE, 41, 0, 1][..len]).is_err(), "{len} bytes");
            assert!(repetition.emit(&mut [0; HEADER_LEN][..len]).is_err(), "buffer of {len}");
        }
    }

    proptest! {
        #[test]
        fn round_trip(next: u8, distance: u16, count: u16, payload: Vec<u8>) {
            let mut notice = [0xff; NOTICE_LEN];
            emit_notice(&mut notice, distance, count).unwrap();
            let header = Repetition { next: Protocol::NO_NEXT, distance };
            prop_assert_eq!(Repetition::parse(&notice), Ok((header, Repeated::Nothing(count))));
            prop_assume!(Protocol(next) != Protocol::NO_NEXT);
            let header = Repetition { next: Protocol(next), distance };
            let mut bytes = vec![0xff; HEADER_LEN];
            header.emit(&mut bytes).unwrap();
            bytes.extend(&payload);
            prop_assert_eq!(Repetition::parse(&bytes), Ok((header, Repeated::Payload(&payload))));
        }
    }
}
