//! Each sentence with its reading.

use super::KloginFigures;
use crate::claim::{ClaimRule, ClaimTally, Finding, greatest, least};
use crate::klogin::cipher::FileCipher;
use crate::klogin::grid::{FtpCell, LINKS, ModemCase};
use crate::klogin::printed::{CIPHERS, FILE_LEN, FILES};
use crate::klogin::transfer::FtpWay;

/// Bits a second of kbytes/s.
const KBYTES: f64 = 1024.0 * 8.0;
/// "The raw 14.4kbps": no more, and less by what frames and headers take.
const RAW: [f64; 2] = [0.85 * 14_400.0, 14_400.0];
/// "Comparable", "little difference", "would not notice", "minimally": within these parts.
const COMPARABLE: f64 = 0.05;
const LITTLE: f64 = 0.03;
/// "In half".
const HALF: [f64; 2] = [0.4, 0.6];
/// Text, what is encrypted, and what is neither.
const COMPRESSIBLE: core::ops::Range<usize> = 0..2;
const RANDOM: usize = 2;
const ENCRYPTED: core::ops::Range<usize> = 1..3;

/// Counts cells.
fn tally(
    cells: impl Iterator<Item = ([&'static str; 3], f64)>,
    meets: impl Fn(f64) -> bool,
) -> Option<Finding> {
    let mut tally = ClaimTally::default();
    for (name, figure) in cells {
        tally.count(name, figure, meets(figure));
    }
    tally.every()
}

/// The cells of one modem with their names.
fn cells(modem: ModemCase, before: bool) -> impl Iterator<Item = ([&'static str; 3], FtpCell)> {
    FtpWay::BOTH.into_iter().flat_map(move |way| {
        (0..FILES.len()).flat_map(move |file| {
            FileCipher::ALL.map(move |cipher| {
                ([FILES[file], way.name(), cipher.name()], FtpCell { modem, way, file, cipher, before })
            })
        })
    })
}

fn within([low, high]: [f64; 2], value: f64) -> bool {
    (low..=high).contains(&value)
}

pub(in crate::klogin) const RULES: [ClaimRule<KloginFigures>; 16] = [
    ClaimRule {
        section: "2",
        words: "Modem compression can raise the effective end-to-end throughput of a 14.4kbps line to 20-30kbps.",
        reading: "Table 1, not encrypted, of both files that shrink: from 20 kbit/s to 30 as the paper rounds, so less than 35; the \
                  serial port has 30.7",
        judge: |it| {
            let cells = it.throughput(COMPRESSIBLE, 0..1)?.map(|(name, rate, _)| (name, rate * KBYTES / 1e3));
            tally(cells, |rate| within([20.0, 35.0], rate))
        },
    },
    ClaimRule {
        section: "2",
        words: "Encrypting at the application layer, e.g., as performed in Kerberos services, makes it virtually impossible for \
                the modem to compress the data before transmitting it.",
        reading: "Table 1: encrypted files within 5 % of random characters",
        judge: |it| {
            let table = it.table1?;
            let cells = it.throughput(0..3, ENCRYPTED)?;
            tally(cells.map(|(name, rate, [_, way])| (name, rate / table[RANDOM][way][0])), |ratio| {
                (ratio - 1.0).abs() <= COMPARABLE
            })
        },
    },
    ClaimRule {
        section: "2",
        words: "This essentially limits the system to the raw 14.4kbps that the modem can offer.",
        reading: "Table 1, encrypted: at most 14.4 kbit/s, and at least 85 % of that, as headers and frames take some",
        judge: |it| {
            let cells = it.throughput(0..3, ENCRYPTED)?.map(|(name, rate, _)| (name, rate * KBYTES));
            tally(cells, |rate| within(RAW, rate))
        },
    },
    ClaimRule {
        section: "2",
        words: "disabling compression on the modem yielded similarly sluggish performance for encrypted as well as unencrypted \
                rlogin streams",
        reading: "modems' compression off: each file, not encrypted, within 5 % of itself encrypted in each way",
        judge: |it| {
            let grid = it.grid.as_deref()?;
            let cells = cells(ModemCase::Off, false).filter(|(_, cell)| cell.cipher != FileCipher::Plain);
            let ratio =
                |cell: FtpCell| grid.said(FtpCell { cipher: FileCipher::Plain, ..cell }) / grid.said(cell);
            tally(cells.map(|(name, cell)| (name, ratio(cell))), |ratio| (ratio - 1.0).abs() <= COMPARABLE)
        },
    },
    ClaimRule {
        section: "2",
        words: "This effect also will not manifest itself for very small packets, e.g., the one or very few character packets \
                sent from the client to the server side of a telnet session.",
        reading: "200 characters of text, typed: within 5 % as fast whether modems compress or not",
        judge: |it| {
            let [on, off] = it.grid.as_deref()?.typed;
            Some(((on / off - 1.0).abs() <= COMPARABLE, format!("{on:.1} and {off:.1} ms each")))
        },
    },
    ClaimRule {
        section: "2",
        words: "one would likely not notice a performance difference on machines connected via an Ethernet or higher speed \
                medium",
        reading: "over links of 10 and 100 Mbit/s: the text, encrypted with AES, takes no more than 5 % longer",
        judge: |it| {
            let grid = it.grid.as_deref()?;
            let links = LINKS.iter().zip(&grid.today).filter(|((_, bits), _)| *bits >= 10_000_000);
            let cells = links.map(|((name, _), [plain, aes, ..])| ([FILES[1], *name, "aes"], aes / plain));
            tally(cells, |ratio| ratio <= 1.0 + COMPARABLE)
        },
    },
    ClaimRule {
        section: "2",
        words: "Many optimizations can improve performance over slow links; examples include Jacobson's header compression",
        reading: "each cell of Table 1 is faster with compressed headers than without",
        judge: |it| {
            let grid = it.grid.as_deref()?;
            let ratio = |cell: FtpCell| {
                grid.said(FtpCell { modem: ModemCase::Compressing, ..cell }) / grid.said(cell)
            };
            let cells = cells(ModemCase::WholeHeaders, false).map(|(name, cell)| (name, ratio(cell)));
            tally(cells, |ratio| ratio > 1.0)
        },
    },
    ClaimRule {
        section: "3",
        words: "There was little difference among the throughput performance of the three iterations.",
        reading: "in each cell of Table 1, the slowest of three transfers over one connection is within 3 % of the fastest",
        judge: |it| {
            let grid = it.grid.as_deref()?;
            let spread = |cell| {
                let named = || grid.at(cell).iter().map(|run| (String::new(), run.said));
                least(named()).1 / greatest(named()).1
            };
            let cells = cells(ModemCase::Compressing, false).map(|(name, cell)| (name, spread(cell)));
            tally(cells, |ratio| ratio >= 1.0 - LITTLE)
        },
    },
    ClaimRule {
        section: "3",
        words: "performance drops in half on random text (e.g., the result of encryption) if one is bandwidth-limited rather \
                than CPU-limited",
        reading: "Table 1, both files that shrink: encrypted over not encrypted between 0.4 and 0.6",
        judge: |it| {
            let table = it.table1?;
            let cells = it.throughput(COMPRESSIBLE, ENCRYPTED)?;
            tally(cells.map(|(name, rate, [file, way])| (name, rate / table[file][way][0])), |ratio| {
                within(HALF, ratio)
            })
        },
    },
    ClaimRule {
        section: "abstract",
        words: "normal ascii text data is quite compressible",
        reading: "Table 2: gzip and compress leave less than half of the text",
        judge: |it| {
            let sizes = it.table2?[1][0];
            let cells = [".gz", ".Z"].into_iter().zip(sizes).map(|(coder, len)| {
                ([FILES[1], "plain", coder], len.unwrap_or(f64::INFINITY) / FILE_LEN as f64)
            });
            tally(cells, |share| share < 0.5)
        },
    },
    ClaimRule {
        section: "6",
        words: "encryption precludes the ability to perform subsequent compression",
        reading: "Table 2: of what is encrypted, gzip leaves more than there was, and compress as well",
        judge: |it| {
            let table = it.table2?;
            let places = (0..FILES.len()).flat_map(|file| ENCRYPTED.map(move |cipher| (file, cipher)));
            let cells = places.flat_map(|(file, cipher)| {
                let lens = table[file][cipher].map(|len| len.unwrap_or(f64::INFINITY));
                [".gz", ".Z"]
                    .into_iter()
                    .zip(lens)
                    .map(move |(coder, len)| ([FILES[file], CIPHERS[cipher], coder], len))
            });
            tally(cells, |len| len > FILE_LEN as f64)
        },
    },
    ClaimRule {
        section: "4",
        words: "To obtain a higher throughput the application should compress bulk information before encrypting it",
        reading: "until all has come, modems that compress: both files that shrink are at least twice as fast compressed and \
                  encrypted as encrypted only",
        judge: |it| {
            let grid = it.grid.as_deref()?;
            let cells = cells(ModemCase::Compressing, true)
                .filter(|(_, cell)| cell.file != RANDOM && cell.cipher != FileCipher::Plain);
            let ratio = |cell| grid.arrived(cell) / grid.arrived(FtpCell { before: false, ..cell });
            tally(cells.map(|(name, cell)| (name, ratio(cell))), |ratio| ratio >= 2.0)
        },
    },
    ClaimRule {
        section: "4",
        words: "application compresses data, application encrypts data, host sends data, (modem) compress (minimally)",
        reading: "text and random characters, compressed and encrypted: within 5 % as fast whether modems compress or not",
        judge: |it| {
            let grid = it.grid.as_deref()?;
            let cells = cells(ModemCase::Off, true)
                .filter(|(_, cell)| cell.file != 0 && cell.cipher != FileCipher::Plain);
            let ratio = |cell: FtpCell| {
                grid.arrived(FtpCell { modem: ModemCase::Compressing, ..cell }) / grid.arrived(cell)
            };
            tally(cells.map(|(name, cell)| (name, ratio(cell))), |ratio| (ratio - 1.0).abs() <= COMPARABLE)
        },
    },
    ClaimRule {
        section: "5",
        words: "In klogin this behavior results in the generation of 7 packets for a single keystroke",
        reading: "Table 3: 7 packets where length and data are written apart",
        judge: |it| {
            let [[packets, ..], _] = it.table3?;
            Some((packets == 7.0, format!("{packets}")))
        },
    },
    ClaimRule {
        section: "5",
        words: "By using writev on both sides, we reduce 7 packets to 3 and save network bandwidth as well as latency.",
        reading: "Table 3: 3 packets where they are written at once, and less time",
        judge: |it| {
            let [[before, _, slow], [packets, _, fast]] = it.table3?;
            let because = format!("{before} and {packets} packets, {slow:.0} and {fast:.0} ms");
            Some((packets == 3.0 && fast < slow, because))
        },
    },
    ClaimRule {
        section: "5",
        words: "We also added a byte at the beginning of the encrypted data to indicate whether the data is compressed. This \
                mechanism allows us to forgo compression for cases where it does not provide a benefit.",
        reading: "random characters are one byte longer with it, where gzip makes them longer by more",
        judge: |it| {
            let grid = it.grid.as_deref()?;
            let (flagged, gzip) = (grid.compressed[RANDOM] - FILE_LEN, grid.sizes[RANDOM][0].0 - FILE_LEN);
            Some((flagged == 1 && gzip > 1, format!("{flagged} and {gzip}")))
        },
    },
];
