//! A stream of a login as its ends have it: reads and writes that do not wait, and what waits to be written.

use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;

use strait_node::poll::PollFd;

/// Bytes that wait to be written at most. More would stand before what is urgent; less would cost a system call for each message.
const WAITING_MAX: usize = 32 << 10;
/// Bytes that one read takes.
const CHUNK: usize = 64 << 10;

/// What a read found.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum WireRead {
    /// Bytes, which are in the buffer that is passed.
    Bytes(usize),
    /// Nothing now.
    Nothing,
    /// The other end has said all it had to say, or is gone.
    End,
}

/// A stream, and what waits to be written to it.
#[derive(Debug)]
pub(crate) struct Wire {
    stream: UnixStream,
    waiting: Vec<u8>,
    written: usize,
}

impl Wire {
    /// Of a stream that does not wait.
    pub(crate) fn new(stream: UnixStream) -> io::Result<Wire> {
        stream.set_nonblocking(true)?;
        Ok(Wire { stream, waiting: Vec::new(), written: 0 })
    }

    /// A buffer for [`Wire::read`].
    pub(crate) fn buffer() -> Vec<u8> {
        vec![0; CHUNK]
    }

    pub(crate) fn read(&mut self, buffer: &mut [u8]) -> WireRead {
        loop {
            return match self.stream.read(buffer) {
                Ok(0) => WireRead::End,
                Ok(length) => WireRead::Bytes(length),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => WireRead::Nothing,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(_) => WireRead::End,
            };
        }
    }

    /// Has `more` append bytes, as many as there is room for, and writes what the stream takes. Whether anything was written, which may
    /// have made room for more.
    ///
    /// # Errors
    /// When the other end is gone.
    pub(crate) fn write(&mut self, more: impl FnOnce(&mut Vec<u8>, usize)) -> io::Result<bool> {
        let room = WAITING_MAX.saturating_sub(self.waiting.len() - self.written);
        if room > 0 {
            if self.written > 0 {
                self.waiting.drain(..self.written);
                self.written = 0;
            }
            more(&mut self.waiting, room);
        }
        let rest = self.waiting.get(self.written..).unwrap_or_default();
        let length = write_some(&mut self.stream, rest)?;
        self.written += length;
        Ok(length > 0)
    }

    /// Says that nothing more is written. What the other end says is still read.
    pub(crate) fn end(&self) {
        // One that is gone hears nothing.
        let _ = self.stream.shutdown(Shutdown::Write);
    }

    /// Whether [`Wire::write`] would ask for more.
    pub(crate) fn has_room(&self) -> bool {
        self.waiting.len() - self.written < WAITING_MAX
    }

    /// Whether all was written.
    pub(crate) fn is_empty(&self) -> bool {
        self.written == self.waiting.len()
    }

    /// What is awaited of it: always something to read, and room if there is something to write.
    pub(crate) fn interest(&self) -> PollFd<'_> {
        PollFd::ready_to(self.stream.as_fd(), true, !self.is_empty())
    }

    /// The stream itself, without what waits.
    pub(crate) fn into_stream(self) -> UnixStream {
        self.stream
    }
}

/// Writes what can be written without waiting: how many bytes that was.
///
/// # Errors
/// When the other end is gone.
pub(crate) fn write_some(to: &mut impl Write, bytes: &[u8]) -> io::Result<usize> {
    let mut written = 0;
    while let Some(rest) = bytes.get(written..).filter(|rest| !rest.is_empty()) {
        match to.write(rest) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(length) => written += length,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(written)
}

impl AsFd for Wire {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_waits_and_no_more_than_may() {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        let mut wire = Wire::new(ours).unwrap();
        let (mut given, mut taken) = (0_usize, Vec::new());
        let mut fill = |into: &mut Vec<u8>, room: usize| {
            assert!(room <= WAITING_MAX);
            into.extend((0..room).map(|at| u8::try_from((given + at) % 251).unwrap()));
            given += room;
        };
        while wire.write(&mut fill).unwrap() {}
        assert!(!wire.is_empty() && wire.waiting.len() - wire.written <= WAITING_MAX);
        theirs.set_nonblocking(true).unwrap();
        let mut buffer = Wire::buffer();
        while !wire.is_empty() {
            while let Ok(length) = theirs.read(&mut buffer) {
                taken.extend_from_slice(&buffer[..length]);
            }
            wire.write(|_, _| ()).unwrap();
        }
        while let Ok(length) = theirs.read(&mut buffer) {
            taken.extend_from_slice(&buffer[..length]);
        }
        assert_eq!(taken.len(), given);
        assert!(taken.iter().enumerate().all(|(at, byte)| usize::from(*byte) == at % 251));
        theirs.write_all(b"abc").unwrap();
        assert_eq!(wire.read(&mut buffer), WireRead::Bytes(3));
        assert_eq!(wire.read(&mut buffer), WireRead::Nothing);
        drop(theirs);
        assert_eq!(wire.read(&mut buffer), WireRead::End);
        assert!(wire.write(|into, _| into.push(1)).is_err());
    }
}
