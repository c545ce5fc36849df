//! What arrived of one association's datagrams, behind the congestion report of AGGFRAG sub-type 1.
//!
//! RFC 9347 has fields for times and losses, and none for how much was received. It is where its data blocks
//! end, in the pad block, which other implementations skip (RFC 9347 section 6.1.3):
//!
//! ```text
//! 0x00: pad | version | gaps (2) | SPI (4) | datagrams (8) | bytes (8) | highest number (8) | received at, us (8) | marked (2)
//! ```

use crate::{Malformed, Spi, field};

/// Length of the report in bytes.
pub const LEN: usize = 42;
/// Length of a report that does not say how many datagrams were marked. ESP makes both equally long.
const UNMARKED_LEN: usize = 40;
/// The only version there is.
const VERSION: u8 = 1;

/// What arrived of one association so far, as its receiving end counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Delivery {
    /// The SPI of the association that is reported on.
    pub spi: Spi,
    /// Authentic datagrams received, none of them twice.
    pub datagrams: u64,
    /// Bytes of their ESP packets. What stands around these may be another header at the sender's end (NAT64), so each
    /// end adds its own.
    pub bytes: u64,
    /// How often the number of a datagram left out one or more, modulo 2^16: what was lost, in so many bursts. Always 0 from
    /// nodes that do not count them.
    pub gaps: u16,
    /// The highest sequence number received.
    pub highest: u64,
    /// When that number arrived, in microseconds of the receiver's clock, whose origin is arbitrary.
    pub received_at: u64,
    /// Datagrams of those whose outer header had an ECN mark, ECT or CE, modulo 2^16; none from nodes that do not count them.
    pub marked: Option<u16>,
}

impl Delivery {
    /// Reads the report in a pad block; bytes behind it are ignored.
    ///
    /// # Errors
    /// [`Malformed`] when it is short, no pad block, or of another version.
    pub fn parse(bytes: &[u8]) -> Result<Delivery, Malformed> {
        let (fields, rest) = field::split_header::<UNMARKED_LEN>("delivery", bytes)?;
        if !matches!(fields, [0, VERSION, ..]) {
            return Err(Malformed::new("delivery's version", bytes));
        }
        let word = |at| field::array_at(fields, at).map_or(0, u64::from_be_bytes);
        Ok(Delivery {
            spi: Spi(field::array_at(fields, 4).map_or(0, u32::from_be_bytes)),
            gaps: field::u16_at(fields, 2).unwrap_or(0),
            datagrams: word(8),
            bytes: word(16),
            highest: word(24),
            received_at: word(32),
            marked: field::u16_at(rest, 0),
        })
    }

    /// Writes it at the start of `buf`, as a pad block.
    ///
    /// # Errors
    /// [`Malformed`] when `buf` is shorter than 42 bytes.
    pub fn emit(&self, buf: &mut [u8]) -> Result<(), Malformed> {
        let mut fields = [0; LEN];
        let [a, b, c, d] = self.spi.0.to_be_bytes();
        let [high, low] = self.gaps.to_be_bytes();
        let _ = field::put(&mut fields, 0, [0, VERSION, high, low, a, b, c, d]);
        let words = [self.datagrams, self.bytes, self.highest, self.received_at];
        for (word, at) in words.into_iter().zip((8..).step_by(8)) {
            let _ = field::put(&mut fields, at, word.to_be_bytes());
        }
        let _ = field::put(&mut fields, UNMARKED_LEN, self.marked.unwrap_or(0).to_be_bytes());
        field::emit_header("buffer for a delivery", buf, fields)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::aggfrag::{DataBlock, Header, Payload};

    const ONE: Delivery = Delivery {
        spi: Spi(0x0400_0001),
        gaps: 0,
        datagrams: 2,
        bytes: 0x0300,
        highest: 4,
        received_at: 0x0506,
        marked: Some(0x0708),
    };

    fn emitted(delivery: &Delivery) -> [u8; LEN] {
        let mut bytes = [0xff; LEN];
        delivery.emit(&mut bytes).unwrap();
        bytes
    }

    #[test]
    fn by_hand() {
        let mut bytes = [0; LEN + 1];
        bytes[..8].copy_from_slice(&[0, 1, 0, 0, 4, 0, 0, 1]);
        (bytes[15], bytes[22], bytes[31], bytes[38], bytes[39]) = (2, 3, 4, 5, 6);
        assert_eq!(Delivery::parse(&bytes[..UNMARKED_LEN]), Ok(Delivery { marked: None, ..ONE }));
        (bytes[40], bytes[41]) = (7, 8);
        assert_eq!(Delivery::parse(&bytes), Ok(ONE));
        assert_eq!(emitted(&ONE), bytes[..LEN]);
        (bytes[2], bytes[3]) = (5, 7);
        assert_eq!(Delivery::parse(&bytes), Ok(Delivery { gaps: 0x0507, ..ONE }));
        for (at, value) in [(0, 0x40), (1, 0), (1, 2)] {
            let mut other = bytes;
            other[at] = value;
            assert_eq!(Delivery::parse(&other).unwrap_err().what, "delivery's version");
        }
    }

    #[test]
    fn subtype_is_padding_to_other_implementations() {
        let region = emitted(&ONE);
        let payload = Payload { header: Header::Plain { offset: 0 }, region: &region };
        assert!(payload.blocks().all(|block| matches!(block, DataBlock::Pad)));
    }

    #[test]
    fn truncation() {
        for len in 0..LEN {
            assert_eq!(Delivery::parse(&emitted(&ONE)[..len]).is_err(), len < UNMARKED_LEN, "{len} bytes");
            assert!(ONE.emit(&mut [0; LEN][..len]).is_err(), "buffer of {len}");
        }
    }

    proptest! {
        #[test]
        fn round_trip(spi: u32, gaps: u16, datagrams: u64, bytes: u64, highest: u64, received_at: u64, marked: u16) {
            let marked = Some(marked);
            let delivery = Delivery { spi: Spi(spi), gaps, datagrams, bytes, highest, received_at, marked };
            prop_assert_eq!(Delivery::parse(&emitted(&delivery)), Ok(delivery));
        }
    }
}
