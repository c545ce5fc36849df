//! Every file, way to encrypt, direction and modem, once each.

use std::sync::Arc;

use strait_compress::Codecs;
use strait_scheduler::Rate;
use strait_sim::{DialUpSettings, HeaderCompression};

use super::cipher::{self, FileCipher};
use super::files;
use super::printed::{FILE_LEN, FILES};
use super::transfer::{self, DialUpSession, FtpTimes, FtpWay};
use crate::error::Error;
use crate::parallel;
use crate::steps::StepCounter;

/// What modems and hosts do besides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ModemCase {
    /// Modems compress, and hosts compress headers: the paper's connection.
    Compressing,
    /// Modems do not compress.
    Off,
    /// Modems compress, and headers go whole.
    WholeHeaders,
}

impl ModemCase {
    fn settings(self) -> DialUpSettings {
        let settings = DialUpSettings::default();
        match self {
            ModemCase::Compressing => settings,
            ModemCase::Off => DialUpSettings { v42bis: None, ..settings },
            ModemCase::WholeHeaders => DialUpSettings { headers: HeaderCompression::Off, ..settings },
        }
    }
}

/// What is sent, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FtpCell {
    pub(super) modem: ModemCase,
    pub(super) way: FtpWay,
    /// Its place in the tables.
    pub(super) file: usize,
    pub(super) cipher: FileCipher,
    /// Whether it is compressed before it is encrypted.
    pub(super) before: bool,
}

impl FtpCell {
    /// All that are run.
    fn all() -> Vec<FtpCell> {
        let mut cells = Vec::new();
        for modem in [ModemCase::Compressing, ModemCase::Off, ModemCase::WholeHeaders] {
            for way in FtpWay::BOTH {
                for file in 0..FILES.len() {
                    for cipher in FileCipher::ALL {
                        let cell = |before| FtpCell { modem, way, file, cipher, before };
                        cells.push(cell(false));
                        if modem != ModemCase::WholeHeaders {
                            cells.push(cell(true));
                        }
                    }
                }
            }
        }
        cells
    }
}

/// Characters of the text that are typed.
const TYPED: usize = 200;
/// Links of today: their names and bits a second; the first is the paper's with no modem that compresses.
pub(super) const LINKS: [(&str, u64); 4] = [
    ("14.4 kbit/s", 14_400),
    ("1.54 Mbit/s", 1_540_000),
    ("10 Mbit/s", 10_000_000),
    ("100 Mbit/s", 100_000_000),
];

/// What the text took over a link of today, in seconds: as it is, encrypted with AES, compressed and encrypted, and through a tunnel.
pub(super) type TodayTimes = [f64; 4];

/// What came of all of it.
#[derive(Clone, Debug)]
pub(super) struct FtpGrid {
    cells: Vec<(FtpCell, Vec<FtpTimes>)>,
    /// By link, as in [`LINKS`].
    pub(super) today: Vec<TodayTimes>,
    /// Bytes that `gzip` and `compress` leave, by file and [`FileCipher::ALL`].
    pub(super) sizes: [[(usize, Option<usize>); 4]; 3],
    /// Milliseconds of a typed character, with modems that compress and without.
    pub(super) typed: [f64; 2],
    /// Bytes of each file before encryption when it is compressed.
    pub(super) compressed: [usize; 3],
}

impl FtpGrid {
    /// Steps that it takes.
    pub(super) const STEPS: usize = 3;

    /// Moves each file so often in each way.
    ///
    /// # Errors
    /// [`Error`] when a cipher or a node refuses.
    pub(super) fn run(repeats: usize, steps: &mut StepCounter<'_>) -> Result<FtpGrid, Error> {
        let mut codecs = Codecs::new();
        let mut contents = Vec::new();
        let (mut sizes, mut compressed) = ([[(0, None); 4]; 3], [0; 3]);
        steps.next("gzip and compress");
        for file in 0..FILES.len() {
            let small = cipher::compressed(&mut codecs, &files::content(file));
            compressed[file] = small.len();
            for (place, cipher) in FileCipher::ALL.into_iter().enumerate() {
                let whole = cipher.encrypted(files::content(file))?;
                sizes[file][place] = (cipher::gzip_len(&mut codecs, &whole), cipher::compress_len(&whole));
                contents.push([Arc::<[u8]>::from(whole), cipher.encrypted(small.clone())?.into()]);
            }
        }
        let content = |cell: &FtpCell| {
            let cipher = FileCipher::ALL.iter().position(|it| *it == cell.cipher).unwrap_or(0);
            &contents[cell.file * FileCipher::ALL.len() + cipher][usize::from(cell.before)]
        };
        steps.next("files over a telephone line");
        let cells = parallel::map(&FtpCell::all(), |cell| {
            let mut session = DialUpSession::new(cell.modem.settings());
            (*cell, (0..repeats).map(|_| session.transfer(cell.way, content(cell))).collect())
        });
        let typed = [ModemCase::Compressing, ModemCase::Off]
            .map(|modem| DialUpSession::new(modem.settings()).typed(&files::content(1)[..TYPED]));
        steps.next("files over links of today");
        let text = |cipher, before| {
            content(&FtpCell { modem: ModemCase::Off, way: FtpWay::Send, file: 1, cipher, before })
        };
        let shown = [(FileCipher::Plain, false), (FileCipher::Aes, false), (FileCipher::Aes, true)];
        let mut today = Vec::new();
        for rate in LINKS.iter().filter_map(|(_, bits)| Rate::from_bits(*bits)) {
            let link = transfer::today(rate, transfer::DELAY);
            let [plain, aes, both] =
                shown.map(|(cipher, before)| transfer::over_link(link, text(cipher, before)));
            let tunnel = transfer::through_tunnel(link, text(FileCipher::Plain, false));
            today.push([
                plain,
                aes,
                both,
                tunnel.map_err(|error| Error::refused("a node", "run")(error.into()))?,
            ]);
        }
        Ok(FtpGrid { cells, today, typed, sizes, compressed })
    }

    /// The same with other times, for what a sentence says of them.
    #[cfg(test)]
    pub(super) fn changed(mut self, change: impl Fn(&FtpCell, &mut Vec<FtpTimes>)) -> FtpGrid {
        self.cells.iter_mut().for_each(|(cell, runs)| change(cell, runs));
        self
    }

    /// The runs of a cell.
    pub(super) fn at(&self, cell: FtpCell) -> &[FtpTimes] {
        self.cells.iter().find(|(it, _)| *it == cell).map_or(&[], |(_, runs)| runs)
    }

    /// The best that `ftp` says in kbytes/s, as Table 1 has it.
    pub(super) fn said(&self, cell: FtpCell) -> f64 {
        kbytes(self.at(cell).iter().map(|run| run.said).fold(f64::INFINITY, f64::min))
    }

    /// The best of the file's own bytes in kbytes/s until all are there, whatever was sent of them.
    pub(super) fn arrived(&self, cell: FtpCell) -> f64 {
        kbytes(self.at(cell).iter().map(|run| run.arrived).fold(f64::INFINITY, f64::min))
    }
}

/// What `ftp` prints of a file of the tables: 1,024 bytes each.
pub(super) fn kbytes(seconds: f64) -> f64 {
    FILE_LEN as f64 / 1024.0 / seconds
}
