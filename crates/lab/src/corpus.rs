//! The files that blocks are drawn from: the paper's, those of a given folder, or generated in the spirit of the paper's.

mod picture;
mod scan;

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use strait_clock::Random;
use strait_testbed::sample;

use crate::error::Error;
use crate::vpn::printed::{CALGARY, FILES, SIZES};

/// Bytes that the longest draw takes from the front of a file.
pub const LEAST: usize = longest();
/// What the generated sample's random bytes are called there, and in the paper.
const RANDOM: (&str, &str) = ("archive.bin", FILES[7]);
/// What the paper calls its picture.
const PICTURE: &str = FILES[6];

/// Files to draw blocks from.
#[derive(Clone, Debug)]
pub struct Corpus {
    /// The files, those of the paper in its order.
    pub files: Vec<CorpusFile>,
    /// What is to be known about them.
    pub notes: Vec<String>,
}

/// A file's name and its front.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CorpusFile {
    /// Its name in tables.
    pub name: String,
    /// Its place among the paper's [`FILES`], if it is one of them.
    pub printed: Option<usize>,
    /// Its first [`LEAST`] bytes.
    pub front: Vec<u8>,
}

impl Corpus {
    /// Generated files: logs, records, a dump, telemetry, pages, a scanned page, a picture, random bytes.
    #[must_use]
    pub fn generated() -> Corpus {
        let mut files: Vec<CorpusFile> = sample::generate(sample::DEFAULT_SEED)
            .into_iter()
            .filter(|file| file.name != RANDOM.0)
            .map(|file| CorpusFile::new(file.name, &file.bytes))
            .collect();
        files.push(CorpusFile::new("scan.pic", &scan::page(&mut generator())));
        files.extend([generated_picture(), random()]);
        let notes = vec![
            "generated files; of the paper's, gif and random have generated counterparts, the others come with \
             --corpus FOLDER and the Calgary corpus"
                .to_owned(),
        ];
        Corpus { files, notes }
    }

    /// The files of a folder: those of the paper's Calgary files that are there, with a picture (the folder's first
    /// `.gif` that is long enough, else a generated one) and random bytes; or, where there is none of them, every
    /// file that is long enough.
    ///
    /// # Errors
    /// [`Error::Unreadable`], [`Error::Short`] for one of the paper's files, [`Error::NothingLongEnough`].
    pub fn read(folder: &Path) -> Result<Corpus, Error> {
        let paths = files_in(folder)?;
        let benchmark: Vec<&PathBuf> = FILES[..CALGARY]
            .iter()
            .filter_map(|name| paths.iter().find(|path| path.file_name().is_some_and(|it| it == *name)))
            .collect();
        if benchmark.is_empty() { any_files(folder, &paths) } else { the_papers(folder, &paths, &benchmark) }
    }
}

impl CorpusFile {
    fn new(name: impl Into<String>, bytes: &[u8]) -> CorpusFile {
        let name = name.into();
        let printed = FILES.iter().position(|file| *file == name);
        CorpusFile { name, printed, front: bytes[..LEAST.min(bytes.len())].to_vec() }
    }

    /// The blocks of one of [`SIZES`], as the paper draws them: so many from the front (section 5.4).
    pub(crate) fn drawn(&self, size: usize) -> Vec<&[u8]> {
        let (_, len, count) = SIZES[size];
        self.front.chunks_exact(len).take(count).collect()
    }
}

/// The paper's files that are in the folder, and what stands for the two that are not in any corpus.
fn the_papers(folder: &Path, paths: &[PathBuf], benchmark: &[&PathBuf]) -> Result<Corpus, Error> {
    let mut notes = Vec::new();
    let mut files = Vec::new();
    for path in benchmark {
        let (name, front, len) = front(path)?;
        if front.len() < LEAST {
            return Err(Error::Short { path: (*path).clone(), len, needed: LEAST });
        }
        files.push(CorpusFile::new(name, &front));
    }
    let missing: Vec<&str> =
        FILES[..CALGARY].iter().copied().filter(|name| files.iter().all(|file| file.name != *name)).collect();
    if !missing.is_empty() {
        notes.push(format!("{} has no {}", folder.display(), missing.join(", ")));
    }
    let (picture, note) = picture_in(paths)?;
    notes.extend(note);
    files.extend([picture, random()]);
    Ok(Corpus { files, notes })
}

