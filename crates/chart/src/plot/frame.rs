//! The rectangle between the axes, and what stands along its sides.

use super::{GAP, HEIGHT, MARGIN, TICK, rule, words};
use crate::axis::Span;
use crate::drawing::{Anchor, Colour, Mark, Point};
use crate::letters::Size;

/// The rectangle between the axes; values stand between the two pads.
#[derive(Clone, Copy, Debug)]
pub(super) struct PlotFrame {
    pub(super) left: f64,
    pub(super) top: f64,
    pub(super) width: f64,
    /// What is kept free above and below the values.
    pub(super) pads: [f64; 2],
}

impl PlotFrame {
    /// Where the frame begins: right of the vertical axis' title and labels.
    pub(super) fn beside(y: &Span<'_>) -> f64 {
        let widths = y.ticks().into_iter().map(|(_, label)| Size::Normal.width(&label));
        MARGIN + Size::Normal.line() + GAP + widths.fold(0.0, f64::max) + GAP + TICK
    }

    pub(super) fn bottom(&self) -> f64 {
        self.top + HEIGHT
    }

    pub(super) fn right(&self) -> f64 {
        self.left + self.width
    }

    /// Where a share of the vertical axis stands.
    pub(super) fn height_of(&self, share: f64) -> f64 {
        let [above, below] = self.pads;
        self.bottom() - below - share * (HEIGHT - above - below)
    }

    /// Where a share of the horizontal axis stands.
    pub(super) fn across_of(&self, share: f64) -> f64 {
        self.left + share * self.width
    }

    /// The vertical axis with a pale line at each tick.
    pub(super) fn vertical(&self, span: &Span<'_>, marks: &mut Vec<Mark>) {
        for (value, label) in span.ticks() {
            let y = self.height_of(span.place(value).unwrap_or(0.0));
            let end = Point { x: self.right(), y };
            marks.push(rule(Point { x: self.left - TICK, y }, end, 1.0, Colour::PALE));
            let at = Point { x: self.left - TICK - GAP / 2.0, y };
            marks.push(words(label, at, Anchor::End, Size::Normal, Colour::BLACK));
        }
        marks.push(Mark::Words {
            words: span.axis.title().to_owned(),
            at: Point { x: MARGIN + Size::Normal.line() / 2.0, y: self.top + HEIGHT / 2.0 },
            anchor: Anchor::Middle,
            turned: true,
            size: Size::Normal,
            colour: Colour::BLACK,
        });
    }

    /// The horizontal axis likewise; gives the lower end of its title.
    pub(super) fn horizontal(&self, span: &Span<'_>, marks: &mut Vec<Mark>) -> f64 {
        let line = Size::Normal.line();
        for (value, label) in span.ticks() {
            let x = self.across_of(span.place(value).unwrap_or(0.0));
            let end = Point { x, y: self.bottom() + TICK };
            marks.push(rule(Point { x, y: self.top }, end, 1.0, Colour::PALE));
            let at = Point { x, y: self.bottom() + TICK + line / 2.0 };
            marks.push(words(label, at, Anchor::Middle, Size::Normal, Colour::BLACK));
        }
        let at = Point { x: self.across_of(0.5), y: self.bottom() + TICK + GAP / 2.0 + line * 1.5 };
        let title = span.axis.title().to_owned();
        marks.push(words(title, at, Anchor::Middle, Size::Normal, Colour::BLACK));
        at.y + line / 2.0
    }

    /// The left side and, where there is a horizontal axis, the lower one; over the pale lines.
    pub(super) fn sides(&self, lower: bool, marks: &mut Vec<Mark>) {
        let corner = Point { x: self.left, y: self.bottom() };
        marks.push(rule(corner, Point { y: self.top, ..corner }, 1.0, Colour::BLACK));
        if lower {
            marks.push(rule(corner, Point { x: self.right(), ..corner }, 1.0, Colour::BLACK));
        }
    }

    /// A line across at the vertical axis' reference, if it has one.
    pub(super) fn reference(&self, span: &Span<'_>, marks: &mut Vec<Mark>) {
        let Some(place) = span.axis.reference().and_then(|value| span.place(value)) else { return };
        if (0.0..=1.0).contains(&place) {
            let y = self.height_of(place);
            let end = Point { x: self.right(), y };
            marks.push(rule(Point { x: self.left, y }, end, 1.5, Colour::BLACK));
        }
    }
}
