//! Each statement with its reading. The paper's words are not quoted: statements are told.

use super::super::tables::AlgorithmTable;
use super::EnskipFigures;
use crate::claim::{ClaimRule, ClaimTally, Finding};
use crate::enskip::printed::{ALGORITHMS, CLOCKS, DX2, DX4, ISDN, ISDN_PRINTED, MACHINES, NONE, P90, RC4};

/// What is equal is within this: the paper's figures have two digits.
const EQUAL: f64 = 0.10;
/// What adds up, or follows in proportion, is within this.
const ABOUT: f64 = 0.20;
/// "Twice".
const TWICE: f64 = 2.0;
/// With and without MD5.
const MD5: [&str; 2] = ["", ", MD5"];

fn equal(ratio: f64) -> bool {
    (1.0 - EQUAL..=1.0 / (1.0 - EQUAL)).contains(&ratio)
}

fn about(ratio: f64) -> bool {
    (1.0 - ABOUT..=1.0 / (1.0 - ABOUT)).contains(&ratio)
}

fn tally(cells: impl Iterator<Item = ([String; 3], f64)>, meets: impl Fn(f64) -> bool) -> Option<Finding> {
    let mut tally = ClaimTally::default();
    for ([first, second, third], figure) in cells {
        tally.count([&first, &second, &third], figure, meets(figure));
    }
    tally.every()
}

/// Cells of two tables that both have, but for those without ENskip: one over the other, by combination.
fn both(one: &AlgorithmTable, other: &AlgorithmTable) -> Vec<(String, f64)> {
    let mut all = Vec::new();
    for algorithm in 0..ALGORITHMS.len() {
        for (md5, with) in MD5.into_iter().enumerate().filter(|(md5, _)| algorithm != NONE || *md5 == 1) {
            if let Some((one, other)) = one[algorithm][md5].zip(other[algorithm][md5]) {
                all.push((format!("{}{with}", ALGORITHMS[algorithm]), one / other));
            }
        }
    }
    all
}

/// Rates with ENskip over that without.
fn slowed(table: &AlgorithmTable) -> Option<Vec<(String, f64)>> {
    let without = table[NONE][0]?;
    let rates = both(table, &[[Some(1.0); 2]; ALGORITHMS.len()]);
    Some(rates.into_iter().map(|(name, rate)| (name, rate / without)).collect())
}

/// Cells of one group.
fn group(
    what: &str,
    cells: impl IntoIterator<Item = (String, f64)>,
) -> impl Iterator<Item = ([String; 3], f64)> {
    cells.into_iter().map(move |(name, figure)| ([what.to_owned(), "combinations".to_owned(), name], figure))
}

/// Of each machine: the figure of algorithms without MD5, the greatest first.
fn ranked(table: &AlgorithmTable) -> Vec<(usize, f64)> {
    let rate = |algorithm: usize| table[algorithm][0].map(|rate| (algorithm, rate));
    let mut ranked: Vec<(usize, f64)> = (NONE + 1..ALGORITHMS.len()).filter_map(rate).collect();
    ranked.sort_by(|a, b| b.1.total_cmp(&a.1));
    ranked
}

/// One figure of each machine that has it.
fn by_machine(
    it: &EnskipFigures,
    of: impl Fn(&AlgorithmTable) -> Option<(String, f64)>,
    meets: impl Fn(f64) -> bool,
) -> Option<Finding> {
    let cells: Vec<_> =
        it.machines.iter().filter_map(|(name, table)| of(table).map(|found| (name, found))).collect();
    let words: Vec<String> =
        cells.iter().map(|(name, (what, figure))| format!("{name} {figure:.2} ({what})")).collect();
    let holds = cells.iter().all(|(_, (_, figure))| meets(*figure));
    (!cells.is_empty()).then(|| (holds, words.join("; ")))
}

/// The time of both over the sum of the times of encryption and of MD5, less that of neither.
fn sums(it: &EnskipFigures) -> impl Iterator<Item = ([String; 3], f64)> {
    it.machines.iter().flat_map(|(machine, table)| {
        (NONE + 1..ALGORITHMS.len()).filter_map(move |algorithm| {
            let [encrypted, both] = table[algorithm];
            let [neither, md5] = table[NONE];
            let sum = 1.0 / encrypted? + 1.0 / md5? - 1.0 / neither?;
            let name = ALGORITHMS[algorithm].to_owned();
            Some(([machine.clone(), "time of both over the sum".to_owned(), name], 1.0 / both? / sum))
        })
    })
}

