//! What the benchmarks send: random bytes, and text of three kinds.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use strait_clock::Random;
use strait_testbed::sample;
use strait_testdata as data;

use crate::error::Error;

/// Longer than any block and window, so that repeating it repeats nothing that a codec could see.
const NOISE: usize = 4 << 20;
/// Kinds of files that are text.
const TEXT: [&str; 7] = ["ndjson", "json", "sql", "log", "html", "csv", "txt"];

/// Some text with a name.
#[derive(Clone, Debug)]
pub(crate) struct Text {
    /// For tables.
    pub(crate) name: &'static str,
    /// Files one after another.
    pub(crate) bytes: Arc<[u8]>,
}

/// Random bytes, always the same.
pub(crate) fn noise() -> Arc<[u8]> {
    let mut random = Random::new(sample::DEFAULT_SEED);
    let words = std::iter::repeat_with(|| random.next_u64().to_le_bytes());
    words.take(NOISE / 8).flatten().collect()
}

/// The text files of the generated sample; of each file the first `1/share`.
pub(crate) fn generated(share: usize) -> Text {
    let files = sample::generate(sample::DEFAULT_SEED);
    let text = files.iter().filter(|file| is_text(Path::new(&file.name)));
    Text { name: "generated sample", bytes: join(text.map(|file| &file.bytes[..]), share) }
}

/// So many bytes of the generated sample's logs, in lines.
pub(crate) fn sample_log(size: usize) -> Vec<u8> {
    let mut log = Vec::with_capacity(size + (1 << 20));
    let mut seed = sample::DEFAULT_SEED;
    while log.len() < size {
        for file in sample::generate(seed).iter().filter(|file| file.name.contains("log")) {
            log.extend_from_slice(&file.bytes);
        }
        seed += 1;
    }
    log.truncate(size);
    log
}

/// The generated sample and what there is of `modern` and `calgary`; and a note for what there is not.
pub(crate) fn texts(share: usize) -> Result<(Vec<Text>, Vec<String>), Error> {
    let mut texts = vec![generated(share)];
    let mut notes = Vec::new();
    let modern: fn(&Path) -> bool = is_text;
    for (name, folder, belongs) in
        [("modern text", "modern", modern), ("Calgary corpus", "calgary", is_of_a_corpus)]
    {
        match data::find(folder) {
            None => notes.push(format!("skipped {name}: no folder {folder} (see {})", data::VARIABLE)),
            Some(folder) => texts.push(Text { name, bytes: read(&folder, belongs, share)? }),
        }
    }
    Ok((texts, notes))
}

pub(crate) fn is_text(path: &Path) -> bool {
    path.extension().is_some_and(|extension| TEXT.iter().any(|kind| extension == *kind))
}

/// A corpus is files in small letters, beside some that describe it.
pub(crate) fn is_of_a_corpus(path: &Path) -> bool {
    path.file_name().is_some_and(|it| it.to_ascii_lowercase() == it)
}

/// The files of `folder` that belong, in the order of their names; of each the first `1/share`.
pub(crate) fn read(folder: &Path, belongs: fn(&Path) -> bool, share: usize) -> Result<Arc<[u8]>, Error> {
    let doing = || format!("read {}", folder.display());
    let entries = fs::read_dir(folder).map_err(Error::doing(doing()))?;
    let mut paths: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    let files: Result<Vec<Vec<u8>>, _> =
        paths.iter().filter(|path| path.is_file() && belongs(path)).map(fs::read).collect();
    let files = files.map_err(Error::doing(doing()))?;
    Ok(join(files.iter().map(Vec::as_slice), share))
}

fn join<'a>(files: impl Iterator<Item = &'a [u8]>, share: usize) -> Arc<[u8]> {
    files.flat_map(|bytes| bytes.iter().take(bytes.len() / share.max(1))).copied().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn noise_does_not_shrink_and_text_does() {
        use strait_compress::{Codecs, Method};
        let mut codecs = Codecs::new();
        let mut out = vec![0; 1 << 16];
        let compressed = |bytes: &[u8], codecs: &mut Codecs, out: &mut [u8]| {
            codecs.compress(Method::ZSTD, &bytes[..1 << 16], &mut out[..(1 << 16) - 1])
        };
        assert_eq!(compressed(&noise(), &mut codecs, &mut out), None);
        let text = generated(1);
        assert!(compressed(&text.bytes, &mut codecs, &mut out).unwrap() < 1 << 15);
    }

    #[test]
    fn a_share_takes_some_of_every_file() {
        let (whole, eighth) = (generated(1).bytes, generated(8).bytes);
        assert!(eighth.len() * 8 <= whole.len() && eighth.len() * 8 > whole.len() - 64);
        assert_eq!(join([&b"aaaa"[..], b"bb"].into_iter(), 2)[..], *b"aab");
    }

    #[test]
    fn text_is_told_by_its_extension() {
        for (name, text) in [("a.json", true), ("b.log", true), ("c.jpg", false), ("book1", false)] {
            assert_eq!(is_text(Path::new(name)), text, "{name}");
        }
    }
}
