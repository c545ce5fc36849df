//! What goes in front of ESP where there is no handshake: the header that carries a wrapped packet key, and the key packet.
//!
//! The fields are those of SKIP (draft-ietf-ipsec-skip-06 section 2), the sizes are not:
//!
//! ```text
//! header      type | next header | NSIDs | flags | Kij | Crypt | MAC | Comp | n (4) | SPI (4) | first number (8)
//!             | source name | destination name | wrapped Kp (48) | check (16) | the ESP packet
//! key packet  type | KEM | NSIDs | flags | n (4)
//!             | source name | destination name | ciphertext (1,088) | tag (32) | check (16)
//! ```
//!
//! A header is the same for every packet of its key. The number of a packet is `first number` or follows it; its low half is in the
//! ESP header. `check` is a MAC of all that is before it, keyed by the receiver's public key.

mod acknowledgement;
mod name;

use crate::{Esn, Malformed, Protocol, Spi, field};

pub use acknowledgement::{
    ACKNOWLEDGEMENT_LEN, ACKNOWLEDGEMENT_SUBTYPE, Acknowledgement, AcknowledgementKind,
};
pub use name::{NAME_MAX, Name, Nsid};

/// First byte of a header, version 1.
pub const HEADER_TYPE: u8 = 0x11;
/// First byte of a key packet, version 1.
pub const KEY_PACKET_TYPE: u8 = 0x12;

/// Bytes of a wrapped packet key: 32, and the tag of the AEAD that wraps it.
pub const WRAPPED_LEN: usize = 48;
/// Bytes of the check; 16 as WireGuard's mac1.
pub const CHECK_LEN: usize = 16;
/// Bytes of an ML-KEM-768 ciphertext (FIPS 203 section 8, table 3).
pub const CIPHERTEXT_LEN: usize = 1088;
/// Bytes of the tag of a key packet, an HMAC-SHA-256.
pub const TAG_LEN: usize = 32;

/// Bytes in front of the names of a header.
const FIXED_LEN: usize = 24;
/// Bytes in front of the names of a key packet.
const KEY_FIXED_LEN: usize = 8;
/// Most bytes of a header.
pub const HEADER_MAX: usize = FIXED_LEN + 2 * NAME_MAX + WRAPPED_LEN + CHECK_LEN;
/// Most bytes of a key packet; less than what IPv6 carries over every link (RFC 8200 section 5).
pub const KEY_PACKET_MAX: usize = KEY_FIXED_LEN + 2 * NAME_MAX + CIPHERTEXT_LEN + TAG_LEN + CHECK_LEN;

/// The receiver is to answer: there is a way back.
const FLAG_ANSWER: u8 = 1;
/// Kijn contains the secret of a key packet.
const FLAG_HYBRID: u8 = 2;

/// The SPI in a datagram that begins with a header, before anything else of it is read; none where it begins with anything else.
#[must_use]
pub fn header_spi(datagram: &[u8]) -> Option<Spi> {
    let (&[HEADER_TYPE, _, _, _, _, _, _, _, _, _, _, _, a, b, c, d], _) = datagram.split_first_chunk()?
    else {
        return None;
    };
    Some(Spi(u32::from_be_bytes([a, b, c, d])))
}

/// The numbers of the algorithms, each chosen apart from the others (draft-ietf-ipsec-skip-06 section 2.1). What they mean is for the
/// crates above.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Algorithms {
    /// How the packet key is wrapped.
    pub kij: u8,
    /// How the payload is encrypted.
    pub crypt: u8,
    /// How it is authenticated; 0 where the Crypt algorithm does that too.
    pub mac: u8,
    /// What the payload may be beside a packet.
    pub comp: u8,
}

