//! What sections 4.1, 4.2 and 8 say of Table 2.

use core::ops::Range;

use super::{SpeedupGrid, cells};
use crate::claim::{ClaimRule, Finding, greatest, least};
use crate::vpn::printed::{COMBINATIONS, NETWORKS};

/// Figures that claims are judged by.
pub(super) struct Set {
    /// Table 2.
    pub(super) cells: SpeedupGrid,
    /// The same with other headers; only what is computed has it.
    pub(super) others: Option<[SpeedupGrid; 2]>,
    /// What 63 and 64 KiB with all headers leave of the longest IPv6 packet, in bytes; likewise.
    pub(super) left: Option<[i64; 2]>,
}

/// Columns: hashes alone, ciphers alone.
const HASHES: [usize; 2] = [0, 1];
const CIPHERS: [usize; 2] = [2, 5];
const TRIPLE_DES: usize = 5;
/// Rows.
const TEN: usize = 2;
const HUNDRED: usize = 3;
const GIGABIT: usize = 4;

pub(super) const RULES: [ClaimRule<Set>; 10] = [
    ClaimRule {
        section: "4.1",
        words: "the 63 KB payload size represents the largest possible payload size but leaves room for ESP, AH, \
                IPComp, and TCP headers",
        reading: "with all of them 63 KiB fit the 65,535 bytes behind an IPv6 header, and 64 KiB do not",
        judge: |it| {
            let [largest, beyond] = it.left?;
            Some((largest >= 0 && beyond < 0, format!("{largest} bytes are left; of 64 KiB {beyond}")))
        },
    },
    ClaimRule {
        section: "4.1",
        words: "The use of additional headers or a transport protocol other than TCP should not significantly affect \
                the performance results",
        reading: "with UDP's header of 8 bytes, or TCP's longest of 60, no cell changes by more than 0.01",
        judge: |it| {
            let others = it.others.as_ref()?;
            let changes = others.iter().flat_map(|other| {
                let change = |row: usize, column: usize| (other[row][column] - it.cells[row][column]).abs();
                cells(0..NETWORKS.len()).map(move |(row, column, name)| (name, change(row, column)))
            });
            let (name, most) = greatest(changes);
            Some((most <= 0.01, format!("at most {most:.4} ({name})")))
        },
    },
    ClaimRule {
        section: "4.2",
        words: "encryption and authentication never degrade performance more than 10% when using 56 kbps or 1.54 Mbps \
                network connections",
        reading: "no cell of these two networks is below 0.90",
        judge: |it| {
            let (name, low) = least(named(it, 0..2));
            Some((low >= 0.9, format!("at least {low:.3} ({name})")))
        },
    },
    ClaimRule {
        section: "4.2",
        words: "As bandwidth increases, however, the performance impact of authentication and encryption becomes more \
                pronounced",
        reading: "in no column does a cell exceed the one above it, and the last is below the first",
        judge: more_pronounced,
    },
    ClaimRule {
        section: "4.2",
        words: "Both encryption and authentication decimate performance when using a 1 Gbps link",
        reading: "no cell keeps half",
        judge: |it| {
            let (name, most) = greatest(named(it, GIGABIT..GIGABIT + 1));
            Some((most < 0.5, format!("at most {most:.3} ({name})")))
        },
    },
    ClaimRule {
        section: "4.2",
        words: "the encryption algorithms have a greater effect on the performance than the authentication algorithms",
        reading: "on every network each cipher alone is below each hash alone",
        judge: greater_effect,
    },
    ClaimRule {
        section: "4.2",
        words: "This performance differential between encryption and authentication becomes more pronounced as \
                bandwidth increases",
        reading: "the least quotient of a hash's cell and a cipher's rises from network to network",
        judge: |it| rising(it, |hash, cipher| hash / cipher),
    },
    ClaimRule {
        section: "4.2",
        words: "This performance differential between encryption and authentication becomes more pronounced as \
                bandwidth increases",
        reading: "the least difference of a hash's cell and a cipher's rises from network to network",
        judge: |it| rising(it, |hash, cipher| hash - cipher),
    },
    ClaimRule {
        section: "8",
        words: "Encryption with 3DES can reduce system performance by 36% for 10 Mbps networks and 85% for 100 Mbps \
                networks",
        reading: "rounded to whole per cents",
        judge: |it| {
            let lost = [TEN, HUNDRED].map(|row| (1.0 - it.cells[row][TRIPLE_DES]) * 100.0);
            let holds = lost.iter().zip([36.0, 85.0]).all(|(lost, said)| (lost - said).abs() <= 0.5);
            Some((holds, format!("{:.1} and {:.1} %", lost[0], lost[1])))
        },
    },
    ClaimRule {
        section: "8",
        words: "an encrypted transaction can be 1.5 times slower than normal transactions over a 10 Mbps network and \
                6.6 times slower over a 100 Mbps network",
        reading: "within a tenth",
        judge: |it| {
            let times = [TEN, HUNDRED].map(|row| 1.0 / it.cells[row][TRIPLE_DES]);
            let holds = times.iter().zip([1.5, 6.6]).all(|(times, said)| (times - said).abs() <= 0.1);
            Some((holds, format!("{:.2} and {:.2} times", times[0], times[1])))
        },
    },
];

/// The cells of some networks with their names.
fn named(it: &Set, rows: Range<usize>) -> impl Iterator<Item = (String, f64)> {
    cells(rows).map(|(row, column, name)| (name, it.cells[row][column]))
}

fn more_pronounced(it: &Set) -> Option<Finding> {
    let rises = cells(1..NETWORKS.len())
        .map(|(row, column, name)| (name, it.cells[row][column] - it.cells[row - 1][column]));
    let (name, rise) = greatest(rises);
    let falls = |column: usize| it.cells[GIGABIT][column] < it.cells[0][column];
    let holds = rise <= 0.0 && (0..COMBINATIONS.len()).all(falls);
    Some((holds, format!("the least fall is {:.4} ({name})", 0.0 - rise)))
}

/// On one network, the lower of the hashes' cells and the higher of the ciphers'.
fn closest(it: &Set, row: usize) -> (f64, f64) {
    let of = |columns: [usize; 2]| columns.map(|column| it.cells[row][column]);
    let ([md5, sha1], [rc5, triple_des]) = (of(HASHES), of(CIPHERS));
    (md5.min(sha1), rc5.max(triple_des))
}

fn greater_effect(it: &Set) -> Option<Finding> {
    let not = |row: &usize| {
        let (hash, cipher) = closest(it, *row);
        cipher >= hash
    };
    let rows: Vec<String> = (0..NETWORKS.len())
        .filter(not)
        .map(|row| {
            let (hash, cipher) = closest(it, row);
            format!("{}: a cipher has {cipher:.3}, a hash {hash:.3}", NETWORKS[row].0)
        })
        .collect();
    let words =
        if rows.is_empty() { "on every network".to_owned() } else { format!("not on {}", rows.join("; ")) };
    Some((rows.is_empty(), words))
}

/// Whether the differential of hashes and ciphers grows with the network's rate.
fn rising(it: &Set, differential: fn(f64, f64) -> f64) -> Option<Finding> {
    let values: Vec<f64> = (0..NETWORKS.len())
        .map(|row| {
            let (hash, cipher) = closest(it, row);
            differential(hash, cipher)
        })
        .collect();
    let words = values.iter().map(|value| format!("{value:.2}")).collect::<Vec<_>>().join(", ");
    Some((values.windows(2).all(|pair| pair[0] < pair[1]), words))
}
