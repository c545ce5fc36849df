//! What a keystroke waits while a file is sent over a thin link.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use strait_lab::measure::{RunValues, settle};
use strait_sim::LossModel;
use strait_testbed::interrupt;

use super::content::FileContent;
use super::stage::FileStage;
use super::thin::size;
use super::way::FileWay;
use crate::echo::{Echoes, within};
use crate::error::Error;
use crate::paths::ThinPath;
use crate::report::{BenchSection, progress};
use crate::stage::BenchSetup;
use crate::target::Target;

/// The link, in Mbit/s.
const LINK: f64 = 1.54;
/// Milliseconds above the idle link.
const ABOVE: Target = Target::AtMost(25.0);
/// Round trips before, on an idle link.
const IDLE: usize = 40;
/// Between two round trips: few enough that they take less than a hundredth of the link.
const GAP: Duration = Duration::from_millis(150);
/// Until the transfer is at full speed.
const WARM_UP: Duration = Duration::from_secs(4);
/// Of a transfer that was stopped, the kernel still sends what it has: an idle link carries less than this in half a second. After
/// `DRAIN` it is taken as it is.
const LOOK: Duration = Duration::from_millis(500);
const QUIET: u64 = 5_000;
const DRAIN: Duration = Duration::from_secs(60);
/// Seconds that the file takes at least beyond what is measured.
const SPARE: f64 = 30.0;
/// What is compared.
const WAYS: [FileWay; 3] = [FileWay::Strait, FileWay::Rsync, FileWay::Scp];

/// Milliseconds of one way, a value a run: idle, the median beside a transfer, and what 95 of 100 stay within.
#[derive(Clone, Debug, Default)]
struct KeystrokeRuns {
    idle: RunValues,
    loaded: RunValues,
    slow: RunValues,
}

pub(super) fn run(setting: &BenchSetup) -> Result<BenchSection, Error> {
    let (seconds, runs) = setting.effort.pick((20, 3), (6, 1));
    let path = ThinPath { megabits: Some(LINK), rtt: None, loss: LossModel::None };
    let title = format!(
        "round trips of 56 bytes over UDP beside a file of random bytes, {path}, {runs} runs of {seconds} s, median (min-max); \
         through the tunnel beside strait send, beside it for the others"
    );
    let mut section = BenchSection::new("files: beside", title, &WAYS.map(FileWay::name));
    let stage = FileStage::set(setting, path)?;
    section.notes.extend(WAYS.iter().filter_map(|way| stage.missing(*way)));
    let content = FileContent::Random;
    // Each run of Strait goes on where the one before it was stopped.
    let each = seconds as f64 + WARM_UP.as_secs_f64() + SPARE;
    content.write(&stage.source("random"), size(LINK, each * runs as f64))?;
    let mut measured: [KeystrokeRuns; WAYS.len()] = Default::default();
    for run in 1..=runs {
        for (way, measured) in WAYS.into_iter().zip(&mut measured) {
            if stage.missing(way).is_some() {
                continue;
            }
            section.before.push(settle()?);
            let slow = measured.note(&stage, way, Duration::from_secs(seconds))?;
            progress(section.name, run, way.name(), slow, "ms, 95 of 100");
        }
    }
    tell(&mut section, &measured);
    Ok(section)
}

fn tell(section: &mut BenchSection, measured: &[KeystrokeRuns; WAYS.len()]) {
    let cells = |of: fn(&KeystrokeRuns) -> RunValues| measured.iter().map(of).collect::<Vec<_>>();
    section.row("round trip on an idle link, ms", cells(|it| it.idle.clone()));
    section.row("beside the transfer, ms", cells(|it| it.loaded.clone()));
    section.row("95 of 100 within, ms", cells(|it| it.slow.clone()));
    section.row("above the idle link, ms", cells(|it| it.loaded.minus(&it.idle)));
    let [ours, ..] = measured;
    section.judge("Strait above its idle link, median, ms", ours.loaded.minus(&ours.idle), ABOVE);
    section.judge("Strait above its idle link, 95 of 100, ms", ours.slow.minus(&ours.idle), ABOVE);
}

impl KeystrokeRuns {
    /// One run; gives what 95 of 100 round trips stay within.
    fn note(&mut self, stage: &FileStage, way: FileWay, window: Duration) -> Result<f64, Error> {
        let address: IpAddr = match way {
            FileWay::Strait => stage.sites[1].inside().into(),
            _ => stage.hosts.address_of_b().0,
        };
        let address = SocketAddr::new(address, 0);
        self.idle.push(within(&mut Echoes::idle(&stage.hosts, address, IDLE).run()?, 50));
        let mut child = stage.spawn(way, "random")?;
        let paused = interrupt::pause(WARM_UP).map_err(Error::from);
        let times = paused.and_then(|()| Echoes::beside(&stage.hosts, address, GAP, window).run());
        let ended = child.try_wait().map_err(Error::doing("look after a transfer"));
        let _ = child.kill();
        let _ = child.wait();
        drain(stage)?;
        if let Some(status) = ended? {
            stage.check(status, way)?;
            return Err(Error::Silent { what: "a file that goes on", way: way.name().to_owned() });
        }
        stage.clear("random")?;
        let mut times = times?;
        self.loaded.push(within(&mut times, 50));
        let slow = within(&mut times, 95);
        self.slow.push(slow);
        Ok(slow)
    }
}

/// Waits until nothing is left of a transfer that was stopped.
fn drain(stage: &FileStage) -> Result<(), Error> {
    for _ in 0..DRAIN.as_millis() / LOOK.as_millis() {
        let before = stage.hosts.link.traffic()?;
        interrupt::pause(LOOK)?;
        let since = stage.hosts.link.traffic()?.since(before);
        if since.there.bytes + since.back.bytes < QUIET {
            break;
        }
    }
    Ok(())
}
