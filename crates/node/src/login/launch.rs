//! The start of an account's program: a process that has become the account waits for what it is to run, and becomes that.
//!
//! What it is told comes from the keeper, which read it from a peer. This process has no privilege any more when it reads it
//! (`program`).

use std::io;
use std::os::fd::BorrowedFd;

use super::account::Account;
use crate::process::ProcessChannel;
use program::{become_program, prepare};

mod program;

/// How this process ends when the program cannot be started, as shells do.
const NOT_STARTED: libc::c_int = 127;
/// What is to run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Launch {
    /// Given to the login shell with `-c`; nothing for the shell itself.
    pub command: Option<Vec<u8>>,
    /// Whether its first descriptor is a terminal, for all three; else there are three: input, output, errors.
    pub terminal: bool,
    /// Variables, of which those of the account and of PAM go before.
    pub environment: Vec<(Vec<u8>, Vec<u8>)>,
}

impl Launch {
    /// As one message: parts behind their lengths.
    fn encode(&self) -> Vec<u8> {
        let mut out = vec![u8::from(self.terminal), u8::from(self.command.is_some())];
        put(&mut out, self.command.as_deref().unwrap_or_default());
        for (name, value) in &self.environment {
            put(&mut out, name);
            put(&mut out, value);
        }
        out
    }

    fn decode(bytes: &[u8]) -> Option<Launch> {
        let [terminal, has_command, rest @ ..] = bytes else { return None };
        let mut rest = rest;
        let command = part(&mut rest)?;
        let mut environment = Vec::new();
        while !rest.is_empty() {
            environment.push((part(&mut rest)?, part(&mut rest)?));
        }
        Some(Launch {
            command: (*has_command == 1).then_some(command),
            terminal: *terminal == 1,
            environment,
        })
    }
}

fn put(out: &mut Vec<u8>, bytes: &[u8]) {
    out.extend_from_slice(&u32::try_from(bytes.len()).unwrap_or(u32::MAX).to_le_bytes());
    out.extend_from_slice(bytes);
}

fn part(bytes: &mut &[u8]) -> Option<Vec<u8>> {
    let (length, rest) = bytes.split_first_chunk()?;
    let length = usize::try_from(u32::from_le_bytes(*length)).ok()?;
    let (part, rest) = rest.split_at_checked(length)?;
    *bytes = rest;
    Some(part.to_vec())
}

/// A process of the account that waits for what it is to run.
#[derive(Debug)]
pub struct Launcher {
    channel: ProcessChannel,
}

impl Launcher {
    pub(super) const fn new(channel: ProcessChannel) -> Launcher {
        Launcher { channel }
    }

    /// Has it run that, with these descriptors: a terminal, or input, output and errors.
    ///
    /// # Errors
    /// What kept it from being started, in words.
    pub fn launch(self, launch: &Launch, descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
        self.channel.send(&launch.encode(), descriptors)?;
        match self.channel.receive() {
            // The channel closes when the program is there.
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(()),
            Err(error) => Err(error),
            Ok((said, _)) => Err(io::Error::other(String::from_utf8_lossy(&said).into_owned())),
        }
    }
}

/// What a program gets beside what the keeper says.
pub(super) struct Surroundings {
    /// Variables that PAM's modules set, as NAME=VALUE.
    pub(super) environment: Vec<Vec<u8>>,
    /// What PAM's modules said, for a person.
    pub(super) said: Vec<u8>,
    /// The peer's name.
    pub(super) peer: String,
    /// Its principal, if a ticket said who it is.
    pub(super) principal: Option<String>,
    /// Where the ticket is that it passed on, as NAME=VALUE.
    pub(super) cache: Option<Vec<u8>>,
}

/// Becomes the account and then what the keeper says; comes back only when it cannot, with the status to end with.
pub(super) fn run(channel: &ProcessChannel, account: &Account, with: &Surroundings) -> libc::c_int {
    let Err(error) = prepare(account).and_then(|()| become_program(channel, account, with)) else {
        return NOT_STARTED;
    };
    let _ = channel.send(error.to_string().as_bytes(), &[]);
    NOT_STARTED
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_to_run_comes_back_from_its_message_and_no_part_of_one_is_taken() {
        let pair = |name: &str, value: &str| (name.as_bytes().to_vec(), value.as_bytes().to_vec());
        for launch in [
            Launch::default(),
            Launch { command: Some(Vec::new()), ..Launch::default() },
            Launch {
                command: Some(b"ls \xff".to_vec()),
                terminal: true,
                environment: vec![pair("A", ""), pair("B", "c")],
            },
        ] {
            let bytes = launch.encode();
            assert_eq!(Launch::decode(&bytes), Some(launch.clone()));
            for cut in 0..bytes.len() {
                let part = Launch::decode(&bytes[..cut]);
                assert!(part.is_none_or(|part| part != launch), "{cut}");
            }
        }
        assert_eq!(Launch::decode(&[0, 1, 255, 255, 255, 255, 0]), None);
    }
}
