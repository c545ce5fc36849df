//! The generated sample of what two sites exchange: logs, records, a dump, telemetry, pages, and random bytes
//! that stand for what is already compressed.
//!
//! It is realistic in how it compresses, which the tests hold it to: all files together shrink between 4 and 6
//! times with zstd level 3, and between 1.8 and 2.4 times when every 1 KiB is compressed on its own; the same
//! holds for the text files alone.

mod csv;
mod date;
mod html;
mod json;
mod phrase;
mod random_bytes;
mod sql;
mod syslog;
#[rustfmt::skip] // one word a line would hide the lists
mod vocabulary;

use std::sync::Arc;

use strait_clock::Random;

/// One file to be moved: a name for people and its whole content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SampleFile {
    /// File name without a folder, such as `syslog.log`.
    pub name: String,
    /// Content.
    pub bytes: Arc<[u8]>,
}

/// A kind of content: its file name, its size in bytes, and the function that writes about that many.
struct SampleKind {
    name: &'static str,
    size: usize,
    write: fn(&mut Random, usize) -> Vec<u8>,
}

/// The mix, about 4 MB in all: 22 s a pass at 1.5 Mbit/s, so three passes stay well under three minutes.
/// Five per cent are random, so that the whole still compresses as traffic between sites does.
const KINDS: [SampleKind; 6] = [
    SampleKind { name: "syslog.log", size: 900_000, write: syslog::write },
    SampleKind { name: "orders.ndjson", size: 800_000, write: json::write },
    SampleKind { name: "shop.sql", size: 800_000, write: sql::write },
    SampleKind { name: "telemetry.csv", size: 600_000, write: csv::write },
    SampleKind { name: "handbook.html", size: 700_000, write: html::write },
    SampleKind { name: "archive.bin", size: 200_000, write: random_bytes::write },
];

/// The seed of the sample that `strait demo` and the benchmarks use.
pub const DEFAULT_SEED: u64 = 4303;

/// The sample for `seed`: the same seed gives the same bytes.
#[must_use]
pub fn generate(seed: u64) -> Vec<SampleFile> {
    KINDS
        .iter()
        .zip(0_u64..)
        .map(|(kind, index)| {
            let mut random = Random::new(seed.wrapping_mul(0x9e37_79b9).wrapping_add(index));
            SampleFile { name: kind.name.to_owned(), bytes: (kind.write)(&mut random, kind.size).into() }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn zstd3(bytes: &[u8]) -> usize {
        let mut out = vec![0_u8; zstd_safe::compress_bound(bytes.len())];
        zstd_safe::compress(&mut out[..], bytes, 3).unwrap()
    }
    fn ratios(files: &[SampleFile]) -> (f64, f64) {
        let joined: Vec<u8> = files.iter().flat_map(|file| file.bytes.iter().copied()).collect();
        let blocks: usize = files.iter().flat_map(|file| file.bytes.chunks(1024)).map(zstd3).sum();
        (joined.len() as f64 / zstd3(&joined) as f64, joined.len() as f64 / blocks as f64)
    }

    fn assert_realistic(files: &[SampleFile]) {
        let (whole, blocks) = ratios(files);
        assert!((4.0..=6.0).contains(&whole), "whole: {whole:.2}");
        assert!((1.8..=2.4).contains(&blocks), "1 KiB blocks: {blocks:.2}");
    }

    #[test]
    fn the_whole_compresses_as_real_traffic_does() {
        for seed in [DEFAULT_SEED, 1, 2] {
            assert_realistic(&generate(seed));
        }
    }

    #[test]
    fn the_text_alone_compresses_as_real_traffic_does() {
        let mut files = generate(DEFAULT_SEED);
        files.retain(|file| file.name != "archive.bin");
        assert_eq!(files.len(), 5);
        assert_realistic(&files);
    }

    #[test]
    fn every_text_file_shrinks_and_the_random_one_does_not() {
        for file in generate(DEFAULT_SEED) {
            let (whole, blocks) = ratios(std::slice::from_ref(&file));
            eprintln!("{:16} {:8} whole {whole:.2} blocks {blocks:.2}", file.name, file.bytes.len());
            if file.name == "archive.bin" {
                assert!(whole <= 1.0);
            } else {
                assert!((2.5..=9.0).contains(&whole), "{}: {whole:.2}", file.name);
                assert!((1.4..=3.2).contains(&blocks), "{}: {blocks:.2}", file.name);
                assert!(std::str::from_utf8(&file.bytes).is_ok());
            }
        }
    }

    #[test]
    fn the_same_seed_gives_the_same_bytes() {
        assert_eq!(generate(7), generate(7));
        assert_ne!(generate(7), generate(8));
    }

    #[test]
    fn sizes_are_as_announced() {
        for (file, kind) in generate(DEFAULT_SEED).iter().zip(&KINDS) {
            let spare = file.bytes.len().checked_sub(kind.size);
            assert!(spare.is_some_and(|spare| spare < 8192), "{}: {}", kind.name, file.bytes.len());
        }
    }
}