/// The header in front of an ESP packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// What is behind it: ESP.
    pub next: Protocol,
    /// Who sends.
    pub source: Name,
    /// Who is to receive; none where the check says it.
    pub destination: Name,
    /// Whether the receiver is to answer.
    pub answer: bool,
    /// Whether Kijn contains the secret of a key packet.
    pub hybrid: bool,
    /// The algorithms.
    pub algorithms: Algorithms,
    /// The epoch.
    pub epoch: u32,
    /// The name of the packet key at its receiver.
    pub spi: Spi,
    /// The number of the first packet under this key.
    pub first: Esn,
    /// The packet key, wrapped.
    pub wrapped: [u8; WRAPPED_LEN],
    /// The MAC that is keyed by the receiver's public key.
    pub check: [u8; CHECK_LEN],
}

impl Header {
    /// Its length in bytes.
    #[must_use]
    pub const fn wire_len(&self) -> usize {
        self.bound_len() + WRAPPED_LEN + CHECK_LEN
    }

    /// How many bytes the wrapping of the packet key authenticates: all before it.
    #[must_use]
    pub const fn bound_len(&self) -> usize {
        FIXED_LEN + self.source.wire_len() + self.destination.wire_len()
    }

    /// Reads the header, and what follows it.
    ///
    /// # Errors
    /// [`Malformed`] when it is short, is of another type, has a flag or a name space that is not known, has another next header than
    /// ESP, or an SPI that does not tell ESP from the other datagrams of the port.
    pub fn parse(bytes: &[u8]) -> Result<(Header, &[u8]), Malformed> {
        let (fixed, rest) = field::split_header::<FIXED_LEN>("sessionless header", bytes)?;
        let &[kind, next, nsids, flags, kij, crypt, mac, comp, a, b, c, d, e, f, g, h, number @ ..] = fixed;
        let wrong = |what| Err(Malformed::new(what, bytes));
        if kind != HEADER_TYPE {
            return wrong("type of a sessionless header");
        }
        if Protocol(next) != Protocol::ESP {
            return wrong("next header of a sessionless header");
        }
        if flags & !(FLAG_ANSWER | FLAG_HYBRID) != 0 {
            return wrong("flags of a sessionless header");
        }
        let spi = Spi(u32::from_be_bytes([e, f, g, h]));
        if !matches!(e, 0x04..=0x0f) {
            return wrong("spi of a sessionless header");
        }
        let (source, rest) = Name::split(nsids >> 4, rest)?;
        let (destination, rest) = Name::split(nsids & 0xf, rest)?;
        let (wrapped, rest) = field::split_header("wrapped packet key", rest)?;
        let (check, rest) = field::split_header("check of a sessionless header", rest)?;
        let header = Header {
            next: Protocol(next),
            source,
            destination,
            answer: flags & FLAG_ANSWER != 0,
            hybrid: flags & FLAG_HYBRID != 0,
            algorithms: Algorithms { kij, crypt, mac, comp },
            epoch: u32::from_be_bytes([a, b, c, d]),
            spi,
            first: Esn(u64::from_be_bytes(number)),
            wrapped: *wrapped,
            check: *check,
        };
        Ok((header, rest))
    }

    /// Writes the header at the start of `buf`.
    ///
    /// # Errors
    /// [`Malformed`] when `buf` is shorter than [`Header::wire_len`].
    pub fn emit(&self, buf: &mut [u8]) -> Result<(), Malformed> {
        let short = Malformed::new("buffer for a sessionless header", buf);
        let flags = flag(self.answer, FLAG_ANSWER) | flag(self.hybrid, FLAG_HYBRID);
        let nsids = self.source.nsid() << 4 | self.destination.nsid();
        let Algorithms { kij, crypt, mac, comp } = self.algorithms;
        let [a, b, c, d] = self.epoch.to_be_bytes();
        let [e, f, g, h] = self.spi.0.to_be_bytes();
        let [i, j, k, l, m, n, o, p] = self.first.0.to_be_bytes();
        let fixed = [
            HEADER_TYPE,
            self.next.0,
            nsids,
            flags,
            kij,
            crypt,
            mac,
            comp,
            a,
            b,
            c,
            d,
            e,
            f,
            g,
            h,
            i,
            j,
            k,
            l,
            m,
            n,
            o,
            p,
        ];
        let parts = [&fixed[..], self.source.bytes(), self.destination.bytes(), &self.wrapped, &self.check];
        write_parts(buf, &parts).ok_or(short)
    }
}

