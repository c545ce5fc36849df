//! Two releases of a package that does not exist, as tar files: source text in many files, and what a release changes.

use strait_clock::Random;

/// What the newer release has that the older one has not.
pub(super) const CHANGE: &str = "another version in the name of every file and in its header, another time of every file, a quarter of \
                                 the files with one to four places changed by one to twelve lines, 3 % of the files new, 2 % \
                                 removed, 1 % renamed";
/// Bytes of a tar block (POSIX.1-1988, ustar).
const BLOCK: usize = 512;
/// Lines of a file.
const LINES: std::ops::Range<u64> = 40..900;
/// Words that names are made of.
const WORDS: [&str; 32] = [
    "buffer", "index", "request", "parser", "token", "stream", "config", "value", "handler", "session",
    "cache", "entry", "field", "target", "source", "limit", "offset", "result", "state", "queue", "worker",
    "path", "header", "count", "filter", "event", "record", "block", "schema", "client", "route", "option",
];

/// A source file.
#[derive(Clone, Debug)]
struct SourceText {
    name: String,
    lines: Vec<String>,
}

/// The older and the newer release, of about so many bytes each.
pub(super) fn generate(bytes: usize) -> [Vec<u8>; 2] {
    let mut writer = SourceWriter(Random::new(7));
    let (mut files, mut written) = (Vec::new(), 0);
    while written < bytes {
        let file = writer.file(files.len());
        written += file.lines.iter().map(|line| line.len() + 1).sum::<usize>() + 2 * BLOCK;
        files.push(file);
    }
    let newer = writer.release(&files);
    [tar("2.4.1", 1_700_000_000, &files), tar("2.5.0", 1_712_345_678, &newer)]
}

/// Writes text as programmers do, more or less.
struct SourceWriter(Random);

impl SourceWriter {
    fn below(&mut self, limit: u64) -> u64 {
        self.0.next_u64() % limit
    }

    fn word(&mut self) -> &'static str {
        let at = usize::try_from(self.below(WORDS.len() as u64)).unwrap_or(0);
        WORDS.get(at).copied().unwrap_or("value")
    }

    fn name(&mut self) -> String {
        let (first, second) = (self.word(), self.word());
        if self.below(3) == 0 {
            format!("{first}_{second}_{}", self.word())
        } else {
            format!("{first}_{second}")
        }
    }

    fn file(&mut self, number: usize) -> SourceText {
        let name = format!("src/{}/{}_{number}.py", self.word(), self.name());
        let lines = LINES.start + self.below(LINES.end - LINES.start);
        SourceText { name, lines: (0..lines).map(|_| self.line()).collect() }
    }

    fn line(&mut self) -> String {
        let [a, b, c] = [self.name(), self.name(), self.name()];
        let number = self.below(10_000);
        match self.below(12) {
            0 => String::new(),
            1 => format!("def {a}({b}, {c}=None):"),
            2 => format!("    \"\"\"Give the {b} of {c}, or {number} where there is none.\"\"\""),
            3 => format!("    if {a} is None or len({b}) > {number}:"),
            4 => format!("        raise ValueError(\"{a}: %s is no {b}\" % {c})"),
            5 => format!("    for {a} in {b}.{c}():"),
            6 => format!("        {a}.append({b}[{number}])"),
            7 => format!("    return {a}({b}, {c})"),
            8 => format!("    # The {a} is {b} until {c} says otherwise."),
            9 => format!("    self.{a} = {b}.get(\"{c}\", {number})"),
            10 => format!("from .{a} import {b}"),
            _ => format!("    {a} = {b} + {c} * {number}"),
        }
    }

    /// The next release of files.
    fn release(&mut self, files: &[SourceText]) -> Vec<SourceText> {
        let mut newer = Vec::new();
        for file in files {
            let mut file = file.clone();
            match self.below(100) {
                0..2 => continue,
                2 => file.name = file.name.replace("src/", "src/moved/"),
                3..28 => (0..=self.below(4)).for_each(|_| self.edit(&mut file.lines)),
                28..31 => newer.push(self.file(files.len() + newer.len())),
                _ => {}
            }
            newer.push(file);
        }
        newer
    }

    /// Takes some lines away and puts others there.
    fn edit(&mut self, lines: &mut Vec<String>) {
        let at = usize::try_from(self.below(lines.len().max(1) as u64)).unwrap_or(0);
        let removed = usize::try_from(self.below(13)).unwrap_or(0).min(lines.len() - at);
        let added: Vec<String> = (0..=self.below(12)).map(|_| self.line()).collect();
        lines.splice(at..at + removed, added);
    }
}

/// The files as a tar, in the order of their names.
fn tar(version: &str, time: u64, files: &[SourceText]) -> Vec<u8> {
    let mut files: Vec<&SourceText> = files.iter().collect();
    files.sort_by(|one, other| one.name.cmp(&other.name));
    let mut out = Vec::new();
    for file in files {
        let text = format!("# Part of package {version}.\n{}\n", file.lines.join("\n"));
        out.extend(header(&format!("package-{version}/{}", file.name), text.len(), time));
        out.extend(text.as_bytes());
        out.resize(out.len().next_multiple_of(BLOCK), 0);
    }
    // Two empty blocks end it.
    out.resize(out.len() + 2 * BLOCK, 0);
    out
}

/// A header of an ordinary file: names, numbers in octal, and the sum of its bytes with blanks in place of the sum.
fn header(name: &str, len: usize, time: u64) -> [u8; BLOCK] {
    let mut block = [0; BLOCK];
    let mut put = |at: usize, text: &str| {
        let end = (at + text.len()).min(BLOCK);
        block[at..end].copy_from_slice(&text.as_bytes()[..end - at]);
    };
    put(0, name);
    put(100, "0000644\0");
    put(108, "0000000\0");
    put(116, "0000000\0");
    put(124, &format!("{len:011o}\0"));
    put(136, &format!("{time:011o}\0"));
    put(148, "        0");
    put(257, "ustar\x0000");
    put(265, "root");
    put(297, "root");
    let sum: u32 = block.iter().map(|byte| u32::from(*byte)).sum();
    block[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    block
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use strait_testbed::{Workdir, outside};

    use super::*;

    #[test]
    fn releases_are_alike_and_not_the_same() {
        let [older, newer] = generate(400_000);
        assert!((380_000..480_000).contains(&older.len()), "{}", older.len());
        assert!(older != newer && generate(400_000)[1] == newer);
        assert!(older.len().abs_diff(newer.len()) < older.len() / 5);
    }

    #[test]
    fn tar_reads_what_was_made() {
        if !outside::has("tar") {
            return;
        }
        let dir = Workdir::create().unwrap();
        for release in generate(200_000) {
            let path = dir.path().join("release.tar");
            std::fs::write(&path, release).unwrap();
            let listed = Command::new("tar").arg("-tf").arg(&path).output().unwrap();
            assert!(listed.status.success() && listed.stderr.is_empty(), "{listed:?}");
            assert!(listed.stdout.split(|byte| *byte == b'\n').count() > 5);
        }
    }
}
