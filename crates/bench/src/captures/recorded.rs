//! Packets at their recorded times through both ends of a tunnel in virtual time, everything that it sends counted.

use std::path::PathBuf;
use std::time::Duration;

use strait_advise::{CaptureReader, MachineModel, ReplayLink, TunnelReplay, TunnelVariant};
use strait_crypto::Suite;
use strait_ipsec::HistoryScope;
use strait_lab::measure::RunValues;
use strait_scheduler::Rate;

use super::{CaptureMix, open, unreadable};
use crate::error::Error;
use crate::stage::MTU;

/// The hold time, where there is one: too short to matter where meters are read.
const WAIT: Duration = Duration::from_millis(20);

/// Bytes of outer IP packets of both directions a byte of packets: each alone, aggregated, and aggregated with a hold time of 20 ms, as
/// if all packets went one way; then with both directions as they were, aggregated, with headers and with payloads against earlier ones;
/// and the last two with a tag of 12 bytes, the very last where flows of a service share history.
pub(super) fn all(traffic: &CaptureMix, paths: &[PathBuf], rate: Rate) -> Result<[RunValues; 8], Error> {
    let link = ReplayLink { mtu: usize::try_from(MTU).unwrap_or(usize::MAX), ..ReplayLink::of(rate) };
    let one_way = ReplayLink { one_way: true, ..link.clone() };
    let at_once = one(traffic, paths, one_way.clone())?;
    let patient = one(traffic, paths, ReplayLink { wait: WAIT, ..one_way })?;
    let short = ReplayLink { suite: Suite::Aes128Gcm12, ..link.clone() };
    let by_service = one(traffic, paths, ReplayLink { history: HistoryScope::Service, ..short.clone() })?;
    let short = one(traffic, paths, short)?;
    let both_ways = one(traffic, paths, link)?;
    let wire = |sent: &TunnelReplay, way| (sent.wire(way) + sent.returned(way)) as f64;
    let each = |sent: &TunnelReplay, way| [wire(sent, way) / sent.bytes() as f64].into_iter().collect();
    Ok([
        each(&at_once, TunnelVariant::Compression),
        each(&at_once, TunnelVariant::Both),
        each(&patient, TunnelVariant::Both),
        each(&both_ways, TunnelVariant::Both),
        each(&both_ways, TunnelVariant::Contexts),
        each(&both_ways, TunnelVariant::History),
        each(&short, TunnelVariant::History),
        each(&by_service, TunnelVariant::History),
    ])
}

fn one(traffic: &CaptureMix, paths: &[PathBuf], link: ReplayLink) -> Result<TunnelReplay, Error> {
    let mut replay = TunnelReplay::new(link, &MachineModel::assumed());
    for path in paths {
        replay.begin(None);
        let mut reader = CaptureReader::open(open(path)?).map_err(unreadable(path))?;
        while let Some(frame) = reader.frame().map_err(unreadable(path))? {
            let covered = frame.ip().map_err(unreadable(path))?.is_some_and(|(kept, _)| traffic.covers(kept));
            if covered {
                replay.frame(&frame).map_err(unreadable(path))?;
            }
        }
    }
    replay.finish();
    Ok(replay)
}
