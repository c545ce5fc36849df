//! Characters that terminals give different numbers of cells, and the rows in which therefore no column is sure.
//!
//! The model gives each character its own cells. Many terminals join characters to one picture, or widen one for the sake of the next. So
//! output is followed on a second model, too, once there was such a character: there each of them takes two cells more. A row that both
//! models have alike is sure. What a program erases or writes by columns is sure again; what it does from where the cursor stands is not.

use core::ops::RangeInclusive;

use unicode_width::UnicodeWidthChar;
use vt100::{Cell, Parser, Screen};

/// Bytes of a cell's text from which on the model adds no more to it (`vt100::Cell`).
const CELL_FULL: usize = 18;
/// VARIATION SELECTOR-16, which asks for a picture in two cells for the character before it.
const WIDENS: char = '\u{fe0f}';
/// Text in the place of the cells that a terminal may give a character besides.
const MORE: &str = "\u{b7}\u{b7}";

/// Characters of one or two cells that take others in some terminals, or that join what is before them.
const DOUBTFUL: [RangeInclusive<char>; 17] = [
    // SOFT HYPHEN: shown, or not.
    '\u{ad}'..='\u{ad}',
    // Scripts whose letters join to clusters (UAX #29, rules GB9a to GB9c): of India, Thai and Lao AM, Tibet, Burma, Khmer, and the rest.
    '\u{900}'..='\u{dff}',
    '\u{e33}'..='\u{e33}',
    '\u{eb3}'..='\u{eb3}',
    '\u{f00}'..='\u{109f}',
    '\u{1780}'..='\u{17ff}',
    '\u{1a20}'..='\u{1cff}',
    '\u{a800}'..='\u{abff}',
    '\u{11000}'..='\u{11fff}',
    // Wide since Unicode 16: trigrams, monograms, hexagrams, Tai Xuan Jing, counting rods.
    '\u{2630}'..='\u{2637}',
    '\u{268a}'..='\u{268f}',
    '\u{4dc0}'..='\u{4dff}',
    '\u{1d300}'..='\u{1d37f}',
    // REPLACEMENT CHARACTER, which the model leaves out.
    '\u{fffd}'..='\u{fffd}',
    // Regional indicators, of which two are a flag.
    '\u{1f1e6}'..='\u{1f1ff}',
    // Skin tones.
    '\u{1f3fb}'..='\u{1f3ff}',
    // Emoji of the last years and of the next: older tables of widths have some of them not.
    '\u{1fa70}'..='\u{1faff}',
];
/// Characters of no cell that every terminal puts over a letter of one: of Latin, Greek and Cyrillic, of Hebrew, of Arabic, of Thai.
const MARKS: [RangeInclusive<char>; 8] = [
    '\u{300}'..='\u{36f}',
    '\u{591}'..='\u{5c7}',
    '\u{610}'..='\u{61a}',
    '\u{64b}'..='\u{6ed}',
    '\u{e31}'..='\u{e4e}',
    '\u{1ab0}'..='\u{1aff}',
    '\u{1dc0}'..='\u{1dff}',
    '\u{fe20}'..='\u{fe2f}',
];

/// Returns the cells that every terminal gives a character, if that is sure; `narrow`: it follows one of one cell.
pub(super) fn width(character: char, narrow: bool) -> Option<u16> {
    let is_in = |ranges: &[RangeInclusive<char>]| ranges.iter().any(|range| range.contains(&character));
    match character.width()? {
        0 => (narrow && is_in(&MARKS)).then_some(0),
        1 if !is_in(&DOUBTFUL) => Some(1),
        2 if !is_in(&DOUBTFUL) => Some(2),
        _ => None,
    }
}

/// Output as the models take it: whole characters, and none that widens the one before it, on which they break off.
#[derive(Debug, Default)]
pub(super) struct Text {
    pub(super) bytes: Vec<u8>,
    /// The end of a character in doubt.
    pub(super) doubtful: Vec<usize>,
}

/// Output, as far as widths in it are in doubt.
#[derive(Default)]
pub(super) struct Doubt {
    /// The front of a character in UTF-8.
    partial: Vec<u8>,
    /// True if the last character takes one cell, for sure.
    narrow: bool,
    /// The second model; nothing as long as all was sure.
    other: Option<Parser>,
}

impl Doubt {
    /// Reads output, which may be cut anywhere.
    pub(super) fn read(&mut self, bytes: &[u8]) -> Text {
        let mut text = Text::default();
        let mut rest = bytes;
        while let Some(first) = rest.first() {
            let plain = rest.iter().position(|byte| *byte >= 0x80).unwrap_or(rest.len());
            let taken = if self.partial.is_empty() && plain > 0 {
                text.bytes.extend_from_slice(&rest[..plain]);
                self.narrow = (0x20..0x7f).contains(&rest[plain - 1]);
                plain
            } else {
                self.partial.push(*first);
                self.read_character(&mut text);
                1
            };
            rest = &rest[taken..];
        }
        text
    }

    /// Reads what is there of a character.
    fn read_character(&mut self, text: &mut Text) {
        // What is no character terminals show as one sign, or as several, or not at all.
        let character = match core::str::from_utf8(&self.partial) {
            Ok(whole) => whole.chars().next(),
            Err(error) if error.error_len().is_none() => return,
            Err(_) => None,
        };
        let width = character.and_then(|character| width(character, self.narrow));
        self.narrow = matches!(width, Some(0 | 1));
        if character != Some(WIDENS) {
            text.bytes.append(&mut self.partial);
        }
        self.partial.clear();
        if width.is_none() {
            text.doubtful.push(text.bytes.len());
        }
    }