/// Of two algorithms of which one is faster by more than a tenth: the other's rate with MD5 over its own.
fn ranks(it: &EnskipFigures) -> Vec<([String; 3], f64)> {
    let mut all = Vec::new();
    for (machine, table) in &it.machines {
        let ranked = ranked(table);
        for (at, (faster, rate)) in ranked.iter().enumerate() {
            for (slower, behind) in &ranked[at + 1..] {
                let with = table[*faster][1].zip(table[*slower][1]);
                if let Some((first, second)) = with.filter(|_| !equal(behind / rate)) {
                    let pair = format!("{} over {}", ALGORITHMS[*slower], ALGORITHMS[*faster]);
                    all.push(([machine.clone(), "with MD5".to_owned(), pair], second / first));
                }
            }
        }
    }
    all
}

/// The paper's algorithms on its machines from slow to fast: each rate over that of the machine before.
fn faster_machines(it: &EnskipFigures) -> Vec<([String; 3], f64)> {
    let table = |machine: usize| it.machines.iter().find(|(name, _)| name == MACHINES[machine]);
    let mut all = Vec::new();
    for [slow, fast] in [[DX2, DX4], [DX4, P90]] {
        let Some(((_, slow), (name, fast))) = table(slow).zip(table(fast)) else { continue };
        all.extend(group(name, both(fast, slow)));
    }
    all
}

