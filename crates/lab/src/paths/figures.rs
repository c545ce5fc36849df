//! A path drawn: the rates above, the queue in the modem below.

use strait_chart::{Axis, Chart, ChartLine, Lines, Plot};

use super::run::{PathLook, PathTrack};
use super::script::PathScript;
use crate::Figure;

/// Looks that share a point of a line: 100 ms, two pixels.
const POINT: usize = 10;
/// What differs by less from what it was is drawn as the same: a tenth of a pixel where 16 Mbit/s are as high as the figure.
const SAME: f64 = 0.005;
const SOURCE: &str = "Whole nodes in virtual time with up = \"auto\" on a scripted path (strait lab paths). Greedy: a quarter more than the \
                      fastest rate of the path; TCP: one connection with CUBIC.";

/// The figure of a path, with a line for each source.
pub(super) fn figure(script: &PathScript, tracks: &[PathTrack]) -> Figure {
    let seconds = || Axis::linear("seconds").between(0.0, script.length);
    let truth = ChartLine { name: "the rate that is there".to_owned(), points: steps(script) };
    let found = tracks.iter().map(|track| line(track, "found", |looks| looks.last()?.found));
    let rates: Vec<ChartLine> = [truth].into_iter().chain(found).collect();
    let most = |looks: &[PathLook]| looks.iter().map(|look| look.queue * 1e3).reduce(f64::max);
    let queues = tracks.iter().map(|track| line(track, "in the modem", most));
    // The same colours as above.
    let queues: Vec<ChartLine> =
        [ChartLine { name: "an empty queue".to_owned(), points: vec![(0.0, 0.0), (script.length, 0.0)] }]
            .into_iter()
            .chain(queues)
            .collect();
    let top = script.fastest() * 1.6;
    let chart = |title: String, source: &str, y: Axis, lines| Chart {
        title,
        source: source.to_owned(),
        y,
        plot: Plot::Lines(Lines { x: seconds(), lines }),
    };
    Figure {
        name: script.name.to_owned(),
        chart: chart(script.title.clone(), "", Axis::linear("Mbit/s").between(0.0, top), rates),
        below: Some(chart("Queueing delay in the modem".to_owned(), SOURCE, Axis::linear("ms"), queues)),
    }
}

/// The rate that is there: level from one turn to the next.
fn steps(script: &PathScript) -> Vec<(f64, f64)> {
    let turns = script.turns();
    let ends = turns.iter().skip(1).copied().chain([script.length]);
    turns.iter().zip(ends).flat_map(|(from, to)| [*from, to].map(|at| (at, script.free(*from)))).collect()
}

/// A line through what was seen, a point for a few looks together.
fn line(track: &PathTrack, what: &str, value: impl Fn(&[PathLook]) -> Option<f64>) -> ChartLine {
    let point = |looks: &[PathLook]| Some((looks.last()?.second, value(looks).unwrap_or(f64::NAN)));
    ChartLine {
        name: format!("{what}, {}", track.source.name()),
        points: level(track.looks.chunks(POINT).filter_map(point)),
    }
}

/// Where a value stays, its first point and its last.
fn level(points: impl Iterator<Item = (f64, f64)>) -> Vec<(f64, f64)> {
    let mut kept: Vec<(f64, f64)> = Vec::new();
    for point in points {
        match kept.as_mut_slice() {
            [.., (_, before), last]
                if (*before - last.1).abs() < SAME && (point.1 - *before).abs() < SAME =>
            {
                *last = point;
            }
            _ => kept.push(point),
        }
    }
    kept
}
