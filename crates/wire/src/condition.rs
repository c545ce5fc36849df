//! What changed at one end since the handshake, under ESP next header 144: how busy it is, and how fast its link is.
//!
//! ```text
//! sub-type 0xF2 | rate out | load (2) | rate in (8)
//! ```

use crate::{Malformed, field};

/// The private AGGFRAG sub-type.
pub const SUBTYPE: u8 = 0xf2;
/// What it says of the rate out: that it is estimated, that it is given or not paced. Any other value says nothing.
const ESTIMATED: u8 = 1;
const GIVEN: u8 = 2;
/// Length of the message in bytes.
pub const LEN: usize = 12;

/// The load and the link rate of one end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Condition {
    /// How many times longer than it said in the handshake its work takes, in 256ths.
    pub load: u16,
    /// The rate of its link in, in bit/s of wire bytes; 0 when it need not be paced, [`Condition::AUTO`] when it is to be
    /// estimated.
    pub down: u64,
    /// Whether it estimates the rate at which it sends; nothing where it does not say.
    pub estimates: Option<bool>,
}

impl Condition {
    /// A rate that is to be estimated; one that no link has, so a peer that does not know it goes on as before.
    pub const AUTO: u64 = u64::MAX;
    /// The load of an end that expands as fast as its handshake said.
    pub const USUAL: u16 = 256;

    /// Reads it; bytes behind it are ignored.
    ///
    /// # Errors
    /// [`Malformed`] when it is short or has another sub-type.
    pub fn parse(bytes: &[u8]) -> Result<Condition, Malformed> {
        let (&[subtype, out, high, low, ref down @ ..], _) = field::split_header::<LEN>("condition", bytes)?;
        if subtype != SUBTYPE {
            return Err(Malformed::new("condition sub-type", bytes));
        }
        let estimates = match out {
            ESTIMATED => Some(true),
            GIVEN => Some(false),
            _ => None,
        };
        Ok(Condition { load: u16::from_be_bytes([high, low]), down: u64::from_be_bytes(*down), estimates })
    }

    /// Writes it at the start of `buf`.
    ///
    /// # Errors
    /// [`Malformed`] when `buf` is shorter than 12 bytes.
    pub fn emit(self, buf: &mut [u8]) -> Result<(), Malformed> {
        let [high, low] = self.load.to_be_bytes();
        let [a, b, c, d, e, f, g, h] = self.down.to_be_bytes();
        let out = match self.estimates {
            Some(true) => ESTIMATED,
            Some(false) => GIVEN,
            None => 0,
        };
        field::emit_header("buffer for a condition", buf, [SUBTYPE, out, high, low, a, b, c, d, e, f, g, h])
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn by_hand() {
        let bytes = [0xf2, 0xff, 2, 0x80, 0, 0, 0, 0, 0, 0x16, 0xe3, 0x60, 9];
        assert_eq!(Condition::parse(&bytes), Ok(Condition { load: 640, down: 1_500_000, estimates: None }));
        for (out, estimates) in [(0, None), (1, Some(true)), (2, Some(false)), (3, None)] {
            let bytes = [0xf2, out, 2, 0x80, 0, 0, 0, 0, 0, 0x16, 0xe3, 0x60];
            assert_eq!(Condition::parse(&bytes).unwrap().estimates, estimates, "{out}");
        }
        assert_eq!(Condition::parse(&[0xf1; LEN]).unwrap_err().what, "condition sub-type");
    }

    #[test]
    fn truncation() {
        let mut bytes = [0; LEN];
        Condition { load: 1, down: 2, estimates: None }.emit(&mut bytes).unwrap();
        for len in 0..LEN {
            assert!(Condition::parse(&bytes[..len]).is_err(), "{len} bytes");
            assert!(
                Condition { load: 1, down: 2, estimates: None }.emit(&mut [0; LEN][..len]).is_err(),
                "buffer of {len}"
            );
        }
    }

    proptest! {
        #[test]
        fn round_trip(load: u16, down: u64, estimates: Option<bool>) {
            let condition = Condition { load, down, estimates };
            let mut buf = [0xff; LEN];
            condition.emit(&mut buf).unwrap();
            prop_assert_eq!(Condition::parse(&buf), Ok(condition));
        }
    }
}