pub(in crate::enskip::throughput) const RULES: [ClaimRule<EnskipFigures>; 12] = [
    ClaimRule {
        section: "text",
        words: "Ethernet and the loopback interface do not differ significantly.",
        reading: "each combination with ENskip has the same rate over the link as over the loopback interface, within 20 %, if it has a \
                  fifth of the link's rate without ENskip at most, so that the processor decides; the paper's, all of them, and \
                  the loopback interface of the slower of its two machines",
        judge: |it| {
            let [link, loopback] = it.link?;
            let [(_, link), (_, loopback)] = [it.machines.get(link)?, it.machines.get(loopback)?];
            let slowed = slowed(link)?;
            let cells = both(link, loopback).into_iter().filter(|(name, _)| {
                slowed.iter().any(|(other, share)| other == name && *share <= it.processor_decides)
            });
            tally(group("link over loopback", cells), about)
        },
    },
    ClaimRule {
        section: "text",
        words: "So it is the processor that decides.",
        reading: "on each machine or way, the time of a byte with encryption and MD5 is the time with the one and with the other, less \
                  that with neither, within 20 %: as it is where one processor does all of it",
        judge: |it| tally(sums(it), about),
    },
    ClaimRule {
        section: "text",
        words: "C source goes exactly as fast as random bytes, as nothing is compressed.",
        reading: "each combination in memory: within 10 %; the paper prints no figures of it",
        judge: |it| tally(group("text over random", it.text.iter().cloned()), equal),
    },
    ClaimRule {
        section: "text",
        words: "Keys of 40 and of 128 bits are equally fast, as short ones are expanded to 128.",
        reading: "RC4 and RC2: 40 and 64 bits within 10 % of 128; the paper prints no figures of it",
        judge: |it| {
            let cells =
                it.keys.iter().filter_map(|(name, rates)| Some((name, rates.get(..2)?, rates.get(2)?)));
            let cells = cells.flat_map(|(name, short, long)| {
                let ratio = |(bits, rate): (&str, &f64)| {
                    ([name.clone(), "over 128 bits".to_owned(), bits.to_owned()], rate / long)
                };
                ["40", "64"].into_iter().zip(short).map(ratio).collect::<Vec<_>>()
            });
            tally(cells, equal)
        },
    },
    ClaimRule {
        section: "text",
        words: "The Kij algorithm has no effect on the rate.",
        reading: "RC4, each Kij algorithm within 10 % of 3DES, where a packet key serves for as many packets as in the table; the paper \
                  prints no figures of it",
        judge: |it| {
            let of = |name: &str| it.kij.iter().find(|(it, _)| it == name)?.1.last().copied();
            let reference = of("3DES")?;
            let cells = it.kij.iter().filter_map(|(name, rates)| {
                Some((["over 3DES".to_owned(), "all".to_owned(), name.clone()], rates.last()? / reference))
            });
            tally(cells, equal)
        },
    },
    ClaimRule {
        section: "text",
        words: "The Crypt algorithm has a significant effect.",
        reading: "on each machine or way, without MD5: the fastest of the paper's algorithms is at least twice as fast as the slowest",
        judge: |it| {
            let spread = |table: &AlgorithmTable| {
                let ranked = ranked(table);
                let (first, last) = ranked.first().zip(ranked.last())?;
                let words = format!("{} over {}", ALGORITHMS[first.0], ALGORITHMS[last.0]);
                Some((words, first.1 / last.1))
            };
            by_machine(it, spread, |ratio| ratio >= TWICE)
        },
    },
    ClaimRule {
        section: "text",
        words: "RC4 is more than twice as fast as the next algorithm.",
        reading: "on each machine or way, without MD5: RC4 over the fastest of the paper's other algorithms. In the paper's own table \
                  it is 1.5 over Ethernet and 1.8 on the 486DX2-66, and more than twice on the two faster machines only",
        judge: |it| {
            let lead = |table: &AlgorithmTable| {
                let (next, rate) = ranked(table).into_iter().find(|(algorithm, _)| *algorithm != RC4)?;
                Some((format!("RC4 over {}", ALGORITHMS[next]), table[RC4][0]? / rate))
            };
            by_machine(it, lead, |ratio| ratio > TWICE)
        },
    },
    ClaimRule {
        section: "text",
        words: "With authentication, the ranking is similar.",
        reading: "on each machine or way, of two algorithms of which one is faster by more than 10 % without MD5, it is the faster one \
                  with MD5 as well, as far as both were measured with it",
        judge: |it| tally(ranks(it).into_iter(), |ratio| ratio < 1.0),
    },
    ClaimRule {
        section: "text",
        words: "The speed of the processor decides the rate.",
        reading: "here: RC4's rate by the clock on the wall, over its share of the processor, is within 20 % of that with all of it. Of \
                  the paper's machines: each combination with ENskip is faster on the 486DX4-100 than on the 486DX2-66, and faster \
                  still on the P90",
        judge: |it| {
            let [whole, limited @ ..] = &it.shares[..] else {
                return tally(faster_machines(it).into_iter(), |ratio| ratio > 1.0);
            };
            let cells = limited.iter().map(|[share, rate]| {
                let ratio = rate / share / (whole[1] / whole[0]);
                (["RC4".to_owned(), "rate over share".to_owned(), format!("{share:.1} %")], ratio)
            });
            tally(cells, about)
        },
    },
    ClaimRule {
        section: "text",
        words: "The 486DX4-100 gains far more over the 486DX2-66 than its clock, as it multiplies faster.",
        reading: "RC4 of the two over 100/66 MHz is above 1.2. It is, but RC4 multiplies nothing; IDEA, which does, gains less than the \
                  clock. The larger cache may explain both",
        judge: |it| {
            let table = |machine: usize| it.machines.iter().find(|(name, _)| name == MACHINES[machine]);
            let ((_, slow), (_, fast)) = table(DX2).zip(table(DX4))?;
            let clock = CLOCKS[DX4] / CLOCKS[DX2];
            let gain = |algorithm: usize| Some(fast[algorithm][0]? / slow[algorithm][0]?);
            let rc4 = gain(RC4)?;
            let all = (NONE + 1..ALGORITHMS.len()).filter_map(|at| Some((ALGORITHMS[at], gain(at)?)));
            let words: Vec<String> = all.map(|(name, gain)| format!("{name} {gain:.2}")).collect();
            Some((rc4 / clock > 1.0 + ABOUT, format!("clock {clock:.2}; {}", words.join(", "))))
        },
    },
    ClaimRule {
        section: "text",
        words: "Ethernet carries 900 kbytes/s at most, which is why loopback was used for the rest.",
        reading: "no combination is faster over the link than without ENskip, and with ENskip none has more than half of that: so the \
                  link itself does not hold ENskip back",
        judge: |it| {
            let (_, table) = it.machines.get(it.link?[0])?;
            let cells = group("over the rate without ENskip", slowed(table)?);
            tally(cells, |share| share <= 0.5)
        },
    },
    ClaimRule {
        section: "text",
        words: "RC4 with MD5 on a cheap P90 is well above two channels of ISDN, 128 KB/s.",
        reading: "at least twice as fast as they are, on the P90 and here on the loopback interface. Two channels of 64 kbit/s (ITU-T \
                  I.412) have 128 kbit/s, which are 16 kB/s, or 15.6 as ftp counts: the paper's 128 KB/s are bits taken for bytes, \
                  and eight times too many",
        judge: |it| {
            let machine = |name: &str| it.machines.iter().find(|(it, _)| it == name);
            let (name, table) = machine(MACHINES[P90]).or_else(|| machine("loopback"))?;
            let rate = table[RC4][1]?;
            let [real, printed] = [ISDN, ISDN_PRINTED].map(|isdn| rate / isdn);
            let words = format!(
                "{name} {rate:.0} kbytes/s, {real:.1} times {ISDN:.1}; {printed:.1} times the {ISDN_PRINTED:.0} of the paper"
            );
            Some((rate >= TWICE * ISDN, words))
        },
    },
];
