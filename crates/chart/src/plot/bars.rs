//! Bars in clusters, about the line of reference.

use super::frame::PlotFrame;
use super::{GAP, LegendSample, MARGIN, TICK, WIDTH, legend, title, words};
use crate::axis::Span;
use crate::chart::{Bars, Chart, Cluster};
use crate::drawing::{Anchor, Colour, Mark, Point};
use crate::letters::{Size, shortened};

/// Widths of bars: beside each other the values above them must not touch, and single ones should not be walls.
const WIDTHS: (f64, f64) = (14.0, 40.0);
/// Between clusters, and besides between sections, in widths of bars.
const BETWEEN_CLUSTERS: f64 = 1.0;
const BETWEEN_SECTIONS: f64 = 1.5;
/// The side of a square in the legend.
const SQUARE: f64 = 12.0;

/// Where a cluster begins, in widths of bars from the left.
type Begins = Vec<f64>;

pub(super) fn draw(chart: &Chart, bars: &Bars, marks: &mut Vec<Mark>) -> (PlotFrame, f64) {
    let values = || bars.clusters.iter().flat_map(|cluster| cluster.values.iter().copied());
    let y = chart.y.span(values());
    let left = PlotFrame::beside(&y);
    let (begins, all) = begins(bars);
    let bar = width_of_bars(bars, &begins, all, WIDTH - MARGIN - left);
    let width = (bar * all).max(WIDTH - MARGIN - left);
    let whole = left + width + MARGIN;
    let top = MARGIN + title(chart, whole).len() as f64 * Size::Title.line() + GAP;
    let top =
        legend(bars.series.iter(), top, whole, &LegendSample { length: SQUARE, mark: sample }, marks) + GAP;
    let frame = PlotFrame { left, top, width, pads: pads(&y, values()) };
    frame.vertical(&y, marks);
    let first = left + (width - bar * all) / 2.0;
    for (cluster, begin) in bars.clusters.iter().zip(&begins) {
        for (at, value) in cluster.values.iter().enumerate() {
            let x = first + (begin + at as f64) * bar;
            one(&frame, &y, (x, bar), *value, colour(at), marks);
        }
    }
    frame.sides(false, marks);
    frame.reference(&y, marks);
    names(bars, &begins, &frame, (first, bar), marks);
    (frame, frame.bottom() + TICK + 2.0 * Size::Normal.line())
}

fn colour(series: usize) -> Colour {
    Colour::SERIES[series % Colour::SERIES.len()]
}

/// A square of a series' colour.
fn sample(series: usize, at: Point) -> Mark {
    Mark::Rectangle {
        left: at.x,
        top: at.y - SQUARE / 2.0,
        width: SQUARE,
        height: SQUARE,
        colour: colour(series),
    }
}

/// Where clusters begin and all ends.
fn begins(bars: &Bars) -> (Begins, f64) {
    let (mut begins, mut end) = (Vec::new(), 0.0);
    let mut before: Option<&Cluster> = None;
    for cluster in &bars.clusters {
        let parted = before.is_some_and(|it| it.section != cluster.section);
        let begin = end + BETWEEN_CLUSTERS / 2.0 + if parted { BETWEEN_SECTIONS } else { 0.0 };
        begins.push(begin);
        end = begin + cluster.values.len() as f64 + BETWEEN_CLUSTERS / 2.0;
        before = Some(cluster);
    }
    (begins, end.max(1.0))
}

/// As wide as there is room for, and wide enough for the names below.
fn width_of_bars(bars: &Bars, begins: &Begins, all: f64, room: f64) -> f64 {
    let named = bars.clusters.iter().map(|cluster| (cluster.name.as_str(), cluster.values.len() as f64));
    let sections = sections(bars, begins).into_iter().map(|(name, from, to)| (name, to - from));
    let needed = named
        .chain(sections)
        .map(|(name, bars)| (Size::Normal.width(&shortened(name)) + GAP) / (bars + BETWEEN_CLUSTERS))
        .fold(WIDTHS.0, f64::max);
    (room / all).min(WIDTHS.1).max(needed)
}

/// Neighbours with the same section: its name, where the first begins and the last ends, in widths of bars.
fn sections<'a>(bars: &'a Bars, begins: &Begins) -> Vec<(&'a str, f64, f64)> {
    let mut sections: Vec<(&str, f64, f64)> = Vec::new();
    for (cluster, begin) in bars.clusters.iter().zip(begins) {
        let end = begin + cluster.values.len() as f64;
        match sections.last_mut() {
            Some(last) if last.0 == cluster.section => last.2 = end,
            _ => sections.push((&cluster.section, *begin, end)),
        }
    }
    sections
}

/// Room for the values beyond the ends of bars: above, and below where bars hang down.
fn pads(y: &Span<'_>, values: impl Iterator<Item = f64>) -> [f64; 2] {
    let mut pads = [GAP; 2];
    for value in values {
        let Some(place) = y.place(value) else { continue };
        let pad = &mut pads[usize::from(place < y.baseline())];
        *pad = pad.max(Size::Small.width(&y.value(value)) + GAP);
    }
    pads
}

/// One bar and its value beyond its end.
fn one(
    frame: &PlotFrame,
    y: &Span<'_>,
    (x, width): (f64, f64),
    value: f64,
    colour: Colour,
    marks: &mut Vec<Mark>,
) {
    let Some(place) = y.place(value) else { return };
    let (end, base) = (frame.height_of(place.clamp(0.0, 1.0)), frame.height_of(y.baseline()));
    let (top, height) = (end.min(base), (end - base).abs());
    marks.push(Mark::Rectangle { left: x, top, width: width - 1.0, height, colour });
    let hangs = end > base;
    marks.push(Mark::Words {
        words: y.value(value),
        at: Point { x: x + width / 2.0 - 0.5, y: if hangs { end + GAP / 2.0 } else { end - GAP / 2.0 } },
        anchor: if hangs { Anchor::End } else { Anchor::Start },
        turned: true,
        size: Size::Small,
        colour: Colour::GREY,
    });
}

/// The names of clusters and sections below the frame.
fn names(bars: &Bars, begins: &Begins, frame: &PlotFrame, (first, bar): (f64, f64), marks: &mut Vec<Mark>) {
    let line = Size::Normal.line();
    let middle = |from: f64, to: f64| first + f64::midpoint(from, to) * bar;
    for (cluster, begin) in bars.clusters.iter().zip(begins) {
        let x = middle(*begin, begin + cluster.values.len() as f64);
        let at = Point { x, y: frame.bottom() + TICK + line / 2.0 };
        marks.push(words(shortened(&cluster.name), at, Anchor::Middle, Size::Normal, Colour::BLACK));
    }
    for (name, from, to) in sections(bars, begins) {
        let at = Point { x: middle(from, to), y: frame.bottom() + TICK + line * 1.5 };
        marks.push(words(shortened(name), at, Anchor::Middle, Size::Normal, Colour::BLACK));
    }
}
