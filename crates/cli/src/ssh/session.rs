//! A channel with a program at its other end: what `ssh` sends goes to the login client, what that has goes to `ssh`.
//!
//! [`Session::pump`] moves what can be moved and never waits. Each direction has one queue, bounded by the window of the end that fills
//! it: input by the channel's, which is granted as the login client takes bytes; output by the login client's, which is granted as
//! `ssh` does.

mod flow;

use std::collections::VecDeque;
use std::time::Duration;

use strait_clock::Time;
use strait_login::{ClientOptions, LoginClient, SessionRequest, SessionSignal, Ticket, WindowSize};
use strait_node::poll::PollFd;
use strait_ssh::{ChannelNumber, Ended, OutputStream};
use strait_stream::StreamPriority;

use crate::failure::Failure;
use crate::login::new_ticket;
use crate::login::road::LoginStream;
use crate::login::wire::{Wire, WireRead};

/// How long after a stream that could not be opened the next one is asked for.
const AGAIN: Duration = Duration::from_secs(1);
/// The status of an `ssh` that did not reach its host (ssh(1)).
const UNREACHED: u32 = 255;

/// Where its stream is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// One is to be asked for, at this time.
    Wanted(Time),
    /// One was asked for.
    Asked,
    /// It is there.
    Up,
    /// None is needed any more.
    Over,
}

/// A session.
pub(super) struct Session {
    channel: ChannelNumber,
    /// What is asked of the peer, until the first stream is there.
    request: Option<SessionRequest>,
    client: Option<LoginClient>,
    /// Its stream, while it has one.
    wire: Option<Wire>,
    way: Way,
    has_terminal: bool,
    wants_agent: bool,
    /// From `ssh`.
    input: VecDeque<u8>,
    input_ended: bool,
    /// For `ssh`.
    output: VecDeque<(OutputStream, Vec<u8>)>,
    /// How it ended, until `ssh` is told.
    ended: Option<Ended>,
    /// `ssh` was told, or has closed the channel.
    closed: bool,
    /// Output is dropped: `ssh` reads none.
    unwanted: bool,
    /// Kinds of output that have not ended.
    outputs: u8,
}

impl Session {
    pub(super) fn new(channel: ChannelNumber, request: SessionRequest, now: Time) -> Session {
        let has_terminal = request.terminal.is_some();
        let wrong = request.check().err();
        let mut session = Session {
            channel,
            has_terminal,
            wants_agent: request.agent,
            request: Some(request),
            client: None,
            wire: None,
            way: Way::Wanted(now),
            input: VecDeque::new(),
            input_ended: false,
            output: VecDeque::new(),
            ended: None,
            closed: false,
            unwanted: false,
            outputs: if has_terminal { 1 } else { 2 },
        };
        if let Some(error) = wrong {
            let failure = Failure::new(format!("what `ssh` asks for cannot be asked of a peer: {error}"));
            session.fail(&failure.remedy("shorten the command or the environment (SendEnv, SetEnv)"));
        }
        session
    }

    pub(super) fn channel(&self) -> ChannelNumber {
        self.channel
    }

    /// Keystrokes go before files.
    pub(super) fn priority(&self) -> StreamPriority {
        if self.has_terminal { StreamPriority::Now } else { StreamPriority::Normal }
    }

