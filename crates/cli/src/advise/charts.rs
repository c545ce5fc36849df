//! A report's figures as charts.

use strait_advise::report::{ClassReport, CodecTrial, UpTo};
use strait_advise::{AdviseReport, TunnelVariant};
use strait_chart::{Axis, Bars, Chart, Cluster, Plot};

use super::amounts::rate;
use super::content::{can_say, wire};

/// Classes side by side in a chart.
const SIDE_BY_SIDE: usize = 8;

/// The charts that there are figures for.
pub(super) fn charts(report: &AdviseReport, compared: &[&ClassReport]) -> Vec<Chart> {
    let link = rate(report.link.rate_bits_per_second as f64);
    let mut charts = vec![on_the_wire(report, &link)];
    if !compared.is_empty() {
        charts.extend([ratios(compared), limits(report, compared, &link)]);
    }
    charts
}

/// Bytes on the wire by service and way.
fn on_the_wire(report: &AdviseReport, link: &str) -> Chart {
    let cluster = |class: &ClassReport| {
        let value =
            |way: &TunnelVariant| if can_say(class, *way) { wire(class, *way) as f64 } else { f64::NAN };
        let values =
            std::iter::once(class.bytes as f64).chain(TunnelVariant::ALL.iter().map(value)).collect();
        Cluster { name: class.name.clone(), section: String::new(), values }
    };
    Chart {
        title: "Wire bytes by service".into(),
        source: format!("replayed over {link}"),
        y: Axis::linear("bytes").prefixed("B"),
        plot: Plot::Bars(Bars {
            series: std::iter::once("no tunnel")
                .chain(TunnelVariant::ALL.map(TunnelVariant::name))
                .map(str::to_owned)
                .collect(),
            clusters: report.services.classes.iter().take(SIDE_BY_SIDE).map(cluster).collect(),
        }),
    }
}

/// Ratio by codec, packet by packet and together.
fn ratios(compared: &[&ClassReport]) -> Chart {
    let mut clusters = by_method(compared, "packets", |tried| tried.packet_ratio);
    clusters.extend(by_method(compared, "blocks", |tried| tried.block_ratio));
    Chart {
        title: "Compression ratio by codec".into(),
        source: "on a sample: single packets, and blocks of packets".into(),
        y: Axis::linear("compression ratio (input / output)").at(1.0),
        plot: Plot::Bars(Bars { series: names(compared), clusters }),
    }
}

/// The fastest link that each codec pays on.
fn limits(report: &AdviseReport, compared: &[&ClassReport], link: &str) -> Chart {
    let value = |tried: &CodecTrial| if let UpTo::Rate(bits) = tried.break_even { bits } else { f64::NAN };
    Chart {
        title: format!("Break-even link rate by codec; the line is this link, {link}"),
        source: "McGregor and Lee's inequality, with the rates of this machine at both ends".into(),
        y: Axis::logarithmic("break-even link rate in bit/s")
            .prefixed("bit/s")
            .at(report.link.rate_bits_per_second as f64),
        plot: Plot::Bars(Bars { series: names(compared), clusters: by_method(compared, "", value) }),
    }
}

/// A cluster a method, with a bar a class.
fn by_method(compared: &[&ClassReport], section: &str, value: impl Fn(&CodecTrial) -> f64) -> Vec<Cluster> {
    let methods = compared.first().map_or(&[][..], |class| &class.codecs);
    let cluster = |(at, tried): (usize, &CodecTrial)| Cluster {
        name: tried.method.to_string(),
        section: section.to_owned(),
        values: compared.iter().map(|class| class.codecs.get(at).map_or(f64::NAN, &value)).collect(),
    };
    methods.iter().enumerate().map(cluster).collect()
}

fn names(compared: &[&ClassReport]) -> Vec<String> {
    compared.iter().map(|class| class.name.clone()).collect()
}
