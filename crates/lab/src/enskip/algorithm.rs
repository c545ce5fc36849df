//! What packets are protected with.

use std::fmt;

use strait_crypto::{Cipher, Suite};

use super::printed::ALGORITHMS;

/// What encrypts the payload: SKIP's Crypt algorithm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Crypt {
    /// Nothing.
    Null,
    /// A cipher in CBC mode.
    Blocks(Cipher),
    /// RC4, with a key of its own for each packet.
    Rc4,
    /// A suite of today, which authenticates by itself.
    Suite(Suite),
}

/// The paper's, in its order.
const CRYPTS: [Crypt; ALGORITHMS.len()] = [
    Crypt::Null,
    Crypt::Blocks(Cipher::DesCbc),
    Crypt::Blocks(Cipher::TwoKeyTripleDesCbc),
    Crypt::Blocks(Cipher::IdeaCbc),
    Crypt::Blocks(Cipher::TripleDesCbc),
    Crypt::Rc4,
    Crypt::Blocks(Cipher::Rc2_128Cbc),
    Crypt::Blocks(Cipher::SaferSk128Cbc),
];
/// Those of today.
pub(super) const TODAY: [Suite; 2] = [Suite::Aes128Gcm, Suite::ChaCha20Poly1305];

/// A row of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Combination {
    pub(super) crypt: Crypt,
    /// Whether packets are authenticated with HMAC-MD5.
    pub(super) md5: bool,
}

impl Combination {
    /// Rows: each of the paper's without and with MD5, then today's.
    pub(super) const COUNT: usize = 2 * ALGORITHMS.len() + TODAY.len();

    /// All rows.
    pub(super) fn all() -> impl Iterator<Item = Combination> {
        let both = |crypt| [false, true].map(|md5| Combination { crypt, md5 });
        let today = TODAY.map(|suite| Combination { crypt: Crypt::Suite(suite), md5: false });
        CRYPTS.into_iter().flat_map(both).chain(today)
    }

    /// One of the paper's.
    pub(super) const fn of(algorithm: usize, md5: bool) -> Combination {
        Combination { crypt: CRYPTS[algorithm], md5 }
    }

    /// The place of one of the paper's among all rows.
    pub(super) const fn place(algorithm: usize, md5: bool) -> usize {
        2 * algorithm + md5 as usize
    }

    /// Whether packets go as they are, without ENskip.
    pub(super) const fn is_plain(self) -> bool {
        matches!(self.crypt, Crypt::Null) && !self.md5
    }

    /// SKIP's number of the Crypt algorithm, so that keys of one are no keys of another; ours, but for 0.
    pub(super) fn number(self) -> u8 {
        let place = CRYPTS.iter().position(|crypt| *crypt == self.crypt);
        place.map_or(0xff, |place| place as u8)
    }
}

impl fmt::Display for Combination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = CRYPTS.iter().position(|crypt| *crypt == self.crypt);
        let name = match (self.crypt, place) {
            (_, Some(place)) => ALGORITHMS[place],
            (Crypt::Suite(suite), None) => suite.name(),
            (Crypt::Blocks(cipher), None) => cipher.name(),
            (Crypt::Null | Crypt::Rc4, None) => "none",
        };
        f.pad(&if self.md5 { format!("{name}, MD5") } else { name.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_where_their_places_say() {
        let all: Vec<Combination> = Combination::all().collect();
        assert_eq!(all.len(), Combination::COUNT);
        for algorithm in 0..ALGORITHMS.len() {
            for md5 in [false, true] {
                let row = all[Combination::place(algorithm, md5)];
                assert_eq!(row, Combination::of(algorithm, md5));
                let end = if md5 { ", MD5" } else { "" };
                assert_eq!(row.to_string(), format!("{}{end}", ALGORITHMS[algorithm]));
            }
        }
        assert_eq!(all.iter().filter(|row| row.is_plain()).count(), 1);
        assert_eq!(all[Combination::COUNT - 1].to_string(), "chacha20-poly1305");
    }
}
