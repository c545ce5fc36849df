//! The two files: random bytes and C source, each as long as the paper's.

use std::fmt::Write;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use strait_clock::Random;

use super::printed::FILE_LEN;
use crate::error::Error;

/// The same bytes each time.
const SEED: u64 = 1997;

const TYPES: [&str; 8] =
    ["int", "unsigned int", "char *", "struct node *", "long", "size_t", "u_char", "void *"];
const WORDS: [&str; 28] = [
    "buf", "len", "key", "node", "cache", "entry", "queue", "head", "host", "addr", "packet", "count",
    "next", "state", "timer", "flags", "error", "index", "table", "hash", "mask", "list", "name", "size",
    "value", "offset", "frame", "route",
];
const VERBS: [&str; 12] = [
    "find", "insert", "remove", "init", "update", "check", "copy", "read", "send", "alloc", "free", "lookup",
];

/// A file to send.
#[derive(Clone, Debug)]
pub struct EnskipFile {
    /// In tables and notes.
    pub name: String,
    /// All of it, or its front.
    pub bytes: Arc<[u8]>,
}

impl EnskipFile {
    /// Random bytes.
    pub(super) fn random() -> EnskipFile {
        let mut random = Random::new(SEED);
        let words = std::iter::repeat_with(|| random.next_u64().to_le_bytes());
        EnskipFile { name: "random".to_owned(), bytes: words.take(FILE_LEN / 8).flatten().collect() }
    }

    /// C source that is generated.
    pub(super) fn source() -> EnskipFile {
        let mut random = Random::new(SEED + 1);
        let mut text = String::with_capacity(FILE_LEN + 4096);
        while text.len() < FILE_LEN {
            function(&mut random, &mut text);
        }
        EnskipFile { name: "C source".to_owned(), bytes: text.as_bytes()[..FILE_LEN].into() }
    }

    /// A file that stands for the C source, its first 1.5 MB at most; a shorter one is repeated to that length.
    ///
    /// # Errors
    /// [`Error::GivenFile`] when it cannot be read or is empty.
    pub fn read(path: &Path) -> Result<EnskipFile, Error> {
        let refused = |why: String| Error::GivenFile { path: path.to_owned(), why };
        let unreadable = |error| refused(format!("cannot be read: {error}"));
        let mut front = Vec::new();
        let file = File::open(path).map_err(unreadable)?;
        file.take(FILE_LEN as u64).read_to_end(&mut front).map_err(unreadable)?;
        if front.is_empty() {
            return Err(refused("is empty".to_owned()));
        }
        let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
        Ok(EnskipFile { name, bytes: front.into_iter().cycle().take(FILE_LEN).collect() })
    }

    /// The same, but no longer than this.
    pub(super) fn front(self, len: usize) -> EnskipFile {
        EnskipFile { bytes: self.bytes[..len.min(self.bytes.len())].into(), ..self }
    }
}

fn one<'a>(random: &mut Random, of: &[&'a str]) -> &'a str {
    of[random.below(of.len() as u64) as usize]
}

/// A function with a comment, declarations and statements.
fn function(random: &mut Random, text: &mut String) {
    let [verb, noun] = [one(random, &VERBS), one(random, &WORDS)];
    let mut names = [0; 5].map(|_| one(random, &WORDS));
    names.sort_unstable();
    let [a, b, c, d, e] = names;
    let _ = write!(
        text,
        "/*\n * {noun}_{verb}: {verb} the {a} of a {noun}, by its {b}\n */\n{}\n{noun}_{verb}({a}, {b})\n\t{}{a};\n\t{}{b};\n{{\n",
        one(random, &TYPES),
        one(random, &TYPES),
        one(random, &TYPES),
    );
    for name in [c, d] {
        let _ = writeln!(text, "\t{} {name}_{};", one(random, &TYPES), random.below(10));
    }
    text.push('\n');
    for _ in 0..3 + random.below(12) {
        statement(random, text, [a, b, c, d, e]);
    }
    let _ = write!(text, "\treturn ({e});\n}}\n\n");
}

fn statement(random: &mut Random, text: &mut String, names: [&str; 5]) {
    let [x, y] = [one(random, &names), one(random, &names)];
    let number = random.below(256);
    let _ = match random.below(7) {
        0 => writeln!(text, "\tif ({x}->{y} == NULL)\n\t\treturn (-1);"),
        1 => writeln!(text, "\tfor ({x} = 0; {x} < {number}; {x}++)\n\t\t{y}[{x}] = 0;"),
        2 => writeln!(text, "\t{x} = {}_{}({y}, {number});", one(random, &WORDS), one(random, &VERBS)),
        3 => writeln!(text, "\t{x}->{y} &= ~0x{number:02x};"),
        4 => writeln!(text, "\tbcopy({x}, &{y}->{}, sizeof({x}));", one(random, &WORDS)),
        5 => {
            writeln!(text, "\tif ({x} > {number}) {{\n\t\tprintf(\"{y}: too long\\n\");\n\t\tgoto out;\n\t}}")
        }
        _ => writeln!(text, "\t{x} += ({y} >> {}) & 0x{number:x};", number % 8),
    };
}

#[cfg(test)]
mod tests {
    use super::*;
    use strait_compress::{Codec, Codecs, Method};

    #[test]
    fn source_shrinks_as_source_does_and_random_bytes_do_not() {
        let mut codecs = Codecs::new();
        let mut ratio = |file: EnskipFile| {
            assert_eq!(file.bytes.len(), FILE_LEN);
            let mut out = vec![0; FILE_LEN + FILE_LEN / 100];
            let method = Method { level: 6, ..Method::of(Codec::Deflate) };
            FILE_LEN as f64 / codecs.compress(method, &file.bytes, &mut out).unwrap() as f64
        };
        let (source, random) = (ratio(EnskipFile::source()), ratio(EnskipFile::random()));
        assert!((3.0..6.0).contains(&source), "{source}");
        assert!(random < 1.0, "{random}");
    }

    #[test]
    fn a_short_file_is_repeated() {
        let folder = strait_testbed::Workdir::create().unwrap();
        let path = folder.path().join("short.c");
        std::fs::write(&path, "int x;\n").unwrap();
        let file = EnskipFile::read(&path).unwrap();
        assert_eq!(
            (file.name.as_str(), file.bytes.len(), &file.bytes[..9]),
            ("short.c", FILE_LEN, &b"int x;\nin"[..])
        );
        std::fs::write(&path, "").unwrap();
        assert!(EnskipFile::read(&path).unwrap_err().to_string().contains("is empty"));
        assert!(
            EnskipFile::read(&folder.path().join("none")).unwrap_err().to_string().contains("cannot be read")
        );
    }
}
