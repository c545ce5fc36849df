//! The table drawn.

use strait_chart::{Axis, Bars, Chart, ChartLine, Cluster, Lines, Plot};

use super::tables::printed;
use super::{Throughput, median};
use crate::enskip::algorithm::Combination;
use crate::enskip::printed::{ALGORITHMS, CLOCKS, DX2, MACHINES, RC4, TABLE};
use crate::figure::Figure;
use crate::measure::RunValues;

const SOURCE: &str = "Medians by the processor time of both ends (strait lab enskip). The paper: R. Muchsel, ENskip Performance, 1997.";

/// Where bars begin, below all rates.
const LEAST: f64 = 10.0;

/// Rates by algorithm without and with MD5, RC4 by share, RC4 by the paper's machines.
pub(super) fn all(it: &Throughput) -> Vec<Figure> {
    vec![
        by_algorithm(it, "enskip-crypt", "encrypted", false),
        by_algorithm(it, "enskip-md5", "encrypted and authenticated with MD5", true),
        by_share(it),
        by_machine(),
    ]
}

fn by_algorithm(it: &Throughput, name: &str, what: &str, md5: bool) -> Figure {
    let rate = |values: Option<&RunValues>| values.map_or(f64::NAN, median);
    let cluster = |place: usize, combination: Combination| {
        let here = [
            rate(Some(&it.loopback[place].processor)),
            rate(it.link.as_ref().ok().map(|link| &link[place].processor)),
            rate(it.tunnel.as_ref().ok().map(|tunnel| &tunnel.rates[place])),
        ];
        let paper = (0..MACHINES.len()).map(|machine| printed(machine, place).unwrap_or(f64::NAN));
        Cluster {
            name: combination.to_string(),
            section: String::new(),
            values: here.into_iter().chain(paper).collect(),
        }
    };
    let is_shown = |(place, combination): &(usize, Combination)| {
        combination.md5 == md5 || *place >= 2 * ALGORITHMS.len()
    };
    let clusters = Combination::all().enumerate().filter(is_shown);
    let here = ["here, loopback", "here, link", "here, tunnel (wall clock)"].map(str::to_owned);
    let paper = MACHINES.map(|machine| format!("paper, {machine}"));
    let chart = Chart {
        title: format!("A file of 1.5 MB, {what}"),
        source: SOURCE.to_owned(),
        y: Axis::logarithmic("kbytes/s").at(LEAST),
        plot: Plot::Bars(Bars {
            series: here.into_iter().chain(paper).collect(),
            clusters: clusters.map(|(place, combination)| cluster(place, combination)).collect(),
        }),
    };
    Figure::new(name, chart)
}

fn by_share(it: &Throughput) -> Figure {
    let points: Vec<(f64, f64)> =
        it.shares.iter().map(|runs| (median(&runs.share), median(&runs.rate))).collect();
    let whole = points.first().map_or(f64::NAN, |(share, rate)| rate / share);
    let proportional = points.iter().map(|(share, _)| (*share, share * whole)).collect();
    let line = |name: &str, points| ChartLine { name: name.to_owned(), points };
    let chart = Chart {
        title: "RC4 by share of the processor".to_owned(),
        source: SOURCE.to_owned(),
        y: Axis::linear("kbytes/s, wall clock"),
        plot: Plot::Lines(Lines {
            x: Axis::linear("% of the processor"),
            lines: vec![line("measured", points), line("in proportion", proportional)],
        }),
    };
    Figure::new("enskip-share", chart)
}

/// The paper's own: RC4 by machine, and what its clock alone would give.
fn by_machine() -> Figure {
    let rate = |machine: usize, md5: usize| TABLE[machine][RC4][md5].unwrap_or(f64::NAN);
    let cluster = |machine: usize| Cluster {
        name: MACHINES[machine].to_owned(),
        section: String::new(),
        values: vec![rate(machine, 0), rate(machine, 1), rate(DX2, 0) * CLOCKS[machine] / CLOCKS[DX2]],
    };
    let series = ["RC4", "RC4, MD5", "RC4 of the 486DX2-66 by clock"].map(str::to_owned);
    let chart = Chart {
        title: "RC4 by the paper's machines".to_owned(),
        source: SOURCE.to_owned(),
        y: Axis::linear("kbytes/s"),
        plot: Plot::Bars(Bars {
            series: series.into(),
            clusters: (DX2..MACHINES.len()).map(cluster).collect(),
        }),
    };
    Figure::new("enskip-machines", chart)
}
