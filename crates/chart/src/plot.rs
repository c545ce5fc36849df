//! Where everything goes: title, legend, axes and source are the same for both kinds of chart.

mod bars;
mod frame;
mod lines;

use crate::chart::{Chart, Plot};
use crate::drawing::{Anchor, Colour, Drawing, Mark, Point};
use crate::letters::{self, Size};

/// The least width of a chart.
const WIDTH: f64 = 800.0;
/// The height of what is between the axes.
const HEIGHT: f64 = 360.0;
/// What stays white around everything.
const MARGIN: f64 = 14.0;
/// Between things that stand beside each other.
const GAP: f64 = 8.0;
/// A mark beside an axis.
const TICK: f64 = 4.0;

pub(crate) fn drawing(chart: &Chart) -> Drawing {
    laid_out(chart, 0.0)
}

/// Two charts, one above the other.
pub(crate) fn stacked(upper: &Chart, lower: &Chart) -> Drawing {
    let left = [upper, lower].map(lines::left).into_iter().flatten().fold(0.0, f64::max);
    laid_out(upper, left).above(laid_out(lower, left))
}

/// The chart; lines begin at `left` or further to the right.
fn laid_out(chart: &Chart, left: f64) -> Drawing {
    let mut marks = Vec::new();
    let (frame, below) = match &chart.plot {
        Plot::Bars(bars) => bars::draw(chart, bars, &mut marks),
        Plot::Lines(lines) => lines::draw(chart, lines, left, &mut marks),
    };
    let width = frame.left + frame.width + MARGIN;
    head(chart, width, &mut marks);
    let mut y = below + GAP;
    for line in letters::lines(&chart.source, Size::Small, width - 2.0 * MARGIN) {
        y += Size::Small.line();
        let at = Point { x: MARGIN, y: y - Size::Small.line() / 2.0 };
        marks.push(words(line, at, Anchor::Start, Size::Small, Colour::GREY));
    }
    let height = y + MARGIN;
    let ground = Mark::Rectangle { left: 0.0, top: 0.0, width, height, colour: Colour::WHITE };
    marks.insert(0, ground);
    Drawing { width, height, title: chart.title.clone(), marks }
}

/// The title's lines.
fn head(chart: &Chart, width: f64, marks: &mut Vec<Mark>) {
    for (at, line) in title(chart, width).into_iter().enumerate() {
        let y = MARGIN + (at as f64 + 0.5) * Size::Title.line();
        marks.push(words(line, Point { x: MARGIN, y }, Anchor::Start, Size::Title, Colour::BLACK));
    }
}

fn title(chart: &Chart, width: f64) -> Vec<String> {
    letters::lines(&chart.title, Size::Title, width - 2.0 * MARGIN)
}

/// Words that are not turned.
fn words(words: String, at: Point, anchor: Anchor, size: Size, colour: Colour) -> Mark {
    Mark::Words { words, at, anchor, turned: false, size, colour }
}

/// A line along an axis.
fn rule(from: Point, to: Point, width: f64, colour: Colour) -> Mark {
    let half = width / 2.0;
    let (left, top) = (from.x.min(to.x) - half, from.y.min(to.y) - half);
    let (across, down) = ((to.x - from.x).abs() + width, (to.y - from.y).abs() + width);
    Mark::Rectangle { left, top, width: across, height: down, colour }
}

/// What stands beside the names of a legend: how long it is, and what it is for one of them, from a place on.
struct LegendSample<F> {
    length: f64,
    mark: F,
}

/// The legend from `top` on, in rows of at most `width`; gives its lower end.
fn legend<'a>(
    names: impl Iterator<Item = &'a String>,
    top: f64,
    width: f64,
    sample: &LegendSample<impl Fn(usize, Point) -> Mark>,
    marks: &mut Vec<Mark>,
) -> f64 {
    let (mut x, mut y) = (MARGIN, top + Size::Normal.line() / 2.0);
    for (at, name) in names.enumerate() {
        let length = sample.length + GAP + Size::Normal.width(name);
        if x > MARGIN && x + length > width - MARGIN {
            (x, y) = (MARGIN, y + Size::Normal.line() + 2.0);
        }
        marks.push((sample.mark)(at, Point { x, y }));
        let beside = Point { x: x + sample.length + GAP, y };
        marks.push(words(name.clone(), beside, Anchor::Start, Size::Normal, Colour::BLACK));
        x += length + 2.0 * GAP;
    }
    y + Size::Normal.line() / 2.0
}

#[cfg(test)]
mod tests;
