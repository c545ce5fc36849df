//! The tables: the post's with ours beside it, and what it says in words only.

use super::machine::{self, PlaceTable};
use super::printed::{COMBINATIONS, DISK, FAST, PLACES, RAW, RC4_LOAD, TABLE};
use super::run::{ChainRuns, Place};
use super::stages::{AES_KEYS, LEVELS, RC4_KEYS, StageCosts};
use crate::measure::RunValues;
use crate::report::{Comparison, Exhibit, FigureUnit, LabTable, computed};

/// Payload that 100 Mbit/s of Ethernet carry: 1,448 bytes of TCP with timestamps (RFC 7323) in the time of 1,538, of which 38 are
/// Ethernet's header, checksum, preamble and gap (IEEE 802.3).
const FAST_LINK: f64 = 100e6 * 1448.0 / 1538.0;
/// What the post measured of payload on the ADSL line.
const SLOW_LINK: f64 = 0.1e6;
/// The post's places, as they are here.
pub(super) const HERE: [Place; 3] = [Place::Disk, Place::Link(FAST_LINK), Place::Link(SLOW_LINK)];
/// Both networks.
const LINKS: [(&str, f64); 2] = [(PLACES[FAST], FAST_LINK), (PLACES[FAST + 1], SLOW_LINK)];
/// The place of RC4 on plain data among the combinations.
const RC4_PLAIN: usize = 4;

/// Speeds of a place, of which plain data without encryption, the first of `runs`, has 100.
pub(super) fn relative(place: Place, runs: &[ChainRuns], of: &ChainRuns) -> Option<RunValues> {
    let plain = runs.first()?.rate(place)?;
    Some(of.rate(place)?.over(&plain).map(|ratio| ratio * 100.0))
}

/// A payload in the post's form, with its figures if they are to be beside.
pub(super) fn speeds(payload: &str, runs: &[ChainRuns], beside: bool) -> LabTable {
    let mut table = LabTable::new(
        Exhibit::OnlyTable,
        format!("speeds, {payload}"),
        FigureUnit::Hundred,
        Comparison::Quotient,
        COMBINATIONS,
    );
    for (row, (name, place)) in PLACES.iter().zip(HERE).enumerate() {
        let cells = runs.iter().enumerate().map(|(column, it)| {
            let ours = relative(place, runs, it).unwrap_or_default();
            (ours, TABLE[row][column].filter(|_| beside))
        });
        table.row(*name, cells);
    }
    table
}

/// What 100 stands for, and the other cells in the same unit; the post prints the first.
pub(super) fn rates(payload: &str, runs: &[ChainRuns]) -> LabTable {
    let unit = FigureUnit::MegabitsPerSecond;
    let subject = format!("rates, {payload}");
    let mut table = LabTable::new(Exhibit::OnlyTable, subject, unit, Comparison::Quotient, COMBINATIONS);
    for (row, (name, place)) in PLACES.iter().zip(HERE).enumerate() {
        let cells = runs
            .iter()
            .enumerate()
            .map(|(column, it)| (it.rate(place).unwrap_or_default(), (column == 0).then_some(RAW[row])));
        table.row(*name, cells);
    }
    let wall = runs.iter().map(|it| (it.wall.map(|nanos| 8e3 / nanos), None));
    table.row("disk, wall clock", wall);
    table
}

/// The post's fast network in proportion: a link that is as much slower than plain data from disk to disk as the post's was.
pub(super) fn in_proportion(payload: &str, runs: &[ChainRuns]) -> LabTable {
    let disk = runs.first().and_then(|plain| plain.rate(Place::Disk)).and_then(|rate| rate.spread());
    let link = disk.map_or(f64::NAN, |spread| spread.median) * RAW[FAST] / RAW[DISK];
    let subject =
        format!("speeds over {link:.0} Mbit/s, as far below the disk's as the post's 33.4 were, {payload}");
    let mut table =
        LabTable::new(Exhibit::OnlyTable, subject, FigureUnit::Hundred, Comparison::Quotient, COMBINATIONS);
    let ours = |it| relative(Place::Link(link * 1e6), runs, it).unwrap_or_default();
    table.row("in proportion", runs.iter().map(ours).zip(TABLE[FAST]));
    table
}

/// The table of a machine that is computed, beside the post's.
pub(super) fn computed_from(subject: &str, figures: &PlaceTable) -> LabTable {
    let mut table =
        LabTable::new(Exhibit::OnlyTable, subject, FigureUnit::Hundred, Comparison::Quotient, COMBINATIONS);
    for (row, name) in PLACES.iter().enumerate() {
        let ours = figures[row].map(|cell| cell.map(computed).unwrap_or_default());
        table.row(*name, ours.into_iter().zip(TABLE[row]));
    }
    table
}

/// How much of a core both ends need.
pub(super) fn loads(payload: &str, runs: &[ChainRuns]) -> LabTable {
    let mut table = LabTable::new(
        Exhibit::Words,
        format!("load of one core, {payload}"),
        FigureUnit::Share,
        Comparison::Difference,
        COMBINATIONS,
    );
    for (name, link) in LINKS {
        for (end, whose) in ["sender", "broker"].into_iter().enumerate() {
            let cells = runs.iter().map(|it| (it.loads(link)[end].clone(), None));
            table.row(format!("{name}, {whose}"), cells);
        }
    }
    table
}

