//! Marks that are written when the packet process asks for it. They have a channel of their own, on which no answer is waited for: a
//! disk may take its time.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::time::Duration;

use strait_clock::Time;
use strait_keying::PublicKey;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use super::message::{self, MarksAnswer, MarksRequest};
use crate::mark_file::{MarkFile, MarksError};
use crate::process::{ProcessChannel, watched};

/// How long after a write that failed the next one is tried: a disk that is full is not emptied sooner, and for as long nothing is sent
/// or delivered that needs a mark.
const RETRY: Duration = Duration::from_secs(1);

/// The file, and who has it written.
#[derive(Debug)]
pub(super) struct MarkKeeper {
    node: PublicKey,
    channel: ProcessChannel,
    readable: AsyncFd<OwnedFd>,
    file: MarkFile,
    /// When what failed is tried again, and what is answered then.
    retry: Option<(Time, MarksAnswer)>,
}

impl MarkKeeper {
    /// Opens the file of `node`; with it comes what the packet process gets.
    ///
    /// # Errors
    /// [`MarksError`] with the remedy.
    pub(super) fn open(
        folder: Option<&Path>,
        node: PublicKey,
    ) -> Result<(MarkKeeper, File, ProcessChannel), MarksError> {
        let path = MarkFile::path(folder.ok_or(MarksError::NoFolder)?, &node);
        let file = MarkFile::open(&path, node)?;
        let reader = file.reader()?;
        let channel = || -> io::Result<_> {
            let (channel, theirs) = ProcessChannel::pair()?;
            let readable = watched(channel.as_fd().try_clone_to_owned()?)?;
            Ok((channel, readable, theirs))
        };
        let (channel, readable, theirs) =
            channel().map_err(|source| MarksError::Io { step: "make a channel for", path, source })?;
        Ok((MarkKeeper { node, channel, readable, file, retry: None }, reader, theirs))
    }

    /// Whose marks they are.
    pub(super) const fn node(&self) -> PublicKey {
        self.node
    }

    /// Returns when there is something to do; never for nothing.
    pub(super) async fn ready(keeper: Option<&MarkKeeper>) {
        match keeper {
            // What fails shows when it is read.
            Some(keeper) => drop(keeper.readable.readable().await),
            None => std::future::pending().await,
        }
    }

    /// When [`MarkKeeper::timeout`] is to be called.
    pub(super) fn poll_timeout(&self) -> Time {
        self.retry.as_ref().map_or(Time::MAX, |(at, _)| *at)
    }

    /// Does what is asked.
    ///
    /// # Errors
    /// When the other end is gone, or says what makes no sense.
    pub(super) fn serve(&mut self, now: Time) -> io::Result<()> {
        match self.readable.try_io(Interest::READABLE, |_| self.channel.receive_now()) {
            Ok(received) => {
                let (request, _) = message::read::<MarksRequest>(received)?;
                let without = self.raise(request)?;
                self.write(MarksAnswer::Written { without }, now)
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Tries again what failed.
    pub(super) fn timeout(&mut self, now: Time) {
        if let Some((_, answer)) = self.retry.take_if(|(at, _)| *at <= now) {
            // The end of the channel is seen where it is read.
            let _ = self.write(answer, now);
        }
    }

    /// Takes the marks; says for which keys there is no room.
    fn raise(&mut self, request: MarksRequest) -> io::Result<Vec<String>> {
        let mut without = Vec::new();
        for (key, mark) in request.marks {
            let parsed = key.parse::<PublicKey>().map_err(io::Error::other)?;
            if self.file.raise(parsed, mark).is_err() {
                without.push(key);
            }
        }
        Ok(without)
    }

    fn write(&mut self, answer: MarksAnswer, now: Time) -> io::Result<()> {
        match self.file.write() {
            Ok(()) => message::send(&self.channel, &answer, &[]),
            Err(error) => {
                let message = error.to_string();
                self.retry = Some((now + RETRY, answer));
                message::send(&self.channel, &MarksAnswer::Late { message }, &[])
            }
        }
    }
}
