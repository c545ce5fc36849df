//! After an outage: how soon the screen answers when the path is back.

use std::time::Duration;

use strait_lab::measure::{RunValues, settle};
use strait_sim::LossModel;
use strait_testbed::{InterfaceState, interrupt};

use super::stage::{LoginStage, PROMPT};
use super::way::LoginWay;
use crate::error::Error;
use crate::paths::ThinPath;
use crate::report::{BenchSection, progress};
use crate::stage::BenchSetup;
use crate::target::Target;

const LINK: ThinPath = ThinPath { megabits: Some(1.54), rtt: Some(60), loss: LossModel::None };
/// Seconds from the path's return to the screen's answer.
const ANSWER: Target = Target::AtMost(3.0);
/// Of the outage, and of a quick look's.
const OUTAGE: Duration = Duration::from_secs(600);
const QUICK: Duration = Duration::from_secs(30);
const PATIENCE: Duration = Duration::from_secs(120);
const WAYS: [LoginWay; 2] = [LoginWay::Strait, LoginWay::Mosh];

pub(super) fn run(setting: &BenchSetup) -> Result<BenchSection, Error> {
    let (outage, runs) = setting.effort.pick((OUTAGE, 1), (QUICK, 1));
    let title = format!(
        "a command typed 10 s into an outage of {} s, {LINK}, both logins at once, {runs} runs, median (min-max)",
        outage.as_secs()
    );
    let mut section = BenchSection::new("login: outage", title, &WAYS.map(LoginWay::name));
    section.notes.push("ssh's TCP gives up or waits for its own timer; it is left out".to_owned());
    let stage = LoginStage::set(setting, LINK)?;
    let mut seconds: [RunValues; WAYS.len()] = Default::default();
    let missing: Vec<String> = WAYS.into_iter().filter_map(|way| stage.missing(way)).collect();
    section.notes.extend(missing);
    for run in 1..=runs {
        section.before.push(settle()?);
        let mut logins = Vec::new();
        for way in WAYS.into_iter().filter(|way| stage.missing(*way).is_none()) {
            logins.push((way, stage.shell(way)?));
        }
        stage.hosts.link.a.set_state(InterfaceState::Down)?;
        interrupt::pause(Duration::from_secs(10))?;
        for (_, login) in &mut logins {
            login.terminal.settle(Duration::ZERO);
            login.terminal.type_in("echo an''swer\n")?;
        }
        interrupt::pause(outage.saturating_sub(Duration::from_secs(10)))?;
        stage.hosts.link.a.set_state(InterfaceState::Up)?;
        let begin = std::time::Instant::now();
        for (way, login) in &mut logins {
            login.terminal.wait_for("answer", PATIENCE)?;
            let took = begin.elapsed().as_secs_f64();
            progress(section.name, run, way.name(), took, "s");
            seconds[usize::from(*way == LoginWay::Mosh)].push(took);
            login.terminal.wait_for(PROMPT, PATIENCE)?;
        }
    }
    section.judge("Strait: until the screen answers, s", seconds[0].clone(), ANSWER);
    section.row("the path's return until the answer, s", seconds);
    Ok(section)
}
