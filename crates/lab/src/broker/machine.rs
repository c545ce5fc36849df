//! The table for a machine of which the costs of each stage are known: this one, one as slow as the post's, and the post's own.

use super::pipeline::StageSeconds;
use super::printed::{DISK, FAST, RAW, SLOW, TABLE};
use super::stages::{LevelRuns, StageCosts};
use crate::measure::RunValues;

/// A figure for each combination in each place, as the post's table has them.
pub(super) type PlaceTable = [[Option<f64>; 8]; 3];

/// Nanoseconds a byte that is given, of every stage of a machine.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct StageNanos {
    pub(super) read: f64,
    pub(super) write: f64,
    pub(super) deflate: f64,
    /// Without, TLS, RC4, AES.
    pub(super) ciphers: [f64; 4],
    /// Bytes that DEFLATE leaves of each.
    pub(super) left: f64,
}

/// The place of RC4 in [`StageNanos::ciphers`], and of its column.
const RC4: usize = 2;
/// The places of TLS and AES likewise.
const TLS: usize = 1;
const AES: usize = 3;

impl StageNanos {
    /// This machine, with one payload.
    pub(super) fn here(costs: &StageCosts, level: &LevelRuns) -> StageNanos {
        let median = |it: &RunValues| it.spread().map_or(f64::NAN, |spread| spread.median);
        let [_, by_tables] = &costs.aes;
        StageNanos {
            read: median(&costs.read),
            write: median(&costs.write),
            deflate: median(&level.nanos),
            ciphers: [0.0, median(&costs.tls), median(costs.rc4_128()), median(&by_tables[0])],
            left: 1.0 / level.ratio,
        }
    }

    /// A machine as slow as the post's, with the factor by which computing takes longer there than here. Two cells of its row from
    /// disk to disk set the scale: reading and writing take what its 139.0 Mbit/s say, RC4 what its 41 of 100 say, and all
    /// computing is slower by the same factor as RC4.
    pub(super) fn slowed(self) -> (StageNanos, f64) {
        let factor = added(2 * RC4) / self.ciphers[RC4];
        let slow = StageNanos {
            deflate: self.deflate * factor,
            ciphers: self.ciphers.map(|cipher| cipher * factor),
            ..self.copying()
        };
        (slow, factor)
    }

    /// The post's machine by four cells of its row from disk to disk: plain data without encryption, with RC4 and with AES, and
    /// compressed data without encryption. TLS takes as much more than RC4 as here.
    pub(super) fn of_the_post(self) -> StageNanos {
        let (copying, rc4) = (self.copying(), added(2 * RC4));
        StageNanos {
            // Compressed data also saves writing.
            deflate: added(1) + copying.write * (1.0 - self.left),
            ciphers: [0.0, rc4 * self.ciphers[TLS] / self.ciphers[RC4], rc4, added(2 * AES)],
            ..copying
        }
    }

    /// This machine, but reading and writing take as long as the post's, in the proportion that they have here.
    fn copying(self) -> StageNanos {
        let (copy, reading) = (8e3 / RAW[DISK], self.read / (self.read + self.write));
        StageNanos { read: copy * reading, write: copy * (1.0 - reading), ..self }
    }

    /// Times a byte of the payload, in nanoseconds, at the sender and at the broker, and bytes on the wire.
    fn ends(&self, combination: usize) -> ([f64; 2], f64) {
        let (cipher, compressed) = (combination / 2, combination % 2 == 1);
        let (deflate, left) = if compressed { (self.deflate, self.left) } else { (0.0, 1.0) };
        let encrypt = self.ciphers[cipher] * left;
        // The broker's end takes TLS off, which computes the same again.
        let decrypt = if cipher == TLS { encrypt } else { 0.0 };
        ([self.read + deflate + encrypt, decrypt + self.write * left], left)
    }

    /// Its speeds in the post's places, of 100 each, over links that carry what the post's did.
    pub(super) fn table(&self) -> PlaceTable {
        let rate = |place: usize, combination: usize| match place {
            DISK if combination / 2 == TLS => None,
            DISK => {
                let ([sender, receiver], _) = self.ends(combination);
                Some(8e3 / (sender + receiver))
            }
            _ => Some(self.stages(place, combination).rate() / 1e6),
        };
        [DISK, FAST, SLOW].map(|place| {
            let plain = rate(place, 0).unwrap_or(f64::NAN);
            core::array::from_fn(|combination| rate(place, combination).map(|rate| rate / plain * 100.0))
        })
    }

    /// Parts of a hundred of a core that RC4 adds at the sender on a network of the post.
    pub(super) fn rc4_load(&self, place: usize) -> f64 {
        let load = |combination| self.stages(place, combination).loads()[0] * 100.0;
        load(2 * RC4) - load(0)
    }