    /// True if output ended behind a character.
    pub(super) fn is_between(&self) -> bool {
        self.partial.is_empty()
    }

    /// The terminal, which is at `screen` by the model, was given a character in doubt last.
    pub(super) fn add(&mut self, screen: &Screen) {
        let other = self.other.get_or_insert_with(|| {
            let (rows, columns) = screen.size();
            let mut other = Parser::new(rows, columns, 0);
            *other.screen_mut() = screen.clone();
            other
        });
        other.process(MORE.as_bytes());
    }

    /// Takes output that the model takes.
    pub(super) fn process(&mut self, bytes: &[u8]) {
        if let Some(other) = &mut self.other {
            other.process(bytes);
        }
    }

    /// The terminal has the size of `screen` now.
    pub(super) fn resize(&mut self, screen: &Screen) {
        if let Some(other) = &mut self.other {
            let (rows, columns) = screen.size();
            other.set_size(rows, columns);
        }
    }

    /// True if every terminal has the cells of the cursor's row, and the cursor, in the columns in which `screen`, the model, has them.
    pub(super) fn is_sure(&self, screen: &Screen) -> bool {
        let line = LogicalLine::at_cursor(screen);
        line.cells().all(is_sure_cell)
            && self.other.as_ref().is_none_or(|other| line.equals(&LogicalLine::at_cursor(other.screen())))
    }
}

fn is_sure_cell(cell: &Cell) -> bool {
    let mut narrow = false;
    let mut is_sure = |character| {
        let width = width(character, narrow);
        narrow = matches!(width, Some(0 | 1));
        width.is_some()
    };
    cell.contents().len() < CELL_FULL && cell.contents().chars().all(&mut is_sure)
}

/// The rows of the line with the cursor, which is wrapped at their ends: what is in doubt in one decides what is in the next.
struct LogicalLine<'a> {
    screen: &'a Screen,
    rows: RangeInclusive<u16>,
    /// The cursor in them.
    cursor: (u16, u16),
}

impl LogicalLine<'_> {
    fn at_cursor(screen: &Screen) -> LogicalLine<'_> {
        let (row, column) = screen.cursor_position();
        let first = (0..row).rev().find(|above| !screen.row_wrapped(*above)).map_or(0, |above| above + 1);
        let end = screen.size().0.get() - 1;
        let last = (row..end).find(|below| !screen.row_wrapped(*below)).unwrap_or(end);
        LogicalLine { screen, rows: first..=last, cursor: (row - first, column) }
    }

    fn cells(&self) -> impl Iterator<Item = &Cell> {
        let columns = self.screen.size().1.get();
        let row = move |row| (0..columns).filter_map(move |column| self.screen.cell(row, column));
        self.rows.clone().flat_map(row)
    }

    fn equals(&self, other: &LogicalLine<'_>) -> bool {
        self.cursor == other.cursor && self.cells().eq(other.cells())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn widths_are_sure_or_not() {
        let is_sure = |text: &str| {
            let (mut doubt, mut cut) = (Doubt::default(), Doubt::default());
            let whole = doubt.read(text.as_bytes());
            let mut bytes = Vec::new();
            let mut sure = true;
            for byte in text.as_bytes() {
                let part = cut.read(core::slice::from_ref(byte));
                bytes.extend(part.bytes);
                sure &= part.doubtful.is_empty();
            }
            assert_eq!((&whole.bytes, whole.doubtful.is_empty()), (&bytes, sure), "{text}");
            sure
        };
        for text in [
            "plain",
            "grüße",
            "gru\u{308}ße",
            "日本語",
            "ｆｕｌｌ",
            "가각",
            "сло\u{301}во",
            "👩 🚀",
            "☺",
            "שלו\u{5b9}ם",
        ] {
            assert!(is_sure(text), "{text}");
        }
        let pictures =
            ["👩\u{200d}🚀", "☺\u{fe0f}", "☺\u{fe0e}", "👍🏽", "🇩🇪", "か日\u{3099}", "1\u{fe0f}\u{20e3}"];
        let joined = [
            "\u{1112}\u{1161}\u{11ab}",
            "नमस्ते",
            "น\u{e49}ำ",
            "a\u{200b}b",
            "a\u{ad}b",
            "\u{308}",
            "\u{fffd}",
        ];
        for text in pictures.into_iter().chain(joined) {
            assert!(!is_sure(text), "{text}");
        }
    }

    #[test]
    fn what_is_no_character_is_in_doubt_and_what_widens_is_left_out() {
        let mut doubt = Doubt::default();
        let mut read = |bytes: &[u8]| {
            let Text { bytes, doubtful } = doubt.read(bytes);
            (bytes, doubtful)
        };
        assert_eq!(read(b"a\xffb"), (b"a\xffb".to_vec(), vec![2]));
        assert_eq!(read(b"b\xe4\xb8"), (b"b".to_vec(), vec![]));
        assert_eq!(read(b"c"), (b"\xe4\xb8c".to_vec(), vec![3]));
        assert_eq!(read("☺\u{fe0f}!".as_bytes()), ("☺!".as_bytes().to_vec(), vec![3]));
    }
}
