//! The starter: the process that keeps the privileges. It changes the host's network and repairs it, reads the
//! configuration again and opens counter files, for the packet process, which may do none of that.
//!
//! ```text
//! message   what can be asked of it, and is answered
//! kept_text  the text of the configuration that is in force, for `strait restart`
//! on_cap    the command that is run when a part of a cap is used
//! marks     how it keeps the marks of keys without sessions
//! process   what it does
//! resolver_files  changes of what the system's resolver reads
//! watch     when it looks after the tunnel's network
//! ```
//!
//! It handles nothing that a peer or a stranger sent. It ends with the packet process: in order when it is told to, and
//! otherwise leaving a full tunnel closed.

pub(crate) mod kept_text;
mod marks;
pub(super) mod message;
mod on_cap;
mod process;
mod resolver_files;
mod watch;

use std::fs::File;
use std::io;
use std::net::IpAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use strait_keying::PublicKey;
use strait_scheduler::metering::{CapStanding, CapStep};
use tokio::io::unix::AsyncFd;
use zeroize::Zeroizing;

use super::StartError;
use crate::config::{Config, HandedConfig};
use crate::path_memory::PathMemory;
use crate::process::{ProcessChannel, fork, watched};
use crate::wake::Wake;
use message::{CapEvent, StarterAnswer, StarterRequest};
#[cfg(test)]
pub(super) use process::served;

/// How long it may take to answer: it may wait for a disk, and for the kernel's routing lock.
const PATIENCE: Duration = Duration::from_secs(20);
/// The time that it waits for room for a warning: there is room for hundreds.
const WARNED_WITHIN: Duration = Duration::from_millis(1);

/// Why the starter did not do what it was asked to.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StarterError {
    /// It said why.
    #[error("{0}")]
    Refused(String),
    /// It said nothing.
    #[error("the privileged process does not answer: {0}")]
    Silent(#[from] io::Error),
}

/// The packet process's end of the starter; dropped, it has the starter remove everything and end.
#[derive(Debug)]
pub(super) struct Starter {
    channel: ProcessChannel,
    outside: Arc<Wake>,
    /// Brings what is wrong with the network.
    warnings: ProcessChannel,
    /// As [`Starter::stay_closed`] says.
    stays_closed: Option<bool>,
}

