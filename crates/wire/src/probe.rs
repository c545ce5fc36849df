//! Path probes under ESP next header 144: is a datagram of this size delivered? In the same form, an end says that it is being stopped.
//!
//! ```text
//! sub-type 0xF1 | kind | id (2) | size (2) | reserved (2) | padding to the size asked about
//! ```

use crate::{Malformed, field};

/// The private AGGFRAG sub-type of a probe.
pub const SUBTYPE: u8 = 0xf1;
/// The probe without padding.
pub const LEN: usize = 8;

/// Which way the question goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum ProbeKind {
    /// Padded to the size asked about.
    Request = 1,
    /// Says that the request of the same id arrived.
    Answer = 2,
    /// Says that this end is being stopped: it receives nothing any more. Id and size mean nothing.
    Goodbye = 3,
}

/// One question or answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Probe {
    /// Question or answer.
    pub kind: ProbeKind,
    /// Joins an answer to its request.
    pub id: u16,
    /// Bytes of the outer IP datagram the request had.
    pub size: u16,
}

impl Probe {
    /// Reads a probe; padding behind it and the reserved field are ignored.
    ///
    /// # Errors
    /// [`Malformed`] when it is short, has another sub-type, or an unknown kind.
    pub fn parse(bytes: &[u8]) -> Result<Probe, Malformed> {
        let (&[subtype, kind, a, b, c, d, _, _], _padding) = field::split_header::<LEN>("probe", bytes)?;
        let kind = match (subtype, kind) {
            (SUBTYPE, 1) => ProbeKind::Request,
            (SUBTYPE, 2) => ProbeKind::Answer,
            (SUBTYPE, 3) => ProbeKind::Goodbye,
            (SUBTYPE, _) => return Err(Malformed::new("probe kind", bytes)),
            _ => return Err(Malformed::new("probe sub-type", bytes)),
        };
        Ok(Probe { kind, id: u16::from_be_bytes([a, b]), size: u16::from_be_bytes([c, d]) })
    }

    /// Writes the probe at the start of `buf`; padding is the caller's.
    ///
    /// # Errors
    /// [`Malformed`] when `buf` is shorter than 8 bytes.
    pub fn emit(self, buf: &mut [u8]) -> Result<(), Malformed> {
        let ([a, b], [c, d]) = (self.id.to_be_bytes(), self.size.to_be_bytes());
        field::emit_header("buffer for a probe", buf, [SUBTYPE, self.kind as u8, a, b, c, d, 0, 0])
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const REQUEST: Probe = Probe { kind: ProbeKind::Request, id: 0x0102, size: 0x0304 };

    #[test]
    fn emit() {
        let mut buf = [0xff; 9];
        REQUEST.emit(&mut buf).unwrap();
        assert_eq!(buf, [0xf1, 1, 1, 2, 3, 4, 0, 0, 0xff]);
    }

    #[test]
    fn parse_ignores_reserved_and_padding() {
        assert_eq!(Probe::parse(&[0xf1, 1, 1, 2, 3, 4, 0xff, 0xff, 7, 7]), Ok(REQUEST));
    }

    #[test]
    fn edges() {
        for (subtype, kind, expected) in [
            (0xf1, 0, Err("probe kind")),
            (0xf1, 1, Ok(ProbeKind::Request)),
            (0xf1, 2, Ok(ProbeKind::Answer)),
            (0xf1, 3, Ok(ProbeKind::Goodbye)),
            (0xf1, 4, Err("probe kind")),
            (0xf1, 255, Err("probe kind")),
            (0xf0, 1, Err("probe sub-type")),
            (0xf2, 1, Err("probe sub-type")),
        ] {
            let parsed = Probe::parse(&[subtype, kind, 0, 0, 0, 0, 0, 0]);
            let parsed = parsed.map(|probe| probe.kind).map_err(|malformed| malformed.what);
            assert_eq!(parsed, expected, "sub-type {subtype}, kind {kind}");
        }
    }

    #[test]
    fn truncation() {
        let mut bytes = [0; LEN];
        REQUEST.emit(&mut bytes).unwrap();
        for len in 0..LEN {
            assert!(Probe::parse(&bytes[..len]).is_err(), "{len} bytes");
            assert!(REQUEST.emit(&mut [0; LEN][..len]).is_err(), "buffer of {len}");
        }
    }

    proptest! {
        #[test]
        fn round_trip(
            kind in prop::sample::select(&[ProbeKind::Request, ProbeKind::Answer, ProbeKind::Goodbye][..]),
            id: u16,
            size: u16,
        ) {
            let probe = Probe { kind, id, size };
            let mut buf = [0xff; LEN];
            probe.emit(&mut buf).unwrap();
            prop_assert_eq!(Probe::parse(&buf), Ok(probe));
        }
    }
}
