//! Each sentence with its reading.

use super::super::printed::{DISK, FAST, SLOW};
use super::{BrokerFigures, pairs};
use crate::claim::{ClaimRule, ClaimTally, Finding};

/// "You should mentally adjust to 10-20% tolerance": what is equal is within the smaller,
const EQUAL: f64 = 0.10;
/// and what is about the same, or small, within the larger.
const ABOUT: f64 = 0.20;
/// "No significant CPU load", in parts of a hundred of a core.
const INSIGNIFICANT: f64 = 5.0;
/// "A lot faster": twice.
const A_LOT: f64 = 2.0;
/// The places of the ciphers among columns.
const NONE: usize = 0;
const TLS: usize = 1;
const RC4: usize = 2;
const AES: usize = 3;
const GOOD: &[usize] = &[DISK, FAST];
const NETWORKS: &[usize] = &[FAST, SLOW];

fn tally(cells: impl Iterator<Item = ([String; 3], f64)>, meets: impl Fn(f64) -> bool) -> Option<Finding> {
    let mut tally = ClaimTally::default();
    for ([first, second, third], figure) in cells {
        tally.count([&first, &second, &third], figure, meets(figure));
    }
    tally.every()
}

/// Of each cipher in some places: compressed over plain.
fn gains(it: &BrokerFigures, places: &'static [usize]) -> impl Iterator<Item = ([String; 3], f64)> {
    pairs(&it.table, places).map(|([place, cipher], _, [plain, compressed])| {
        ([place.to_owned(), cipher.to_owned(), "compressed over plain".to_owned()], compressed / plain)
    })
}

/// In some places, of each combination that both ciphers have: the figure of one over that of the other.
fn versus(
    it: &BrokerFigures,
    places: &'static [usize],
    [one, other]: [usize; 2],
    states: core::ops::Range<usize>,
) -> Vec<([String; 3], f64)> {
    let of = |cipher: usize| pairs(&it.table, places).filter(move |(_, at, _)| *at == cipher);
    let mut found = Vec::new();
    for ([place, name], _, figures) in of(one) {
        for ([there, beside], _, others) in of(other).filter(|([there, _], ..)| *there == place) {
            let state = |at: usize| ["plain", "compressed"][at];
            found.extend(states.clone().map(|at| {
                (
                    [there.to_owned(), state(at).to_owned(), format!("{name} over {beside}")],
                    figures[at] / others[at],
                )
            }));
        }
    }
    found
}

fn equal(ratio: f64) -> bool {
    (1.0 - EQUAL..=1.0 / (1.0 - EQUAL)).contains(&ratio)
}

