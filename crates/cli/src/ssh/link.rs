//! One stream to the peer, and what waits to be written to it.

use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;

/// Bytes that wait here at most: the node takes as much from a process, and what is made later knows more.
pub(super) const WAITING_MAX: usize = 64 * 1024;

/// The stream is lost, or its other end has closed it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Lost;

/// A stream, which may not be there yet or any more.
#[derive(Default)]
pub(super) struct Link {
    stream: Option<UnixStream>,
    waiting: Vec<u8>,
}

impl Link {
    /// A stream that is there.
    pub(super) fn set(&mut self, stream: UnixStream) {
        self.waiting.clear();
        self.stream = Some(stream);
    }

    /// Lets the stream go, and what was not written with it.
    pub(super) fn drop_stream(&mut self) {
        self.waiting.clear();
        self.stream = None;
    }

    /// The stream, to be waited for.
    pub(super) fn fd(&self) -> Option<BorrowedFd<'_>> {
        self.stream.as_ref().map(AsFd::as_fd)
    }

    /// What waits to be written, to be added to, and how much may be added.
    pub(super) fn waiting(&mut self) -> (&mut Vec<u8>, usize) {
        let room = if self.stream.is_some() { WAITING_MAX.saturating_sub(self.waiting.len()) } else { 0 };
        (&mut self.waiting, room)
    }

    /// Whether anything may be added.
    pub(super) fn has_room(&self) -> bool {
        self.waiting.len() < WAITING_MAX
    }

    /// Whether anything waits to be written.
    pub(super) fn is_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Writes what the stream takes now, and says whether it was anything.
    pub(super) fn flush(&mut self) -> Result<bool, Lost> {
        let Some(stream) = &mut self.stream else { return Ok(false) };
        write_some(stream, &mut self.waiting).map_err(|_| Lost)
    }

    /// What has arrived: none where nothing has.
    pub(super) fn read<'a>(&mut self, buffer: &'a mut [u8]) -> Result<Option<&'a [u8]>, Lost> {
        let Some(stream) = &mut self.stream else { return Ok(None) };
        match stream.read(buffer) {
            Ok(0) => Err(Lost),
            Ok(count) => Ok(Some(&buffer[..count])),
            Err(error) if is_later(&error) => Ok(None),
            Err(_) => Err(Lost),
        }
    }
}

/// Writes what can be written without waiting, and says whether it was anything.
pub(super) fn write_some(to: &mut impl Write, waiting: &mut Vec<u8>) -> io::Result<bool> {
    let mut written = 0;
    let outcome = loop {
        if written == waiting.len() {
            break Ok(());
        }
        match to.write(&waiting[written..]) {
            Ok(0) => break Err(io::ErrorKind::WriteZero.into()),
            Ok(count) => written += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if is_later(&error) => break Ok(()),
            Err(error) => break Err(error),
        }
    };
    waiting.drain(..written);
    outcome.map(|()| written > 0)
}

/// Whether there is nothing now, and may be something later.
pub(super) fn is_later(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}