/// What RC4 adds to that: here, and by the post's own row for disks.
pub(super) fn rc4_loads(runs: &[ChainRuns]) -> LabTable {
    let columns = LINKS.map(|(name, _)| name);
    let mut table = LabTable::new(
        Exhibit::Words,
        "load that RC4 adds to one core of the sender (40 stands for the post's 30 to 50)",
        FigureUnit::Share,
        Comparison::Difference,
        columns,
    );
    let beside = [Some(RC4_LOAD), None];
    table.row("here", rc4_added(runs).into_iter().zip(beside));
    let expected = [FAST, FAST + 1].map(machine::expected_rc4_load);
    table.row("computed from its row from disk to disk", expected.map(computed).into_iter().zip(beside));
    table
}

/// Parts of a hundred of a core that RC4 adds at the sender, by network.
pub(super) fn rc4_added(runs: &[ChainRuns]) -> [RunValues; 2] {
    LINKS.map(|(_, link)| {
        let load = |it: &ChainRuns| it.loads(link)[0].clone();
        load(&runs[RC4_PLAIN]).minus(&load(&runs[0]))
    })
}

/// What the broker's disk is spared, a row a payload.
pub(super) fn saved<'a>(
    subject: &str,
    columns: impl IntoIterator<Item = String>,
    rows: impl Iterator<Item = (&'a str, &'a [ChainRuns])>,
) -> LabTable {
    let mut table =
        LabTable::new(Exhibit::Words, subject, FigureUnit::Share, Comparison::Difference, columns);
    for (name, runs) in rows {
        table.row(name, runs.iter().map(|it| (spared(it), None)));
    }
    table
}

/// Parts of a hundred of the payload that are not stored, to a tenth.
fn spared(it: &ChainRuns) -> RunValues {
    // Plus zero: what rounds to zero has no sign.
    computed(((1.0 - it.stored) * 1e3).round() / 10.0 + 0.0)
}

/// Ciphers by the length of their keys.
pub(super) fn keys(costs: &StageCosts) -> LabTable {
    let mut table = LabTable::new(
        Exhibit::Words,
        "speed of ciphers by themselves, by bits of the key",
        FigureUnit::MegabitsPerSecond,
        Comparison::Quotient,
        ["40", "128", "192", "256"],
    );
    let columns = [40, 128, 192, 256];
    let mut row = |name: &str, keys: [usize; 3], nanos: &[RunValues; 3]| {
        let cell = |bits: usize| {
            let place = keys.iter().position(|it| *it == bits);
            place.map(|place| nanos[place].map(|nanos| 8e3 / nanos)).unwrap_or_default()
        };
        table.row(name, columns.map(|bits| (cell(bits), None)));
    };
    row("RC4", RC4_KEYS, &costs.rc4);
    row("AES, instructions where there are any", AES_KEYS, &costs.aes[0]);
    row("AES by tables", AES_KEYS, &costs.aes[1]);
    table
}

/// Levels of DEFLATE: how far, and how fast.
pub(super) fn levels(names: &[&str], costs: &StageCosts) -> [LabTable; 2] {
    let quantity = |subject, unit| {
        let names = names.iter().copied();
        LabTable::new(Exhibit::Words, subject, unit, Comparison::Quotient, names)
    };
    let mut ratios = quantity("levels of DEFLATE by themselves", FigureUnit::Ratio);
    let mut speeds = quantity("speed of these levels", FigureUnit::MegabitsPerSecond);
    for (place, (_, name)) in LEVELS.iter().enumerate() {
        let of = || costs.levels.iter().map(|levels| &levels[place]);
        ratios.row(*name, of().map(|it| (computed(it.ratio), None)));
        speeds.row(*name, of().map(|it| (it.nanos.map(|nanos| 8e3 / nanos), None)));
    }
    [ratios, speeds]
}

/// Some combinations in the places of networks and with ends that no link holds back, as the first of `plain` has 100.
pub(super) fn beside<'a>(
    subject: &str,
    plain: &'a [ChainRuns],
    rows: impl Iterator<Item = &'a ChainRuns>,
) -> LabTable {
    let places = [
        (PLACES[DISK], Place::Disk),
        ("any link", Place::AnyLink),
        (PLACES[FAST], HERE[FAST]),
        (PLACES[FAST + 1], HERE[FAST + 1]),
    ];
    let columns = places.map(|(name, _)| name);
    let mut table =
        LabTable::new(Exhibit::Words, subject, FigureUnit::Hundred, Comparison::Quotient, columns);
    for it in rows {
        let cells = places.map(|(_, place)| (relative(place, plain, it).unwrap_or_default(), None));
        table.row(it.chain.to_string(), cells);
    }
    table
}

/// What the broker's disk is spared by combinations of today, a row each.
pub(super) fn today_saved(payload: &str, today: &[ChainRuns]) -> LabTable {
    let subject = format!("space saved at the broker by suites and codecs of today, {payload}");
    let mut table =
        LabTable::new(Exhibit::Words, subject, FigureUnit::Share, Comparison::Difference, ["saved"]);
    for it in today {
        table.row(it.chain.to_string(), [(spared(it), None)]);
    }
    table
}
