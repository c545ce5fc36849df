//! Headers of keys without sessions, as strangers can make them: who knows the public keys can compute all of them but the wrapped key.

use std::time::{SystemTime, UNIX_EPOCH};

use strait_clock::Random;
use strait_crypto::Suite;
use strait_keying::PublicKey;
use strait_keying::sessionless::{
    CheckKey, Compression, EpochLength, KijAlgorithm, PacketAlgorithms, Protection, WallTime, key_name,
};
use strait_wire::sessionless::{CHECK_LEN, Header, Name, WRAPPED_LEN};
use strait_wire::{Esn, Protocol, Spi};

use super::stranger::forged_esp;

/// Bytes of what should be a packet, behind its SPI and number.
const PACKET: usize = 100;
/// SPIs that tell ESP from the other datagrams of the port.
const SPIS: (u32, u32) = (0x0400_0000, 0x0c00_0000);

/// What is wrong with a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ForgedHeader {
    /// Its sender has a name that does not exist.
    AnyName,
    /// Its sender is known; the packet key is nonsense.
    Wrap,
    /// So is this one's, of an epoch that is far off.
    FarEpoch,
    /// Its check is not keyed by the receiver's public key.
    Check,
}

impl ForgedHeader {
    /// All of them.
    pub const ALL: [ForgedHeader; 4] =
        [ForgedHeader::AnyName, ForgedHeader::Wrap, ForgedHeader::FarEpoch, ForgedHeader::Check];

    /// A datagram for the holder of `receiver`, with a header that says it comes from the holder of `sender`.
    #[must_use]
    pub fn datagram(self, sender: &PublicKey, receiver: &PublicKey, random: &mut Random) -> Vec<u8> {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let wall = WallTime::from_unix(since);
        let epoch = EpochLength::default().at(wall);
        let algorithms = PacketAlgorithms {
            protection: Protection::Aead(Suite::Aes128Gcm),
            compression: Compression::Strait,
        };
        let Some(algorithms) = algorithms.numbers(KijAlgorithm::default()) else { return Vec::new() };
        let spi = SPIS.0 + u32::try_from(random.below(u64::from(SPIS.1))).unwrap_or(0);
        let mut header = Header {
            next: Protocol::ESP,
            source: if self == ForgedHeader::AnyName {
                Name::key_hash(noise(random))
            } else {
                key_name(sender)
            },
            destination: Name::NONE,
            answer: true,
            hybrid: false,
            algorithms,
            epoch: if self == ForgedHeader::FarEpoch { epoch.saturating_sub(1000) } else { epoch },
            spi: Spi(spi),
            first: Esn(wall.0),
            wrapped: noise::<WRAPPED_LEN>(random),
            check: noise::<CHECK_LEN>(random),
        };
        if self != ForgedHeader::Check {
            let bytes = emitted(&header);
            let signed = bytes.get(..bytes.len() - CHECK_LEN).unwrap_or_default();
            header.check = CheckKey::of(receiver).sign(signed);
        }
        let number = u32::try_from(wall.0 & u64::from(u32::MAX)).unwrap_or(0);
        [emitted(&header), forged_esp(spi.to_be_bytes(), number, PACKET, random)].concat()
    }
}

fn emitted(header: &Header) -> Vec<u8> {
    let mut bytes = vec![0; header.wire_len()];
    // The buffer has the length that the header says.
    let _ = header.emit(&mut bytes);
    bytes
}

fn noise<const LEN: usize>(random: &mut Random) -> [u8; LEN] {
    let mut bytes = [0; LEN];
    bytes.iter_mut().for_each(|byte| *byte = random.next_u64().to_be_bytes()[0]);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use strait_keying::PrivateKey;
    use strait_keying::sessionless::{
        KnownSender, NodeKeys, Now, Receiver, ReceiverSettings, Refusal, Verdict,
    };

    #[test]
    fn each_is_refused_for_what_is_wrong_with_it() {
        let [sender, own] = [[1; 32], [2; 32]].map(|seed| PrivateKey::generate(&seed));
        let (sender, receiver) = (sender.public(), own.public());
        let mut core = Receiver::new(&ReceiverSettings::default());
        core.know(KnownSender {
            peer: strait_ipsec::PeerId(1),
            key: sender,
            names: Vec::new(),
            epoch: EpochLength::default(),
            suites: strait_crypto::SuiteSet::ALL,
            separate: false,
            hybrid: false,
            valid: (WallTime(0), WallTime(u64::MAX)),
            mark: 0,
            pinned: false,
        });
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        let now = Now { time: strait_clock::Time::ZERO, wall: WallTime::from_unix(since) };
        let own = NodeKeys::new(own, None);
        let from = std::net::SocketAddr::from(([192, 0, 2, 1], 51820));
        let mut random = Random::new(1);
        for (kind, refusal) in [
            (ForgedHeader::Wrap, Refusal::Forged),
            (ForgedHeader::FarEpoch, Refusal::EpochFarOff),
            (ForgedHeader::Check, Refusal::BadCheck),
        ] {
            let datagram = kind.datagram(&sender, &receiver, &mut random);
            match core.look(now, &own, from, &datagram) {
                Verdict::Refused(found) => assert_eq!(found, refusal),
                other => panic!("{kind:?}: {other:?}"),
            }
        }
        let datagram = ForgedHeader::AnyName.datagram(&sender, &receiver, &mut random);
        assert!(matches!(core.look(now, &own, from, &datagram), Verdict::Waits));
    }
}
