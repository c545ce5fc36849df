//! A path drawn: the rates above, the queue in the modem below.

use strait_chart::{Axis, Chart, ChartLine, Lines, Plot};

use super::run::{PathLook, PathTrack};
use super::script::PathScript;
use crate::Figure;

/// Looks that share a point of a line: 50 ms.
const POINT: usize = 5;
/// Seconds from one point of the true rate to the next.
const STEP: f64 = 0.02;
const SOURCE: &str = "Whole nodes in virtual time with up = \"auto\" on a scripted path (strait lab paths). Greedy: a quarter more than the \
                      fastest rate of the path; TCP: one connection with CUBIC.";

/// The figure of a path, with a line for each source.
pub(super) fn figure(script: &PathScript, tracks: &[PathTrack]) -> Figure {
    let seconds = || Axis::linear("seconds").between(0.0, script.length);
    let steps = (script.length / STEP) as u32;
    let points = (0..=steps).map(|step| f64::from(step) * STEP).map(|at| (at, script.free(at)));
    let truth = ChartLine { name: "the rate that is there".to_owned(), points: points.collect() };
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

/// A line through what was seen, a point for a few looks together.
fn line(track: &PathTrack, what: &str, value: impl Fn(&[PathLook]) -> Option<f64>) -> ChartLine {
    let point = |looks: &[PathLook]| Some((looks.last()?.second, value(looks).unwrap_or(f64::NAN)));
    ChartLine {
        name: format!("{what}, {}", track.source.name()),
        points: track.looks.chunks(POINT).filter_map(point).collect(),
    }
}
