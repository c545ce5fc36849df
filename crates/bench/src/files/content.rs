//! The files that are moved: random bytes, generated text, both mixed, logs, and folders of small files. The same seed gives the same
//! bytes.

use std::fs::{self, File};
use std::io::{BufWriter, Read, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;

use strait_clock::Random;
use strait_testbed::sample;

use crate::content::{is_text, sample_log};
use crate::error::Error;

/// An extent of a sparse file, and of random bytes in a mixed one.
const EXTENT: usize = 1 << 20;

/// What is in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FileContent {
    /// Bytes that do not shrink.
    Random,
    /// Logs, records, a dump, telemetry and pages, which zstd -3 shrinks 4 to 6 times.
    Text,
    /// Both in turn, half of the bytes each, in stretches of 1 MiB.
    Mixed,
    /// Logs alone.
    Log,
}

impl FileContent {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            FileContent::Random => "random",
            FileContent::Text => "text",
            FileContent::Mixed => "mixed",
            FileContent::Log => "log",
        }
    }

    /// Writes a file of `size` bytes.
    pub(crate) fn write(self, path: &Path, size: u64) -> Result<(), Error> {
        let doing = || format!("write {}", path.display());
        let mut file = BufWriter::with_capacity(EXTENT, File::create(path).map_err(Error::doing(doing()))?);
        let (mut left, mut source) = (size, ContentSource::new(sample::DEFAULT_SEED));
        if self == FileContent::Log {
            let log = sample_log(usize::try_from(left).unwrap_or(usize::MAX));
            file.write_all(&log).map_err(Error::doing(doing()))?;
            left = 0;
        }
        let mut random = self != FileContent::Text;
        while left > 0 {
            let mut bytes = if random { source.noise(EXTENT) } else { source.text(EXTENT) };
            bytes.truncate(usize::try_from(left).unwrap_or(usize::MAX));
            file.write_all(&bytes).map_err(Error::doing(doing()))?;
            left -= bytes.len() as u64;
            random ^= self == FileContent::Mixed;
        }
        let file = file.into_inner().map_err(|error| Error::doing(doing())(error.into_error()))?;
        // Not while it is measured.
        file.sync_all().map_err(Error::doing(doing()))
    }
}

/// Bytes without an end, of both kinds; no text comes twice.
struct ContentSource {
    random: Random,
    seed: u64,
    text: Vec<u8>,
}

impl ContentSource {
    fn new(seed: u64) -> ContentSource {
        ContentSource { random: Random::new(seed), seed, text: Vec::new() }
    }

    fn noise(&mut self, len: usize) -> Vec<u8> {
        let words = std::iter::repeat_with(|| self.random.next_u64().to_le_bytes());
        words.take(len.div_ceil(8)).flatten().take(len).collect()
    }

    fn text(&mut self, len: usize) -> Vec<u8> {
        while self.text.len() < len {
            let files = sample::generate(self.seed);
            self.seed += 1;
            let text = files.iter().filter(|file| is_text(Path::new(&file.name)));
            text.for_each(|file| self.text.extend_from_slice(&file.bytes));
        }
        let rest = self.text.split_off(len);
        std::mem::replace(&mut self.text, rest)
    }
}

/// Writes a sparse file of `size` bytes with `data` bytes of random data, in extents of 1 MiB that are as far from each other.
pub(super) fn write_sparse(path: &Path, size: u64, data: u64) -> Result<(), Error> {
    let doing = || format!("write {}", path.display());
    let file = File::create(path).map_err(Error::doing(doing()))?;
    file.set_len(size).map_err(Error::doing(doing()))?;
    let mut source = ContentSource::new(sample::DEFAULT_SEED);
    let extents = data / EXTENT as u64;
    for extent in 0..extents {
        let at = size / extents * extent / EXTENT as u64 * EXTENT as u64;
        file.write_all_at(&source.noise(EXTENT), at).map_err(Error::doing(doing()))?;
    }
    file.sync_all().map_err(Error::doing(doing()))
}

/// Makes a folder of so many text files of 1 to 20 kB, a hundred to a folder; gives the bytes in all.
pub(super) fn write_small(folder: &Path, files: usize) -> Result<u64, Error> {
    let doing = || format!("write files into {}", folder.display());
    let (mut source, mut sizes) = (ContentSource::new(sample::DEFAULT_SEED), Random::new(1));
    let mut all = 0;
    for number in 0..files {
        let below = folder.join(format!("part-{:03}", number / 100));
        fs::create_dir_all(&below).map_err(Error::doing(doing()))?;
        let size = 1000 + usize::try_from(sizes.next_u64() % 19_001).unwrap_or(0);
        let bytes = source.text(size);
        fs::write(below.join(format!("note-{number:05}.txt")), &bytes).map_err(Error::doing(doing()))?;
        all += bytes.len() as u64;
    }
    Ok(all)
}

/// Whether two files, or all files of two folders, have the same bytes.
pub(crate) fn same(one: &Path, other: &Path) -> std::io::Result<bool> {
    if one.is_dir() {
        for entry in fs::read_dir(one)? {
            let entry = entry?;
            if !same(&entry.path(), &other.join(entry.file_name()))? {
                return Ok(false);
            }
        }
        return Ok(fs::read_dir(one)?.count() == fs::read_dir(other)?.count());
    }
    let (mut one, mut other) = (File::open(one)?, File::open(other)?);
    if one.metadata()?.len() != other.metadata()?.len() {
        return Ok(false);
    }
    let (mut here, mut there) = (vec![0; EXTENT], vec![0; EXTENT]);
    loop {
        let read = one.read(&mut here)?;
        if read == 0 {
            return Ok(true);
        }
        let (here, there) = (&here[..read], &mut there[..read]);
        other.read_exact(there)?;
        if here != &*there {
            return Ok(false);
        }
    }
}

#[cfg(test)]
mod tests {
    use strait_testbed::Workdir;

    use super::*;

    #[test]
    fn files_have_the_size_that_was_asked_for_and_are_the_same_again() {
        let dir = Workdir::create().unwrap();
        let [one, other] = ["one", "other"].map(|name| dir.path().join(name));
        for content in [FileContent::Random, FileContent::Text, FileContent::Mixed, FileContent::Log] {
            content.write(&one, 2_500_001).unwrap();
            content.write(&other, 2_500_001).unwrap();
            assert_eq!(fs::metadata(&one).unwrap().len(), 2_500_001);
            assert!(same(&one, &other).unwrap(), "{}", content.name());
        }
        FileContent::Random.write(&one, 2_500_001).unwrap();
        assert!(!same(&one, &other).unwrap());
    }

    #[test]
    fn a_folder_is_the_same_only_with_all_its_files() {
        let dir = Workdir::create().unwrap();
        let [one, other] = ["one", "other"].map(|name| dir.path().join(name));
        assert_eq!(write_small(&one, 120).unwrap(), write_small(&other, 120).unwrap());
        assert!(same(&one, &other).unwrap());
        fs::write(other.join("more"), "").unwrap();
        assert!(!same(&one, &other).unwrap());
    }

    #[test]
    fn a_sparse_file_takes_its_data_and_little_more() {
        use std::os::unix::fs::MetadataExt;
        let dir = Workdir::create().unwrap();
        let path = dir.path().join("sparse");
        write_sparse(&path, 64 << 20, 4 << 20).unwrap();
        let found = fs::metadata(&path).unwrap();
        assert_eq!(found.len(), 64 << 20);
        assert!((4 << 20..6 << 20).contains(&(found.blocks() * 512)), "{}", found.blocks());
    }
}
