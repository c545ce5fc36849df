//! One program ends, and another starts, or the first again.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::thread;
use std::time::Duration;

use super::found::listener;
use super::{Outcome, Restart, before, write_beside};
use crate::background::{end, start_program, wait_for};
use crate::client::{self, ClientError};
use crate::logging::{self, Form};
use crate::process::checked;
use crate::runtime;
use crate::units::span;

/// How long a daemon may take to end, and one that has started to answer.
const ENDING: Duration = Duration::from_secs(10);
const ANSWERING: Duration = Duration::from_secs(10);
/// How often the program that ran is started again, and the time between: the other may have a port for some moments more.
const TRIES: usize = 5;
const BETWEEN: Duration = Duration::from_secs(1);

/// Restarts as planned, with all words in `log`, and tells how it ended; the status of this process.
pub(super) fn run(restart: &Restart, log: &mut File, tells: &UnixStream) -> i32 {
    if let Err(error) = detach(log) {
        return tell(tells, &Outcome { is_new: false, words: format!("nothing was done: {error}") });
    }
    let form = if restart.daemon.logs_json() { Form::Json } else { Form::Text };
    // The usual filter can be understood.
    let _ = logging::start_with(form, None);
    let outcome = swap(restart, log);
    if outcome.is_new {
        tracing::info!("{}", outcome.words);
    } else {
        tracing::error!("{}", outcome.words);
    }
    tell(tells, &outcome)
}

/// In a session of its own, with nothing of the terminal.
fn detach(log: &File) -> io::Result<()> {
    for number in [libc::STDOUT_FILENO, libc::STDERR_FILENO] {
        // SAFETY: takes integers; the descriptor stays open.
        checked(unsafe { libc::dup2(log.as_raw_fd(), number) })?;
    }
    // SAFETY: takes nothing.
    checked(unsafe { libc::setsid() })
}

fn tell(mut to: &UnixStream, outcome: &Outcome) -> i32 {
    // Who waited may be gone, which changes nothing.
    let _ = serde_json::to_vec(outcome).map(|text| to.write_all(&text));
    i32::from(!outcome.is_new)
}

fn swap(restart: &Restart, log: &mut File) -> Outcome {
    let interface = &restart.daemon.interface;
    tracing::info!("{interface} is restarted with {}", restart.program.display());
    end_old(restart);
    let new = match &restart.unit {
        Some(unit) => unit.start_own().map(|()| None),
        None => background(restart, restart.daemon.command(&restart.program), &restart.file, log).map(Some),
    };
    let stands = |child: Option<&mut Child>| {
        answers(restart, child).and_then(|process| hears(restart).map(|()| process))
    };
    match new.and_then(|child| ended_unless(child, stands)) {
        Ok(process) => {
            if let Some(unit) = &restart.unit {
                unit.forget();
            }
            Outcome {
                is_new: true,
                words: format!("{interface} is up with {} (process {process})", restart.program.display()),
            }
        }
        Err(why) => back(restart, log, &why),
    }
}

/// What `stands` says of a program that was started, which is ended if that is an error.
fn ended_unless(
    mut child: Option<Child>,
    stands: impl FnOnce(Option<&mut Child>) -> Result<u32, String>,
) -> Result<u32, String> {
    let process = stands(child.as_mut());
    if let (Err(_), Some(child)) = (&process, &mut child) {
        end(child);
    }
    process
}

/// Ends the daemon. What is to go through a full tunnel leaves no other way meanwhile.
fn end_old(restart: &Restart) {
    let daemon = &restart.daemon;
    let asked = client::down(&daemon.interface, true);
    if !matches!(asked, Ok(()) | Err(ClientError::NotRunning { .. } | ClientError::Ended { .. })) {
        // It was killed, or hangs. The number is its own as long as it listens.
        if listening(&daemon.interface) == Some(daemon.process)
            && let Ok(process) = libc::pid_t::try_from(daemon.process)
        {
            // SAFETY: takes integers.
            unsafe { libc::kill(process, libc::SIGKILL) };
        }
    }
    // It may have its ports until it is gone.
    wait_for(ENDING, || !daemon.runs());
}

/// The process that has the tunnel of an interface.
fn listening(interface: &str) -> Option<u32> {
    let socket = runtime::socket(&runtime::folder().ok()?, interface);
    Some(listener(&client::connect(&socket, interface).ok()?).ok()?.0)
}

