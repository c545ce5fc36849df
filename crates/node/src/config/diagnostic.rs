//! Where something is wrong, and how that is shown.

use std::fmt;
use std::ops::Range;

use super::Problem;

/// Most characters of a line that are shown.
const SHOWN: usize = 100;

/// One thing wrong, with its place.
#[derive(Debug)]
pub struct Diagnostic {
    /// Line, counted from 1.
    pub line: usize,
    /// Column in characters, counted from 1.
    pub column: usize,
    /// How many characters are meant.
    pub width: usize,
    /// The line's text; empty when it may hold a secret.
    pub text: String,
    /// What is wrong.
    pub problem: Problem,
}

impl Diagnostic {
    /// `problem` at the bytes `span` of `text`.
    pub(super) fn new(text: &str, span: Range<usize>, problem: Problem) -> Diagnostic {
        let start = floor(text, span.start);
        let begin = text[..start].rfind('\n').map_or(0, |at| at + 1);
        let end = text[start..].find('\n').map_or(text.len(), |at| start + at);
        let line = &text[begin..end];
        // What spans lines is marked to the end of its first.
        let stop = floor(text, span.end).clamp(start, end);
        let secret = matches!(problem, Problem::InlineKey | Problem::OwnPrivateKey)
            || holds_key(line)
            // Where the text breaks off, the section of a line is unknown.
            || (matches!(problem, Problem::Syntax { .. }) && text.lines().any(holds_key));
        Diagnostic {
            line: line_of(text, start),
            column: text[begin..start].chars().count() + 1,
            width: text[start..stop].chars().count().max(1),
            text: if secret { String::new() } else { line.trim_end().to_owned() },
            problem,
        }
    }

    fn show(&self, f: &mut fmt::Formatter<'_>, origin: &str) -> fmt::Result {
        write!(f, "{origin}:{}:{}: {}", self.line, self.column, self.problem)?;
        // Tabs would part the mark from what it marks; a mark off the screen is useless.
        if self.text.is_empty() || self.column > SHOWN {
            return Ok(());
        }
        let text: String =
            self.text.chars().take(SHOWN).map(|c| if c.is_control() { ' ' } else { c }).collect();
        let mark = "^".repeat(self.width.min((SHOWN + 1).saturating_sub(self.column)));
        write!(f, "\n{:>5} | {text}", self.line)?;
        write!(f, "\n      | {:1$}{mark}", "", self.column - 1)
    }
}

/// Whether a secret key may be written in `line`: by the name in it, however misspelt, or by what looks like one.
fn holds_key(line: &str) -> bool {
    let name: String =
        line.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_ascii_lowercase();
    let names =
        |one: &str| name.match_indices(one).any(|(at, _)| !name[at + one.len()..].starts_with("file"));
    names("keyin") || names("keyout") || (!name.contains("publickey") && line.split(is_no_digit).any(is_key))
}

/// Not a character of hex or base64.
fn is_no_digit(c: char) -> bool {
    !c.is_ascii_alphanumeric() && !matches!(c, '+' | '/' | '=')
}

/// Longer than any number in hex, or as mixed as 16 bytes and more are in base64.
fn is_key(word: &str) -> bool {
    let hex = word.strip_prefix("0x").unwrap_or(word);
    let is_hex = hex.len() > 8 && hex.bytes().all(|byte| byte.is_ascii_hexdigit());
    let has = |kind: fn(&u8) -> bool| word.as_bytes().iter().any(kind);
    let mixed = has(u8::is_ascii_lowercase) && has(u8::is_ascii_uppercase);
    is_hex || (word.len() >= 24 && word.len().is_multiple_of(4) && mixed)
}

/// The line, counted from 1, of byte `at` of `text`.
fn line_of(text: &str, at: usize) -> usize {
    text.as_bytes().iter().take(at).filter(|byte| **byte == b'\n').count() + 1
}

/// The last character boundary at or before `at`.
fn floor(text: &str, at: usize) -> usize {
    (0..=at.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0)
}

/// Everything wrong with a file.
pub(super) struct Listing<'a> {
    pub(super) origin: &'a str,
    pub(super) found: &'a [Diagnostic],
}

impl fmt::Display for Listing<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, diagnostic) in self.found.iter().enumerate() {
            if index > 0 {
                writeln!(f)?;
            }
            diagnostic.show(f, self.origin)?;
        }
        match self.found.len() {
            0 | 1 => Ok(()),
            many => write!(f, "\n{many} errors in {}", self.origin),
        }
    }
}
