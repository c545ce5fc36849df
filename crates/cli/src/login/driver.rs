//! Drives the client's end of a session over its streams: when one is lost, it opens the next, for hours if need be.
//!
//! The caller takes events, gives input, and sleeps on [`DrivenSession::interest`] until [`DrivenSession::deadline`]; then it calls
//! [`DrivenSession::turn`] until that moves nothing.

use std::collections::VecDeque;
use std::io::Read;
use std::net::Shutdown;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::Duration;

use strait_clock::Time;
use strait_login::{ClientEvent, LoginClient};
use strait_node::clock::Clock;
use strait_node::poll::PollFd;

use super::road::{LoginRoad, LoginStream, NoRoad};
use super::wire::{Wire, WireRead};
use crate::failure::{Code, Failure};
use opener::Opener;

mod opener;

/// Pauses between attempts to open a stream: soon at first, as a daemon may only be restarted; then as often as a person would look.
const PAUSES: [Duration; 4] =
    [Duration::ZERO, Duration::from_millis(250), Duration::from_millis(500), Duration::from_secs(1)];

/// How long the peer may take to close the stream of a session that is over: a round trip over a satellite, several times.
const PARTING: Duration = Duration::from_secs(3);
/// Reads of what it may still say meanwhile.
const PARTING_READS: usize = 16;

/// A change of a session's stream.
#[derive(Debug)]
pub(crate) enum LinkChange {
    /// It is lost, and another is being opened.
    Lost,
    /// There is one again.
    Back,
    /// There will be none, for this reason.
    Failed(Failure),
}

/// A session's client, its stream, and what opens the next.
pub(crate) struct DrivenSession {
    client: LoginClient,
    wire: Option<Wire>,
    opener: Opener,
    /// Whether the streams are of a node that ends with this command.
    own_node: bool,
    clock: Clock,
    events: VecDeque<ClientEvent>,
    changes: VecDeque<LinkChange>,
    buffer: Vec<u8>,
    state: LinkState,
    /// Attempts since there was a stream.
    attempts: usize,
    /// Whether anything was heard on this stream, and on any.
    heard: bool,
    ever_heard: bool,
    /// When something was heard last.
    heard_at: Time,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LinkState {
    Open,
    /// The opener is at it.
    Opening,
    /// It is asked then.
    Pausing(Time),
    /// Nothing more is to be opened.
    Over,
}

impl DrivenSession {
    /// Drives `client` over `stream`, the first, and streams of `road`.
    pub(crate) fn new(
        client: LoginClient,
        stream: LoginStream,
        road: Arc<LoginRoad>,
        clock: Clock,
    ) -> Result<DrivenSession, Failure> {
        let wire = Wire::new(stream.stream).map_err(Failure::doing("use the stream"))?;
        Ok(DrivenSession {
            client,
            wire: Some(wire),
            own_node: road.is_own(),
            opener: Opener::start(road).map_err(Failure::doing("start a thread"))?,
            clock,
            events: VecDeque::new(),
            changes: VecDeque::new(),
            buffer: Wire::buffer(),
            state: LinkState::Open,
            attempts: 0,
            heard: false,
            ever_heard: false,
            heard_at: clock.now(),
        })
    }

    /// The session's client, for input and what else it takes; [`DrivenSession::turn`] is called after it.
    pub(crate) fn client(&mut self) -> &mut LoginClient {
        &mut self.client
    }

    /// The next event of the session.
    pub(crate) fn next_event(&mut self) -> Option<ClientEvent> {
        self.events.pop_front()
    }

    /// The next change of its stream.
    pub(crate) fn next_change(&mut self) -> Option<LinkChange> {
        self.changes.pop_front()
    }

    /// Whether there is a stream.
    pub(crate) fn has_stream(&self) -> bool {
        self.wire.is_some()
    }

    /// When something was heard last.
    pub(crate) fn heard_at(&self) -> Time {
        self.heard_at
    }

    /// Whether what was to be told to the server was given to the stream, and the session is over.
    pub(crate) fn is_over(&self) -> bool {
        self.client.finished() && self.wire.as_ref().is_none_or(Wire::is_empty)
    }

    /// Moves what can be moved; whether anything was.
    pub(crate) fn turn(&mut self) -> bool {
        let mut moved = self.open();
        // A server that refuses may answer before it is asked: the request goes first.
        moved |= self.write();
        moved |= self.read();
        moved |= self.write();
        while let Some(event) = self.client.next_event() {
            self.events.push_back(event);
            moved = true;
        }
        moved
    }

    /// What is awaited: bytes of the stream or room in it, and the next stream.
    pub(crate) fn interest(&self) -> [PollFd<'_>; 2] {
        let wire = self.wire.as_ref().map_or_else(PollFd::ignored, Wire::interest);
        let opener = match self.state {
            LinkState::Opening => PollFd::readable(self.opener.wake.as_fd()),
            _ => PollFd::ignored(),
        };
        [wire, opener]
    }

