//! A long log on the screen over a thin link, and Ctrl-C in the middle of it.

use std::time::Duration;

use strait_lab::measure::{RunValues, settle};
use strait_sim::LossModel;
use strait_testbed::interrupt;
use strait_testbed::outside::quoted;

use super::stage::{LoginStage, PROMPT};
use super::way::{LoginWay, versions};
use crate::content::sample_log;
use crate::error::Error;
use crate::paths::ThinPath;
use crate::report::{BenchSection, progress};
use crate::stage::BenchSetup;
use crate::target::Target;

/// The link and its round trip, in milliseconds.
const ROUND_TRIP: u64 = 60;
const LINK: ThinPath = ThinPath { megabits: Some(1.54), rtt: Some(ROUND_TRIP), loss: LossModel::None };
/// Times as fast as ssh, and as `ssh -C`.
const PLAIN: Target = Target::AtLeast(3.5);
const COMPRESSED: Target = Target::AtLeast(1.0);
/// Milliseconds from Ctrl-C to the prompt: a round trip and 200 ms.
const PROMPT_AFTER: Target = Target::AtMost(ROUND_TRIP as f64 + 200.0);
/// Bytes of the log, and of that of a quick look.
const LOG: usize = 5_000_000;
const QUICK: usize = 500_000;
/// mosh shows the last screen alone, and draws a line in pieces: it has neither a log that arrives nor a prompt to wait for.
const WAYS: [LoginWay; 3] = [LoginWay::Strait, LoginWay::Ssh, LoginWay::Compressed];
/// The output is under way when it is interrupted.
const MIDDLE: Duration = Duration::from_secs(2);
const PATIENCE: Duration = Duration::from_secs(300);
/// What the shell says behind the log; as it is typed, it has quotes.
const MARKER: &str = "log-is-''at-its-end";

#[derive(Clone, Debug, Default)]
struct OutputRuns {
    seconds: RunValues,
    prompt: RunValues,
}

pub(super) fn run(setting: &BenchSetup) -> Result<BenchSection, Error> {
    let (size, runs) = setting.effort.pick((LOG, 3), (QUICK, 1));
    let title = format!(
        "`cat` of a log of {:.1} MB on a terminal, {LINK}, then Ctrl-C {} s after it began again, {runs} runs, median (min-max)",
        size as f64 / 1e6,
        MIDDLE.as_secs()
    );
    let mut section = BenchSection::new("login: output", title, &WAYS.map(LoginWay::name));
    section.notes.push(versions());
    let stage = LoginStage::set(setting, LINK)?;
    let log = stage.file("log");
    std::fs::write(&log, sample_log(size)).map_err(Error::doing("write a log"))?;
    let long = stage.file("long");
    std::fs::write(&long, sample_log(LOG * 8)).map_err(Error::doing("write a log"))?;
    let mut measured: [OutputRuns; WAYS.len()] = Default::default();
    for run in 1..=runs {
        for (way, measured) in WAYS.into_iter().zip(&mut measured) {
            if let Some(why) = stage.missing(way) {
                section.notes.extend((run == 1).then_some(why));
                continue;
            }
            section.before.push(settle()?);
            let mut login = stage.shell(way)?;
            let terminal = &mut login.terminal;
            terminal.settle(Duration::from_millis(500));
            terminal.type_in(&format!("cat {}; echo {MARKER}\n", quoted(&log.display().to_string())))?;
            let took = terminal.wait_for(&MARKER.replace('\'', ""), PATIENCE)?;
            terminal.wait_for(PROMPT, PATIENCE)?;
            measured.seconds.push(took.as_secs_f64());
            progress(section.name, run, way.name(), took.as_secs_f64(), "s");
            terminal.type_in(&format!("cat {}\n", quoted(&long.display().to_string())))?;
            interrupt::pause(MIDDLE)?;
            terminal.settle(Duration::ZERO);
            terminal.type_in("\u{3}")?;
            let prompt = terminal.wait_for(PROMPT, PATIENCE)?;
            measured.prompt.push(prompt.as_secs_f64() * 1e3);
        }
    }
    tell(&mut section, &measured);
    Ok(section)
}

fn tell(section: &mut BenchSection, measured: &[OutputRuns; WAYS.len()]) {
    let cells =
        |of: fn(&OutputRuns) -> &RunValues| measured.iter().map(|it| of(it).clone()).collect::<Vec<_>>();
    section.row("the whole log, s", cells(|it| &it.seconds));
    section.row("Ctrl-C until the prompt, ms", cells(|it| &it.prompt));
    let [ours, plain, compressed] = measured;
    section.judge("times as fast as ssh", plain.seconds.over(&ours.seconds), PLAIN);
    section.judge("times as fast as ssh -C", compressed.seconds.over(&ours.seconds), COMPRESSED);
    section.judge("Ctrl-C until the prompt, ms", ours.prompt.clone(), PROMPT_AFTER);
}
