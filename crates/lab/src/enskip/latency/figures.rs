//! The table drawn.

use strait_chart::{Axis, Bars, Chart, Cluster, Plot};

use super::tables::printed;
use super::tiers::Tier;
use super::{DURABLE, Latency, SETTINGS};
use crate::figure::Figure;

const SOURCE: &str = "Medians by the clock on the wall; marks are not waited for (strait lab enskip). The paper: R. Muchsel, ENskip Performance, 1997.";

/// Where bars begin, below all round trips.
const LEAST: f64 = 1.0;

/// Round trips by tier, ours beside the paper's.
pub(super) fn by_tier(it: &Latency) -> Figure {
    let cluster = |tier: Tier| {
        let here = (0..DURABLE)
            .map(|settings| it.times(settings, tier).took.spread().map_or(f64::NAN, |spread| spread.median));
        Cluster {
            name: tier.name().to_owned(),
            section: String::new(),
            values: here.chain([printed(tier).unwrap_or(f64::NAN)]).collect(),
        }
    };
    let here = SETTINGS[..DURABLE].iter().map(|(name, _)| format!("here, {name}"));
    let chart = Chart {
        title: "Round trip of a ping by what is cached".to_owned(),
        source: SOURCE.to_owned(),
        y: Axis::logarithmic("µs").at(LEAST),
        plot: Plot::Bars(Bars {
            series: here.chain(["paper, 486DX2-66, 3DES, MD5".to_owned()]).collect(),
            clusters: Tier::ALL.into_iter().map(cluster).collect(),
        }),
    };
    Figure::new("enskip-latency", chart)
}
