//! One forwarded connection: bytes between a stream and a socket of this host.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use strait_login::{Forwarded, ForwardedEvent};
use strait_node::poll::{self, PollFd};

use rustix::net::sockopt::set_socket_linger;

use super::super::wire::{Wire, WireRead};
use super::keeper::Opened;

/// How long a connection may take nothing of what a peer said that is gone: programs that are stopped for a while, no longer.
const UNTAKEN: Duration = Duration::from_secs(600);

/// A socket that does not wait, read and written by reference.
pub(super) trait Connection: AsFd {
    /// Makes the far program hear a reset and no end if the socket is closed before [`Connection::end`], also when this process is killed:
    /// a part does not look like all.
    fn resets(&self);
    /// Says that nothing more is written.
    fn end(&self);
}

impl Connection for TcpStream {
    fn resets(&self) {
        // A socket that does not do so ends as others.
        let _ = set_socket_linger(self, Some(Duration::ZERO));
    }

    fn end(&self) {
        let _ = set_socket_linger(self, None);
        let _ = self.shutdown(Shutdown::Write);
    }
}

impl Connection for UnixStream {
    // There is none (unix(7)).
    fn resets(&self) {}

    fn end(&self) {
        let _ = self.shutdown(Shutdown::Write);
    }
}

/// Carries bytes both ways until both have ended; how this process ends.
pub(super) fn run<'a, C: Connection>(opened: Opened, connection: &'a C, rate_bits: Option<u64>) -> i32
where
    &'a C: Read + Write,
{
    connection.resets();
    let carrier = Carrier::new(opened.wire, connection, Forwarded::server(rate_bits));
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
    /// True for an end that takes nothing more: what is for it is dropped, and the other direction goes on.
    connection_deaf: bool,
    peer_deaf: bool,
}

