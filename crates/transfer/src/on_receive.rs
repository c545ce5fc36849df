//! The command that a folder runs when a transfer has arrived: `on_receive = ["command", "argument"]`.
//!
//! It is an argument list, and no shell sees any of it. The names that arrived are never arguments: they come on standard input,
//! each with a zero byte behind it, so that a name cannot become an option. Of the environment it gets five variables. It runs in
//! the folder, as the folder's owner, in a process group of its own that is killed when its time is over. What fails is in
//! [`FinishedCommand`], for the log. A transfer stays delivered whatever its command does. [`OwedCommands`] has what is to run after
//! a process was killed.

mod owed;

use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rustix::fs::OFlags;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, getegid, geteuid, kill_process_group, waitid};

pub use owed::{OwedCommand, OwedCommands};

use crate::{FolderPath, TransferId};

/// Where commands are looked for; the sender's and the daemon's own `PATH` play no part.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
/// Bytes of what a command writes to standard error that are kept: enough for a message.
const SAID_MAX: usize = 4096;
/// Between looks at whether a command has ended: it is not what a person waits for.
const LOOK: Duration = Duration::from_millis(20);

/// A command that is to run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReceiveCommand {
    /// The program and its arguments, at least the program.
    pub argv: Vec<String>,
    /// The folder on this machine.
    pub folder: FolderPath,
    /// Its name in the configuration.
    pub name: String,
    /// Its owner: user and group.
    pub owner: (u32, u32),
    /// Of what it is told.
    pub owed: OwedCommand,
}

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommandEnd {
    /// With this code; 0 is well.
    Code(i32),
    /// By this signal.
    Signal(i32),
    /// It was killed because its time was over.
    TooLong,
    /// It was not started: the system's error number, or that of a missing permission (EPERM).
    NotStarted(i32),
}

/// A command that has ended, or was not started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FinishedCommand {
    /// The transfer.
    pub transfer: TransferId,
    /// The folder's name.
    pub name: String,
    /// How it ended.
    pub end: CommandEnd,
    /// The last that it wrote to standard error.
    pub said: String,
}

impl ReceiveCommand {
    /// Runs it to its end.
    #[must_use]
    pub fn carry_out(&self, limit: Duration) -> FinishedCommand {
        let mut child = match self.spawn() {
            Ok(child) => child,
            Err(error) => {
                let end = CommandEnd::NotStarted(error.raw_os_error().unwrap_or(1));
                return self.ended(end, error.to_string());
            }
        };
        let names = child.stdin.take().map(|mut input| {
            let bytes: Vec<u8> =
                self.owed.paths.iter().flat_map(|path| [path.as_slice(), &[0]]).flatten().copied().collect();
            // A command that reads no names closes the pipe; that is no failure.
            thread::spawn(move || drop(input.write_all(&bytes)))
        });
        let said = child.stderr.take().map(|output| thread::spawn(move || last_of(output)));
        let end = wait(&mut child, limit);
        let said = said.and_then(|thread| thread.join().ok()).unwrap_or_default();
        names.map(JoinHandle::join);
        self.ended(end, said)
    }

    fn ended(&self, end: CommandEnd, said: String) -> FinishedCommand {
        FinishedCommand { transfer: self.owed.transfer, name: self.name.clone(), end, said }
    }

    fn spawn(&self) -> io::Result<Child> {
        let (program, arguments) = self.argv.split_first().ok_or(io::ErrorKind::InvalidInput)?;
        let mut command = Command::new(program);
        // In the very folder, whatever has its path by now.
        let folder = self.folder.open(OFlags::PATH | OFlags::DIRECTORY)?;
        let inside = format!("/proc/self/fd/{}", folder.as_raw_fd());
        command.args(arguments).current_dir(inside).env_clear().process_group(0);
        command
            .env("PATH", PATH)
            .env("STRAIT_FOLDER", &self.name)
            .env("STRAIT_TRANSFER", self.owed.transfer.to_string());
        command
            .env("STRAIT_PEER", self.owed.sender.to_string())
            .env("STRAIT_COUNT", self.owed.paths.len().to_string());
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
        let me = (geteuid().as_raw(), getegid().as_raw());
        if me != self.owner {
            // Only root can become another; it gives up its supplementary groups, too.
            if me.0 != 0 {
                return Err(io::Error::from_raw_os_error(rustix::io::Errno::PERM.raw_os_error()));
            }
            command.uid(self.owner.0).gid(self.owner.1);
        }
        command.spawn()
    }
}

/// Waits until the command has ended or its time is over. What it left behind in its process group is killed before its end is
/// collected: until then no other process group gets the number. It would keep the pipes open.
fn wait(child: &mut Child, limit: Duration) -> CommandEnd {
    let Some(id) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) else {
        return CommandEnd::NotStarted(0);
    };
    let look = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    let mut waited = Duration::ZERO;
    let in_time = loop {
        match waitid(WaitId::Pid(id), look) {
            Ok(None) if waited >= limit => break false,
            Ok(None) => {
                thread::sleep(LOOK);
                waited += LOOK;
            }
            Ok(Some(_)) | Err(_) => break true,
        }
    };
    let _ = kill_process_group(id, Signal::KILL);
    match child.wait() {
        Ok(status) if in_time => end_of(status),
        Ok(_) => CommandEnd::TooLong,
        Err(error) => CommandEnd::NotStarted(error.raw_os_error().unwrap_or(1)),
    }
}

fn end_of(status: ExitStatus) -> CommandEnd {
    status.code().map_or_else(|| CommandEnd::Signal(status.signal().unwrap_or(0)), CommandEnd::Code)
}

/// The end of what is read, as text.
fn last_of(mut output: impl Read) -> String {
    let mut kept = Vec::new();
    let mut buffer = [0; SAID_MAX];
    while let Ok(count @ 1..) = output.read(&mut buffer) {
        kept.extend_from_slice(&buffer[..count]);
        let over = kept.len().saturating_sub(SAID_MAX);
        kept.drain(..over);
    }
    String::from_utf8_lossy(&kept).into_owned()
}

#[cfg(test)]
mod tests;
