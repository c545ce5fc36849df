//! The algorithms that a header names, each apart from the others (draft-ietf-ipsec-skip-06 section 2.1), and their numbers here.

use strait_compress::CodecSet;
use strait_crypto::{Cipher, Integrity, Suite};
use strait_ipsec::{IpcompSpec, Payloads};
use strait_wire::sessionless::Algorithms;

/// How a packet key is wrapped under Kijn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum KijAlgorithm {
    /// AES-256-GCM-SIV (RFC 8452): a nonce that comes twice shows only whether the same was wrapped.
    #[default]
    Aes256GcmSiv = 1,
    /// ChaCha20-Poly1305 (RFC 8439).
    ChaCha20Poly1305 = 2,
    /// AES-256-GCM (NIST SP 800-38D).
    Aes256Gcm = 3,
    /// AES-128-GCM (NIST SP 800-38D).
    Aes128Gcm = 4,
}

impl KijAlgorithm {
    /// Every algorithm.
    pub const ALL: [KijAlgorithm; 4] = [
        KijAlgorithm::Aes256GcmSiv,
        KijAlgorithm::ChaCha20Poly1305,
        KijAlgorithm::Aes256Gcm,
        KijAlgorithm::Aes128Gcm,
    ];

    /// Its number in headers.
    #[must_use]
    pub const fn id(self) -> u8 {
        self as u8
    }

    fn from_id(id: u8) -> Option<KijAlgorithm> {
        KijAlgorithm::ALL.into_iter().find(|algorithm| algorithm.id() == id)
    }

    /// The name in configuration files and reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            KijAlgorithm::Aes256GcmSiv => "aes-256-gcm-siv",
            KijAlgorithm::ChaCha20Poly1305 => "chacha20-poly1305",
            KijAlgorithm::Aes256Gcm => "aes-256-gcm",
            KijAlgorithm::Aes128Gcm => "aes-128-gcm",
        }
    }
}

/// How payloads are encrypted and authenticated: the Crypt and the MAC algorithm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protection {
    /// One algorithm for both, with implicit IVs (RFC 8750).
    Aead(Suite),
    /// A cipher, then an integrity algorithm over what it made: for the lab and old peers.
    Separate(Cipher, Integrity),
}

/// What the payload may be beside a packet: the Comp algorithm.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Compression {
    /// Packets as they are, and nothing else.
    None,
    /// Bundles and Strait blocks, in the codecs that the receiver's card names.
    #[default]
    Strait,
    /// IPComp with DEFLATE (RFC 2394).
    Deflate,
    /// IPComp with LZS (RFC 2395).
    Lzs,
}

impl Compression {
    /// The payloads that a receiver with these codecs and this largest block takes.
    #[must_use]
    pub const fn payloads(self, codecs: CodecSet, block_cap: u32) -> Payloads {
        match self {
            Compression::None => Payloads::Standard(None),
            Compression::Strait => Payloads::Strait { codecs, block_cap },
            Compression::Deflate => Payloads::Standard(Some(IpcompSpec::DEFLATE)),
            Compression::Lzs => Payloads::Standard(Some(IpcompSpec::LZS)),
        }
    }
}

/// Numbers of ciphers from 0x40 on, by name, so that those of builds without old ciphers are the same.
const CIPHERS: [&str; 15] = [
    "null",
    "aes-128-cbc",
    "aes-192-cbc",
    "aes-256-cbc",
    "des-cbc",
    "3des-cbc",
    "two-key-3des-cbc",
    "idea-cbc",
    "rc2-40-cbc",
    "rc2-128-cbc",
    "rc4-40",
    "rc4-128",
    "safer-sk-128-cbc",
    "rc5-32-12-16-cbc",
    "rc5-32-16-16-cbc",
];
const CIPHER_BASE: u8 = 0x40;
/// Numbers of integrity algorithms from 1 on, by name.
const INTEGRITY: [&str; 5] =
    ["hmac-sha-256-128", "hmac-sha-384-192", "hmac-sha-512-256", "hmac-sha-1-96", "hmac-md5-96"];

/// What a header's number of the Kij algorithm has beside that of the wrapping where Kij is that of a day.
const DAILY: u8 = 0x10;

/// The same numbers, where Kij is that of a day.
pub(crate) const fn with_daily_keys(numbers: Algorithms) -> Algorithms {
    Algorithms { kij: numbers.kij | DAILY, ..numbers }
}

/// Whether Kij is that of a day, and the numbers as if it were not.
pub(crate) const fn without_daily_keys(numbers: Algorithms) -> (bool, Algorithms) {
    (numbers.kij & DAILY != 0, Algorithms { kij: numbers.kij & !DAILY, ..numbers })
}

/// The algorithms of a packet key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketAlgorithms {
    /// Crypt and MAC.
    pub protection: Protection,
    /// Comp.
    pub compression: Compression,
}