impl<'a, C: Connection> Carrier<'a, C>
where
    &'a C: Read + Write,
{
    fn new(wire: Wire, connection: &'a C, forwarded: Forwarded) -> Carrier<'a, C> {
        Carrier {
            wire,
            forwarded,
            connection,
            waiting: Vec::new(),
            written: 0,
            connection_said: false,
            peer_said: false,
            peer_gone: false,
            connection_deaf: false,
            peer_deaf: false,
        }
    }

    /// Nothing when it was cut off.
    fn run(mut self, rest: &[u8]) -> Option<()> {
        let mut buffer = Wire::buffer();
        self.forwarded.received(rest);
        loop {
            while self.turn(&mut buffer)? {}
            if self.forwarded.finished() && self.wire.is_empty() && self.written == self.waiting.len() {
                return Some(());
            }
            if self.connection_deaf && self.connection_said && self.all_told() {
                // Both directions have ended here; the peer closes the stream when it has read that.
                self.wire.end();
            }
            let patience = self.peer_gone.then_some(UNTAKEN);
            if !self.sleep(patience)? && self.peer_gone {
                return None;
            }
        }
    }

    /// Returns true once the stream has all that the connection has said.
    fn all_told(&self) -> bool {
        !self.forwarded.wants_to_send() && self.wire.is_empty()
    }

    /// Sleeps until something can be moved; whether anything can.
    fn sleep(&mut self, patience: Option<Duration>) -> Option<bool> {
        let from_peer = self.written == self.waiting.len();
        let stream = if self.peer_gone && !from_peer {
            PollFd::ignored()
        } else {
            PollFd::ready_to(self.wire.as_fd(), from_peer, !self.peer_deaf && !self.wire.is_empty())
        };
        let reads = !self.connection_said && (self.peer_deaf || self.forwarded.room() > 0);
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
        moved |= self.put_to_peer();
        moved |= self.put_to_connection();
        // What the connection does not take holds the peer back.
        if self.written < self.waiting.len() {
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
            // The peer is gone, and so is what it had not said. Behind its end: it reads no more, either.
            WireRead::End => return None,
        }
        Some(moved)
    }

    fn take_from_connection(&mut self, buffer: &mut [u8]) -> Option<bool> {
        let room = if self.peer_deaf { buffer.len() } else { self.forwarded.room().min(buffer.len()) };
        if self.connection_said || room == 0 {
            return Some(false);
        }
        let mut connection = self.connection;
        match connection.read(buffer.get_mut(..room)?) {
            Ok(0) => {
                self.connection_said = true;
                self.forwarded.end();
            }
            Ok(_) if self.peer_deaf => {}
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

    /// Puts what the connection said to the peer; true if anything moved.
    fn put_to_peer(&mut self) -> bool {
        if self.peer_deaf {
            return false;
        }
        let forwarded = &mut self.forwarded;
        self.wire.write(|into, room| forwarded.send(into, room)).unwrap_or_else(|_| {
            // What it said before is there to be read.
            self.peer_deaf = true;
            true
        })
    }

    fn put_to_connection(&mut self) -> bool {
        let (mut connection, mut moved) = (self.connection, false);
        while let Some(rest) = self.waiting.get(self.written..).filter(|rest| !rest.is_empty()) {
            match connection.write(rest) {
                Ok(length) => {
                    self.written += length;
                    moved = true;
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return moved,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => {
                    // What it said before it was closed goes on to the peer.
                    self.connection_deaf = true;
                    break;
                }
            }
        }
        self.waiting.clear();
        self.written = 0;
        moved
    }

    fn heard(&mut self, event: ForwardedEvent) {
        match event {
            ForwardedEvent::Data(_) if self.connection_deaf => {}
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
    use std::net::{Ipv4Addr, TcpListener};
    use std::thread;

    use super::*;

    #[test]
    fn a_peer_that_is_gone_while_the_connection_takes_nothing_keeps_no_loop_awake() {
        let (peer, stream) = UnixStream::pair().unwrap();
        let (far, near) = UnixStream::pair().unwrap();
        for socket in [&peer, &near] {
            socket.set_nonblocking(true).unwrap();
        }
        let mut carrier = Carrier::new(Wire::new(stream).unwrap(), &near, Forwarded::server(None));
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

    /// Carries what the connection `near` has, for the peer that gets the other end of the stream.
    fn carry<C: Connection + Send + 'static>(near: C) -> (UnixStream, thread::JoinHandle<()>)
    where
        for<'a> &'a C: Read + Write,
    {
        let (peer, stream) = UnixStream::pair().unwrap();
        let carried = move || {
            run(Opened { wire: Wire::new(stream).unwrap(), rest: Vec::new() }, &near, None);
        };
        (peer, thread::spawn(carried))
    }

    fn pair() -> (UnixStream, UnixStream) {
        let (far, near) = UnixStream::pair().unwrap();
        near.set_nonblocking(true).unwrap();
        (far, near)
    }

    /// Writes `content` as a client would, and its end, if it ends.
    fn say(mut peer: &UnixStream, content: &[u8], ends: bool) {
        let (mut client, mut bytes, mut rest) = (Forwarded::client(None), Vec::new(), content);
        while !rest.is_empty() {
            rest = &rest[client.write(rest)..];
            client.send(&mut bytes, usize::MAX);
        }
        if ends {
            client.end();
            client.send(&mut bytes, usize::MAX);
        }
        peer.write_all(&bytes).unwrap();
    }

    /// Reads the stream to its end: the bytes, and whether the connection's end came, too.
    fn hear(mut peer: &UnixStream) -> (Vec<u8>, bool) {
        let (mut client, mut bytes, mut content, mut ended) =
            (Forwarded::client(None), Vec::new(), Vec::new(), false);
        peer.read_to_end(&mut bytes).unwrap();
        client.received(&bytes);
        while let Some(event) = client.next_event().unwrap() {
            match event {
                ForwardedEvent::Data(some) => content.extend(some),
                other => ended |= other == ForwardedEvent::End,
            }
        }
        (content, ended)
    }

    #[test]
    fn a_connection_that_takes_nothing_more_is_heard_to_its_end() {
        let (mut far, near) = pair();
        far.shutdown(Shutdown::Read).unwrap();
        let (peer, carried) = carry(near);
        say(&peer, &[3; 50_000], false);
        let answer = thread::spawn(move || {
            far.write_all(&[7; 1_000_000]).unwrap();
            // Then it is closed.
        });
        let (heard, ended) = hear(&peer);
        assert!(heard == [7; 1_000_000] && ended, "{} bytes, {ended}", heard.len());
        drop(peer);
        answer.join().unwrap();
        carried.join().unwrap();
    }

    #[test]
    fn a_peer_that_takes_nothing_more_is_heard_to_its_end() {
        let (mut far, near) = pair();
        let (peer, carried) = carry(near);
        peer.shutdown(Shutdown::Read).unwrap();
        far.write_all(&[3; 50_000]).unwrap();
        let said = thread::spawn(move || say(&peer, &[7; 1_000_000], true));
        let mut heard = Vec::new();
        far.read_to_end(&mut heard).unwrap();
        assert!(heard == [7; 1_000_000], "{} bytes", heard.len());
        said.join().unwrap();
        carried.join().unwrap();
    }

    #[test]
    fn what_was_cut_off_ends_with_a_reset() {
        for ends in [true, false] {
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
            let near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            near.set_nonblocking(true).unwrap();
            let (mut far, _) = listener.accept().unwrap();
            let (peer, carried) = carry(near);
            say(&peer, b"words", ends);
            let mut words = [0; 5];
            far.read_exact(&mut words).unwrap();
            drop(peer);
            let end = far.read(&mut words).map_err(|error| error.kind());
            assert_eq!(end, if ends { Ok(0) } else { Err(io::ErrorKind::ConnectionReset) });
            carried.join().unwrap();
        }
    }
}
