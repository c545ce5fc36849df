//! What two hosts must know to talk to each other in one way: the case, their addresses, numbers and keys.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use serde_json::{Value, json};
use strait_clock::Random;
use strait_crypto::{Cipher, Integrity, Suite};

use crate::case::{Ah, Case, Esp, Mode, Version};

/// The port of ESP in UDP (RFC 3948), at both ends.
pub(crate) const PORT: u16 = 4500;

/// The well-known CPI of DEFLATE (RFC 2407 section 4.4.5).
pub(crate) const CPI: u16 = 2;

/// A host's addresses outside or inside: IPv4, then IPv6.
pub(crate) type Addresses = (Ipv4Addr, Ipv6Addr);

/// Inside addresses of the near host and of the guest.
pub(crate) const INSIDE: [Addresses; 2] = [
    (Ipv4Addr::new(10, 77, 0, 1), Ipv6Addr::new(0xfd77, 0, 0, 0, 0, 0, 0, 1)),
    (Ipv4Addr::new(10, 77, 0, 2), Ipv6Addr::new(0xfd77, 0, 0, 0, 0, 0, 0, 2)),
];

/// One of the two directions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    ToGuest,
    FromGuest,
}

/// Everything that both ends are told.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Agreement {
    pub(crate) case: Case,
    /// Tells its SPIs and keys from those of every other.
    pub(crate) number: u16,
    /// Outside addresses of the near host and of the guest.
    pub(crate) outside: [Addresses; 2],
}

/// The protocols with keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Layer {
    Esp,
    Ah,
}

impl Agreement {
    /// The outer addresses: from whom, to whom.
    pub(crate) fn outer(&self, direction: Direction) -> (IpAddr, IpAddr) {
        pair(self.outside, self.case.outer, direction)
    }

    /// The addresses between which packets are protected: from whom, to whom.
    pub(crate) fn protected(&self, direction: Direction) -> Vec<(IpAddr, IpAddr)> {
        match self.case.mode {
            Mode::Transport => vec![self.outer(direction)],
            Mode::Tunnel | Mode::Aggfrag(_) => {
                [Version::V4, Version::V6].map(|version| pair(INSIDE, version, direction)).to_vec()
            }
        }
    }

    /// The SPI of a protocol. Its first byte is one that tells ESP from everything else on a UDP port of ours.
    pub(crate) fn spi(&self, direction: Direction, layer: Layer) -> u32 {
        0x0400_0000 | u32::from(self.number) << 4 | (direction as u32) << 1 | layer as u32
    }

    /// A secret of this many bytes for the algorithm `name`, in hexadecimal.
    pub(crate) fn secret(&self, spi: u32, name: &str, length: usize) -> String {
        let seed =
            name.bytes().fold(u64::from(spi), |seed, byte| seed.wrapping_mul(257).wrapping_add(byte.into()));
        let mut random = Random::new(seed);
        (0..length).map(|_| format!("{:02x}", random.below(256))).collect()
    }

    /// The key of ESP's suite or cipher, in hexadecimal, salt included.
    pub(crate) fn cipher_key(&self, direction: Direction, esp: Esp) -> String {
        let spi = self.spi(direction, Layer::Esp);
        match esp {
            Esp::Combined(suite) => self.secret(spi, suite.name(), suite.key_material_len()),
            Esp::Separate(cipher, _) => self.secret(spi, cipher.name(), cipher.key_len()),
        }
    }

    /// The key of a protocol's integrity algorithm, in hexadecimal.
    pub(crate) fn integrity_key(&self, direction: Direction, layer: Layer, integrity: Integrity) -> String {
        self.secret(self.spi(direction, layer), integrity.name(), integrity.key_len())
    }

    /// One direction, as `tests/outside/family.py` wants it; `high` is the upper half of its sequence numbers.
    pub(crate) fn association(&self, direction: Direction, high: u32) -> Value {
        let (source, destination) = self.outer(direction);
        let (mode, size) = match self.case.mode {
            Mode::Transport => ("transport", None),
            Mode::Tunnel => ("tunnel", None),
            Mode::Aggfrag(size) => ("aggfrag", Some(size)),
        };
        json!({
            "source": source,
            "destination": destination,
            "mode": mode,
            "size": size,
            "esn": self.case.esn.then_some(high),
            "ipcomp": self.case.ipcomp.then(|| json!({"cpi": CPI})),
            "esp": self.case.esp.map(|esp| self.esp(direction, esp)),
            "ah": self.case.ah.map(|Ah { integrity, .. }| json!({
                "spi": self.spi(direction, Layer::Ah),
                "integrity": integrity.name(),
                "key": self.integrity_key(direction, Layer::Ah, integrity),
            })),
            "udp": self.case.udp.then_some([PORT; 2]),
        })
    }

    fn esp(&self, direction: Direction, esp: Esp) -> Value {
        let (cipher, integrity) = match esp {
            Esp::Combined(suite) => (suite.name(), None),
            Esp::Separate(cipher, integrity) => (cipher.name(), integrity),
        };
        json!({
            "spi": self.spi(direction, Layer::Esp),
            "cipher": cipher,
            "key": self.cipher_key(direction, esp),
            "integrity": integrity.map(Integrity::name),
            "integrity_key": integrity.map(|it| self.integrity_key(direction, Layer::Esp, it)),
        })
    }
}

fn pair([near, guest]: [Addresses; 2], version: Version, direction: Direction) -> (IpAddr, IpAddr) {
    let of = |(v4, v6): Addresses| match version {
        Version::V4 => IpAddr::from(v4),
        Version::V6 => IpAddr::from(v6),
    };
    match direction {
        Direction::ToGuest => (of(near), of(guest)),
        Direction::FromGuest => (of(guest), of(near)),
    }
}

#[test]
fn no_two_associations_share_a_number_or_a_key() {
    let mut seen = std::collections::BTreeSet::new();
    let outside = INSIDE;
    for (number, case) in (0..).zip(crate::matrix::matrix()) {
        let agreement = Agreement { case, number, outside };
        for direction in [Direction::ToGuest, Direction::FromGuest] {
            for layer in [Layer::Esp, Layer::Ah] {
                let spi = agreement.spi(direction, layer);
                assert!((0x04..=0x0f).contains(&(spi >> 24)), "{spi:#x}");
                assert!(seen.insert(agreement.secret(spi, Suite::Aes128Gcm.name(), 16)));
                assert!(seen.insert(agreement.secret(spi, Cipher::Aes128Cbc.name(), 16)));
            }
        }
    }
}
