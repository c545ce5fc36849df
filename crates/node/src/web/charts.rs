//! Charts of the last day and of the last month.

use strait_chart::{Axis, Bars, Chart, ChartLine, Cluster, Lines, Plot};

use crate::saved::{SavedAmounts, SavedDay, SavedFigures};

/// What the two lines, or bars, of each chart are.
const BEFORE: &str = "before";
const WIRE: &str = "on the wire";
/// Parts of ten minutes that an hour has.
const PARTS_OF_HOUR: f64 = 6.0;

/// What is below each chart.
const SOURCE: &str = "Both directions; brought up to date once a minute.";
/// What the axis of a chart without figures ends with, in bytes.
const NOTHING: f64 = 1_000.0;

/// The axis of these amounts.
fn axis(title: &str, amounts: impl Iterator<Item = SavedAmounts>) -> Axis {
    let axis = Axis::linear(title).prefixed("B");
    let most = amounts.map(|it| it.before().max(it.wire())).max();
    if most.is_some_and(|bytes| bytes > 0) { axis } else { axis.between(0.0, NOTHING) }
}

/// The last day by ten minutes.
pub(super) fn day(figures: &SavedFigures) -> String {
    let last = figures.day.len();
    let line = |name: &str, bytes: fn(SavedAmounts) -> u64| {
        let hours = |at: usize| (at + 1) as f64 / PARTS_OF_HOUR - last as f64 / PARTS_OF_HOUR;
        let points = figures.day.iter().enumerate().map(|(at, it)| (hours(at), bytes(*it) as f64));
        ChartLine { name: name.to_owned(), points: points.collect() }
    };
    let chart = Chart {
        title: "Bytes in ten minutes".to_owned(),
        source: SOURCE.to_owned(),
        y: axis("bytes in ten minutes", figures.day.iter().copied()),
        plot: Plot::Lines(Lines {
            x: Axis::linear("hours from now").between(-24.0, 0.0),
            lines: vec![line(BEFORE, SavedAmounts::before), line(WIRE, SavedAmounts::wire)],
        }),
    };
    chart.drawing().svg()
}

/// The last month by day.
pub(super) fn month(figures: &SavedFigures) -> String {
    let cluster = |SavedDay { day, month, amounts }: &SavedDay| {
        // A day without traffic has a gap, and not a number.
        let values = match *amounts == SavedAmounts::default() {
            true => vec![f64::NAN; 2],
            false => vec![amounts.before() as f64, amounts.wire() as f64],
        };
        Cluster { name: day.clone(), section: month.clone(), values }
    };
    let chart = Chart {
        title: "Bytes in a day".to_owned(),
        source: SOURCE.to_owned(),
        y: axis("bytes in a day", figures.days.iter().map(|day| day.amounts)),
        plot: Plot::Bars(Bars {
            series: [BEFORE, WIRE].map(str::to_owned).to_vec(),
            clusters: figures.days.iter().map(cluster).collect(),
        }),
    };
    chart.drawing().svg()
}
