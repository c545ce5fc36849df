//! Tables 1 and 2 beside the paper's, and what it has no figures for.

use super::KeystrokeRow;
use super::cipher::FileCipher;
use super::grid::{FtpCell, FtpGrid, LINKS, ModemCase, kbytes};
use super::printed::{CIPHERS, FILES, TABLE1, TABLE2, TABLE3};
use super::real;
use super::transfer::FtpWay;
use crate::measure::RunValues;
use crate::report::{Comparison, Exhibit, FigureUnit, LabTable, computed};

/// Table 1, Table 2 and the tables that the discussion of both asks for.
pub(super) fn of(grid: &FtpGrid) -> Vec<LabTable> {
    let mut tables = vec![
        table1(grid, ModemCase::Compressing, "throughput of ftp, best of three, modems that compress"),
        table1(grid, ModemCase::Off, "the same, modems' compression off"),
        table1(grid, ModemCase::WholeHeaders, "the same, modems that compress, headers not compressed"),
    ];
    for modem in [ModemCase::Compressing, ModemCase::Off] {
        tables.extend(FtpWay::BOTH.map(|way| order(grid, modem, way)));
    }
    tables.extend([table2(grid), aes(grid), today(grid)]);
    tables
}

fn table1(grid: &FtpGrid, modem: ModemCase, subject: &str) -> LabTable {
    let columns =
        FtpWay::BOTH.iter().flat_map(|way| CIPHERS.map(|cipher| format!("{} {cipher}", way.name())));
    let unit = FigureUnit::KilobytesPerSecond;
    let mut table = LabTable::new(Exhibit::Table(1), subject, unit, Comparison::Quotient, columns);
    for (file, name) in FILES.into_iter().enumerate() {
        let mut cells = Vec::new();
        for (direction, way) in FtpWay::BOTH.into_iter().enumerate() {
            for (place, cipher) in FileCipher::PAPERS.into_iter().enumerate() {
                let ours = grid.said(FtpCell { modem, way, file, cipher, before: false });
                let paper = TABLE1[file][direction][place];
                cells.push((computed(ours), (modem == ModemCase::Compressing).then_some(paper)));
            }
        }
        table.row(name, cells);
    }
    table
}

/// What compressing before encrypting gives.
fn order(grid: &FtpGrid, modem: ModemCase, way: FtpWay) -> LabTable {
    let off = if modem == ModemCase::Off { " that do not compress" } else { "" };
    let subject = format!("until the last byte has come, {}, modems{off}; gz: compressed first", way.name());
    let ways = [false, true].into_iter().flat_map(|before| FileCipher::ALL.map(|cipher| (cipher, before)));
    let head = |(cipher, before): (FileCipher, bool)| match (cipher, before) {
        (FileCipher::Plain, true) => "gz".to_owned(),
        (cipher, true) => format!("gz, {}", cipher.name()),
        (cipher, false) => cipher.name().to_owned(),
    };
    let unit = FigureUnit::KilobytesPerSecond;
    let columns = ways.clone().map(head);
    let mut table = LabTable::new(Exhibit::Section("4"), subject, unit, Comparison::Quotient, columns);
    for (file, name) in FILES.into_iter().enumerate() {
        let cell = |(cipher, before)| grid.arrived(FtpCell { modem, way, file, cipher, before });
        table.row(name, ways.clone().map(|it| (computed(cell(it)), None)));
    }
    table
}

fn table2(grid: &FtpGrid) -> LabTable {
    let columns = CIPHERS.iter().flat_map(|cipher| [".gz", ".Z"].map(|coder| format!("{cipher} {coder}")));
    let subject = "what gzip and compress leave of 100,000 bytes; - where compress makes it no smaller";
    let mut table =
        LabTable::new(Exhibit::Table(2), subject, FigureUnit::Bytes, Comparison::Quotient, columns);
    for (file, name) in FILES.into_iter().enumerate() {
        let cells = (0..CIPHERS.len()).flat_map(|place| {
            let [gzip, compress] = sizes(grid, file, place);
            let [paper_gzip, paper_compress] = TABLE2[file][place];
            [(gzip, paper_gzip), (compress, paper_compress)]
        });
        table.row(name, cells.collect::<Vec<_>>());
    }
    table
}

