//! Lines between two axes.

use super::frame::PlotFrame;
use super::{GAP, LegendSample, MARGIN, WIDTH, legend, title};
use crate::axis::Span;
use crate::chart::{Chart, ChartLine, Lines, Plot};
use crate::drawing::{Colour, Dashes, Mark, Point};
use crate::letters::Size;

/// The width of lines.
const STROKE: f64 = 2.0;
/// The length of a line in the legend.
const SAMPLE: f64 = 22.0;
/// How the lines of each round of colours are drawn.
const DASHES: [Dashes; 3] = [&[], &[6.0, 5.0], &[1.0, 5.0]];

/// A place between two axes, each from 0 to 1 inside.
type PointPlace = [f64; 2];

/// Where a chart of lines begins.
pub(super) fn left(chart: &Chart) -> Option<f64> {
    let Plot::Lines(lines) = &chart.plot else { return None };
    let points = lines.lines.iter().flat_map(|line| line.points.iter());
    Some(PlotFrame::beside(&chart.y.span(points.map(|it| it.1))))
}

/// Draws the lines; they begin at `left` or further to the right.
pub(super) fn draw(chart: &Chart, lines: &Lines, left: f64, marks: &mut Vec<Mark>) -> (PlotFrame, f64) {
    let points = || lines.lines.iter().flat_map(|line| line.points.iter());
    let (x, y) = (lines.x.span(points().map(|it| it.0)), chart.y.span(points().map(|it| it.1)));
    let left = PlotFrame::beside(&y).max(left);
    let top = MARGIN + title(chart, WIDTH).len() as f64 * Size::Title.line() + GAP;
    let mark = |line: usize, at: Point| stroke(line, vec![at, Point { x: at.x + SAMPLE, ..at }]);
    let names = lines.lines.iter().map(|line| &line.name);
    let top = legend(names, top, WIDTH, &LegendSample { length: SAMPLE, mark }, marks) + GAP;
    // The last label of the horizontal axis stands half beyond it.
    let frame = PlotFrame { left, top, width: WIDTH - 2.0 * MARGIN - left, pads: [0.0; 2] };
    frame.vertical(&y, marks);
    let below = frame.horizontal(&x, marks);
    frame.sides(true, marks);
    frame.reference(&y, marks);
    for (at, line) in lines.lines.iter().enumerate() {
        for run in visible(line, &x, &y) {
            let on = |[x, y]: PointPlace| Point { x: frame.across_of(x), y: frame.height_of(y) };
            marks.push(stroke(at, run.into_iter().map(on).collect()));
        }
    }
    (PlotFrame { width: frame.width + MARGIN, ..frame }, below)
}

fn stroke(line: usize, points: Vec<Point>) -> Mark {
    let (round, colour) = (line / Colour::SERIES.len(), line % Colour::SERIES.len());
    let (colour, dashes) = (Colour::SERIES[colour], DASHES[round % DASHES.len()]);
    Mark::Line { points, width: STROKE, colour, dashes }
}

/// The parts of a line that are between the axes; a point alone is a part.
fn visible(line: &ChartLine, x: &Span<'_>, y: &Span<'_>) -> Vec<Vec<PointPlace>> {
    let places: Vec<Option<PointPlace>> =
        line.points.iter().map(|point| Some([x.place(point.0)?, y.place(point.1)?])).collect();
    let mut runs: Vec<Vec<PointPlace>> = Vec::new();
    let alone = |at: usize| {
        let neighbour = |at: Option<usize>| at.and_then(|at| *places.get(at)?).is_some();
        !neighbour(at.checked_sub(1)) && !neighbour(Some(at + 1))
    };
    let dots = places.iter().enumerate().filter_map(|(at, place)| place.filter(|_| alone(at)));
    let pairs = places.windows(2).filter_map(|pair| Some((pair[0]?, pair[1]?)));
    for (from, to) in pairs.chain(dots.map(|dot| (dot, dot))).filter_map(|(from, to)| clipped(from, to)) {
        match runs.last_mut() {
            Some(run) if run.last() == Some(&from) => run.push(to),
            _ => runs.push(vec![from, to]),
        }
    }
    runs
}

/// What of a segment is inside (Liang and Barsky, *A New Concept and Method for Line Clipping*, 1984).
fn clipped(from: PointPlace, to: PointPlace) -> Option<(PointPlace, PointPlace)> {
    let (mut enter, mut leave) = (0.0_f64, 1.0_f64);
    for axis in 0..2 {
        let step = to[axis] - from[axis];
        for (toward, room) in [(-step, from[axis]), (step, 1.0 - from[axis])] {
            if toward == 0.0 && room < 0.0 {
                return None;
            }
            if toward < 0.0 {
                enter = enter.max(room / toward);
            } else if toward > 0.0 {
                leave = leave.min(room / toward);
            }
        }
    }
    let on = |share: f64| core::array::from_fn(|axis| from[axis] + (to[axis] - from[axis]) * share);
    let (first, last) =
        (if enter > 0.0 { on(enter) } else { from }, if leave < 1.0 { on(leave) } else { to });
    (enter <= leave).then_some((first, last))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_are_cut_at_the_frame() {
        for (from, to, expected) in [
            ([0.2, 0.2], [0.8, 0.4], Some(([0.2, 0.2], [0.8, 0.4]))),
            ([-1.0, 0.5], [2.0, 0.5], Some(([0.0, 0.5], [1.0, 0.5]))),
            ([0.5, 0.5], [0.5, 9.5], Some(([0.5, 0.5], [0.5, 1.0]))),
            ([-1.0, 0.5], [0.5, 2.0], None),
            ([1.5, 0.0], [1.5, 1.0], None),
        ] {
            let found = clipped(from, to);
            let near = |one: PointPlace, other: PointPlace| {
                (0..2).all(|axis| (one[axis] - other[axis]).abs() < 1e-9)
            };
            let same = match (found, expected) {
                (Some(one), Some(other)) => near(one.0, other.0) && near(one.1, other.1),
                (one, other) => one == other,
            };
            assert!(same, "{from:?} {to:?}: {found:?}");
        }
    }
}
