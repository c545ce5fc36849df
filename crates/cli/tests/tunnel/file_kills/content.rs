//! What is sent, of a seed.

use std::fs;
use std::path::Path;

use strait_clock::Random;

/// What a transfer has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Content {
    /// One file of words.
    Words,
    /// The same, and an older file under its name that has nothing of it.
    WordsOverOlder,
    /// Small files that do not compress.
    Tree,
}

/// Bytes of content: more than a link of 1.5 Mbit/s carries in all runs that are killed.
const WORDS: u64 = 40_000_000;
const TREE: u64 = 10_000_000;

impl Content {
    /// How many bytes of content it has.
    pub(super) const fn bytes(self) -> u64 {
        match self {
            Content::Words | Content::WordsOverOlder => WORDS,
            Content::Tree => TREE,
        }
    }

    /// Bytes on the link for each, about: of 6.5 letters and a space 9 bits are news, and codes cost more; 9 % are headers and
    /// acknowledgements.
    pub(super) const fn wire_per_byte(self) -> f64 {
        match self {
            Content::Words | Content::WordsOverOlder => 0.31,
            Content::Tree => 1.09,
        }
    }

    /// Makes it in a folder, below the name `it`; what is older goes below the same name in `there`.
    pub(super) fn make(self, folder: &Path, there: &Path, random: &mut Random) {
        let it = folder.join("it");
        match self {
            Content::Words => fs::write(it, words(WORDS, random)).unwrap(),
            Content::WordsOverOlder => {
                fs::write(it, words(WORDS, random)).unwrap();
                fs::write(there.join("it"), noise(100_000, random)).unwrap();
            }
            Content::Tree => {
                let mut left = TREE;
                for number in 0.. {
                    let size = (1 + random.below(40_000)).min(left);
                    let folder = it.join(format!("folder-{}", number / 50));
                    fs::create_dir_all(&folder).unwrap();
                    fs::write(folder.join(format!("file-{number}")), noise(size, random)).unwrap();
                    left -= size;
                    if left == 0 {
                        break;
                    }
                }
            }
        }
    }
}

/// Bytes that do not compress.
pub(crate) fn noise(length: u64, random: &mut Random) -> Vec<u8> {
    let mut bytes = vec![0; usize::try_from(length).unwrap()];
    blake3::Hasher::new().update(&random.next_u64().to_be_bytes()).finalize_xof().fill(&mut bytes);
    bytes
}

/// Words of a list of 512, none more likely than another.
fn words(length: u64, random: &mut Random) -> Vec<u8> {
    let letter = |random: &mut Random| b'a' + u8::try_from(random.below(26)).unwrap();
    let list: Vec<Vec<u8>> =
        (0..512).map(|_| (0..4 + random.below(6)).map(|_| letter(random)).chain([b' ']).collect()).collect();
    let length = usize::try_from(length).unwrap();
    let mut text = Vec::with_capacity(length + 16);
    while text.len() < length {
        let mut bits = random.next_u64();
        for _ in 0..7 {
            text.extend_from_slice(&list[usize::try_from(bits & 511).unwrap()]);
            bits >>= 9;
        }
    }
    text.truncate(length);
    text
}
