//! The pre-shared token: a node that has one answers only handshakes whose first datagram proves it.
//!
//! ```text
//! token field of the Initial = HMAC-SHA-256(token, label | responder's public key | first destination id)
//! ```
//!
//! The field is QUIC's own (RFC 9000 section 17.2.2), 32 bytes of a datagram that is padded to 1,200 anyway: a handshake
//! with a token costs no byte and no round trip more. The id is random, so a proof fits one handshake with one node. Who
//! records a whole datagram can send it again, and is answered as a stranger whose address is proven: within a budget,
//! one handshake at a time for each recorded datagram, and with nothing but what a responder says before it knows a key.

use core::fmt;
use core::str::FromStr;

use aws_lc_rs::hmac;
use strait_ipsec::inbound::{DatagramGate, GateVerdict};

use crate::base64;
use crate::channel::CID_LEN;
use crate::{KeyRole, ParseKeyError, PublicKey};

/// What the proof is for, so that it serves nothing else.
const LABEL: &[u8] = b"strait first flight 1";
/// Bytes of a proof.
const PROOF_LEN: usize = 32;
/// QUIC version 1 (RFC 9000 section 15).
const VERSION: [u8; 4] = [0, 0, 0, 1];
/// Version Negotiation (RFC 9000 section 17.2.1).
const NEGOTIATION: [u8; 4] = [0; 4];

/// A secret that the nodes of a network share beside their key pairs; wiped when dropped and never printed.
#[derive(Clone)]
pub struct PresharedToken(hmac::Key);

impl PresharedToken {
    /// The token with these 32 bytes.
    #[must_use]
    pub fn from_bytes(bytes: &[u8; 32]) -> PresharedToken {
        PresharedToken(hmac::Key::new(hmac::HMAC_SHA256, bytes))
    }

    /// What a handshake with `responder` says that begins with the destination id `first`.
    pub(crate) fn proof(&self, responder: PublicKey, first: &[u8]) -> [u8; PROOF_LEN] {
        let tag = hmac::sign(&self.0, &statement(responder, first));
        let mut proof = [0; PROOF_LEN];
        proof.copy_from_slice(tag.as_ref());
        proof
    }

    /// Whether `proof` is what a handshake with `responder` says; in constant time.
    fn is_proved(&self, responder: PublicKey, first: &[u8], proof: &[u8]) -> bool {
        hmac::verify(&self.0, &statement(responder, first), proof).is_ok()
    }
}

fn statement(responder: PublicKey, first: &[u8]) -> Vec<u8> {
    [LABEL, responder.as_bytes(), first].concat()
}

impl FromStr for PresharedToken {
    type Err = ParseKeyError;

    /// Reads the one line of a key file, as `strait keygen` makes it.
    fn from_str(text: &str) -> Result<PresharedToken, ParseKeyError> {
        let bytes =
            base64::decode(text.trim()).map_err(|error| ParseKeyError::new(KeyRole::Private, error))?;
        Ok(PresharedToken::from_bytes(&bytes))
    }
}

impl fmt::Debug for PresharedToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[key]")
    }
}

/// Looks at datagrams before anything is done about them.
#[derive(Debug)]
pub(crate) struct TokenGate {
    pub(crate) token: PresharedToken,
    /// This node's key.
    pub(crate) public: PublicKey,
}

impl DatagramGate for TokenGate {
    fn look(&self, datagram: &[u8]) -> GateVerdict {
        let Some(header) = LongHeader::parse(datagram) else { return GateVerdict::Unclear };
        if header.version == NEGOTIATION || header.destination.len() == CID_LEN {
            // Of a connection that there is, or of none: QUIC finds out, and is not allowed to begin one.
            return GateVerdict::Unclear;
        }
        let token = header.token().unwrap_or_default();
        let first = header.version == VERSION && header.is_initial();
        if first && self.token.is_proved(self.public, header.destination, token) {
            GateVerdict::Expected
        } else {
            GateVerdict::Refused
        }
    }
}

/// The part of a long header that every version has, and what follows it (RFC 8999 section 5.1).
struct LongHeader<'a> {
    first: u8,
    version: [u8; 4],
    destination: &'a [u8],
    rest: &'a [u8],
}