    /// What is awaited of its stream.
    pub(super) fn interest(&self) -> Option<PollFd<'_>> {
        self.wire.as_ref().map(Wire::interest)
    }

    /// The ticket, if the session is there and its program may use the agent.
    pub(super) fn agent_ticket(&self) -> Option<&Ticket> {
        let client =
            self.client.as_ref().filter(|_| self.wants_agent && !self.closed && self.ended.is_none())?;
        client.ticket()
    }

    /// The agent is of no use to it.
    pub(super) fn without_agent(&mut self) {
        self.wants_agent = false;
    }

    /// Whether nothing is left to do.
    pub(super) fn is_over(&self) -> bool {
        self.way == Way::Over && self.closed
    }

    /// Whether a stream is to be asked for now; it is taken as asked for then.
    pub(super) fn asks(&mut self, now: Time) -> bool {
        let due = matches!(self.way, Way::Wanted(at) if at <= now);
        if due {
            self.way = Way::Asked;
        }
        due
    }

    /// When something is to be done if nothing else happens.
    pub(super) fn deadline(&self) -> Option<Time> {
        match self.way {
            Way::Wanted(at) => Some(at),
            // What is due has no room while the stream takes nothing; the stream itself is waited for then.
            Way::Up if self.wire.as_ref().is_some_and(Wire::has_room) => {
                self.client.as_ref().and_then(LoginClient::deadline).map(|deadline| deadline.at)
            }
            Way::Up | Way::Asked | Way::Over => None,
        }
    }

    /// A stream is there, or cannot be.
    pub(super) fn opened(&mut self, opened: Result<LoginStream, Failure>, now: Time) {
        if self.way != Way::Asked {
            return;
        }
        let doing = Failure::doing("use the stream");
        match opened.and_then(|it| Ok((Wire::new(it.stream).map_err(doing)?, it.rate_bits))) {
            Ok((wire, rate_bits)) => {
                self.wire = Some(wire);
                self.way = Way::Up;
                match (&mut self.client, self.request.take()) {
                    (Some(client), _) => client.reconnect(now),
                    (None, Some(request)) => match new_ticket() {
                        Ok(ticket) => {
                            let options = ClientOptions { rate_bits };
                            self.client = Some(LoginClient::start(ticket, request, options));
                        }
                        Err(failure) => self.fail(&failure),
                    },
                    (None, None) => {}
                }
            }
            Err(_) if self.client.is_some() => self.way = Way::Wanted(now + AGAIN),
            Err(failure) => self.fail(&failure),
        }
    }

    /// Bytes from `ssh`.
    pub(super) fn data(&mut self, bytes: &[u8]) {
        self.input.extend(bytes);
    }

    /// No more follow.
    pub(super) fn eof(&mut self) {
        // A terminal's input has no end; what its line editing makes of ^D is another matter.
        self.input_ended = !self.has_terminal;
    }

    pub(super) fn resize(&mut self, size: WindowSize) {
        if let Some(client) = &mut self.client {
            client.resize(size);
        } else if let Some(terminal) = self.request.as_mut().and_then(|request| request.terminal.as_mut()) {
            terminal.size = size;
        }
    }

    pub(super) fn signal(&mut self, name: &[u8]) {
        let signal = std::str::from_utf8(name).ok().and_then(SessionSignal::from_name);
        if let Some((client, signal)) = self.client.as_mut().zip(signal) {
            client.signal(signal);
        }
    }

    /// `ssh` reads no more output: as if the program wrote to a pipe that no one reads.
    pub(super) fn output_unwanted(&mut self) {
        self.unwanted = true;
        if let Some(client) = &mut self.client {
            client.signal(SessionSignal::Pipe);
        }
    }

    /// `ssh` has closed the channel. If that was since both directions have ended, it waits to hear how the program did; else it is
    /// not interested. Whether it waits.
    pub(super) fn closed_by_ssh(&mut self) -> bool {
        self.unwanted = true;
        if self.outputs > 0 {
            self.close();
        }
        !self.closed
    }

    /// No one is interested in the program any more: it ends, if it has not.
    pub(super) fn close(&mut self) {
        if self.closed {
            return;
        }
        self.closed = true;
        self.unwanted = true;
        self.input.clear();
        match &mut self.client {
            Some(client) if self.ended.is_none() => client.hang_up(),
            Some(_) => {}
            None => self.way = Way::Over,
        }
    }

    /// Bytes of the stream. Whether there were any.
    pub(super) fn read(&mut self, buffer: &mut [u8], now: Time) -> bool {
        let Some(wire) = &mut self.wire else { return false };
        match (wire.read(buffer), &mut self.client) {
            (WireRead::Bytes(count), Some(client)) => {
                if let Err(error) = client.received(&buffer[..count], now) {
                    let failure =
                        Failure::new(format!("the peer sent what this version does not understand: {error}"));
                    self.fail(&failure.remedy("update the older of the two programs"));
                }
                true
            }
            (WireRead::End, _) => {
                self.lost(now);
                true
            }
            _ => false,
        }
    }

    fn give_stream(&mut self, now: Time) -> bool {
        let Some(client) = self.client.as_mut().filter(|_| self.way == Way::Up) else { return false };
        let Some(wire) = &mut self.wire else { return false };
        match wire.write(|into, room| client.send(into, room, now)) {
            Ok(written) => {
                if client.finished() && self.closed && wire.is_empty() {
                    self.give_up();
                }
                written
            }
            Err(_) => {
                self.lost(now);
                true
            }
        }
    }

    /// The stream is lost; the session goes on over another, if it was there.
    fn lost(&mut self, now: Time) {
        self.wire = None;
        let Some(client) = &mut self.client else { return };
        if client.finished() {
            self.way = Way::Over;
        } else if client.ticket().is_some() {
            client.stream_lost();
            self.way = Way::Wanted(now);
        } else {
            let failure = Failure::new("the peer closed the stream before the session began");
            self.fail(
                &failure.remedy("it serves no logins if its configuration has no [[login]] for this node"),
            );
        }
    }

    /// Ends as an `ssh` that does not reach its host, and says why.
    fn fail(&mut self, failure: &Failure) {
        let text = format!("strait: {failure}\n");
        let text = if self.has_terminal { text.replace('\n', "\r\n") } else { text };
        self.output.push_back((OutputStream::Err, text.into_bytes()));
        self.ended = Some(Ended::Status(UNREACHED));
        self.client = None;
        self.give_up();
    }

    /// No stream is needed any more.
    fn give_up(&mut self) {
        self.wire = None;
        self.way = Way::Over;
    }
}
