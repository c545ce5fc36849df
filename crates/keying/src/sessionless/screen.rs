//! What is looked at of a datagram without a session before anything is kept of it: its shape, and whether it is for this node.

use std::sync::atomic::{AtomicU64, Ordering};

use strait_ipsec::inbound::HeaderGate;
use strait_wire::sessionless::{CHECK_LEN, HEADER_TYPE, Header, KEY_PACKET_TYPE, KeyPacket};
use strait_wire::{SeqLow, esp};

use super::node_keys::CheckKey;
use super::receiver::{Refusal, Refusals};
use crate::PublicKey;

/// A header in front of ESP, and what counts of the packet.
#[derive(Debug)]
pub(super) struct HeaderInFront<'a> {
    pub(super) header: Header,
    /// Its bytes.
    pub(super) bytes: &'a [u8],
    /// The low half of the packet's number.
    pub(super) low: SeqLow,
}

impl HeaderInFront<'_> {
    /// Reads a header in front of an ESP packet with its SPI.
    pub(super) fn read(datagram: &[u8]) -> Result<HeaderInFront<'_>, Refusal> {
        let (header, packet) = Header::parse(datagram).map_err(|_| Refusal::Malformed)?;
        let inner = esp::Header::parse(packet).map_err(|_| Refusal::Malformed)?.0;
        if inner.spi != header.spi {
            return Err(Refusal::Malformed);
        }
        let bytes = datagram.get(..header.wire_len()).ok_or(Refusal::Malformed)?;
        Ok(HeaderInFront { header, bytes, low: inner.seq })
    }
}

impl CheckKey {
    /// Whether the check at the end of `bytes` says that they are for this node: before any public-key operation.
    pub(super) fn allows(&self, bytes: &[u8], check: &[u8; CHECK_LEN]) -> Result<(), Refusal> {
        let checked = bytes.len().checked_sub(CHECK_LEN).and_then(|end| bytes.get(..end)).unwrap_or_default();
        if self.verifies(checked, check) { Ok(()) } else { Err(Refusal::BadCheck) }
    }
}

/// The part of the receiver that is on the packet path: what is no header, or for another node, is refused there. So a flood of those
/// costs the key manager nothing.
#[derive(Debug)]
pub struct HeaderScreen {
    check: CheckKey,
    malformed: AtomicU64,
    bad_check: AtomicU64,
}

impl HeaderScreen {
    /// For what is sent to the node with this key.
    #[must_use]
    pub fn new(receiver: &PublicKey) -> HeaderScreen {
        HeaderScreen {
            check: CheckKey::of(receiver),
            malformed: AtomicU64::new(0),
            bad_check: AtomicU64::new(0),
        }
    }

    /// How many datagrams were refused here.
    #[must_use]
    pub fn refusals(&self) -> Refusals {
        let mut refusals = Refusals::default();
        refusals.add(Refusal::Malformed, self.malformed.load(Ordering::Relaxed));
        refusals.add(Refusal::BadCheck, self.bad_check.load(Ordering::Relaxed));
        refusals
    }

    fn looked_at(&self, datagram: &[u8]) -> Result<(), Refusal> {
        match datagram.first() {
            Some(&HEADER_TYPE) => {
                let HeaderInFront { header, bytes, .. } = HeaderInFront::read(datagram)?;
                self.check.allows(bytes, &header.check)
            }
            Some(&KEY_PACKET_TYPE) => {
                let packet = KeyPacket::parse(datagram).map_err(|_| Refusal::Malformed)?;
                self.check.allows(datagram, &packet.check)
            }
            _ => Err(Refusal::Malformed),
        }
    }
}

impl HeaderGate for HeaderScreen {
    fn takes(&self, datagram: &[u8]) -> bool {
        let refusal = self.looked_at(datagram).err();
        let counter =
            refusal.map(|why| if why == Refusal::BadCheck { &self.bad_check } else { &self.malformed });
        if let Some(counter) = counter {
            counter.fetch_add(1, Ordering::Relaxed);
        }
        refusal.is_none()
    }
}

#[cfg(test)]
mod tests {
    use strait_wire::sessionless::{Algorithms, CIPHERTEXT_LEN, Name, TAG_LEN, WRAPPED_LEN};
    use strait_wire::{Esn, Protocol, Spi};

    use super::*;
    use crate::PrivateKey;

    fn keys() -> [PublicKey; 2] {
        [[1; 32], [2; 32]].map(|seed| PrivateKey::generate(&seed).public())
    }

    fn signed(mut bytes: Vec<u8>, receiver: &PublicKey) -> Vec<u8> {
        let at = bytes.len() - CHECK_LEN;
        let check = CheckKey::of(receiver).sign(&bytes[..at]);
        bytes[at..].copy_from_slice(&check);
        bytes
    }

    fn header(receiver: &PublicKey) -> Vec<u8> {
        let header = Header {
            next: Protocol::ESP,
            source: Name::key_hash([7; 16]),
            destination: Name::NONE,
            answer: true,
            hybrid: false,
            algorithms: Algorithms { kij: 1, crypt: 1, mac: 0, comp: 0 },
            epoch: 5,
            spi: Spi(0x0400_0001),
            first: Esn(9),
            wrapped: [3; WRAPPED_LEN],
            check: [0; CHECK_LEN],
        };
        let mut bytes = vec![0; header.wire_len()];
        header.emit(&mut bytes).unwrap();
        let esp = [&[4, 0, 0, 1, 0, 0, 0, 9][..], &[0; 40]].concat();
        [signed(bytes, receiver), esp].concat()
    }

    fn key_packet(receiver: &PublicKey) -> Vec<u8> {
        let packet = KeyPacket {
            kem: 1,
            source: Name::key_hash([7; 16]),
            destination: Name::NONE,
            answer: true,
            epoch: 5,
            ciphertext: [1; CIPHERTEXT_LEN],
            tag: [2; TAG_LEN],
            check: [0; CHECK_LEN],
        };
        let mut bytes = vec![0; packet.wire_len()];
        packet.emit(&mut bytes).unwrap();
        signed(bytes, receiver)
    }

    #[test]
    fn what_is_for_this_node_passes_and_all_else_is_counted() {
        let [own, other] = keys();
        let screen = HeaderScreen::new(&own);
        assert!(screen.takes(&header(&own)) && screen.takes(&key_packet(&own)));
        assert_eq!(screen.refusals(), Refusals::default());
        assert!(!screen.takes(&header(&other)) && !screen.takes(&key_packet(&other)));
        assert_eq!(screen.refusals().of(Refusal::BadCheck), 2);
        let mut elsewhere = header(&own);
        let at = elsewhere.len() - 48;
        elsewhere[at] ^= 1;
        assert!(!screen.takes(&elsewhere), "another SPI behind the header");
        assert!(!screen.takes(&[]) && !screen.takes(&[0x13; 200]));
        assert_eq!(screen.refusals().of(Refusal::Malformed), 3);
    }

    #[test]
    fn no_part_of_a_datagram_passes() {
        let [own, _] = keys();
        let screen = HeaderScreen::new(&own);
        let packet = key_packet(&own);
        assert!((0..packet.len()).all(|len| !screen.takes(&packet[..len])));
        // Of ESP, the eight bytes of its header have to be there; the rest is looked at with a key.
        let datagram = header(&own);
        let whole = datagram.len() - 40;
        assert!((0..whole).all(|len| !screen.takes(&datagram[..len])));
        assert!(screen.takes(&datagram[..whole]));
    }
}
