//! What each step takes by itself, of those that tiers differ by.

use std::convert::Infallible;
use std::hint::black_box;

use strait_crypto::Suite;
use strait_ipsec::wrap::{Head, Inside};
use strait_ipsec::{InboundSa, OutboundSa, Payloads, PeerId};
use strait_keying::PrivateKey;
use strait_keying::sessionless::{
    CheckKey, Direction, KemKey, KeyCard, Kij, KijAlgorithm, NodeKeys, PacketKey, Protection,
};
use strait_wire::sessionless::WRAPPED_LEN;
use strait_wire::{Esn, Protocol, Spi, Tos};

use super::pings::{PING, beginning, card};
use super::{PAPERS, SETTINGS};
use crate::error::Error;
use crate::measure::{RepeatTimer, RunValues};

/// A step.
pub(super) struct Part {
    /// What it does.
    pub(super) name: String,
    /// Microseconds, a value a run.
    pub(super) took: RunValues,
}

/// An epoch and an SPI of no significance.
const EPOCH: u32 = 280_000;
const SPI: Spi = Spi(0x0400_0001);

/// Each step on its own, on one thread.
pub(super) fn measured(timer: RepeatTimer) -> Result<Vec<Part>, Error> {
    let refused = |doing| move |why: &dyn std::error::Error| refusal(doing, why);
    let kem = KemKey::generate().map_err(|why| refused("make a key")(&why))?;
    let [own, peer] = [1, 2].map(|byte| PrivateKey::generate(&[byte; 32]));
    let public = peer.public();
    let agree = || Kij::agree(&own, &public).ok_or_else(|| refusal("agree on Kij", &"no secret"));
    let kij = agree()?;
    let own_keys = NodeKeys::new(PrivateKey::generate(&[1; 32]), None);
    let card = card(&own_keys, beginning()).map_err(|why| refused("make a card")(&why))?;
    let text = card.sign(&own_keys.identity);
    let (check, header) = (CheckKey::of(&public), [7; 2 * WRAPPED_LEN]);
    let algorithm = KijAlgorithm::default();
    let key = || PacketKey::from_bytes([9; 32]);
    let (ciphertext, _) = kem.public().encapsulate().map_err(|why| refused("encapsulate")(&why))?;
    let todays = Protection::Aead(Suite::Aes256Gcm);
    let (mut papers, mut now) = (Packet::new(SETTINGS[PAPERS].1.protection), Packet::new(todays));
    papers.carry().and_then(|()| now.carry())?;
    let part = |name: &str, work: &mut dyn FnMut()| Part { name: name.to_owned(), took: timed(timer, work) };
    let mut parts = vec![
        part("a ping sealed and opened, 3DES and MD5", &mut || drop(black_box(papers.carry()))),
        part("a ping sealed and opened, aes-256-gcm", &mut || drop(black_box(now.carry()))),
        part("keys of ESP from a packet key, aes-256-gcm", &mut || drop(black_box(Packet::new(todays)))),
        part("the check of a header", &mut || {
            black_box(check.sign(&header));
        }),
        part("Kijn from Kij", &mut || {
            drop(black_box(kij.epoch_key(Direction::Outbound, algorithm, EPOCH, None)));
        }),
        part("Kij from both keys, X25519", &mut || drop(black_box(agree()))),
        part("a card read and verified, Ed25519", &mut || drop(black_box(text.parse::<KeyCard>()))),
        part("ML-KEM-768, encapsulated", &mut || drop(black_box(kem.public().encapsulate()))),
        part("ML-KEM-768, decapsulated", &mut || drop(black_box(kem.decapsulate(&ciphertext)))),
    ];
    for algorithm in KijAlgorithm::ALL {
        let kijn = kij.epoch_key(Direction::Outbound, algorithm, EPOCH, None);
        let wrap = || kijn.wrap(&key(), SPI, Esn(1), &header);
        if kijn.unwrap_key(&wrap(), SPI, Esn(1), &header).is_none() {
            return Err(refusal("unwrap a packet key", &algorithm.name()));
        }
        parts.push(part(&format!("a packet key wrapped and unwrapped, {}", algorithm.name()), &mut || {
            drop(black_box(kijn.unwrap_key(&wrap(), SPI, Esn(1), &header)));
        }));
    }
    Ok(parts)
}

fn timed(timer: RepeatTimer, work: &mut dyn FnMut()) -> RunValues {
    let nanos = timer.nanos_per_unit(|| {
        work();
        Ok::<u64, Infallible>(1)
    });
    let Ok(nanos) = nanos;
    nanos.map(|nanos| nanos / 1e3)
}

/// Both ends of a packet key, and a ping.
struct Packet {
    out: OutboundSa,
    inside: InboundSa,
    bytes: Vec<u8>,
}

impl Packet {
    fn new(protection: Protection) -> Packet {
        let key = PacketKey::from_bytes([9; 32]);
        let spec = key.association(PeerId(1), SPI, protection, Payloads::Standard(None), 7);
        let out = OutboundSa::new(&spec);
        let bytes = vec![0; out.sealed_len(0, PING)];
        Packet { out, inside: InboundSa::new(&spec), bytes }
    }

    /// One packet through both.
    fn carry(&mut self) -> Result<(), Error> {
        let sealed = self.out.seal(Head::Fresh(Tos(0)), &mut self.bytes, PING, Protocol::IPIP);
        sealed.map_err(|why| refusal("seal a ping", &format!("{why:?}")))?;
        let whole = Inside::untouched(0, self.bytes.len(), Protocol::ESP);
        let opened = self.inside.open(&mut self.bytes, whole);
        opened.map(drop).map_err(|why| refusal("open a ping", &format!("{why:?}")))
    }
}

fn refusal(doing: &'static str, why: &(impl ToString + ?Sized)) -> Error {
    Error::refused("a sessionless key", doing)(why.to_string().into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::steps::Effort;

    #[test]
    fn every_step_takes_some_time_and_a_packet_goes_through_again_and_again() {
        let parts = measured(crate::enskip::throughput::timer(Effort::Quick)).unwrap();
        assert_eq!(parts.len(), 9 + KijAlgorithm::ALL.len());
        for part in &parts {
            assert!(part.took.values().iter().all(|took| *took > 0.0), "{}", part.name);
        }
        for (_, settings) in SETTINGS {
            let mut packet = Packet::new(settings.protection);
            (0..100).for_each(|_| packet.carry().unwrap());
            packet.bytes[9] ^= 1;
            let whole = Inside::untouched(0, packet.bytes.len(), Protocol::ESP);
            assert!(packet.inside.open(&mut packet.bytes, whole).is_err());
        }
    }
}
