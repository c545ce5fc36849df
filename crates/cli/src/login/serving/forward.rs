//! One forwarded connection: bytes between a stream and a socket of this host.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;

use strait_login::{Forwarded, ForwardedEvent};
use strait_node::poll::{self, PollFd};

use super::super::wire::{Wire, WireRead};
use super::keeper::Opened;

/// A socket that does not wait.
pub(super) trait Connection: AsFd {
    fn take(&self, bytes: &mut [u8]) -> io::Result<usize>;
    fn put(&self, bytes: &[u8]) -> io::Result<usize>;
    fn end(&self);
}

impl Connection for TcpStream {
    fn take(&self, bytes: &mut [u8]) -> io::Result<usize> {
        let mut socket = self;
        socket.read(bytes)
    }

    fn put(&self, bytes: &[u8]) -> io::Result<usize> {
        let mut socket = self;
        socket.write(bytes)
    }

    fn end(&self) {
        let _ = self.shutdown(Shutdown::Write);
    }
}

impl Connection for UnixStream {
    fn take(&self, bytes: &mut [u8]) -> io::Result<usize> {
        let mut socket = self;
        socket.read(bytes)
    }

    fn put(&self, bytes: &[u8]) -> io::Result<usize> {
        let mut socket = self;
        socket.write(bytes)
    }

    fn end(&self) {
        let _ = self.shutdown(Shutdown::Write);
    }
}

/// Carries bytes both ways until both have ended; how this process ends.
pub(super) fn run(opened: Opened, connection: &impl Connection, rate_bits: Option<u64>) -> i32 {
    let carrier = Carrier {
        wire: opened.wire,
        forwarded: Forwarded::server(rate_bits),
        connection,
        waiting: Vec::new(),
        written: 0,
        connection_said: false,
        peer_said: false,
    };
    i32::from(carrier.run(&opened.rest).is_none())
}

struct Carrier<'a, C> {
    wire: Wire,
    forwarded: Forwarded,
    connection: &'a C,
    /// What the connection has not taken yet.
    waiting: Vec<u8>,
    written: usize,
    /// Whether each end has said all it has to say.
    connection_said: bool,
    peer_said: bool,
}

impl<C: Connection> Carrier<'_, C> {
    /// Nothing when it was cut off.
    fn run(mut self, rest: &[u8]) -> Option<()> {
        let mut buffer = Wire::buffer();
        self.forwarded.received(rest);
        loop {
            while self.turn(&mut buffer)? {}
            if self.forwarded.finished() && self.wire.is_empty() && self.written == self.waiting.len() {
                return Some(());
            }
            let from_peer = self.written == self.waiting.len();
            let stream =
                PollFd::ready_to(self.wire.as_fd(), from_peer && !self.peer_said, !self.wire.is_empty());
            let reads = !self.connection_said && self.forwarded.room() > 0;
            // A connection that is half closed would be ready all the time.
            let socket = match (reads, !from_peer) {
                (false, false) => PollFd::ignored(),
                (read, write) => PollFd::ready_to(self.connection.as_fd(), read, write),
            };
            let mut all = [stream, socket];
            poll::wait(&mut all, None).ok()?;
            let [stream, _] = all;
            // It is not read any more, and would be ready all the time.
            if self.peer_said && stream.is_gone() {
                return None;
            }
        }
    }

    /// Moves what can be moved; whether anything was.
    fn turn(&mut self, buffer: &mut [u8]) -> Option<bool> {
        let mut moved = self.take_from_connection(buffer)?;
        let forwarded = &mut self.forwarded;
        moved |= self.wire.write(|into, room| forwarded.send(into, room)).ok()?;
        moved |= self.put_to_connection()?;
        // What the connection does not take holds the peer back.
        if self.written < self.waiting.len() || self.peer_said {
            return Some(moved);
        }
        if let Some(event) = self.forwarded.next_event().ok()? {
            self.heard(event);
            return Some(true);
        }
        match self.wire.read(buffer) {
            WireRead::Bytes(length) => {
                self.forwarded.received(buffer.get(..length).unwrap_or_default());
                moved = true;
            }
            WireRead::Nothing => {}
            // The peer is gone, and so is what it had not said.
            WireRead::End => return None,
        }
        Some(moved)
    }

    fn take_from_connection(&mut self, buffer: &mut [u8]) -> Option<bool> {
        let room = self.forwarded.room().min(buffer.len());
        if self.connection_said || room == 0 {
            return Some(false);
        }
        match self.connection.take(buffer.get_mut(..room)?) {
            Ok(0) => {
                self.connection_said = true;
                self.forwarded.end();
            }
            Ok(length) => {
                self.forwarded.write(buffer.get(..length)?);
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Some(false),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => {
                self.connection_said = true;
                self.forwarded.end();
            }
        }
        Some(true)
    }

    fn put_to_connection(&mut self) -> Option<bool> {
        let mut moved = false;
        while let Some(rest) = self.waiting.get(self.written..).filter(|rest| !rest.is_empty()) {
            match self.connection.put(rest) {
                Ok(length) => {
                    self.written += length;
                    moved = true;
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Some(moved),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return None,
            }
        }
        self.waiting.clear();
        self.written = 0;
        Some(moved)
    }

    fn heard(&mut self, event: ForwardedEvent) {
        match event {
            ForwardedEvent::Data(bytes) => self.waiting = bytes,
            ForwardedEvent::End => {
                self.peer_said = true;
                self.connection.end();
            }
            ForwardedEvent::Opened | ForwardedEvent::Refused(_) => {}
        }
    }
}
