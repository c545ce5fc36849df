//! Letters: how wide words are, and what they look like in pixels.

use noto_sans_mono_bitmap::{FontWeight, RasterHeight, RasterizedChar, get_raster, get_raster_width};

/// Pixels of a PNG for one of the drawing: with it the sizes that the font is rasterized in are good to read.
pub(crate) const SCALE: f64 = 1.5;
/// The width of every letter over the size of the font: Noto Sans Mono's, as most other monospaced fonts'.
const ADVANCE: f64 = 0.6;
/// Letters of a name below bars at most: names may come from anywhere, and a chart is to fit a page.
const LONGEST: usize = 24;
/// What stands for the rest of a longer one; in ASCII, as the font has it.
const ELLIPSIS: &str = "...";
/// What stands for letters that the font does not have.
const UNKNOWN: char = '?';

/// How large letters are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Size {
    /// Beside bars.
    Small,
    /// Everywhere else.
    Normal,
    /// Above all.
    Title,
}

impl Size {
    const fn raster(self) -> RasterHeight {
        match self {
            Size::Small => RasterHeight::Size20,
            Size::Normal => RasterHeight::Size24,
            Size::Title => RasterHeight::Size32,
        }
    }

    /// The height of a line.
    pub(crate) fn line(self) -> f64 {
        self.raster().val() as f64 / SCALE
    }

    /// The width of one letter.
    pub(crate) fn letter(self) -> f64 {
        get_raster_width(FontWeight::Regular, self.raster()) as f64 / SCALE
    }

    /// The width of words.
    pub(crate) fn width(self, words: &str) -> f64 {
        words.chars().count() as f64 * self.letter()
    }

    /// The size of a font with letters of this width.
    pub(crate) fn font(self) -> f64 {
        self.letter() / ADVANCE
    }

    /// A letter in pixels of a PNG.
    pub(crate) fn glyph(self, letter: char) -> Option<RasterizedChar> {
        let raster = |letter| get_raster(letter, FontWeight::Regular, self.raster());
        raster(letter).or_else(|| raster(UNKNOWN))
    }

    /// How far below the top of its glyph the middle of a capital letter is, in pixels of a PNG.
    pub(crate) fn middle(self) -> f64 {
        let inked = |row: &[u8]| row.iter().any(|ink| *ink > 127);
        let rows = self.glyph('H').into_iter().flat_map(|glyph| glyph.rows().enumerate());
        let (sum, count) = rows
            .filter(|(_, row)| inked(row))
            .fold((0.0, 0.0), |(sum, count), (row, _)| (sum + row as f64 + 0.5, count + 1.0));
        sum / f64::max(count, 1.0)
    }
}

/// A name as it is when it has at most [`LONGEST`] letters, and else its first ones.
pub(crate) fn shortened(name: &str) -> String {
    if name.chars().count() <= LONGEST {
        return name.to_owned();
    }
    name.chars().take(LONGEST - ELLIPSIS.len()).chain(ELLIPSIS.chars()).collect()
}

/// Words in lines that are no wider than `width`, where there are spaces to part them at.
pub(crate) fn lines(words: &str, size: Size, width: f64) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in words.split_whitespace() {
        match lines.last_mut() {
            Some(line) if size.width(line) + size.width(word) + size.letter() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_differ_and_letters_are_as_wide_as_their_glyphs() {
        let sizes = [Size::Small, Size::Normal, Size::Title];
        assert!(sizes.windows(2).all(|pair| pair[0].letter() < pair[1].letter()));
        for size in sizes {
            let glyph = size.glyph('M').unwrap();
            assert_eq!(glyph.width() as f64 / SCALE, size.letter());
            // Capital letters stand in the middle half of their line.
            let share = size.middle() / glyph.height() as f64;
            assert!((0.25..0.75).contains(&share), "{share}");
            assert_eq!(size.glyph('\u{4e2d}'), size.glyph('?'));
            assert_ne!(size.glyph('µ'), size.glyph('?'));
        }
    }

    #[test]
    fn long_names_are_cut() {
        assert_eq!(shortened("book1"), "book1");
        assert_eq!(shortened(&"\u{e4}".repeat(25)), "\u{e4}".repeat(21) + "...");
    }

    #[test]
    fn words_are_parted_at_spaces() {
        let width = Size::Normal.width("1234567890");
        assert_eq!(lines("to be or not to be", Size::Normal, width), ["to be or", "not to be"]);
        assert_eq!(lines("incomprehensible", Size::Normal, width), ["incomprehensible"]);
        assert!(lines("  ", Size::Normal, width).is_empty());
    }
}
