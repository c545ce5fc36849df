//! What the receiver of sessionless packets tells their sender, under ESP next header 144, in a packet of its own keys.
//!
//! ```text
//! sub-type 0xF6 | kind | reserved (2) | SPI (4) | value (8)
//! ```

use crate::{Esn, Malformed, Spi, field};

/// The private AGGFRAG sub-type.
pub const ACKNOWLEDGEMENT_SUBTYPE: u8 = 0xf6;
/// Length of the message in bytes.
pub const ACKNOWLEDGEMENT_LEN: usize = 16;

/// What is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AcknowledgementKind {
    /// The key with this SPI is bound to it: its packets need no header. The value is the highest number that came.
    Bound {
        /// The SPI.
        spi: Spi,
        /// The highest number under that key.
        highest: Esn,
    },
    /// A packet with this SPI was refused, since it had a number at or below the receiver's mark.
    BelowMark {
        /// The SPI of the packet.
        spi: Spi,
        /// The mark: the receiver takes numbers above it.
        mark: Esn,
    },
    /// The secret of the key packet of this epoch is known.
    KeyPacketTaken {
        /// The epoch.
        epoch: u32,
    },
    /// A header needs the key packet of this epoch, which did not come.
    KeyPacketWanted {
        /// The epoch.
        epoch: u32,
    },
    /// A header of this epoch has keys of a day of which the receiver does not know one.
    DailyKeyUnknown {
        /// The epoch.
        epoch: u32,
    },
}

/// An acknowledgement or a refusal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Acknowledgement(pub AcknowledgementKind);

impl Acknowledgement {
    /// Reads it; bytes behind it and the reserved field are ignored.
    ///
    /// # Errors
    /// [`Malformed`] when it is short, has another sub-type, or a kind or an epoch that there is not.
    pub fn parse(bytes: &[u8]) -> Result<Acknowledgement, Malformed> {
        let (&[subtype, kind, _, _, a, b, c, d, value @ ..], _) =
            field::split_header::<ACKNOWLEDGEMENT_LEN>("acknowledgement", bytes)?;
        if subtype != ACKNOWLEDGEMENT_SUBTYPE {
            return Err(Malformed::new("sub-type of an acknowledgement", bytes));
        }
        let spi = Spi(u32::from_be_bytes([a, b, c, d]));
        let value = u64::from_be_bytes(value);
        let epoch = || u32::try_from(value).map_err(|_| Malformed::new("epoch of an acknowledgement", bytes));
        Ok(Acknowledgement(match kind {
            1 => AcknowledgementKind::Bound { spi, highest: Esn(value) },
            2 => AcknowledgementKind::BelowMark { spi, mark: Esn(value) },
            3 => AcknowledgementKind::KeyPacketTaken { epoch: epoch()? },
            4 => AcknowledgementKind::KeyPacketWanted { epoch: epoch()? },
            5 => AcknowledgementKind::DailyKeyUnknown { epoch: epoch()? },
            _ => return Err(Malformed::new("kind of an acknowledgement", bytes)),
        }))
    }

    /// Its bytes.
    #[must_use]
    pub const fn to_bytes(self) -> [u8; ACKNOWLEDGEMENT_LEN] {
        let (kind, spi, value) = match self.0 {
            AcknowledgementKind::Bound { spi, highest } => (1, spi.0, highest.0),
            AcknowledgementKind::BelowMark { spi, mark } => (2, spi.0, mark.0),
            AcknowledgementKind::KeyPacketTaken { epoch } => (3, 0, epoch as u64),
            AcknowledgementKind::KeyPacketWanted { epoch } => (4, 0, epoch as u64),
            AcknowledgementKind::DailyKeyUnknown { epoch } => (5, 0, epoch as u64),
        };
        let [a, b, c, d] = spi.to_be_bytes();
        let [e, f, g, h, i, j, k, l] = value.to_be_bytes();
        [ACKNOWLEDGEMENT_SUBTYPE, kind, 0, 0, a, b, c, d, e, f, g, h, i, j, k, l]
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn by_hand() {
        let bytes = [0xf6, 2, 0, 0, 4, 0, 0, 9, 0, 0, 0, 0, 0, 0, 1, 2, 77];
        let refused = AcknowledgementKind::BelowMark { spi: Spi(0x0400_0009), mark: Esn(258) };
        assert_eq!(Acknowledgement::parse(&bytes), Ok(Acknowledgement(refused)));
        assert_eq!(Acknowledgement(refused).to_bytes(), bytes[..16]);
    }

    #[test]
    fn what_it_is_not_is_refused() {
        let good = Acknowledgement(AcknowledgementKind::KeyPacketTaken { epoch: 7 }).to_bytes();
        for len in 0..good.len() {
            assert!(Acknowledgement::parse(&good[..len]).is_err(), "{len} bytes");
        }
        for (at, byte) in [(0, 0xf5), (1, 0), (1, 6), (11, 1)] {
            let mut bad = good;
            bad[at] = byte;
            assert!(Acknowledgement::parse(&bad).is_err(), "byte {at}");
        }
    }

    proptest! {
        #[test]
        fn round_trip(kind in 1..=5_u8, spi: u32, value: u64, epoch: u32) {
            let kind = match kind {
                1 => AcknowledgementKind::Bound { spi: Spi(spi), highest: Esn(value) },
                2 => AcknowledgementKind::BelowMark { spi: Spi(spi), mark: Esn(value) },
                3 => AcknowledgementKind::KeyPacketTaken { epoch },
                4 => AcknowledgementKind::KeyPacketWanted { epoch },
                _ => AcknowledgementKind::DailyKeyUnknown { epoch },
            };
            prop_assert_eq!(Acknowledgement::parse(&Acknowledgement(kind).to_bytes()), Ok(Acknowledgement(kind)));
        }

        #[test]
        fn never_panics_on_any_input(bytes: Vec<u8>) {
            let _ = Acknowledgement::parse(&bytes);
        }
    }
}
