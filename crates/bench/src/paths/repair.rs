//! What the readiness to repair costs where nothing is lost.

use std::time::Duration;

use strait_lab::measure::{RunValues, settle};
use strait_testbed::interrupt;

use super::recorded::{PathFeeds, TimedPacket};
use super::stage::{PathPrograms, PathStage, PathWay, ThinPath};
use crate::content::noise;
use crate::error::Error;
use crate::report::{BenchSection, progress};
use crate::stage::BenchSetup;
use crate::target::Target;

const PATH: ThinPath = ThinPath::clean(10.0, 100);
/// Lines of `[[peer]]`.
const SETTINGS: [&str; 2] = ["", "repair = \"off\""];
const COLUMNS: [&str; 3] = ["repair", "repair = \"off\"", "repair adds, %"];
/// Percent of the bytes on the wire, both ways, that repair adds.
const COST: Target = Target::AtMost(0.3);
/// Datagrams that do not shrink, half the link's rate: the sender's pace is the same with repair and without.
const PAYLOAD: usize = 1300;
const GAP: Duration = Duration::from_micros(2_100);
/// Until the handshake, and what follows it, is over.
const WARM_UP: Duration = Duration::from_secs(3);

pub(super) fn run(setting: &BenchSetup) -> Result<BenchSection, Error> {
    let programs = PathPrograms::find(setting)?;
    let (runs, seconds) = setting.effort.pick((2, 15), (1, 4));
    let title = format!(
        "datagrams of random bytes over {PATH} without loss, rate told, bytes of outer IP packets both ways for each byte, \
         {runs} runs of {seconds} s, median (min-max)"
    );
    let mut section = BenchSection::new("paths: repair", title, &COLUMNS);
    let packets = datagrams(Duration::from_secs(seconds));
    let mut samples: [RunValues; 2] = Default::default();
    for run in 1..=runs {
        for (peer, sample) in SETTINGS.into_iter().zip(&mut samples) {
            section.before.push(settle()?);
            let stage = match PathStage::set(&programs, PATH, PathWay::Told, peer, run) {
                Err(Error::Testbed(strait_testbed::Error::DaemonEnded { .. })) if !peer.is_empty() => {
                    section.notes.push(format!("skipped: this build does not know {peer}"));
                    return Ok(section);
                }
                stage => stage?,
            };
            let Some(stage) = stage else { continue };
            interrupt::pause(WARM_UP)?;
            let found = PathFeeds::open(&stage)?.play(&packets)?;
            let each = found.wire as f64 / found.inner as f64;
            progress(
                "paths",
                usize::try_from(run).unwrap_or(0),
                &format!("no loss, {peer}"),
                each,
                "bytes a byte",
            );
            sample.push(each);
        }
    }
    let [with, without] = samples;
    let more = with.over(&without).map(|ratio| (ratio - 1.0) * 100.0);
    section.row("bytes a byte", [with, without, more.clone()]);
    section.judge("wire bytes without loss that repair adds, %", more, COST);
    Ok(section)
}

fn datagrams(time: Duration) -> Vec<TimedPacket> {
    let noise = noise();
    let count = u32::try_from(time.as_nanos() / GAP.as_nanos()).unwrap_or(u32::MAX);
    let payloads = noise.chunks_exact(PAYLOAD).cycle();
    (0..count).zip(payloads).map(|(number, payload)| TimedPacket::there(GAP * number, payload)).collect()
}
