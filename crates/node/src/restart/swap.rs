//! One program ends, and another starts, or the first again.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command, ExitStatus};
use std::thread;
use std::time::Duration;

use super::found::listener;
use super::kept::KeptConfig;
use super::{Outcome, Restart};
use crate::background::{end, start_program, wait_for};
use crate::client::{self, ClientError};
use crate::logging::{self, Form};
use crate::process::checked;
use crate::runtime;
use crate::units::span;

/// The time that a daemon may take to end, and one that has started to answer.
const ENDING: Duration = Duration::from_secs(10);
const ANSWERING: Duration = Duration::from_secs(10);
/// Attempts to start the program that ran again, and the time between: the other may have a port for some moments more.
const TRIES: usize = 5;
const BETWEEN: Duration = Duration::from_secs(1);

/// Restarts as planned, with all words in `log`, and tells how it ended; the status of this process.
pub(super) fn run(restart: &Restart, kept: &KeptConfig, log: &mut File, tells: &UnixStream) -> i32 {
    if let Err(error) = detach(log) {
        kept.forget();
        return tell(tells, &Outcome { is_new: false, words: format!("nothing was done: {error}") });
    }
    let form = if restart.daemon.logs_json() { Form::Json } else { Form::Text };
    // The usual filter can be understood.
    let _ = logging::start_with(form, None);
    let outcome = swap(restart, kept, log);
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

fn swap(restart: &Restart, kept: &KeptConfig, log: &mut File) -> Outcome {
    let interface = &restart.daemon.interface;
    tracing::info!("{interface} is restarted with {}", restart.program.display());
    end_old(restart);
    let new = background(restart, restart.daemon.command(&restart.program), &restart.file, log);
    let stands = |child: &mut Child| answers(restart, child).and_then(|()| hears(restart, child));
    match new.and_then(|child| ended_unless(child, stands)) {
        Ok(process) => {
            kept.forget();
            Outcome {
                is_new: true,
                words: format!("{interface} is up with {} (process {process})", restart.program.display()),
            }
        }
        Err(why) => back(restart, kept, log, &why),
    }
}

/// The number of a program that was started, which is ended if it does not stand.
fn ended_unless(
    mut child: Child,
    stands: impl FnOnce(&mut Child) -> Result<(), String>,
) -> Result<u32, String> {
    stands(&mut child).inspect_err(|_| end(&mut child)).map(|()| child.id())
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
    // It may have its ports until it is gone, and what it set up is put back by its process with the privileges.
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

/// Waits until the program that was started answers for the tunnel.
fn answers(restart: &Restart, child: &mut Child) -> Result<(), String> {
    let interface = &restart.daemon.interface;
    let own = Some(child.id());
    match holds(child, ANSWERING, || listening(interface) == own && client::show(interface).is_ok()) {
        Ok(true) => Ok(()),
        Ok(false) => Err(format!("it said that it is ready, but does not answer for {interface}")),
        Err(status) => Err(format!("it said that it is ready, and ended ({status})")),
    }
}

/// Waits for a peer that was up, where that is wanted.
fn hears(restart: &Restart, child: &mut Child) -> Result<(), String> {
    let peers = restart.daemon.peers_up.join(", ");
    let Some(within) = restart.heard_within.filter(|_| !peers.is_empty()) else { return Ok(()) };
    tracing::info!("{} answers, and waits for a peer that was up before ({peers})", restart.daemon.interface);
    match holds(child, within, || is_heard(restart)) {
        Ok(true) => Ok(()),
        Ok(false) => Err(format!("no peer that was up before ({peers}) is up again after {}", span(within))),
        Err(status) => Err(format!("it answered, and ended before a peer was up ({status})")),
    }
}

/// Looks again until `good` holds, for at most `patience`, and returns the last answer, or the status of a program that ended.
fn holds(child: &mut Child, patience: Duration, mut good: impl FnMut() -> bool) -> Result<bool, ExitStatus> {
    let (mut is_good, mut ended) = (false, None);
    wait_for(patience, || {
        is_good = good();
        ended = child.try_wait().ok().flatten();
        is_good || ended.is_some()
    });
    ended.map_or(Ok(is_good), Err)
}

fn is_heard(restart: &Restart) -> bool {
    let before = &restart.daemon.peers_up;
    client::show(&restart.daemon.interface)
        .is_ok_and(|report| report.peers.iter().any(|peer| peer.state == "up" && before.contains(&peer.name)))
}

/// Starts the program that ran, with the configuration with which it did.
fn back(restart: &Restart, kept: &KeptConfig, log: &mut File, why: &str) -> Outcome {
    let interface = &restart.daemon.interface;
    let program = restart.program.display();
    tracing::error!("{program} did not come up, so the program that ran before is started again: {why}");
    let file = &kept.file;
    let again = (0..TRIES).find_map(|at| {
        if at > 0 {
            thread::sleep(BETWEEN);
        }
        let child = background(restart, restart.daemon.own_command(), file, log);
        let process = child.and_then(|child| ended_unless(child, |child| answers(restart, child)));
        process.inspect_err(|error| tracing::error!("{error}")).ok()
    });
    let words = match again {
        Some(process) if *file == restart.file => {
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
