//! The tables drawn.

use strait_chart::{Axis, Bars, Chart, ChartLine, Cluster, Lines, Plot};

use super::machine::PlaceTable;
use super::printed::{COMBINATIONS, DISK, FAST, PLACES, SLOW, TABLE};
use super::run::{ChainRuns, Place};
use super::tables::{HERE, relative};
use crate::figure::Figure;
use crate::measure::RunValues;

const SOURCE: &str = "Medians of real runs from disk to disk; links in virtual time at the measured costs of both ends (strait lab broker). \
                      The post: A. Kallio, CSC, 2011.";
/// Rates of links that are drawn, in bit/s, and how many steps a decade has.
const LINKS: core::ops::RangeInclusive<i32> = 4..=11;
const STEPS: i32 = 8;

/// A figure a place, the load of cores, and rates by the rate of the link.
pub(super) fn all(payload: &str, runs: &[ChainRuns], machines: &[(&str, PlaceTable)]) -> Vec<Figure> {
    let names = ["broker-disk", "broker-fast", "broker-slow"];
    let mut all: Vec<Figure> =
        [DISK, FAST, SLOW].map(|place| speeds(names[place], place, payload, runs, machines)).into();
    all.push(loads(payload, runs));
    all.push(by_link(payload, runs));
    all
}

fn median(values: &RunValues) -> f64 {
    values.spread().map_or(f64::NAN, |spread| spread.median)
}

/// Ours, machines that are computed, and the post.
fn speeds(
    name: &str,
    place: usize,
    payload: &str,
    runs: &[ChainRuns],
    machines: &[(&str, PlaceTable)],
) -> Figure {
    let missing = |cell: Option<f64>| cell.unwrap_or(f64::NAN);
    // Not everything is computed or measured in each place.
    let machines: Vec<_> =
        machines.iter().filter(|(_, table)| table[place].iter().any(Option::is_some)).collect();
    let cluster = |(column, it): (usize, &ChainRuns)| Cluster {
        name: COMBINATIONS[column].to_owned(),
        section: String::new(),
        values: [relative(HERE[place], runs, it).map(|ours| median(&ours))]
            .into_iter()
            .chain(machines.iter().map(|(_, table)| table[place][column]))
            .chain([TABLE[place][column]])
            .map(missing)
            .collect(),
    };
    let chart = Chart {
        title: format!("Speed, {}, {payload}", PLACES[place]),
        source: SOURCE.to_owned(),
        y: Axis::linear("plain data without encryption = 100"),
        plot: Plot::Bars(Bars {
            series: ["this machine"]
                .into_iter()
                .chain(machines.iter().map(|(name, _)| *name))
                .chain(["the post"])
                .map(str::to_owned)
                .collect(),
            clusters: runs.iter().enumerate().map(cluster).collect(),
        }),
    };
    Figure::new(name, chart)
}

fn loads(payload: &str, runs: &[ChainRuns]) -> Figure {
    let cluster = |(column, it): (usize, &ChainRuns)| Cluster {
        name: COMBINATIONS[column].to_owned(),
        section: String::new(),
        values: [FAST, SLOW]
            .into_iter()
            .flat_map(|place| match HERE[place] {
                Place::Link(link) => it.loads(link).map(|load| median(&load)),
                Place::Disk | Place::AnyLink => [f64::NAN; 2],
            })
            .collect(),
    };
    let series =
        ["fast network, sender", "fast network, broker", "slow network, sender", "slow network, broker"];
    let chart = Chart {
        title: format!("Load of one core, {payload}"),
        source: SOURCE.to_owned(),
        y: Axis::logarithmic("% of one core"),
        plot: Plot::Bars(Bars {
            series: series.map(str::to_owned).into(),
            clusters: runs.iter().enumerate().map(cluster).collect(),
        }),
    };
    Figure::new("broker-load", chart)
}

/// The rate of each combination over links of every rate.
fn by_link(payload: &str, runs: &[ChainRuns]) -> Figure {
    let links = || {
        let steps = LINKS.start() * STEPS..=LINKS.end() * STEPS;
        steps.map(|step| 10_f64.powf(f64::from(step) / f64::from(STEPS)))
    };
    let rate = |it: &ChainRuns, link| it.rate(Place::Link(link)).map_or(f64::NAN, |rate| median(&rate) * 1e6);
    let line = |(name, it): (&&str, &ChainRuns)| ChartLine {
        name: (*name).to_owned(),
        points: links().map(|link| (link, rate(it, link))).collect(),
    };
    let chart = Chart {
        title: format!("Payload by the rate of the link, {payload}"),
        source: SOURCE.to_owned(),
        y: Axis::logarithmic("payload, bit/s").prefixed("bit/s"),
        plot: Plot::Lines(Lines {
            x: Axis::logarithmic("link, bit/s").prefixed("bit/s"),
            lines: COMBINATIONS.iter().zip(runs).map(line).collect(),
        }),
    };
    Figure::new("broker-by-link", chart)
}
