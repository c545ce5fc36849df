//! What a keystroke and its echo cost: datagrams, bytes of IP, and milliseconds.

use std::time::{Duration, Instant};

use strait_lab::measure::{RunValues, settle};
use strait_sim::LossModel;
use strait_testbed::interrupt;

use super::stage::{Login, LoginStage};
use super::way::{LoginWay, versions};
use crate::error::Error;
use crate::paths::ThinPath;
use crate::report::{BenchSection, progress};
use crate::stage::BenchSetup;
use crate::target::Target;

/// Datagrams or segments, both ways together; bytes of IP (those of Debian 12's ssh are 228).
const DATAGRAMS: Target = Target::AtMost(3.0);
const BYTES: Target = Target::AtMost(225.0);
/// Over the least of ssh's and mosh's.
const OTHERS: Target = Target::AtMost(1.0);
/// The link: that of the output, with a round trip of a cellular network.
const LINK: ThinPath = ThinPath { megabits: Some(1.54), rtt: Some(60), loss: LossModel::None };
/// Bytes of a frame beside its IP packet.
const ETHERNET: u64 = 14;
/// Keystrokes that do not count: a connection's first segments are acknowledged at once.
const BEFORE: usize = 10;
/// A keystroke is over when nothing has crossed the link for so long, which is longer than any program here waits to acknowledge.
const QUIET: Duration = Duration::from_millis(400);
const PATIENCE: Duration = Duration::from_secs(10);

/// Of each keystroke.
#[derive(Clone, Debug, Default)]
struct KeystrokeRuns {
    datagrams: RunValues,
    bytes: RunValues,
    milliseconds: RunValues,
}

pub(super) fn run(setting: &BenchSetup) -> Result<BenchSection, Error> {
    let count = setting.effort.pick(60, 10);
    let title = format!(
        "a character typed into `cat` on a terminal, and its echo, {LINK}, {count} keystrokes that are answered before the next, \
         median (min-max)"
    );
    let mut section = BenchSection::new("login: keystroke", title, &LoginWay::ALL.map(LoginWay::name));
    section.notes.push(versions());
    let stage = LoginStage::set(setting, LINK)?;
    let mut measured: [KeystrokeRuns; LoginWay::ALL.len()] = Default::default();
    for (way, measured) in LoginWay::ALL.into_iter().zip(&mut measured) {
        if let Some(why) = stage.missing(way) {
            section.notes.push(why);
            continue;
        }
        section.before.push(settle()?);
        let mut login = stage.login(way, "echo ready; exec cat")?;
        login.terminal.wait_for("ready", PATIENCE)?;
        for number in 0..BEFORE + count {
            // Letters that no program says by itself, so that each echo is known.
            let key = ["q", "w", "z", "j"][number % 4];
            let one = keystroke(&stage, &mut login, key)?;
            if number >= BEFORE {
                measured.datagrams.push(one[0]);
                measured.bytes.push(one[1]);
                measured.milliseconds.push(one[2]);
            }
        }
        let bytes = measured.bytes.spread().map_or(f64::NAN, |spread| spread.median);
        progress(section.name, 1, way.name(), bytes, "bytes");
    }
    tell(&mut section, &measured);
    Ok(section)
}

fn tell(section: &mut BenchSection, measured: &[KeystrokeRuns; LoginWay::ALL.len()]) {
    let cells =
        |of: fn(&KeystrokeRuns) -> &RunValues| measured.iter().map(|it| of(it).clone()).collect::<Vec<_>>();
    section.row("datagrams, both ways", cells(|it| &it.datagrams));
    section.row("bytes of IP, both ways", cells(|it| &it.bytes));
    section.row("milliseconds until the echo", cells(|it| &it.milliseconds));
    let [ours, others @ ..] = measured;
    section.judge("Strait: datagrams a keystroke", ours.datagrams.clone(), DATAGRAMS);
    section.judge("Strait: bytes of IP a keystroke", ours.bytes.clone(), BYTES);
    for (way, its) in LoginWay::ALL[1..].iter().zip(others).filter(|(_, its)| !its.bytes.values().is_empty())
    {
        section.judge(format!("bytes of IP, Strait / {}", way.name()), ours.bytes.over(&its.bytes), OTHERS);
    }
}

/// Types one character; gives datagrams, bytes of IP, and milliseconds until its echo.
fn keystroke(stage: &LoginStage, login: &mut Login, key: &str) -> Result<[f64; 3], Error> {
    let before = stage.hosts.link.traffic()?;
    let begin = Instant::now();
    login.terminal.type_in(key)?;
    login.terminal.wait_for(key, PATIENCE)?;
    let milliseconds = begin.elapsed().as_secs_f64() * 1e3;
    let mut last = stage.hosts.link.traffic()?;
    loop {
        interrupt::pause(QUIET)?;
        let now = stage.hosts.link.traffic()?;
        let since = now.since(last);
        if since.there.packets + since.back.packets == 0 || begin.elapsed() > PATIENCE {
            break;
        }
        last = now;
    }
    let crossed = last.since(before);
    let frames = crossed.there.packets + crossed.back.packets;
    let bytes = (crossed.there.bytes + crossed.back.bytes).saturating_sub(frames * ETHERNET);
    Ok([frames as f64, bytes as f64, milliseconds])
}