    fn stages(&self, place: usize, combination: usize) -> StageSeconds {
        let (ends, wire) = self.ends(combination);
        StageSeconds::of(ends.map(|nanos| nanos / 1e9), wire, RAW[place] * 1e6)
    }
}

/// Nanoseconds a byte that a combination adds to plain data without encryption in the post's row from disk to disk.
fn added(combination: usize) -> f64 {
    let copy = 8e3 / RAW[DISK];
    TABLE[DISK][combination].map_or(f64::NAN, |cell| copy * (100.0 / cell - 1.0))
}

/// Parts of a hundred of a core that RC4 takes on a network of the post: the time that it adds from disk to disk, at the rate of
/// the network.
pub(super) fn expected_rc4_load(place: usize) -> f64 {
    added(2 * RC4) / 1e9 * RAW[place] * 1e6 / 8.0 * 100.0
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reading takes as long as writing, RC4 as long as both, a tenth of the bytes is left.
    const HERE: StageNanos =
        StageNanos { read: 0.5, write: 0.5, deflate: 4.0, ciphers: [0.0, 3.0, 1.0, 2.0], left: 0.1 };

    fn close(ours: Option<f64>, expected: f64) {
        assert!(ours.is_some_and(|ours| (ours / expected - 1.0).abs() < 1e-3), "{ours:?}, not {expected}");
    }

    #[test]
    fn a_machine_by_hand() {
        // 2 ns a byte to copy, 8 to compress, and 2, 6 and 4 to encrypt.
        let table =
            StageNanos { read: 1.0, write: 1.0, deflate: 8.0, ciphers: [0.0, 6.0, 2.0, 4.0], left: 0.1 }
                .table();
        close(table[DISK][0], 100.0);
        close(table[DISK][1], 100.0 * 2.0 / 9.1);
        assert_eq!(table[DISK][2], None);
        close(table[DISK][4], 50.0);
        close(table[DISK][5], 100.0 * 2.0 / 9.3);
        close(table[DISK][6], 100.0 * 2.0 / 6.0);
        // Its ends are far faster than both networks.
        close(table[FAST][0], 100.0);
        close(table[FAST][6], 100.0);
        close(table[SLOW][1], 1000.0);
        close(table[SLOW][7], 1000.0);
    }

    #[test]
    fn two_cells_of_the_post_set_the_scale() {
        let (slow, factor) = HERE.slowed();
        let copy = 8e3 / 139.0;
        assert!((slow.read + slow.write - copy).abs() < 1e-9 && (slow.read - copy / 2.0).abs() < 1e-9);
        assert!((slow.ciphers[RC4] - copy * (100.0 / 41.0 - 1.0)).abs() < 1e-9);
        assert!((slow.deflate / HERE.deflate - factor).abs() < 1e-9);
        let table = slow.table();
        close(table[DISK][0], 100.0);
        close(table[DISK][4], 41.0);
        // 3 times RC4's 82.8 ns a byte, and 28.8 to read: 28.9 Mbit/s of 33.4.
        close(table[FAST][2], 8e3 / (28.777 + 3.0 * 82.819) / 33.4 * 100.0);
        close(Some(slow.rc4_load(FAST)), 82.819 * 33.4 / 80.0);
    }

    #[test]
    fn four_cells_of_the_post_are_its_machine() {
        let post = HERE.of_the_post();
        let table = post.table();
        for (combination, cell) in TABLE[DISK].into_iter().enumerate().filter(|(at, _)| ![5, 7].contains(at))
        {
            match cell {
                Some(cell) => close(table[DISK][combination], cell),
                None => assert_eq!(table[DISK][combination], None),
            }
        }
        // A tenth of the bytes to encrypt beside what DEFLATE leaves of 139.0 Mbit/s.
        let copy = 8e3 / 139.0;
        close(table[DISK][5], 100.0 * copy / (copy / 0.19 + 0.1 * copy * (1.0 / 0.41 - 1.0)));
        close(table[DISK][7], 100.0 * copy / (copy / 0.19 + 0.1 * copy * (1.0 / 0.22 - 1.0)));
        assert!((post.ciphers[TLS] / post.ciphers[RC4] - 3.0).abs() < 1e-9);
        // The tolerance that the post names, but for TLS, of which it has no cell from disk to disk.
        for place in [FAST, SLOW] {
            for (combination, cell) in TABLE[place].into_iter().enumerate().filter(|(at, _)| at / 2 != TLS) {
                let ratio = table[place][combination].unwrap() / cell.unwrap();
                assert!((0.8..=1.2).contains(&ratio), "{place} {combination}: {ratio}");
            }
        }
    }

    #[test]
    fn the_load_of_rc4_follows_from_the_row_for_disks() {
        close(Some(expected_rc4_load(FAST)), 34.576);
        close(Some(expected_rc4_load(SLOW)), 0.10352);
        close(Some(HERE.of_the_post().rc4_load(FAST)), 34.576);
    }
}
