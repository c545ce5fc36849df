//! The text that each tunnel carries over each link, drawn.

use strait_chart::{Axis, Bars, Chart, Cluster, Drawing, Plot};

use super::links::{LINKS, PeerLink};
use super::table::COLUMNS;
use super::way::PeerWay;
use crate::report::BenchSection;

/// Bars of the links that were measured, each in a colour of its own, in clusters by tunnel. Nothing where none was.
pub(crate) fn drawing(sections: &[BenchSection], source: &str) -> Option<Drawing> {
    let measured = |link: &PeerLink| {
        let section = sections.iter().find(|section| section.name == link.name)?;
        Some((link.path.to_string(), section))
    };
    let links: Vec<(String, &BenchSection)> = LINKS.iter().filter_map(measured).collect();
    if links.is_empty() {
        return None;
    }
    let cluster = |way: PeerWay| Cluster {
        name: way.name().to_owned(),
        section: String::new(),
        values: links.iter().map(|(_, section)| text_of(section, way)).collect(),
    };
    // Variants are only in tables.
    let drawn = PeerWay::ALL.into_iter().filter(|way| !way.is_variant());
    let chart = Chart {
        title: "Text over one TCP stream".to_owned(),
        source: source.to_owned(),
        y: Axis::logarithmic(COLUMNS[0]),
        plot: Plot::Bars(Bars {
            series: links.iter().map(|(name, _)| name.clone()).collect(),
            clusters: drawn.map(cluster).collect(),
        }),
    };
    Some(chart.drawing())
}

/// Median Mbit/s of text; not a number where there is none.
fn text_of(section: &BenchSection, way: PeerWay) -> f64 {
    let row = section.rows.iter().find(|row| row.quantity == way.name());
    row.and_then(|row| row.cells.first()?.spread()).map_or(f64::NAN, |spread| spread.median)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_is_the_median_of_text_and_a_missing_tunnel_a_gap() {
        let mut section = BenchSection::new("peers: base", "", &COLUMNS);
        section.row("Strait", [[8.0, 30.0, 9.0].into_iter().collect()]);
        assert_eq!(text_of(&section, PeerWay::Strait), 9.0);
        assert!(text_of(&section, PeerWay::BoringTun).is_nan());
        let svg = drawing(&[section], "two cores").unwrap().svg();
        assert!(svg.contains("10 Mbit/s, 60 ms") && svg.contains("boringtun") && svg.contains("two cores"));
        assert!(drawing(&[], "").is_none());
    }
}