    /// When [`DrivenSession::turn`] is due, if nothing else happens.
    pub(crate) fn deadline(&self) -> Option<Time> {
        let pause = match self.state {
            LinkState::Pausing(until) => Some(until),
            _ => None,
        };
        let send = self.client.deadline().map(|deadline| deadline.at).filter(|_| self.wire.is_some());
        pause.into_iter().chain(send).min()
    }

    fn read(&mut self) -> bool {
        let Some(wire) = &mut self.wire else { return false };
        match wire.read(&mut self.buffer) {
            WireRead::Nothing => false,
            WireRead::Bytes(length) => {
                let now = self.clock.now();
                (self.heard, self.ever_heard, self.heard_at, self.attempts) = (true, true, now, 0);
                let bytes = self.buffer.get(..length).unwrap_or_default();
                if let Err(error) = self.client.received(bytes, now) {
                    let failure = Failure::new(format!("the peer's stream cannot be understood: {error}"));
                    self.fail(failure.remedy("update the older of the two programs"));
                }
                true
            }
            WireRead::End => {
                self.lose();
                true
            }
        }
    }

    fn write(&mut self) -> bool {
        let Some(wire) = &mut self.wire else { return false };
        let (client, now) = (&mut self.client, self.clock.now());
        // Of one that is gone, what the peer said last is still there to be read.
        wire.write(|into, room| client.send(into, room, now)).unwrap_or_default()
    }

    /// Opens the next stream if one is wanted.
    fn open(&mut self) -> bool {
        match self.state {
            LinkState::Open | LinkState::Over => false,
            LinkState::Pausing(until) if until > self.clock.now() => false,
            LinkState::Pausing(_) => {
                self.opener.ask();
                self.state = LinkState::Opening;
                true
            }
            LinkState::Opening => match self.opener.opened() {
                None => false,
                Some(Ok(stream)) => {
                    self.take(stream);
                    true
                }
                // A peer that never said anything is not one that is away for a while.
                Some(Err(NoRoad { failure, may_return })) if !may_return || !self.ever_heard => {
                    self.fail(failure);
                    true
                }
                Some(Err(_)) => {
                    self.pause();
                    true
                }
            },
        }
    }

    fn take(&mut self, stream: LoginStream) {
        let Ok(wire) = Wire::new(stream.stream) else { return self.pause() };
        self.wire = Some(wire);
        self.state = LinkState::Open;
        self.heard = false;
        self.client.reconnect(self.clock.now());
        self.changes.push_back(LinkChange::Back);
    }

    /// The stream is lost.
    fn lose(&mut self) {
        self.wire = None;
        self.client.stream_lost();
        if self.client.finished() {
            self.state = LinkState::Over;
            return;
        }
        // One that was closed at once: what the daemon had was of a node that has been restarted. Twice, and nothing is served there.
        if !self.ever_heard && self.attempts > 0 {
            let cause = "the peer closed the stream before it said anything";
            let remedy = "it allows no logins if its configuration has no [[login]], and of nodes that it does not list only those \
                          with --kerberos; else run the same command again";
            return self.fail(Failure::new(cause).remedy(remedy).code(Code::Interrupted));
        }
        if self.ever_heard {
            self.changes.push_back(LinkChange::Lost);
        }
        if !self.heard {
            self.attempts = self.attempts.max(1);
        }
        self.pause();
    }

    fn pause(&mut self) {
        let pause = PAUSES.get(self.attempts).or(PAUSES.last()).copied().unwrap_or_default();
        self.attempts += 1;
        self.state = LinkState::Pausing(self.clock.now() + pause);
    }

    fn fail(&mut self, failure: Failure) {
        self.wire = None;
        self.state = LinkState::Over;
        self.changes.push_back(LinkChange::Failed(failure));
    }
}

impl Drop for DrivenSession {
    /// A node of this command's own ends with it, and with the node what the peer has not received: the peer closes the stream when it
    /// knows that the session is over. Otherwise it would keep the session for a client that comes back.
    fn drop(&mut self) {
        let wire = self.wire.take().filter(|_| self.own_node && self.client.finished());
        let Some(mut stream) = wire.map(Wire::into_stream) else { return };
        let prepared = stream.set_nonblocking(false).and_then(|()| stream.set_read_timeout(Some(PARTING)));
        if prepared.and_then(|()| stream.shutdown(Shutdown::Write)).is_err() {
            return;
        }
        for _ in 0..PARTING_READS {
            if !matches!(stream.read(&mut self.buffer), Ok(1..)) {
                return;
            }
        }
    }
}
