//! One stream between QUIC and a Unix socket: a buffer each way, and the ends of both directions.

use std::io;
use std::net::Shutdown;
use std::os::fd::AsFd;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use strait_clock::Time;
use strait_stream::{StreamKey, StreamLost, StreamRead, Streams};
use tokio::net::UnixStream;

/// Bytes that are read at once, from either side, and wait here at most.
const CHUNK: usize = 64 * 1024;
/// Room for a read of the socket at least.
const LEAST: usize = CHUNK / 4;
/// Chunks that one turn carries each way, between which others have theirs.
const TURN: usize = 8;

/// A stream's socket.
#[derive(Debug)]
pub(super) struct RelaySocket {
    socket: UnixStream,
    /// What was read from the socket and QUIC had no room for.
    up: Bytes,
    /// Where bytes from the socket are read to.
    room: BytesMut,
    /// What came from the peer, from the place on that the socket has not taken.
    down: Vec<u8>,
    written: usize,
    /// Whether the process, or the peer, has said all it has to say.
    process_said: bool,
    peer_said: bool,
    /// Whether the process was told that the peer has.
    end_told: bool,
    /// Whether the last turn ended before QUIC had nothing more, of which it says nothing again.
    has_more: bool,
    /// Whether the process is told a stream that the peer gave up from one that was lost: it reads the end first, while it can write.
    tells: bool,
    /// When the peer gave the stream up, while the process is being told.
    given_up: Option<Time>,
}

/// How long such a process has to read the end, before it is also told that no peer hears it.
const TELLING: Duration = Duration::from_secs(1);

/// The state of one direction after a turn.
#[derive(Debug, PartialEq, Eq)]
enum Flow {
    /// It waits.
    Waits,
    /// All is said.
    Said,
    /// One of both ends is gone: the peer's, for this reason, or the process.
    Gone(Option<StreamLost>),
}

impl RelaySocket {
    /// A stream of which this has come from the peer.
    pub(super) fn new(socket: UnixStream, down: Vec<u8>) -> RelaySocket {
        RelaySocket {
            socket,
            up: Bytes::new(),
            room: BytesMut::new(),
            down,
            written: 0,
            process_said: false,
            peer_said: false,
            end_told: false,
            has_more: false,
            tells: false,
            given_up: None,
        }
    }

    /// The same for a process that is told what was given up from what was lost.
    pub(super) fn telling(socket: UnixStream, down: Vec<u8>) -> RelaySocket {
        RelaySocket { tells: true, ..RelaySocket::new(socket, down) }
    }

    /// The stream is no more; false when its socket is to be closed now.
    pub(super) fn lost(&mut self, why: &StreamLost, now: Time) -> bool {
        if !self.tells || self.given_up.is_some() || !matches!(why, StreamLost::GivenUp) {
            return self.given_up.is_some();
        }
        self.given_up = Some(now);
        (self.up, self.down, self.written, self.has_more) = (Bytes::new(), Vec::new(), 0, false);
        shut_down(&self.socket).is_ok() && !self.process_said
    }

    /// Reads past what the process still says of a stream that was given up; false when it has heard of that, or had the time.
    fn tell(&mut self, since: Time, now: Time) -> bool {
        for _ in 0..TURN {
            self.room.clear();
            self.room.reserve(LEAST);
            match self.socket.try_read_buf(&mut self.room) {
                Ok(1..) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                _ => return false,
            }
        }
        now.since(since) < TELLING
    }

    /// Ready when the socket may do what is awaited of it, or a turn left something; else its task is woken then.
    pub(super) fn poll_ready(&self, context: &mut Context<'_>) -> Poll<()> {
        let reads = !self.process_said && self.up.is_empty();
        let read = reads && self.socket.poll_read_ready(context).is_ready();
        let waits = self.written < self.down.len();
        let written = waits && self.socket.poll_write_ready(context).is_ready();
        let goes_on = self.has_more && !waits;
        if read || written || goes_on { Poll::Ready(()) } else { Poll::Pending }
    }

    /// Carries bytes both ways; false when the stream is over.
    pub(super) fn carry(&mut self, core: &mut Streams, key: StreamKey, now: Time) -> bool {
        if let Some(since) = self.given_up {
            return self.tell(since, now);
        }
        let up = self.carry_up(core, key, now);
        let down = self.carry_down(core, key, now);
        let goes_on = up != Flow::Said || down != Flow::Said;
        for flow in [up, down] {
            if let Flow::Gone(why) = flow {
                core.give_up_stream(key);
                return why.is_some_and(|why| self.lost(&why, now));
            }
        }
        goes_on
    }

    /// From the process to the peer.
    fn carry_up(&mut self, core: &mut Streams, key: StreamKey, now: Time) -> Flow {
        for _ in 0..TURN {
            if !self.up.is_empty()
                && let Err(lost) = core.write(key, &mut self.up, now)
            {
                return Flow::Gone(Some(lost));
            }
            if !self.up.is_empty() {
                return Flow::Waits;
            }
            if self.process_said {
                return Flow::Said;
            }
            // Short reads share a block of memory, which is there until the last of them is acknowledged.
            if self.room.capacity() < LEAST {
                self.room.reserve(CHUNK);
            }
            match self.socket.try_read_buf(&mut self.room) {
                Ok(0) => {
                    self.process_said = true;
                    if let Err(lost) = core.finish(key) {
                        return Flow::Gone(Some(lost));
                    }
                }
                Ok(_) => self.up = self.room.split().freeze(),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Flow::Waits,
                Err(_) => return Flow::Gone(None),
            }
        }
        Flow::Waits
    }

    /// From the peer to the process.
    fn carry_down(&mut self, core: &mut Streams, key: StreamKey, now: Time) -> Flow {
        self.has_more = true;
        for _ in 0..TURN {
            if let Some(rest) = self.down.get(self.written..).filter(|rest| !rest.is_empty()) {
                match self.socket.try_write(rest) {
                    Ok(taken) => self.written += taken,
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Flow::Waits,
                    Err(_) => return Flow::Gone(None),
                }
                continue;
            }
            self.written = 0;
            self.down.clear();
            if self.peer_said {
                self.has_more = false;
                if !std::mem::replace(&mut self.end_told, true) {
                    // The process hears the end; what it has to say goes on.
                    let _ = shut_down(&self.socket);
                }
                return Flow::Said;
            }
            match self.gather(core, key, now) {
                Ok(()) if self.down.is_empty() && !self.peer_said => return Flow::Waits,
                Ok(()) => {}
                Err(lost) => return Flow::Gone(Some(lost)),
            }
        }
        Flow::Waits
    }

    /// Takes what came from the peer, of many datagrams at once: a write for each would cost more than they do.
    fn gather(&mut self, core: &mut Streams, key: StreamKey, now: Time) -> Result<(), StreamLost> {
        while self.down.len() < CHUNK {
            match core.read(key, CHUNK - self.down.len(), now)? {
                StreamRead::Data(bytes) => self.down.extend_from_slice(&bytes),
                StreamRead::Nothing => {
                    self.has_more = false;
                    break;
                }
                StreamRead::End => {
                    (self.peer_said, self.has_more) = (true, false);
                    break;
                }
            }
        }
        Ok(())
    }
}

/// Says the end to the process.
fn shut_down(socket: &UnixStream) -> io::Result<()> {
    std::os::unix::net::UnixStream::from(socket.as_fd().try_clone_to_owned()?).shutdown(Shutdown::Write)
}
