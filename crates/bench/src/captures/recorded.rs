//! Packets at their recorded times through the sender of a tunnel in virtual time.

use std::path::PathBuf;
use std::time::Duration;

use strait_advise::{CaptureReader, MachineModel, ReplayLink, TunnelReplay, TunnelVariant};
use strait_lab::measure::RunValues;
use strait_scheduler::Rate;

use super::{CaptureMix, open, unreadable};
use crate::error::Error;
use crate::stage::MTU;

/// The hold time, where there is one: too short to matter where meters are read.
const WAIT: Duration = Duration::from_millis(20);

/// Wire bytes of both directions a byte of packets: each alone, aggregated, and aggregated with a hold time of 20 ms.
pub(super) fn all(traffic: &CaptureMix, paths: &[PathBuf], rate: Rate) -> Result<[RunValues; 3], Error> {
    let [at_once, patient] = [one(traffic, paths, rate, Duration::ZERO)?, one(traffic, paths, rate, WAIT)?];
    let wire = |sent: &TunnelReplay, way| (sent.wire(way) + sent.returned(way)) as f64;
    let each = |sent: &TunnelReplay, way| [wire(sent, way) / sent.bytes() as f64].into_iter().collect();
    Ok([
        each(&at_once, TunnelVariant::Compression),
        each(&at_once, TunnelVariant::Both),
        each(&patient, TunnelVariant::Both),
    ])
}

fn one(traffic: &CaptureMix, paths: &[PathBuf], rate: Rate, wait: Duration) -> Result<TunnelReplay, Error> {
    let link = ReplayLink { rate, mtu: usize::try_from(MTU).unwrap_or(usize::MAX), near: None, wait };
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
