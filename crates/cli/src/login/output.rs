//! Standard output and error of the client: what waits for them, and how much of it the session is told was written.

use std::collections::VecDeque;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};

use strait_node::login::{NO_CONTROLLING_TERMINAL, NO_WAIT};
use strait_node::poll::{self, PollFd};

/// Bytes that one write gives a descriptor that may wait: what a pipe has room for when it says that it has any (pipe(7)).
const PIPE_BUF: usize = 4096;

/// One of both.
pub(super) struct OutputEnd {
    file: File,
    /// Whether a write may wait; then one is done only when there is room.
    may_wait: bool,
    waiting: VecDeque<u8>,
    /// Bytes that were written or lost, of all that came.
    written: u64,
    /// Places in all that came, and what the session is to be told once they were reached.
    credit: VecDeque<(u64, usize)>,
    is_gone: bool,
}

impl OutputEnd {
    /// Of this descriptor, which is opened anew where that can be done, so that nothing waits for a terminal that does not read.
    pub(super) fn new(descriptor: BorrowedFd<'_>) -> io::Result<OutputEnd> {
        let file = File::from(descriptor.try_clone_to_owned()?);
        let kind = file.metadata()?.file_type();
        let own = (kind.is_char_device() || kind.is_fifo()).then(|| {
            let path = format!("/proc/self/fd/{}", descriptor.as_raw_fd());
            OpenOptions::new().write(true).custom_flags(NO_WAIT | NO_CONTROLLING_TERMINAL).open(path)
        });
        let (file, may_wait) = match own {
            Some(Ok(own)) => (own, false),
            _ => (file, true),
        };
        Ok(OutputEnd {
            file,
            may_wait,
            waiting: VecDeque::new(),
            written: 0,
            credit: VecDeque::new(),
            is_gone: false,
        })
    }

    /// Bytes to write; once they are, `credit` is reported by [`OutputEnd::write`].
    pub(super) fn push(&mut self, bytes: &[u8], credit: usize) {
        if !self.is_gone {
            self.waiting.extend(bytes);
        }
        let end = self.written + self.waiting.len() as u64;
        match self.credit.back_mut() {
            _ if credit == 0 => {}
            // Many small pieces are told of together: each place takes memory, too.
            Some((at, told)) if *told + credit <= PIPE_BUF => (*at, *told) = (end, *told + credit),
            _ => self.credit.push_back((end, credit)),
        }
    }

    /// Whether all was written.
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Whether nothing can be written any more.
    pub(super) fn is_gone(&self) -> bool {
        self.is_gone
    }

    /// Writes what can be written; what the session is to be told of, and whether anything moved.
    pub(super) fn write(&mut self) -> (usize, bool) {
        let mut moved = false;
        while !self.waiting.is_empty() {
            let (rest, _) = self.waiting.as_slices();
            let mut part = rest;
            if self.may_wait {
                let mut room = [PollFd::writable(self.file.as_fd())];
                if !matches!(poll::wait(&mut room, Some(std::time::Duration::ZERO)), Ok(1)) {
                    break;
                }
                part = rest.get(..PIPE_BUF).unwrap_or(rest);
            }
            match self.file.write(part) {
                Ok(length) => {
                    self.drop_front(length);
                    moved = true;
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => {
                    self.is_gone = true;
                    self.drop_front(self.waiting.len());
                    moved = true;
                }
            }
        }
        let mut credit = 0;
        while let Some((_, more)) = self.credit.pop_front_if(|(at, _)| *at <= self.written) {
            credit += more;
        }
        (credit, moved || credit > 0)
    }

    /// Lets go of bytes that were written or cannot be. A reader that is slower than the link never leaves nothing to be written.
    fn drop_front(&mut self, length: usize) {
        self.waiting.drain(..length);
        self.written += length as u64;
    }

    /// What is awaited: room, if something waits.
    pub(super) fn interest(&self) -> PollFd<'_> {
        if self.is_empty() { PollFd::ignored() } else { PollFd::writable(self.file.as_fd()) }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    #[test]
    fn a_reader_that_is_always_behind_costs_no_memory() {
        let (mut reader, writer) = io::pipe().unwrap();
        let mut end = OutputEnd::new(writer.as_fd()).unwrap();
        let mut buffer = vec![0; 50_000];
        let (mut pushed, mut told) = (0, 0);
        for round in 0..200 {
            // In small pieces, too.
            let piece = if round % 2 == 0 { 50_000 } else { 10 };
            while pushed < told + 200_000 {
                end.push(&buffer[..piece], piece);
                pushed += piece;
            }
            told += end.write().0;
            assert!(!end.is_empty());
            reader.read_exact(&mut buffer).unwrap();
        }
        assert!(end.waiting.capacity() <= 1 << 20, "{}", end.waiting.capacity());
        assert!(end.credit.capacity() <= 256, "{}", end.credit.capacity());
    }

    #[test]
    fn what_a_pipe_does_not_take_waits_and_is_reported_when_it_is_written() {
        let (mut reader, writer) = io::pipe().unwrap();
        let mut end = OutputEnd::new(writer.as_fd()).unwrap();
        drop(writer);
        let bytes: Vec<u8> = (0..200_000_u32).map(|at| u8::try_from(at % 251).unwrap()).collect();
        end.push(&bytes[..150_000], 150_000);
        end.push(&bytes[150_000..], 10);
        let mut told = end.write().0;
        assert!(told < 150_000 && !end.is_empty());
        let mut got = Vec::new();
        let mut buffer = vec![0; 10_000];
        while got.len() < bytes.len() {
            let length = reader.read(&mut buffer).unwrap();
            got.extend_from_slice(&buffer[..length]);
            told += end.write().0;
        }
        assert!(got == bytes && end.is_empty());
        assert_eq!(told, 150_010);
        drop(reader);
        end.push(b"x", 1);
        assert_eq!(end.write(), (1, true));
        assert!(end.is_gone() && end.is_empty());
        end.push(b"y", 1);
        assert_eq!(end.write().0, 1);
    }
}