impl<'a> LongHeader<'a> {
    /// Nothing where the header is short, or cut off.
    fn parse(datagram: &'a [u8]) -> Option<LongHeader<'a>> {
        let (&first, rest) = datagram.split_first()?;
        if first & 0x80 == 0 {
            return None;
        }
        let (&version, rest) = rest.split_first_chunk()?;
        let (destination, rest) = id(rest)?;
        let (_source, rest) = id(rest)?;
        Some(LongHeader { first, version, destination, rest })
    }

    /// Whether it is an Initial of version 1.
    const fn is_initial(&self) -> bool {
        self.first & 0x30 == 0
    }

    /// The token of an Initial.
    fn token(&self) -> Option<&'a [u8]> {
        // A variable-length integer (RFC 9000 section 16), of which no proof needs more than two bytes.
        let (&length, rest) = self.rest.split_first()?;
        let (length, rest) = match length >> 6 {
            0 => (usize::from(length), rest),
            1 => {
                let (&low, rest) = rest.split_first()?;
                (usize::from(length & 0x3f) << 8 | usize::from(low), rest)
            }
            _ => return None,
        };
        rest.get(..length)
    }
}

/// A connection id with its length before it, and what follows.
fn id(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (&length, rest) = bytes.split_first()?;
    rest.split_at_checked(length.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::tests::node::key;

    const FIRST: [u8; 16] = [7; 16];

    fn gate(secret: u8) -> TokenGate {
        TokenGate { token: PresharedToken::from_bytes(&[secret; 32]), public: key(0).public() }
    }

    /// An Initial, as far as its token.
    fn initial(destination: &[u8], token: &[u8]) -> Vec<u8> {
        let length = |of: &[u8]| u8::try_from(of.len()).unwrap();
        let ids = [&[length(destination)], destination, &[8], &[5; 8]].concat();
        let mut bytes = [&[0xc3, 0, 0, 0, 1], ids.as_slice(), &[length(token)], token].concat();
        bytes.resize(1200, 0x5a);
        bytes
    }

    fn proved(secret: u8, responder: u8, destination: &[u8]) -> Vec<u8> {
        let token = PresharedToken::from_bytes(&[secret; 32]);
        initial(destination, &token.proof(key(responder).public(), destination))
    }

    #[test]
    fn only_who_has_the_token_is_expected() {
        let mut other_version = proved(1, 0, &FIRST);
        other_version[4] = 2;
        let mut handshake = proved(1, 0, &FIRST);
        handshake[0] = 0xe3;
        let short = [&[0x40][..], &[1; 60]].concat();
        let moved = initial(&[8; 16], &PresharedToken::from_bytes(&[1; 32]).proof(key(0).public(), &FIRST));
        for (name, datagram, look) in [
            ("the token", proved(1, 0, &FIRST), GateVerdict::Expected),
            ("another token", proved(2, 0, &FIRST), GateVerdict::Refused),
            ("for another node", proved(1, 1, &FIRST), GateVerdict::Refused),
            ("a proof for another id", moved, GateVerdict::Refused),
            ("no token", initial(&FIRST, &[]), GateVerdict::Refused),
            ("half a token", initial(&FIRST, &[0; 16]), GateVerdict::Refused),
            ("an unknown version", other_version, GateVerdict::Refused),
            ("no Initial", handshake, GateVerdict::Refused),
            ("an id of this node's", initial(&[9; CID_LEN], &[]), GateVerdict::Unclear),
            ("a short header", short, GateVerdict::Unclear),
            ("nothing", Vec::new(), GateVerdict::Unclear),
        ] {
            assert_eq!(gate(1).look(&datagram), look, "{name}");
        }
    }

    #[test]
    fn a_datagram_cut_off_anywhere_is_never_expected() {
        let whole = proved(1, 0, &FIRST);
        let end = 5 + 17 + 9 + 1 + PROOF_LEN;
        for len in 0..whole.len() {
            assert_eq!(gate(1).look(&whole[..len]) == GateVerdict::Expected, len >= end, "{len}");
        }
    }

    #[test]
    fn a_token_reads_like_a_key_and_does_not_print() {
        let line = format!("{}\n", key(3).expose().as_str());
        let token: PresharedToken = line.parse().unwrap();
        assert_eq!(format!("{token:?}"), "[key]");
        assert!("c2VjcmV0".parse::<PresharedToken>().is_err());
    }
}
