//! The start of a session's program, as the client asks for it.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use strait_login::{Program, Refusal, RefusedReason, SessionRequest};
use strait_node::login::{KeeperPort, Launch, Pty, SessionRefused, WhyRefused};

use super::{Ends, Input, RunningProgram, size};

/// Where distributions have the program that serves SFTP.
const SFTP: [&str; 5] = [
    "/usr/lib/openssh/sftp-server",
    "/usr/libexec/openssh/sftp-server",
    "/usr/lib/ssh/sftp-server",
    "/usr/libexec/sftp-server",
    "/usr/lib/sftp-server",
];

impl RunningProgram {
    /// Has the session opened and the program started.
    pub(in crate::login::serving) fn start(
        port: &KeeperPort,
        request: &SessionRequest,
        environment: Vec<(Vec<u8>, Vec<u8>)>,
    ) -> Result<RunningProgram, Refusal> {
        let system = |error: io::Error| refused(RefusedReason::System, error.to_string());
        let (command, what) = match &request.program {
            Program::Shell => (None, "shell".to_owned()),
            Program::Command(command) => (Some(command.clone()), printable(command)),
            Program::Subsystem(name) => {
                (Some(subsystem(name)?.as_bytes().to_vec()), format!("subsystem {}", printable(name)))
            }
        };
        let mut launch = Launch { command, terminal: request.terminal.is_some(), environment };
        let (ends, theirs, process, launcher) = match &request.terminal {
            Some(terminal) => {
                let (pty, theirs) = Pty::open(size(terminal.size), &terminal.modes).map_err(system)?;
                launch.environment.push((b"TERM".to_vec(), terminal.term.clone()));
                if let Ok(name) = pty.name() {
                    let name = name.into_os_string().into_encoded_bytes();
                    launch.environment.push((b"SSH_TTY".to_vec(), name));
                }
                let (launcher, process) = port.open_session(Some(&pty)).map_err(from_monitor)?;
                (Ends::Terminal { pty, ended: false }, vec![theirs], process, launcher)
            }
            None => {
                let pipe = || io::pipe().map_err(system);
                let [(in_reader, input), (out, out_writer), (errors, errors_writer)] =
                    [pipe()?, pipe()?, pipe()?];
                for end in [input.as_fd(), out.as_fd(), errors.as_fd()] {
                    strait_node::login::do_not_wait(end).map_err(system)?;
                }
                let (launcher, process) = port.open_session(None).map_err(from_monitor)?;
                let theirs: Vec<OwnedFd> = vec![in_reader.into(), out_writer.into(), errors_writer.into()];
                let ends = Ends::Pipes { input: Some(input), out: Some(out), errors: Some(errors) };
                (ends, theirs, process, launcher)
            }
        };
        let theirs_borrowed: Vec<BorrowedFd<'_>> = theirs.iter().map(AsFd::as_fd).collect();
        launcher.launch(&launch, &theirs_borrowed).map_err(system)?;
        Ok(RunningProgram {
            ends,
            process,
            waiting: Vec::new(),
            written: 0,
            input: Input::Open,
            modes: None,
            what,
        })
    }
}

fn refused(reason: RefusedReason, text: String) -> Refusal {
    Refusal { reason, text }
}

pub(in crate::login::serving) fn from_monitor(SessionRefused { why, text }: SessionRefused) -> Refusal {
    let reason = match why {
        WhyRefused::Account => RefusedReason::AccountRefused,
        WhyRefused::TooMany => RefusedReason::TooMany,
        WhyRefused::System => RefusedReason::System,
    };
    refused(reason, text)
}

/// The command of a subsystem.
fn subsystem(name: &[u8]) -> Result<&'static str, Refusal> {
    let lacking = |text: &str| refused(RefusedReason::System, text.to_owned());
    match name {
        b"sftp" => SFTP
            .into_iter()
            .find(|file| Path::new(file).is_file())
            .ok_or_else(|| lacking("there is no sftp-server here; install OpenSSH's")),
        _ => Err(lacking("there is no such subsystem here")),
    }
}

/// What a peer wrote, for a list: printable, and no longer than a line.
fn printable(bytes: &[u8]) -> String {
    /// What a list has room for.
    const MOST: usize = 200;
    let text = String::from_utf8_lossy(bytes);
    let clean = |letter: char| if letter.is_control() { ' ' } else { letter };
    let mut out = String::new();
    for letter in text.chars().map(clean) {
        if out.len() + letter.len_utf8() > MOST {
            break;
        }
        out.push(letter);
    }
    out
}