/// Every file of the folder that is long enough.
fn any_files(folder: &Path, paths: &[PathBuf]) -> Result<Corpus, Error> {
    let mut longest = "it has no file at all".to_owned();
    let (mut most, mut files, mut short) = (0, Vec::new(), Vec::new());
    for path in paths {
        let (name, front, len) = front(path)?;
        if front.len() >= LEAST {
            files.push(CorpusFile { printed: None, ..CorpusFile::new(name, &front) });
        } else {
            if len >= most {
                longest = format!("its longest, {name}, has {len}");
                most = len;
            }
            short.push(name);
        }
    }
    if files.is_empty() {
        return Err(Error::NothingLongEnough { folder: folder.to_owned(), needed: LEAST, longest });
    }
    let left_out = format!("left out, shorter than {LEAST} bytes: {}", short.join(", "));
    Ok(Corpus { files, notes: if short.is_empty() { Vec::new() } else { vec![left_out] } })
}

/// The paper's picture is in no corpus: the folder's own, or a generated one.
fn picture_in(paths: &[PathBuf]) -> Result<(CorpusFile, Option<String>), Error> {
    for path in paths.iter().filter(|path| path.extension().is_some_and(|it| it.eq_ignore_ascii_case("gif")))
    {
        let (name, front, _) = front(path)?;
        if front.len() >= LEAST {
            let note = format!("gif: {name} of the folder; the paper's, a campus map, is in no corpus");
            return Ok((CorpusFile::new(PICTURE, &front), Some(note)));
        }
    }
    let note = "gif: a generated picture; the paper's, a campus map, is in no corpus, and the folder has no .gif \
                that is long enough";
    Ok((generated_picture(), Some(note.to_owned())))
}

fn generated_picture() -> CorpusFile {
    CorpusFile::new(PICTURE, &picture::gif(&mut generator()))
}

fn random() -> CorpusFile {
    let sample = sample::generate(sample::DEFAULT_SEED);
    let bytes = sample.iter().find(|file| file.name == RANDOM.0).map_or(&[][..], |file| &file.bytes);
    CorpusFile::new(RANDOM.1, bytes)
}

fn generator() -> Random {
    Random::new(sample::DEFAULT_SEED)
}

/// The regular files of a folder in the order of their names, without hidden ones.
fn files_in(folder: &Path) -> Result<Vec<PathBuf>, Error> {
    let unreadable = |source| Error::Unreadable { path: folder.to_owned(), source };
    let entries: Result<Vec<_>, io::Error> = fs::read_dir(folder).map_err(unreadable)?.collect();
    let mut paths: Vec<PathBuf> = entries.map_err(unreadable)?.into_iter().map(|it| it.path()).collect();
    let hidden = |path: &Path| path.file_name().is_some_and(|it| it.as_encoded_bytes().starts_with(b"."));
    paths.retain(|path| path.is_file() && !hidden(path));
    paths.sort();
    Ok(paths)
}

/// A file's name, as much of its front as is ever drawn, and its whole length.
fn front(path: &Path) -> Result<(String, Vec<u8>, u64), Error> {
    let unreadable = |source| Error::Unreadable { path: path.to_owned(), source };
    let file = File::open(path).map_err(unreadable)?;
    let len = file.metadata().map_err(unreadable)?.len();
    let mut front = Vec::new();
    file.take(LEAST as u64).read_to_end(&mut front).map_err(unreadable)?;
    Ok((path.file_name().unwrap_or_default().to_string_lossy().into_owned(), front, len))
}

const fn longest() -> usize {
    let (mut longest, mut size) = (0, 0);
    while size < SIZES.len() {
        let (_, len, count) = SIZES[size];
        if len * count > longest {
            longest = len * count;
        }
        size += 1;
    }
    longest
}

#[cfg(test)]
mod tests;
