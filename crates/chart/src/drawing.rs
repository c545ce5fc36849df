//! What charts are drawn with, whichever form they take. Lengths are in pixels, from the left and from the top.

use crate::letters::Size;
use crate::{png, raster, svg};

/// A chart, laid out.
#[derive(Clone, Debug, PartialEq)]
pub struct Drawing {
    pub(crate) width: f64,
    pub(crate) height: f64,
    /// What it shows, for those who cannot see it.
    pub(crate) title: String,
    /// What is drawn, the later over the earlier.
    pub(crate) marks: Vec<Mark>,
}

/// Something that is drawn.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Mark {
    /// A filled rectangle.
    Rectangle { left: f64, top: f64, width: f64, height: f64, colour: Colour },
    /// A line with round ends through some points.
    Line { points: Vec<Point>, width: f64, colour: Colour, dashes: Dashes },
    /// Words in one line.
    Words { words: String, at: Point, anchor: Anchor, turned: bool, size: Size, colour: Colour },
}

impl Mark {
    /// The same, so much further down.
    fn lowered(mut self, by: f64) -> Mark {
        match &mut self {
            Mark::Rectangle { top, .. } => *top += by,
            Mark::Line { points, .. } => points.iter_mut().for_each(|point| point.y += by),
            Mark::Words { at, .. } => at.y += by,
        }
        self
    }
}

/// A place.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Point {
    pub(crate) x: f64,
    pub(crate) y: f64,
}

/// Red, green and blue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Colour(pub(crate) [u8; 3]);

/// Lengths that are drawn and left out by turns; none for a line without gaps.
pub(crate) type Dashes = &'static [f64];

/// Where along words their place is. Across them it is the middle of capital letters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Anchor {
    Start,
    Middle,
    End,
}

impl Colour {
    pub(crate) const BLACK: Colour = Colour([0; 3]);
    pub(crate) const WHITE: Colour = Colour([255; 3]);
    /// Words that matter less.
    pub(crate) const GREY: Colour = Colour([0x55; 3]);
    /// Lines behind everything.
    pub(crate) const PALE: Colour = Colour([0xdd; 3]);
    /// Colours that people tell apart however they see them (Okabe and Ito, Color Universal Design, 2008), without
    /// yellow, which is hard to see on white.
    pub(crate) const SERIES: [Colour; 7] = [
        Colour([0x00, 0x72, 0xb2]),
        Colour([0xe6, 0x9f, 0x00]),
        Colour([0x00, 0x9e, 0x73]),
        Colour([0xd5, 0x5e, 0x00]),
        Colour([0x56, 0xb4, 0xe9]),
        Colour([0xcc, 0x79, 0xa7]),
        Colour([0x00, 0x00, 0x00]),
    ];
}

impl Drawing {
    /// As an SVG element that stands alone and can be put into HTML as it is.
    #[must_use]
    pub fn svg(&self) -> String {
        svg::render(self)
    }

    /// This drawing with another below it.
    pub(crate) fn above(mut self, lower: Drawing) -> Drawing {
        let by = self.height;
        // The ground is first, and one is enough.
        if let Some(Mark::Rectangle { width, height, .. }) = self.marks.first_mut() {
            (*width, *height) = (width.max(lower.width), *height + lower.height);
        }
        self.marks.extend(lower.marks.into_iter().skip(1).map(|mark| mark.lowered(by)));
        let (width, height) = (self.width.max(lower.width), self.height + lower.height);
        Drawing { width, height, ..self }
    }

    /// As a PNG file, three pixels for two of the SVG's.
    #[must_use]
    pub fn png(&self) -> Vec<u8> {
        png::encoded(&raster::render(self))
    }
}
