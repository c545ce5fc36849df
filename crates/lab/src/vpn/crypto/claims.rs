//! What sections 4.2 and 7 say of Table 1.

use crate::claim::{ClaimRule, least, within};
use crate::vpn::printed::{SIZES, TABLE1};

/// Mbit/s, a row an algorithm as in [`TABLE1`].
pub(in crate::vpn) struct ClaimRates {
    /// By length; ciphers encrypt.
    pub(super) forth: [[f64; 3]; 4],
    /// Ciphers decrypt. The paper has one rate for both.
    pub(super) back: Option<[[f64; 3]; 4]>,
    /// At the sender on 4 KiB of zeros, over on random bytes. The paper does not have it.
    pub(super) zeros: Option<[f64; 4]>,
    /// DES encrypts and decrypts. The paper does not have it.
    pub(super) des: Option<[[f64; 3]; 2]>,
    /// The number of processors, if there are several, and the factor by which all at once are faster than one. The paper does not have it.
    pub(super) processors: Option<(f64, [f64; 4])>,
}

/// The sentence of section 1 about processors in number.
pub(in crate::vpn) const NEARLY_LINEAR: &str = "a multiprocessor system can achieve nearly linear speedup by assigning individual \
    packets or connections to single processing elements";
/// "Nearly linear": at least this share of as many times as there are processors.
pub(in crate::vpn) const NEARLY: f64 = 0.9;

/// Rows of [`TABLE1`].
const MD5: usize = 0;
const SHA1: usize = 1;
const RC5: usize = 2;
const TRIPLE_DES: usize = 3;

impl ClaimRates {
    /// As the paper prints them.
    pub(super) fn printed() -> ClaimRates {
        ClaimRates {
            forth: TABLE1.map(|(_, rates)| rates),
            back: None,
            zeros: None,
            des: None,
            processors: None,
        }
    }

    /// At each length, one algorithm's rate over another's.
    fn quotients(&self, one: usize, other: usize) -> impl Iterator<Item = (String, f64)> {
        let cells = self.forth[one].iter().zip(&self.forth[other]).zip(SIZES);
        cells.map(|((one, other), (size, ..))| (size.to_owned(), one / other))
    }
}

pub(super) const RULES: [ClaimRule<ClaimRates>; 8] = [
    ClaimRule {
        section: "1",
        words: NEARLY_LINEAR,
        reading: "with 4 KiB, each of the paper's algorithms on all processors at once, each with packets of its own, is at least \
                  nine tenths of as many times as fast as on one",
        judge: |it| {
            let (number, times) = it.processors?;
            let cells = TABLE1.iter().zip(times).map(|((name, _), times)| ((*name).to_owned(), times));
            let (name, times) = least(cells);
            Some((
                times >= NEARLY * number,
                format!("{number:.0} processors, at least {times:.2} times ({name})"),
            ))
        },
    },
    ClaimRule {
        section: "3.3",
        words: "3DES takes nearly three times as much computational time as DES to encrypt or decrypt blocks",
        reading: "at every length and in both directions between 2.5 and 3 times",
        judge: |it| {
            let (des, triple) = (it.des?, [&it.forth, it.back.as_ref()?].map(|rates| rates[TRIPLE_DES]));
            let cells = ["encrypting", "decrypting"].into_iter().zip(des.into_iter().zip(triple));
            let cells = cells.flat_map(|(direction, (des, triple))| {
                let cells = des.into_iter().zip(triple).zip(SIZES);
                cells.map(move |((des, triple), (size, ..))| (format!("{direction}, {size}"), des / triple))
            });
            within(cells, 2.5..=3.0)
        },
    },
    ClaimRule {
        section: "4.2",
        words: "the throughput of the authentication algorithms is much higher than that of the encryption algorithms",
        reading: "at every length the slower of the one kind is at least twice as fast as the faster of the other",
        judge: |it| {
            let pairs = [(MD5, RC5), (MD5, TRIPLE_DES), (SHA1, RC5), (SHA1, TRIPLE_DES)];
            let (size, factor) = least(pairs.iter().flat_map(|(hash, cipher)| it.quotients(*hash, *cipher)));
            Some((factor >= 2.0, format!("at least {factor:.2} times ({size})")))
        },
    },
    ClaimRule {
        section: "4.2",
        words: "MD5 runs slightly faster than SHA-1",
        reading: "at every length, by at most a fifth",
        judge: |it| within(it.quotients(MD5, SHA1), 1.0..=1.2),
    },
    ClaimRule {
        section: "4.2",
        words: "RC5 runs three times as fast as 3DES",
        reading: "at every length, rounded to a whole number",
        judge: |it| within(it.quotients(RC5, TRIPLE_DES), 2.5..=3.5),
    },
    ClaimRule {
        section: "7",
        words: "the throughputs of the MD5 and SHA-1 authentication algorithms differ by only 7.5% when using 63 KB \
                payloads",
        reading: "in per cent of one or the other, rounded to halves",
        judge: |it| {
            let [one, other] = [it.forth[MD5][2], it.forth[SHA1][2]];
            let shares = [one, other].map(|of| (one - other).abs() / of * 100.0);
            let holds = shares.iter().any(|share| (share - 7.5).abs() <= 0.25);
            Some((holds, format!("{one:.0} and {other:.0}: {:.1} or {:.1} %", shares[0], shares[1])))
        },
    },
    ClaimRule {
        section: "4.2",
        words: "the encryption speed of 3DES is equivalent to the decryption speed of 3DES [and that of RC5] roughly \
                the same",
        reading: "at every length within a tenth",
        judge: |it| {
            let back = it.back.as_ref()?;
            let cells = [RC5, TRIPLE_DES].into_iter().flat_map(|row| {
                let cells = back[row].iter().zip(&it.forth[row]).zip(SIZES);
                cells.map(move |((back, forth), (size, ..))| (named(row, size), back / forth))
            });
            within(cells, 0.9..=1.1)
        },
    },
    ClaimRule {
        section: "4.2",
        words: "execution time [...] is independent of the statistical characteristics of the input data",
        reading: "4 KiB of zeros and of random bytes take the same time within a tenth",
        judge: |it| {
            let cells = TABLE1.iter().zip(it.zeros?);
            let cells = cells.map(|((name, _), quotient)| ((*name).to_owned(), quotient));
            within(cells, 0.9..=1.1)
        },
    },
];

fn named(row: usize, size: &str) -> String {
    format!("{}, {size}", TABLE1[row].0)
}