/// Starts a program in the background and waits until it says that it is ready.
fn background(restart: &Restart, mut command: Command, file: &Path, log: &mut File) -> Result<Child, String> {
    command.args(restart.daemon.words(file));
    start_program(command, log, &restart.log).map_err(|error| {
        let said = error.to_string();
        said.strip_prefix("strait: ").unwrap_or(&said).to_owned()
    })
}

/// The process that has the tunnel, once it answers; or why not.
fn answers(restart: &Restart, child: Option<&mut Child>) -> Result<u32, String> {
    let interface = &restart.daemon.interface;
    let (own, mut process, mut ended) = (child.as_ref().map(|child| child.id()), None, None);
    let mut child = child;
    wait_for(ANSWERING, || {
        let listens = listening(interface).filter(|found| own.is_none_or(|own| own == *found));
        process = listens.filter(|_| client::show(interface).is_ok());
        ended = child.as_mut().and_then(|child| child.try_wait().ok().flatten());
        process.is_some() || ended.is_some()
    });
    match (process, ended) {
        (Some(process), None) => Ok(process),
        (_, Some(status)) => Err(format!("it said that it is ready, and ended ({status})")),
        (None, None) => Err(format!("it said that it is ready, but does not answer for {interface}")),
    }
}

/// Waits for a peer that was up, where that is wanted; or says that none is.
fn hears(restart: &Restart) -> Result<(), String> {
    let peers = &restart.daemon.peers_up;
    match restart.heard_within.filter(|_| !peers.is_empty()) {
        Some(within) if !wait_for(within, || is_heard(restart)) => {
            let span = span(within);
            Err(format!("no peer that was up before ({}) is up again after {span}", peers.join(", ")))
        }
        _ => Ok(()),
    }
}

fn is_heard(restart: &Restart) -> bool {
    let before = &restart.daemon.peers_up;
    client::show(&restart.daemon.interface)
        .is_ok_and(|report| report.peers.iter().any(|peer| peer.state == "up" && before.contains(&peer.name)))
}

/// Starts the program that ran, with the configuration with which it did.
fn back(restart: &Restart, log: &mut File, why: &str) -> Outcome {
    let interface = &restart.daemon.interface;
    let program = restart.program.display();
    tracing::error!("{program} did not come up, so the program that ran before is started again: {why}");
    let file = match kept(restart) {
        Ok(file) => file,
        Err(error) => {
            tracing::error!(
                "the configuration that it ran with cannot be written ({error}), so it gets the one that is there"
            );
            restart.daemon.file.clone()
        }
    };
    let again = (0..TRIES).find_map(|at| {
        if at > 0 {
            thread::sleep(BETWEEN);
        }
        let child = match &restart.unit {
            Some(unit) => unit.start_before(&restart.daemon.words(&file)).map(|()| None),
            None => background(restart, restart.daemon.own_command(), &file, log).map(Some),
        };
        let process = child.and_then(|child| ended_unless(child, |child| answers(restart, child)));
        process.inspect_err(|error| tracing::error!("{error}")).ok()
    });
    let words = match again {
        Some(process) if file == restart.file => {
            format!(
                "{program} did not come up, and the program that ran before has {interface} again (process {process}): {why}"
            )
        }
        Some(process) => format!(
            "{program} did not come up, and the program that ran before has {interface} again (process {process}), with the configuration \
             that it ran with, {}: {why}",
            file.display()
        ),
        None => format!(
            "{program} did not come up, nor did the program that ran before; a full tunnel stays closed until `strait up {}` or `strait down \
             {interface}`: {why}",
            file.display()
        ),
    };
    Outcome { is_new: false, words }
}

/// The file with the configuration with which the daemon ran: its own, or another beside it if that says something else now.
fn kept(restart: &Restart) -> io::Result<PathBuf> {
    let (file, text) = (&restart.daemon.file, &restart.daemon.text);
    let Some(text) = text.as_ref().filter(|text| fs::read(file).ok().as_ref() != Some(*text)) else {
        return Ok(file.clone());
    };
    let kept = before(&super::original(file));
    // Whose the folder is, where there is no file any more.
    let like = File::open(file).or_else(|_| File::open(file.parent().unwrap_or(file)))?;
    write_beside(&kept, &like, 0o600, &mut text.as_slice())?;
    Ok(kept)
}