/// What brings a receiver the secret of one epoch that was encapsulated to its ML-KEM key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeyPacket {
    /// The number of the KEM.
    pub kem: u8,
    /// Who sends.
    pub source: Name,
    /// Who is to receive; none where the check says it.
    pub destination: Name,
    /// Whether the receiver is to answer.
    pub answer: bool,
    /// The epoch.
    pub epoch: u32,
    /// What the secret comes out of.
    pub ciphertext: [u8; CIPHERTEXT_LEN],
    /// Proves the sender to the receiver.
    pub tag: [u8; TAG_LEN],
    /// The MAC that is keyed by the receiver's public key.
    pub check: [u8; CHECK_LEN],
}

impl KeyPacket {
    /// Its length in bytes.
    #[must_use]
    pub const fn wire_len(&self) -> usize {
        self.bound_len() + TAG_LEN + CHECK_LEN
    }

    /// How many bytes the tag authenticates: all before it.
    #[must_use]
    pub const fn bound_len(&self) -> usize {
        KEY_FIXED_LEN + self.source.wire_len() + self.destination.wire_len() + CIPHERTEXT_LEN
    }

    /// Reads a datagram that is a key packet and nothing else.
    ///
    /// # Errors
    /// [`Malformed`] when it is short or long, is of another type, or has a flag or a name space that is not known.
    pub fn parse(bytes: &[u8]) -> Result<KeyPacket, Malformed> {
        let (&[kind, kem, nsids, flags, a, b, c, d], rest) =
            field::split_header::<KEY_FIXED_LEN>("key packet", bytes)?;
        if kind != KEY_PACKET_TYPE || flags & !FLAG_ANSWER != 0 {
            return Err(Malformed::new("type or flags of a key packet", bytes));
        }
        let (source, rest) = Name::split(nsids >> 4, rest)?;
        let (destination, rest) = Name::split(nsids & 0xf, rest)?;
        let (ciphertext, rest) = field::split_header("ciphertext of a key packet", rest)?;
        let (tag, rest) = field::split_header("tag of a key packet", rest)?;
        let (check, rest) = field::split_header("check of a key packet", rest)?;
        if !rest.is_empty() {
            return Err(Malformed::new("end of a key packet", bytes));
        }
        Ok(KeyPacket {
            kem,
            source,
            destination,
            answer: flags & FLAG_ANSWER != 0,
            epoch: u32::from_be_bytes([a, b, c, d]),
            ciphertext: *ciphertext,
            tag: *tag,
            check: *check,
        })
    }

    /// Writes it at the start of `buf`.
    ///
    /// # Errors
    /// [`Malformed`] when `buf` is shorter than [`KeyPacket::wire_len`].
    pub fn emit(&self, buf: &mut [u8]) -> Result<(), Malformed> {
        let short = Malformed::new("buffer for a key packet", buf);
        let nsids = self.source.nsid() << 4 | self.destination.nsid();
        let [a, b, c, d] = self.epoch.to_be_bytes();
        let fixed = [KEY_PACKET_TYPE, self.kem, nsids, flag(self.answer, FLAG_ANSWER), a, b, c, d];
        let names = [self.source.bytes(), self.destination.bytes()];
        write_parts(buf, &[&fixed, names[0], names[1], &self.ciphertext, &self.tag, &self.check]).ok_or(short)
    }
}

const fn flag(set: bool, bit: u8) -> u8 {
    if set { bit } else { 0 }
}

/// Writes `parts` one behind the other; `None` when they do not fit.
fn write_parts(buf: &mut [u8], parts: &[&[u8]]) -> Option<()> {
    let mut at = 0;
    for part in parts {
        buf.get_mut(at..at + part.len())?.copy_from_slice(part);
        at += part.len();
    }
    Some(())
}

#[cfg(test)]
mod tests;
