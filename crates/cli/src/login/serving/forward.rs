//! One forwarded connection: bytes between a stream and a socket of this host.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use strait_login::{Forwarded, ForwardedEvent};
use strait_node::poll::{self, PollFd};

use super::super::wire::{Wire, WireRead};
use super::keeper::Opened;

/// How long a connection may take nothing of what a peer said that is gone: programs that are stopped for a while, no longer.
const UNTAKEN: Duration = Duration::from_secs(600);

/// A socket that does not wait, read and written by reference.
pub(super) trait Connection: AsFd {
    /// Says that nothing more is written.
    fn end(&self);
}

impl Connection for TcpStream {
    fn end(&self) {
        let _ = self.shutdown(Shutdown::Write);
    }
}

impl Connection for UnixStream {
    fn end(&self) {
        let _ = self.shutdown(Shutdown::Write);
    }
}

/// Carries bytes both ways until both have ended; how this process ends.
pub(super) fn run<'a, C: Connection>(opened: Opened, connection: &'a C, rate_bits: Option<u64>) -> i32
where
    &'a C: Read + Write,
{
    let carrier = Carrier {
        wire: opened.wire,
        forwarded: Forwarded::server(rate_bits),
        connection,
        waiting: Vec::new(),
        written: 0,
        connection_said: false,
        peer_said: false,
        peer_gone: false,
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
    /// Whether the peer is gone; what it said is still carried.
    peer_gone: bool,
}

impl<'a, C: Connection> Carrier<'a, C>
where
    &'a C: Read + Write,
{
    /// Nothing when it was cut off.
    fn run(mut self, rest: &[u8]) -> Option<()> {
        let mut buffer = Wire::buffer();
        self.forwarded.received(rest);
        loop {
            while self.turn(&mut buffer)? {}
            if self.forwarded.finished() && self.wire.is_empty() && self.written == self.waiting.len() {
                return Some(());
            }
            let patience = self.peer_gone.then_some(UNTAKEN);
            if !self.sleep(patience)? && self.peer_gone {
                return None;
            }
            // It is not read any more, and would be ready all the time.
            if self.peer_said && self.peer_gone {
                return None;
            }
        }
    }

    /// Sleeps until something can be moved; whether anything can.
    fn sleep(&mut self, patience: Option<Duration>) -> Option<bool> {
        let from_peer = self.written == self.waiting.len();
        let stream = if self.peer_gone && !from_peer {
            PollFd::ignored()
        } else {
            PollFd::ready_to(self.wire.as_fd(), from_peer && !self.peer_said, !self.wire.is_empty())
        };
        let reads = !self.connection_said && self.forwarded.room() > 0;
        // A connection that is half closed would be ready all the time.
        let socket = match (reads, !from_peer) {
            (false, false) => PollFd::ignored(),
            (read, write) => PollFd::ready_to(self.connection.as_fd(), read, write),
        };
        let mut all = [stream, socket];
        let ready = poll::wait(&mut all, patience).ok()?;
        let [stream, _] = all;
        self.peer_gone |= stream.is_gone();
        Some(ready > 0)
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
        let mut connection = self.connection;
        match connection.read(buffer.get_mut(..room)?) {
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
        let (mut connection, mut moved) = (self.connection, false);
        while let Some(rest) = self.waiting.get(self.written..).filter(|rest| !rest.is_empty()) {
            match connection.write(rest) {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peer_that_is_gone_while_the_connection_takes_nothing_keeps_no_loop_awake() {
        let (peer, stream) = UnixStream::pair().unwrap();
        let (far, near) = UnixStream::pair().unwrap();
        for socket in [&peer, &near] {
            socket.set_nonblocking(true).unwrap();
        }
        let mut carrier = Carrier {
            wire: Wire::new(stream).unwrap(),
            forwarded: Forwarded::server(None),
            connection: &near,
            waiting: Vec::new(),
            written: 0,
            connection_said: false,
            peer_said: false,
            peer_gone: false,
        };
        let (mut client, mut buffer, mut bytes) = (Forwarded::client(None), Wire::buffer(), Vec::new());
        let mut said = 0;
        // Until nothing moves: the connection takes no more.
        loop {
            said += client.write(&[7; 4096]);
            client.send(&mut bytes, 64 << 10);
            let written = (&peer).write(&bytes).unwrap_or(0);
            bytes.drain(..written);
            while carrier.turn(&mut buffer).unwrap() {}
            if written == 0 && carrier.written < carrier.waiting.len() {
                break;
            }
        }
        drop(peer);
        carrier.sleep(Some(Duration::ZERO)).unwrap();
        assert!(!carrier.turn(&mut buffer).unwrap());
        assert_eq!(carrier.sleep(Some(Duration::ZERO)), Some(false), "nothing can be moved");
        // What it had said is carried as soon as there is room.
        far.set_nonblocking(true).unwrap();
        let (mut got, mut some) = (0, [0; 4096]);
        loop {
            while let Ok(length @ 1..) = (&far).read(&mut some) {
                got += length;
            }
            if carrier.turn(&mut buffer) != Some(true) {
                break;
            }
        }
        while let Ok(length @ 1..) = (&far).read(&mut some) {
            got += length;
        }
        assert!(got > 0 && got <= said, "{got} of {said}");
        assert!(carrier.waiting.is_empty());
    }
}