impl Starter {
    /// Starts the process for the configuration at `path`, which was read as `config` from a text. To be called before there is any thread
    /// or anything that it should not have; it gives up `closes`.
    pub(super) fn start(
        path: &Path,
        (config, text): (&Config, Zeroizing<String>),
        closes: &[BorrowedFd<'_>],
    ) -> Result<Starter, StartError> {
        let (channel, theirs) = ProcessChannel::pair().map_err(StartError::Runtime)?;
        channel.set_patience(PATIENCE).map_err(StartError::Runtime)?;
        let (warnings, warned) = ProcessChannel::pair().map_err(StartError::Runtime)?;
        warned.set_patience(WARNED_WITHIN).map_err(StartError::Runtime)?;
        let starter = Starter {
            channel,
            outside: Arc::new(Wake::new().map_err(StartError::Runtime)?),
            warnings,
            stays_closed: None,
        };
        let outside = Arc::clone(&starter.outside);
        let (path, config) = (path.to_owned(), config.clone());
        let run = move || process::run((theirs, warned), &outside, path, (config, &text));
        let own = [starter.channel.as_fd(), starter.warnings.as_fd()];
        let closes: Vec<_> = closes.iter().copied().chain(own).collect();
        let forked = fork(c"strait-starter", &closes, run);
        forked.map_err(StartError::Runtime)?;
        Ok(starter)
    }

    /// Has the network around the tunnel device made; `marked` are the sockets whose packets carry the mark, that for
    /// UDP first.
    pub(super) fn set_up(
        &self,
        public_key: Option<String>,
        marked: &[BorrowedFd<'_>],
    ) -> Result<(), StarterError> {
        self.ask(&StarterRequest::SetUp { public_key }, marked).map(|_| ())
    }

    /// Has the configuration read again.
    pub(super) fn read_again(&self) -> Result<HandedConfig, StarterError> {
        let mut from = File::from(self.ask_for_one(&StarterRequest::Read)?);
        Ok(HandedConfig::read_from(&mut from)?)
    }

    /// Has the counter file at `path` opened, which the configuration names that was read last.
    pub(super) fn counter(&self, path: &Path) -> Result<File, StarterError> {
        self.ask_for_one(&StarterRequest::Counter { path: path.to_owned() }).map(File::from)
    }

    /// Has the marks of keys without sessions opened: the file, to be read, and the channel for what is to be written.
    pub(super) fn marks(&self, node: PublicKey) -> Result<(File, ProcessChannel), StarterError> {
        let request = StarterRequest::Marks { node: node.to_string() };
        let mut descriptors = self.ask(&request, &[])?.into_iter();
        match (descriptors.next(), descriptors.next()) {
            (Some(file), Some(channel)) => Ok((File::from(file), ProcessChannel::from(channel))),
            _ => Err(io::Error::from(io::ErrorKind::InvalidData).into()),
        }
    }

    /// Has the file with the secrets of daily keys opened.
    pub(super) fn daily_secrets(&self, node: PublicKey) -> Result<File, StarterError> {
        self.ask_for_one(&StarterRequest::DailySecrets { node: node.to_string() }).map(File::from)
    }

    /// Has the file written of what was found on paths.
    pub(super) fn remember(&self, paths: &PathMemory) -> Result<(), StarterError> {
        let text = String::from_utf8(paths.render()).unwrap_or_default();
        self.ask(&StarterRequest::Remember { text }, &[]).map(|_| ())
    }

    /// Has the command of `on_cap` run, since a step of the link's cap was reached, or of a peer's.
    pub(super) fn run_on_cap(
        &self,
        peer: Option<String>,
        step: CapStep,
        standing: &CapStanding,
        cap: u64,
    ) -> Result<(), StarterError> {
        let (step, used) = (step.name().to_owned(), standing.used);
        let cap = CapEvent { peer, step, used, cap, forecast: standing.forecast };
        self.ask(&StarterRequest::OnCap(cap), &[]).map(|_| ())
    }

    /// Has the network made what the configuration asks for when peers are also at `others`; `take_over` has it follow the
    /// one read last.
    pub(super) fn route(&self, take_over: bool, others: Vec<IpAddr>) -> Result<(), StarterError> {
        self.ask(&StarterRequest::Route { take_over, others }, &[]).map(|_| ())
    }

    /// Whether what keeps packets from leaving in the clear stays when this is dropped.
    pub(super) const fn stay_closed(&mut self, stays: bool) {
        self.stays_closed = Some(stays);
    }

    /// What it says unasked.
    pub(super) fn events(&self) -> io::Result<StarterEvents> {
        Ok(StarterEvents {
            outside: watched(self.outside.as_fd().try_clone_to_owned()?)?,
            wake: Arc::clone(&self.outside),
            end: watched(self.channel.as_fd().try_clone_to_owned()?)?,
            channel: self.channel.try_clone()?,
            warned: watched(self.warnings.as_fd().try_clone_to_owned()?)?,
            warnings: self.warnings.try_clone()?,
        })
    }

    fn ask(
        &self,
        request: &StarterRequest,
        descriptors: &[BorrowedFd<'_>],
    ) -> Result<Vec<OwnedFd>, StarterError> {
        message::send(&self.channel, request, descriptors)?;
        match message::read(self.channel.receive()?)? {
            (StarterAnswer::Done, descriptors) => Ok(descriptors),
            (StarterAnswer::Refused { message }, _) => Err(StarterError::Refused(message)),
        }
    }

    fn ask_for_one(&self, request: &StarterRequest) -> Result<OwnedFd, StarterError> {
        let descriptor = self.ask(request, &[])?.pop();
        descriptor.ok_or_else(|| io::Error::from(io::ErrorKind::InvalidData).into())
    }
}

impl Drop for Starter {
    fn drop(&mut self) {
        if let Err(error) = self.ask(&StarterRequest::End { stays_closed: self.stays_closed }, &[]) {
            tracing::debug!(%error, "the starter has ended before");
        }
    }
}

/// Something that the starter says unasked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum StarterEvent {
    /// Links, addresses or routes by which datagrams leave may be others.
    OutsideChanged,
    /// All that is wrong with the host's network around the tunnel, as people read it.
    Warnings(Vec<String>),
    /// It is gone.
    Ended,
}

/// Where a runtime hears of what the starter says unasked.
#[derive(Debug)]
pub(super) struct StarterEvents {
    outside: AsyncFd<OwnedFd>,
    wake: Arc<Wake>,
    end: AsyncFd<OwnedFd>,
    channel: ProcessChannel,
    warned: AsyncFd<OwnedFd>,
    warnings: ProcessChannel,
}

impl StarterEvents {
    /// The next event.
    pub(super) async fn next(&self) -> StarterEvent {
        loop {
            tokio::select! {
                ready = self.outside.readable() => {
                    if let Ok(mut ready) = ready {
                        ready.clear_ready();
                    }
                    self.wake.clear();
                    return StarterEvent::OutsideChanged;
                }
                ready = self.warned.readable() => match self.warnings.receive_now().and_then(message::read) {
                    Ok((warnings, _)) => return StarterEvent::Warnings(warnings),
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                        if let Ok(mut ready) = ready {
                            ready.clear_ready();
                        }
                    }
                    Err(_) => return StarterEvent::Ended,
                },
                ready = self.end.readable() => {
                    // Answers are taken where they are awaited, so there is nothing to read but the end.
                    if self.channel.has_ended() {
                        return StarterEvent::Ended;
                    }
                    if let Ok(mut ready) = ready {
                        ready.clear_ready();
                    }
                }
            }
        }
    }
}
