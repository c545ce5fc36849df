//! A link that is away for half a minute under a command: how soon it says so, and how soon it goes on.

use std::fs;
use std::process::Command;
use std::time::{Duration, Instant};

use strait_lab::measure::{RunValues, settle};
use strait_sim::LossModel;
use strait_testbed::{InterfaceState, interrupt, outside};

use super::stage::{CommandStage, FarServices};
use crate::error::Error;
use crate::files::FileContent;
use crate::login::{PROMPT, PersonTerminal, SHELL};
use crate::paths::ThinPath;
use crate::report::{BenchSection, progress};
use crate::stage::BenchSetup;
use crate::target::Target;

const LINK: ThinPath = ThinPath { megabits: Some(1.54), rtt: Some(60), loss: LossModel::None };
const OUTAGE: Duration = Duration::from_secs(30);
/// Seconds until the first word, and from the path's return until the command goes on.
const WORD: Target = Target::AtMost(3.0);
const AGAIN: Target = Target::AtMost(2.0);
/// Bytes of the file: more than the link carries beside the outage.
const FILE: u64 = 6_000_000;
/// Bytes on the link after which a transfer is under way: half a second of it before the outage, an eighth after it.
const UNDER_WAY: u64 = 100_000;
const GOES_ON: u64 = 25_000;
/// The time that a command may take to begin, or to go on.
const PATIENCE: Duration = Duration::from_secs(120);
const TICK: Duration = Duration::from_millis(5);
const COLUMNS: [&str; 2] = ["until the first word, s", "until it goes on, s"];

/// A command that is under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OutageCommand {
    Login,
    Send,
    Sync,
    Put,
}

impl OutageCommand {
    const ALL: [OutageCommand; 4] =
        [OutageCommand::Login, OutageCommand::Send, OutageCommand::Sync, OutageCommand::Put];

    const fn name(self) -> &'static str {
        match self {
            OutageCommand::Login => "strait login",
            OutageCommand::Send => "strait send",
            OutageCommand::Sync => "strait sync",
            OutageCommand::Put => "strait put",
        }
    }

    /// Its words about silence.
    const fn words(self) -> &'static str {
        match self {
            OutageCommand::Login => "has not answered",
            OutageCommand::Send | OutageCommand::Sync | OutageCommand::Put => "nothing from",
        }
    }

    fn command(self, stage: &CommandStage) -> Command {
        let file = stage.source("folder/file");
        let mut command = stage.strait(&[]);
        match self {
            OutageCommand::Login => command.args(["login", "-t", "site-b", SHELL]),
            OutageCommand::Send => command.arg("send").arg(file).arg("site-b:inbox"),
            OutageCommand::Sync => command.arg("sync").arg(stage.source("folder")).arg("site-b:inbox/folder"),
            OutageCommand::Put => command.arg("put").arg(file).args(["post", "--to", "site-b"]),
        };
        command
    }
}

pub(super) fn run(setting: &BenchSetup) -> Result<BenchSection, Error> {
    let runs = setting.effort.pick(3, 1);
    let title = format!(
        "an outage of {} s under a command on a terminal, without a daemon, {LINK}, {runs} runs, median (min-max); a login goes on \
         when what was typed as the outage began is answered, the others once {} kB more have crossed the link",
        OUTAGE.as_secs(),
        GOES_ON / 1000
    );
    let mut section = BenchSection::new("commands: outage", title, &COLUMNS);
    section.notes.push(format!("one that says nothing counts as {} s", OUTAGE.as_secs()));
    if !outside::has("script") {
        section.notes.push("all is left out: there is no script".to_owned());
        return Ok(section);
    }
    let mut cells: [[RunValues; 2]; OutageCommand::ALL.len()] = Default::default();
    for run in 1..=runs {
        for (command, cells) in OutageCommand::ALL.into_iter().zip(&mut cells) {
            section.before.push(settle()?);
            let values = measure(&CommandStage::set(setting, LINK, FarServices::All)?, command)?;
            progress(section.name, run, command.name(), values[1], "s until it goes on");
            cells.iter_mut().zip(values).for_each(|(runs, value)| runs.push(value));
        }
    }
    for (command, cells) in OutageCommand::ALL.into_iter().zip(cells) {
        let name = command.name();
        section.judge(format!("{name}: {}", COLUMNS[0]), cells[0].clone(), WORD);
        section.judge(format!("{name}: {}", COLUMNS[1]), cells[1].clone(), AGAIN);
        section.row(name, cells);
    }
    Ok(section)
}

/// Seconds until it says that it hears nothing, and until it goes on.
fn measure(stage: &CommandStage, command: OutageCommand) -> Result<[f64; 2], Error> {
    let is_login = command == OutageCommand::Login;
    fs::create_dir(stage.source("folder")).map_err(Error::doing("make a folder"))?;
    FileContent::Random.write(&stage.source("folder/file"), FILE)?;
    let carried = || stage.hosts.link.traffic().map(|traffic| traffic.there.bytes);
    let mut before = carried()?;
    let mut terminal = PersonTerminal::start(command.name(), &stage.hosts.a, &command.command(stage))?;
    if is_login {
        terminal.wait_for(PROMPT, PATIENCE)?;
    } else {
        until(command, || Ok(carried()? >= before + UNDER_WAY))?;
    }
    stage.hosts.link.a.set_state(InterfaceState::Down)?;
    let begun = Instant::now();
    terminal.settle(Duration::ZERO);
    if is_login {
        terminal.type_in("echo here''again\n")?;
    }
    let word = terminal.wait_for(command.words(), OUTAGE).unwrap_or(OUTAGE).as_secs_f64();
    interrupt::pause(OUTAGE.saturating_sub(begun.elapsed()))?;
    before = carried()?;
    stage.hosts.link.a.set_state(InterfaceState::Up)?;
    let back = Instant::now();
    if is_login {
        terminal.wait_for("hereagain", PATIENCE)?;
    } else {
        until(command, || Ok(carried()? >= before + GOES_ON))?;
    }
    Ok([word, back.elapsed().as_secs_f64()])
}

fn until(command: OutageCommand, mut is: impl FnMut() -> Result<bool, Error>) -> Result<(), Error> {
    let begun = Instant::now();
    while !is()? {
        if begun.elapsed() > PATIENCE {
            return Err(Error::Silent { what: "a file that goes on", way: command.name().to_owned() });
        }
        interrupt::pause(TICK)?;
    }
    Ok(())
}
