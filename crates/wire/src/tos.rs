//! The traffic class octet: differentiated services code point and congestion mark (RFC 2474, RFC 3168).

use std::fmt;

/// IPv4's type of service, IPv6's traffic class.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tos(pub u8);

/// The two ECN bits (RFC 3168 section 5).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Ecn {
    /// The sender does not understand congestion marks.
    NotEct = 0,
    /// ECN-capable, and asks for L4S treatment (RFC 9331).
    Ect1 = 1,
    /// ECN-capable.
    Ect0 = 2,
    /// Congestion was experienced on the path.
    Ce = 3,
}

/// An inner packet that cannot carry the outer's congestion mark and must be dropped (RFC 6040 section 4.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct DropCe;

impl fmt::Display for DropCe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("congestion mark on a packet that is not ECN-capable")
    }
}

impl std::error::Error for DropCe {}

impl Ecn {
    const fn from_bits(bits: u8) -> Ecn {
        match bits & 0b11 {
            0 => Ecn::NotEct,
            1 => Ecn::Ect1,
            2 => Ecn::Ect0,
            _ => Ecn::Ce,
        }
    }
}

impl Tos {
    /// The code point, 0 to 63 (RFC 2474 section 3).
    #[must_use]
    pub const fn dscp(self) -> u8 {
        self.0 >> 2
    }

    /// The congestion bits (RFC 3168 section 5).
    #[must_use]
    pub const fn ecn(self) -> Ecn {
        Ecn::from_bits(self.0)
    }

    /// The same code point with other congestion bits.
    #[must_use]
    pub const fn with_ecn(self, ecn: Ecn) -> Tos {
        Tos((self.0 & !0b11) | ecn as u8)
    }

    /// The outer octet for a packet going in: normal mode, a plain copy (RFC 6040 section 4.1).
    #[must_use]
    pub const fn encapsulate(inner: Tos) -> Tos {
        inner
    }
}

/// The congestion bits of a packet coming out, from its own and those of the packet that carried it
/// (RFC 6040 section 4.2, figure 4).
///
/// # Errors
/// [`DropCe`] when the outer is marked and the inner cannot say so.
pub const fn decapsulate(inner: Ecn, outer: Ecn) -> Result<Ecn, DropCe> {
    match (inner, outer) {
        (Ecn::NotEct, Ecn::Ce) => Err(DropCe),
        (Ecn::NotEct, _) => Ok(Ecn::NotEct),
        (Ecn::Ce, _) | (_, Ecn::Ce) => Ok(Ecn::Ce),
        (Ecn::Ect0, Ecn::Ect1) => Ok(Ecn::Ect1),
        (Ecn::Ect0 | Ecn::Ect1, _) => Ok(inner),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Ecn; 4] = [Ecn::NotEct, Ecn::Ect0, Ecn::Ect1, Ecn::Ce];

    /// RFC 6040 figure 4: rows are the inner, columns the outer, both in the order of [`ALL`].
    const FIGURE_4: [[Option<Ecn>; 4]; 4] = [
        [Some(Ecn::NotEct), Some(Ecn::NotEct), Some(Ecn::NotEct), None],
        [Some(Ecn::Ect0), Some(Ecn::Ect0), Some(Ecn::Ect1), Some(Ecn::Ce)],
        [Some(Ecn::Ect1), Some(Ecn::Ect1), Some(Ecn::Ect1), Some(Ecn::Ce)],
        [Some(Ecn::Ce), Some(Ecn::Ce), Some(Ecn::Ce), Some(Ecn::Ce)],
    ];

    #[test]
    fn decapsulation_is_figure_4() {
        for (inner, row) in ALL.into_iter().zip(FIGURE_4) {
            for (outer, expected) in ALL.into_iter().zip(row) {
                assert_eq!(decapsulate(inner, outer).ok(), expected, "inner {inner:?}, outer {outer:?}");
            }
        }
    }

    #[test]
    fn every_octet_splits_and_joins() {
        for octet in 0..=u8::MAX {
            let tos = Tos(octet);
            assert_eq!(tos.dscp() << 2 | tos.ecn() as u8, octet);
            assert_eq!(tos.with_ecn(tos.ecn()), tos);
            assert_eq!(Tos::encapsulate(tos), tos);
            for ecn in ALL {
                assert_eq!((tos.with_ecn(ecn).dscp(), tos.with_ecn(ecn).ecn()), (tos.dscp(), ecn));
            }
        }
    }
}
