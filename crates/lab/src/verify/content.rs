//! What is sent.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use strait_clock::Random;
use strait_testbed::sample;

use crate::error::Error;

/// Files of the Calgary corpus: a fax that shrinks tenfold, a terminal's transcript, a novel.
const CORPUS: [&str; 3] = ["pic", "trans", "book1"];
/// Files of the generated sample: pages, and records.
const GENERATED: [(&str, &str); 2] = [("text", "handbook.html"), ("json", "orders.ndjson")];
/// Longer than any block, so that repeating it repeats nothing that a codec could see.
const RANDOM: usize = 1 << 20;

/// Bytes with a name, sent again and again.
#[derive(Clone, Debug)]
pub struct Content {
    /// For tables.
    pub name: &'static str,
    /// They.
    pub bytes: Arc<[u8]>,
}

impl Content {
    /// Generated pages, records and random bytes.
    #[must_use]
    pub fn generated() -> Vec<Content> {
        let files = sample::generate(sample::DEFAULT_SEED);
        let file =
            |name: &str| files.iter().find(|file| file.name == name).map(|file| Arc::clone(&file.bytes));
        let mut contents: Vec<Content> = GENERATED
            .iter()
            .filter_map(|(name, file_name)| Some(Content { name, bytes: file(file_name)? }))
            .collect();
        let mut random = Random::new(sample::DEFAULT_SEED);
        let words = std::iter::repeat_with(|| random.next_u64().to_le_bytes());
        contents.push(Content { name: "random", bytes: words.take(RANDOM / 8).flatten().collect() });
        contents
    }

    /// Three files of the Calgary corpus in `folder`, and random bytes.
    ///
    /// # Errors
    /// [`Error::Unreadable`] when one cannot be read.
    pub fn corpus(folder: &Path) -> Result<Vec<Content>, Error> {
        let read = |name: &'static str| {
            let path = folder.join(name);
            let bytes = fs::read(&path).map_err(|source| Error::Unreadable { path, source })?;
            Ok(Content { name, bytes: bytes.into() })
        };
        let files: Result<Vec<Content>, Error> = CORPUS.into_iter().map(read).collect();
        let random = Content::generated().into_iter().filter(|content| content.name == "random");
        Ok(files?.into_iter().chain(random).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generated_contents_are_longer_than_blocks() {
        let contents = Content::generated();
        assert_eq!(contents.iter().map(|it| it.name).collect::<Vec<_>>(), ["text", "json", "random"]);
        assert!(contents.iter().all(|it| it.bytes.len() > 1 << 17));
    }

    #[test]
    fn a_folder_without_the_corpus_is_named() {
        let error = Content::corpus(Path::new("/nowhere")).unwrap_err().to_string();
        assert!(error.contains("/nowhere/pic"), "{error}");
    }
}
