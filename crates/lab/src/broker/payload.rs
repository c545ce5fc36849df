//! What is stored at the broker: tables of gene expression as text, which users of the post's broker had, and random bytes.

use std::fmt::Write;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use strait_clock::Random;

use crate::error::Error;

/// Bytes of a given file that are used at most: they are kept in memory, and each is compressed some dozens of times.
const FILE_MAX: u64 = 64 * 1024 * 1024;
/// The same bytes each time.
const SEED: u64 = 2011;
/// Samples of a table, its columns.
const SAMPLES: u64 = 48;

/// Bytes to store, and what they are.
#[derive(Clone, Debug)]
pub struct BrokerPayload {
    /// In tables.
    pub name: String,
    /// All of them.
    pub bytes: Vec<u8>,
    /// What is to be known of it.
    pub note: String,
}

impl BrokerPayload {
    /// The payloads that are generated, so many bytes each: one that shrinks 10 to 12 times, one 3 to 4 times, one not at all.
    pub(super) fn generated(len: usize) -> [BrokerPayload; 3] {
        [
            BrokerPayload {
                name: "counts".to_owned(),
                bytes: counts(len),
                note: "generated: a table of gene expression as text, counts of 48 samples of which most are 0; it shrinks as far as the \
                       post's file, 10 to 12 times"
                    .to_owned(),
            },
            BrokerPayload {
                name: "intensities".to_owned(),
                bytes: intensities(len),
                note: "generated: the same kind of table with intensities on a scale of log2, two decimals each; it shrinks 3 to 4 times"
                    .to_owned(),
            },
            BrokerPayload {
                name: "random".to_owned(),
                bytes: random(len),
                note: "generated: what is compressed already".to_owned(),
            },
        ]
    }

    /// A file, or its first 64 MiB.
    ///
    /// # Errors
    /// [`Error::GivenFile`] when it cannot be read or is empty.
    pub fn read(path: &Path) -> Result<BrokerPayload, Error> {
        let refused = |why: String| Error::GivenFile { path: path.to_owned(), why };
        let file = File::open(path).map_err(|error| refused(format!("cannot be read: {error}")))?;
        let mut bytes = Vec::new();
        let mut front = file.take(FILE_MAX + 1);
        front.read_to_end(&mut bytes).map_err(|error| refused(format!("cannot be read: {error}")))?;
        if bytes.is_empty() {
            return Err(refused("is empty".to_owned()));
        }
        let whole = bytes.len() as u64 <= FILE_MAX;
        bytes.truncate(FILE_MAX as usize);
        let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
        let part = if whole { "" } else { ", of which only this front is used" };
        Ok(BrokerPayload { note: format!("given, {} bytes{part}", bytes.len()), name, bytes })
    }
}

/// A head and rows of a name and a value a sample, cut at `len` bytes.
fn table(len: usize, mut row: impl FnMut(&mut String, u64)) -> Vec<u8> {
    let mut text = String::with_capacity(len + 4096);
    text.push_str("identifier");
    for sample in 1..=SAMPLES {
        let _ = write!(text, "\tmicroarray{sample:03}.cel");
    }
    text.push('\n');
    let mut at = 0;
    while text.len() < len {
        row(&mut text, at);
        text.push('\n');
        at += 1;
    }
    let mut bytes = text.into_bytes();
    bytes.truncate(len);
    bytes
}

/// Reads of genes: most genes are silent in all samples but a few.
fn counts(len: usize) -> Vec<u8> {
    let mut random = Random::new(SEED);
    table(len, |text, gene| {
        let _ = write!(text, "ENSG{:011}", gene * 7 + 3);
        // One gene of ten is at work, at a level of its own.
        let level = if random.below(10) == 0 { 1 + random.below(10) } else { 0 };
        for _ in 0..SAMPLES {
            let value = match level {
                0 if random.below(200) == 0 => 1 + random.below(3),
                0 => 0,
                level => random.below(2 * level),
            };
            let _ = write!(text, "\t{value}");
        }
    })
}

/// Intensities about a level of the probe.
fn intensities(len: usize) -> Vec<u8> {
    let mut random = Random::new(SEED + 1);
    table(len, |text, probe| {
        let _ = write!(text, "{}_at", 200_000 + probe);
        let level = 300 + random.below(900);
        for _ in 0..SAMPLES {
            let value = level + random.below(16);
            let _ = write!(text, "\t{}.{:02}", value / 100, value % 100);
        }
    })
}

fn random(len: usize) -> Vec<u8> {
    let mut random = Random::new(SEED + 2);
    let words = std::iter::repeat_with(|| random.next_u64().to_le_bytes());
    words.take(len.div_ceil(8)).flatten().take(len).collect()
}
