//! The three files of Tables 1 and 2: as long as the paper's, and as compressible.

use strait_clock::Random;

use super::printed::FILE_LEN;

/// What random files follow from.
const SEED: u64 = 1995;

/// Directories of a source tree, and what stands in names of files.
const PLACES: [&str; 12] = [
    "bin",
    "etc",
    "games",
    "include",
    "lib",
    "libexec",
    "sbin",
    "share/man",
    "sys/kern",
    "sys/net",
    "usr.bin",
    "usr.sbin",
];
const SYLLABLES: [&str; 40] = [
    "in", "get", "net", "if", "ip", "tcp", "udp", "tty", "pty", "str", "mem", "file", "dir", "log", "con",
    "dev", "sub", "vm", "buf", "cl", "ist", "pr", "mk", "rm", "ar", "db", "ex", "vi", "ed", "sh", "tab",
    "map", "sock", "proc", "init", "exec", "sig", "time", "host", "name",
];
/// A file of the tables, by its place there.
pub(super) fn content(file: usize) -> Vec<u8> {
    match file {
        0 => vec![b'u'; FILE_LEN],
        1 => listing(),
        _ => random_characters(),
    }
}

/// What `ls -R` prints of a source tree: directories with their files, each sorted.
fn listing() -> Vec<u8> {
    let mut random = Random::new(SEED);
    let mut out = String::new();
    let mut number = 0;
    while out.len() < FILE_LEN {
        let place = PLACES[number / 9 % PLACES.len()];
        let name = stem(&mut random);
        out.push_str(&format!("\n./{place}/{name}:\n"));
        let count = 3 + random.below(12);
        let mut names: Vec<String> = (0..count).flat_map(|_| files_of(&mut random, &name)).collect();
        names.push("CVS".to_owned());
        names.sort_unstable();
        names.dedup();
        for name in names {
            out.push_str(&name);
            out.push('\n');
        }
        out.push_str(&format!("\n./{place}/{name}/CVS:\nEntries\nRepository\nRoot\n"));
        number += 1;
    }
    let mut bytes = out.into_bytes();
    bytes.drain(..1);
    bytes.resize(FILE_LEN, b'\n');
    bytes
}

/// A source and what was made of it, as a directory has them.
fn files_of(random: &mut Random, directory: &str) -> Vec<String> {
    let (stem, endings) = match random.below(12) {
        0 => ("Makefile".to_owned(), &["", ".inc"][..]),
        1 => (directory.to_owned(), &["", ".1", ".c", ".o"][..]),
        2..=6 => (stem(random), &[".c", ".o"][..]),
        7 | 8 => (stem(random), &[".c", ".h", ".o"][..]),
        9 => (stem(random), &[".1", ".c", ".o"][..]),
        _ => (stem(random), &[".h"][..]),
    };
    endings.iter().map(|ending| format!("{stem}{ending}")).collect()
}

/// Two or three syllables, and at times a number or a letter behind them.
fn stem(random: &mut Random) -> String {
    let count = 2 + random.below(2);
    let mut stem: String =
        (0..count).map(|_| SYLLABLES[random.below(SYLLABLES.len() as u64) as usize]).collect();
    if random.below(20) < 14 {
        stem.push_str(&random.below(100).to_string());
    }
    stem
}

/// Characters of all 256 values: the paper's file of them becomes longer by gzip, so its alphabet has no fewer.
fn random_characters() -> Vec<u8> {
    let mut random = Random::new(SEED + 1);
    (0..FILE_LEN).map(|_| random.below(256) as u8).collect()
}