/// The same of AES, which the paper does not have.
fn aes(grid: &FtpGrid) -> LabTable {
    let mut table = LabTable::new(
        Exhibit::Table(2),
        "the same of AES",
        FigureUnit::Bytes,
        Comparison::Quotient,
        ["aes .gz", "aes .Z"],
    );
    for (file, name) in FILES.into_iter().enumerate() {
        table.row(name, sizes(grid, file, FileCipher::ALL.len() - 1).map(|ours| (ours, None)));
    }
    table
}

fn sizes(grid: &FtpGrid, file: usize, cipher: usize) -> [RunValues; 2] {
    let (gzip, compress) = grid.sizes[file][cipher];
    [Some(gzip), compress].map(|len| len.map(|len| len as f64).into_iter().collect())
}

fn today(grid: &FtpGrid) -> LabTable {
    let columns = ["plain", "aes", "gz, aes", "Strait, codec auto"];
    let subject = "text over links of today, a round trip of 40 ms, until the last byte has come";
    let unit = FigureUnit::KilobytesPerSecond;
    let mut table = LabTable::new(Exhibit::Section("2"), subject, unit, Comparison::Quotient, columns);
    for ((name, _), seconds) in LINKS.into_iter().zip(&grid.today) {
        table.row(name, seconds.map(|seconds| (computed(kbytes(seconds)), None)));
    }
    table
}

/// Cells of Table 1 in real time, beside those in virtual time and the paper's.
pub(super) fn real(grid: &FtpGrid, rates: [f64; 3]) -> LabTable {
    let subject =
        "three cells again in real time, the kernel's TCP; beside them the same cells in virtual time";
    let unit = FigureUnit::KilobytesPerSecond;
    let columns = ["real time", "virtual time"];
    let mut table = LabTable::new(Exhibit::Table(1), subject, unit, Comparison::Quotient, columns);
    for ((file, place), rate) in real::CELLS.into_iter().zip(rates) {
        let cipher = FileCipher::PAPERS[place];
        let cell = FtpCell { modem: ModemCase::Compressing, way: FtpWay::Send, file, cipher, before: false };
        let paper = Some(TABLE1[file][0][place]);
        let row = [(computed(rate), paper), (computed(grid.arrived(cell)), paper)];
        table.row(format!("{}, {}", FILES[file], cipher.name()), row);
    }
    table
}

/// The paper's rows of Table 3, of the keystroke in the middle.
pub(super) fn table3(rows: &[KeystrokeRow]) -> Option<[[f64; 3]; 2]> {
    let of = |printed| {
        let it = rows.iter().find(|row| row.printed == Some(printed))?.median()?;
        Some([it.packets as f64, it.payload_bytes as f64, it.milliseconds])
    };
    Some([of(0)?, of(1)?])
}

/// Table 3, a table a quantity.
pub(super) fn keystrokes(rows: &[KeystrokeRow]) -> Vec<LabTable> {
    let quantity = |subject: &str, unit, columns: Vec<&str>| {
        LabTable::new(
            Exhibit::Table(3),
            format!("a keystroke and its echo, {subject}"),
            unit,
            Comparison::Quotient,
            columns,
        )
    };
    let mut packets = quantity("packets of both ways", FigureUnit::Packets, vec!["packets"]);
    let columns = vec!["behind TCP or UDP", "of IP", "at the serial ports"];
    let mut bytes = quantity("bytes of both ways", FigureUnit::Bytes, columns);
    let mut times = quantity("from the first packet to the last", FigureUnit::Milliseconds, vec!["ms"]);
    for row in rows {
        let Some(middle) = row.median() else { continue };
        let paper = row.printed.map(|place| TABLE3[place]);
        let printed = |place: usize| paper.map(|row| row[place]);
        packets.row(&*row.program, [(computed(middle.packets as f64), printed(0))]);
        let lens = [middle.payload_bytes as f64, middle.ip_bytes as f64, middle.port_octets as f64];
        bytes.row(
            &*row.program,
            lens.into_iter().zip([printed(1), None, None]).map(|(len, it)| (computed(len), it)),
        );
        let all = row.keystrokes.iter().map(|it| it.milliseconds).collect();
        times.row(&*row.program, [(all, printed(2))]);
    }
    vec![packets, bytes, times]
}