pub(in crate::broker) const RULES: [ClaimRule<BrokerFigures>; 15] = [
    ClaimRule {
        section: "text",
        words: "When transfer speeds are good, compression slows things down, even with highly compressible data.",
        reading: "from disk to disk and over the fast network, compressed is slower than plain with each cipher. In the post's own \
                  table TLS is faster compressed, 80 and 77",
        judge: |it| tally(gains(it, GOOD), |gain| gain < 1.0),
    },
    ClaimRule {
        section: "text",
        words: "However in the slow network case you get 10 times faster transfers, which is quite a significant boost.",
        reading: "over the slow network, compressed is at least 10 times as fast as plain with each cipher",
        judge: |it| tally(gains(it, &[SLOW]), |gain| gain >= 10.0),
    },
    ClaimRule {
        section: "text",
        words: "With less compressable data the boost will not be as good, but on the other hand, slow down should be about the same.",
        reading: "with data that shrinks 3 to 4 times: over the slow network gains less; without encryption from disk to disk, its \
                  compressed speed is within 20 % of that of the other data, the larger of the tolerances that the post names",
        judge: |it| {
            let less = BrokerFigures::of(it.less?);
            let boost = |it: &BrokerFigures| gains(it, &[SLOW]).next().map(|(_, gain)| gain);
            let slow_down = |it: &BrokerFigures| gains(it, &[DISK]).next().map(|(_, gain)| gain);
            let (boosts, speeds) = ([boost(it)?, boost(&less)?], [slow_down(it)?, slow_down(&less)?]);
            let holds = boosts[1] < boosts[0] && (speeds[1] / speeds[0] - 1.0).abs() <= ABOUT;
            let because = format!(
                "boost {:.1} and {:.1} times; disk to disk {:.0} and {:.0} of 100",
                boosts[0],
                boosts[1],
                speeds[0] * 100.0,
                speeds[1] * 100.0
            );
            Some((holds, because))
        },
    },
    ClaimRule {
        section: "text",
        words: "Hence the price you pay is small",
        reading: "over the fast network, compressed has at least 80 % of plain's speed with each cipher",
        judge: |it| tally(gains(it, &[FAST]), |gain| gain >= 1.0 - ABOUT),
    },
    ClaimRule {
        section: "text",
        words: "and even smaller when encryption is used because compression reduces the amount of bytes to encrypt",
        reading: "from disk to disk and over the fast network: compressed over plain is greater with each cipher than without. In the \
                  post's own table it is so from disk to disk; over its fast network it is 0.90 without, 0.79 with RC4, 0.87 with AES",
        judge: |it| {
            let mut all = Vec::new();
            let encrypted = pairs(&it.table, GOOD).filter(|(_, cipher, _)| *cipher != NONE);
            for ([place, cipher], _, [plain, compressed]) in encrypted {
                let bare = pairs(&it.table, GOOD).find(|(name, at, _)| name[0] == place && *at == NONE);
                let (_, _, [bare_plain, bare_compressed]) = bare?;
                let figure = (compressed / plain) / (bare_compressed / bare_plain);
                all.push(([place.to_owned(), cipher.to_owned(), "over without".to_owned()], figure));
            }
            tally(all.into_iter(), |ratio| ratio > 1.0)
        },
    },
    ClaimRule {
        section: "text",
        words: "From encryption results you can see that RC4 is the clear winner",
        reading: "plain, from disk to disk and over the fast network: RC4 is faster than AES and than TLS by more than 10 %",
        judge: |it| {
            let others = [AES, TLS].map(|other| versus(it, GOOD, [RC4, other], 0..1));
            tally(others.into_iter().flatten(), |ratio| ratio > 1.0 + EQUAL)
        },
    },
    ClaimRule {
        section: "text",
        words: "and SSL and AES have a tie",
        reading: "over both networks, plain and compressed: AES within 10 % of TLS. In the post's own table AES has 87 and TLS 77 over \
                  the fast network, 1060 and 1220 over the slow one, where neither cipher costs anything: within 20 % it is a tie",
        judge: |it| tally(versus(it, NETWORKS, [AES, TLS], 0..2).into_iter(), equal),
    },
    ClaimRule {
        section: "text",
        words: "Actually in both network cases RC4 performance is equal to not encrypting at all.",
        reading: "plain, over both networks: RC4 within 10 % of no encryption. From disk to disk it has 41 of 100 in the post's table",
        judge: |it| tally(versus(it, NETWORKS, [RC4, NONE], 0..1).into_iter(), equal),
    },
    ClaimRule {
        section: "text",
        words: "The only difference was about 30-50% CPU load on one core when network speed was high",
        reading: "plain, over the fast network: RC4 adds 30 to 50 % of a core at the sender. The post prints no figure but these words; \
                  what is computed is the time that RC4 takes by its row from disk to disk, at the 33.4 Mbit/s of the fast network",
        judge: |it| {
            let [fast, _] = it.rc4_load?;
            Some(((30.0..=50.0).contains(&fast), format!("{fast:.1} %")))
        },
    },
    ClaimRule {
        section: "text",
        words: "for slow network there was no significant CPU load",
        reading: "plain, over the slow network: RC4 adds less than 5 % of a core",
        judge: |it| {
            let [_, slow] = it.rc4_load?;
            Some((slow < INSIGNIFICANT, format!("{slow:.4} %")))
        },
    },
    ClaimRule {
        section: "text",
        words: "With RC4 key size does not slow down encryption",
        reading: "keys of 40, 128 and 256 bits: the slowest takes at most 10 % more time than the fastest",
        judge: |it| {
            let [rc4, _] = it.keys?;
            let (least, most) =
                (rc4.into_iter().fold(f64::INFINITY, f64::min), rc4.into_iter().fold(0.0, f64::max));
            Some((
                most <= least * (1.0 + EQUAL),
                format!("{:.2}, {:.2} and {:.2} ns a byte", rc4[0], rc4[1], rc4[2]),
            ))
        },
    },
    ClaimRule {
        section: "text",
        words: "but with AES it does",
        reading: "keys of 128, 192 and 256 bits: 256 take more than 10 % more time than 128; AES by itself, without the disk",
        judge: |it| {
            let [_, aes] = it.keys?;
            let because = format!("{:.3}, {:.3} and {:.3} ns a byte", aes[0], aes[1], aes[2]);
            Some((aes[2] > aes[0] * (1.0 + EQUAL), because))
        },
    },
    ClaimRule {
        section: "text",
        words: "BEST_SPEED mode, which compresses practically as well as stronger modes",
        reading: "the data that shrinks most: the best level makes it smaller by less than 10 %",
        judge: |it| {
            let [fastest, default, best] = it.levels?.map(|(ratio, _)| ratio);
            Some((best / fastest < 1.0 + EQUAL, format!("ratios {fastest:.2}, {default:.2} and {best:.2}")))
        },
    },
    ClaimRule {
        section: "text",
        words: "but is a lot faster",
        reading: "the same data: the default level, the weakest of the stronger modes that zlib names, takes at least twice the time",
        judge: |it| {
            let [fastest, default, best] = it.levels?.map(|(_, nanos)| nanos);
            let because = format!("{fastest:.2}, {default:.2} and {best:.2} ns a byte");
            Some((default >= A_LOT * fastest, because))
        },
    },
    ClaimRule {
        section: "text",
        words: "With AES, you get stronger encryption for the same performance penalty.",
        reading: "plain, over both networks: AES has at least 90 % of TLS's speed",
        judge: |it| {
            let ratios = versus(it, NETWORKS, [AES, TLS], 0..1);
            tally(ratios.into_iter(), |ratio| ratio >= 1.0 - EQUAL)
        },
    },
];