/// A number of a header that stands for no algorithm of this node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the {kind} algorithm {number} is unknown here")]
pub struct UnknownAlgorithm {
    /// Which of the four it is.
    pub kind: &'static str,
    /// Its number.
    pub number: u8,
}

impl PacketAlgorithms {
    /// The numbers that stand for these and for `kij`; none for an algorithm that has no number.
    #[must_use]
    pub fn numbers(self, kij: KijAlgorithm) -> Option<Algorithms> {
        let (crypt, mac) = match self.protection {
            Protection::Aead(suite) => (suite.id(), 0),
            Protection::Separate(cipher, integrity) => {
                (CIPHER_BASE + place(&CIPHERS, cipher.name())?, 1 + place(&INTEGRITY, integrity.name())?)
            }
        };
        let comp = match self.compression {
            Compression::None => 0,
            Compression::Strait => 1,
            // Those of IPComp (RFC 2407 section 4.4.5).
            Compression::Deflate => 2,
            Compression::Lzs => 3,
        };
        Some(Algorithms { kij: kij.id(), crypt, mac, comp })
    }

    /// What the numbers of a header stand for.
    ///
    /// # Errors
    /// [`UnknownAlgorithm`] for the first number that is not known, and for an encryption without integrity.
    pub fn of(numbers: Algorithms) -> Result<(KijAlgorithm, PacketAlgorithms), UnknownAlgorithm> {
        let Algorithms { kij, crypt, mac, comp } = numbers;
        let unknown = |kind, number| UnknownAlgorithm { kind, number };
        let wrapping = KijAlgorithm::from_id(kij).ok_or(unknown("Kij", kij))?;
        let protection = match (Suite::from_id(crypt), mac) {
            (Some(suite), 0) => Protection::Aead(suite),
            (Some(_), _) => return Err(unknown("MAC", mac)),
            (None, _) => {
                let cipher = named(&CIPHERS, crypt, CIPHER_BASE).and_then(|name| name.parse().ok());
                let integrity = named(&INTEGRITY, mac, 1).and_then(|name| name.parse().ok());
                Protection::Separate(
                    cipher.ok_or(unknown("Crypt", crypt))?,
                    integrity.ok_or(unknown("MAC", mac))?,
                )
            }
        };
        let compression = match comp {
            0 => Compression::None,
            1 => Compression::Strait,
            2 => Compression::Deflate,
            3 => Compression::Lzs,
            _ => return Err(unknown("Comp", comp)),
        };
        Ok((wrapping, PacketAlgorithms { protection, compression }))
    }
}

fn place(names: &[&str], name: &str) -> Option<u8> {
    names.iter().position(|known| *known == name).and_then(|at| u8::try_from(at).ok())
}

fn named(names: &[&'static str], number: u8, base: u8) -> Option<&'static str> {
    names.get(usize::from(number.checked_sub(base)?)).copied()
}

#[cfg(test)]
mod tests {
    use super::*;
    use strait_crypto::KeyedAlgorithm;

    #[test]
    fn numbers_round_trip_and_every_algorithm_has_one() {
        let suites = Suite::ALL.map(Protection::Aead);
        let separate = Cipher::EVERY
            .iter()
            .flat_map(|cipher| Integrity::EVERY.iter().map(|mac| Protection::Separate(*cipher, *mac)));
        let compressions = [Compression::None, Compression::Strait, Compression::Deflate, Compression::Lzs];
        for protection in suites.into_iter().chain(separate) {
            for (kij, compression) in KijAlgorithm::ALL.into_iter().zip(compressions) {
                let algorithms = PacketAlgorithms { protection, compression };
                let numbers = algorithms.numbers(kij);
                assert!(numbers.is_some(), "{algorithms:?}");
                assert_eq!(PacketAlgorithms::of(numbers.unwrap()), Ok((kij, algorithms)));
            }
        }
    }

    #[test]
    fn what_is_not_known_is_named_and_nothing_goes_without_integrity() {
        let good = Algorithms { kij: 1, crypt: 1, mac: 0, comp: 0 };
        for (numbers, kind, number) in [
            (Algorithms { kij: 0, ..good }, "Kij", 0),
            (Algorithms { kij: 5, ..good }, "Kij", 5),
            (Algorithms { crypt: 0, ..good }, "Crypt", 0),
            (Algorithms { crypt: 0x4f, mac: 1, ..good }, "Crypt", 0x4f),
            (Algorithms { crypt: 0x41, mac: 0, ..good }, "MAC", 0),
            (Algorithms { crypt: 0x41, mac: 6, ..good }, "MAC", 6),
            (Algorithms { mac: 1, ..good }, "MAC", 1),
            (Algorithms { comp: 4, ..good }, "Comp", 4),
        ] {
            assert_eq!(PacketAlgorithms::of(numbers), Err(UnknownAlgorithm { kind, number }), "{numbers:?}");
        }
    }
}
