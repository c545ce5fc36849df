//! What history is worth on the papers' links: the same traffic through tunnels in virtual time, with each kind of history and without,
//! and wire bytes of both directions, receipts among them, over those of a tunnel that sends each packet alone.
//!
//! Everything is computed: the traffic is generated, codecs are as fast as a typical processor is assumed to be, and the same
//! program makes the same figures everywhere.

mod traffic;

use strait_advise::{CapturedFrame, LinkType, MachineModel, ReplayLink, TunnelReplay, TunnelVariant};
use strait_scheduler::Rate;

use crate::error::Error;
use crate::report::{Comparison, Exhibit, FigureUnit, LabReport, LabTable, computed};
use crate::steps::{Effort, StepCounter, StepNote};
use crate::{parallel, vpn};
use traffic::HistoryTraffic;

/// What stands for a paper above the report.
const ABOUT: &str = "What history is worth on the links of McGregor and Lee (Table 2) and of Braun, Claffy and Gross (14.4 kbit/s)";
/// The modem of Braun, Claffy and Gross (Table 1).
const MODEM: (&str, f64) = ("14.4 kbit/s", 0.0144);

/// Wire bytes of one traffic over one link, by [`TunnelVariant`].
type WireGrid = [u64; TunnelVariant::ALL.len()];

/// Replays each traffic over each link.
///
/// # Errors
/// [`Error::Refused`] when a packet that was made is none.
pub fn history(effort: Effort, tell: &mut dyn FnMut(StepNote<'_>)) -> Result<LabReport, Error> {
    let traffics = traffic::all(effort);
    let links: Vec<(&str, f64)> = std::iter::once(MODEM).chain(vpn::printed::NETWORKS).collect();
    let mut report = LabReport::computed(ABOUT);
    let mut steps = StepCounter::new(traffics.len(), tell);
    for traffic in &traffics {
        steps.next(traffic.name);
        let grids = parallel::map(&links, |(_, megabits)| replayed(traffic, *megabits));
        let grids = grids.into_iter().collect::<Result<Vec<_>, Error>>()?;
        report.tables.push(shares(traffic, &links, &grids));
        if traffic.is_interactive {
            report.tables.push(times(traffic, &links, &grids));
        }
    }
    report.notes.extend(NOTES.map(str::to_owned));
    Ok(report)
}

/// What is to be known about the figures.
const NOTES: [&str; 4] = [
    "generated traffic in virtual time, codecs as fast as assumed of a typical processor, a round trip of 50 ms, ESP in UDP over IPv4: \
     the figures are the same on every machine",
    "contexts: aggregation, and headers of what leaves alone against earlier ones, as without a rule; history: compression besides, \
     payloads and blocks behind what their flow sent before; cache: what crossed before in any flow is copied",
    "on links without a queue every packet leaves at once, and only history gains; on slow ones aggregation gains as well",
    "a gain of bytes is a gain of time where the link limits, not where the processors do",
];

/// Wire bytes of both directions.
fn replayed(traffic: &HistoryTraffic, megabits: f64) -> Result<WireGrid, Error> {
    let refused = Error::refused(traffic.name, "cross a replayed link");
    let Some(rate) = Rate::from_bits((megabits * 1e6) as u64) else { return Err(refused("no rate".into())) };
    let mut replay = TunnelReplay::new(ReplayLink::of(rate), &MachineModel::assumed());
    for (at, bytes) in &traffic.packets {
        let frame = CapturedFrame { at: *at, link: LinkType::RAW, bytes, len: bytes.len() };
        if let Err(unknown) = replay.frame(&frame) {
            return Err(refused(unknown.into()));
        }
    }
    replay.finish();
    Ok(TunnelVariant::ALL.map(|way| replay.wire(way) + replay.returned(way)))
}

/// Of the bytes of a plain tunnel, in hundredths.
fn shares(traffic: &HistoryTraffic, links: &[(&str, f64)], grids: &[WireGrid]) -> LabTable {
    let subject = format!("{}: wire bytes, of those of a plain tunnel", traffic.name);
    let mut table = table(&subject, FigureUnit::Share);
    for ((link, _), wire) in links.iter().zip(grids) {
        let plain = wire[TunnelVariant::Plain.index()] as f64;
        table.row(*link, wire.iter().map(|bytes| (computed(*bytes as f64 / plain * 100.0), None)));
    }
    table
}

/// How long the link is busy for a packet, on average.
fn times(traffic: &HistoryTraffic, links: &[(&str, f64)], grids: &[WireGrid]) -> LabTable {
    let subject = format!("{}: link time of a packet on average", traffic.name);
    let mut table = table(&subject, FigureUnit::Microseconds);
    let packets = traffic.packets.len() as f64;
    for ((link, megabits), wire) in links.iter().zip(grids) {
        // A megabit a second is a bit a microsecond.
        table.row(*link, wire.iter().map(|bytes| (computed(*bytes as f64 * 8.0 / packets / megabits), None)));
    }
    table
}

fn table(subject: &str, unit: FigureUnit) -> LabTable {
    let columns = TunnelVariant::ALL.map(TunnelVariant::name);
    LabTable::new(Exhibit::Beyond, subject, unit, Comparison::Quotient, columns)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The cell of a traffic's first table.
    fn share(report: &LabReport, subject: &str, link: &str, way: TunnelVariant) -> f64 {
        let table = report.tables.iter().find(|table| table.subject.starts_with(subject)).unwrap();
        let row = table.rows.iter().find(|row| row.name == link).unwrap();
        row.cells[way.index()].ours.spread().unwrap().median
    }

    #[test]
    fn each_kind_of_history_gains_where_it_should() {
        let report = history(Effort::Quick, &mut |_| {}).unwrap();
        // On faster ones, processors limit, and bytes may grow.
        for (link, _) in std::iter::once(MODEM).chain(vpn::printed::NETWORKS).take(4) {
            let of = |subject, way| share(&report, subject, link, way);
            for name in ["keystrokes", "polls", "text", "the same text twice", "an archive twice"] {
                assert_eq!(of(name, TunnelVariant::Plain), 100.0);
                // What history cannot gain it does not cost.
                let [both, history] = [TunnelVariant::Both, TunnelVariant::History].map(|way| of(name, way));
                assert!(history <= both * 1.05, "{name}, {link}: {history} {both}");
            }
            // Payloads of a login are random: headers alone gain.
            assert!(of("keystrokes", TunnelVariant::Contexts) < 75.0, "{link}");
            assert!(of("polls", TunnelVariant::History) < of("polls", TunnelVariant::Contexts), "{link}");
        }
        let slow = |subject, way| share(&report, subject, "1.54 Mbit/s", way);
        // Half of it is new.
        assert!(slow("an archive twice", TunnelVariant::Cache) < 55.0);
        assert!(slow("an archive twice", TunnelVariant::History) > 90.0);
        assert!(
            slow("the same text twice", TunnelVariant::Cache)
                < slow("the same text twice", TunnelVariant::History) * 0.6
        );
    }
}
