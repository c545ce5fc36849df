//! The client's end of a session.

mod event;
mod receive;
mod trip;

use core::time::Duration;
use std::collections::VecDeque;

use strait_clock::{Deadline, Time};

pub use event::ClientEvent;
use trip::TripMeter;

use crate::incoming::{AckPolicy, Incoming};
use crate::log::{Control, SendLog};
use crate::message::{Channel, LoginMessage};
use crate::screen::SessionScreen;
use crate::stream_end::StreamEnd;
use crate::{
    OUTPUT_WINDOW, Request, ResumePoint, ResumeRequest, SLACK, SessionRequest, SessionSignal, Ticket,
    WindowSize, input_window,
};

/// What a client's end may know beside its request.
#[derive(Clone, Debug, Default)]
pub struct ClientOptions {
    /// The rate of the link to the server in bit/s, if it is known.
    pub rate_bits: Option<u64>,
}

/// Output of a terminal is acknowledged every 20 ms while much comes: that is what the server's window follows. Less than 512 bytes
/// wait for the next message.
const TERMINAL_ACKS: AckPolicy =
    AckPolicy { every: 64 << 10, least: crate::pace::PROMPT, delay: Duration::from_millis(20), spaced: true };
/// Output of a command only has to keep the window open.
const COMMAND_ACKS: AckPolicy = AckPolicy {
    every: 256 << 10,
    least: crate::pace::PROMPT,
    delay: Duration::from_millis(50),
    spaced: true,
};

/// How far a stream is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// There is no stream.
    Away,
    /// The request has to be sent.
    Asking,
    /// The server's answer is awaited.
    Asked,
    /// The session is there.
    Open,
    /// Nothing follows.
    Over,
}

/// The client's end of a session. It survives the loss of its streams.
///
/// After every call the caller takes all events, and then gives the stream what [`LoginClient::send`] has.
#[derive(Debug)]
pub struct LoginClient {
    request: Request,
    stage: Stage,
    stream: StreamEnd,
    log: SendLog,
    incoming: Incoming,
    events: VecDeque<ClientEvent>,
    ticket: Option<Ticket>,
    /// The session that this client wants, until the server has said that it is there.
    wanted: Option<SessionRequest>,
    /// Whether it may be there: it was asked for, and the answer may be lost.
    may_be_there: bool,
    /// Which of the session's clients this is; nothing before the session has told.
    number: Option<u32>,
    /// Whether what is typed comes from a person: the session has a terminal.
    terminal: bool,
    /// What the terminal shows, if there is one.
    screen: Option<SessionScreen>,
    /// Whether the terminal shows something else, which goes to its scrollback when the session's screen comes.
    foreign: bool,
    /// Bytes of input that are kept at most.
    input_window: u64,
    input_ended: bool,
    /// Whether the server is to hear that this client has the ticket.
    confirms: bool,
    /// Whether this client leaves.
    leaving: bool,
    /// Whether the program ended.
    exited: bool,
    /// Input that was given and taken when this client's log began, and what the caller heard of.
    input_told: u64,
    trip: TripMeter,
    now: Time,
}

impl LoginClient {
    /// A new session. The caller has checked the request ([`SessionRequest::check`]); `ticket` is of random numbers.
    #[must_use]
    pub fn start(ticket: Ticket, request: SessionRequest, options: ClientOptions) -> LoginClient {
        let size = request.terminal.as_ref().map(|terminal| terminal.size);
        let mut client = LoginClient::new(Request::Start(ticket.clone(), request.clone()), size, &options);
        (client.ticket, client.wanted, client.number) = (Some(ticket), Some(request), Some(0));
        client
    }

    /// Back to a session of which this client knows nothing but the ticket: the screen comes first, of a command what output is left.
    /// `size`: the window, if this client has a terminal.
    #[must_use]
    pub fn resume(ticket: Ticket, size: Option<WindowSize>, options: ClientOptions) -> LoginClient {
        let request = Request::Resume(ResumeRequest { ticket: ticket.clone(), point: None });
        let mut client = LoginClient::new(request, size, &options);
        client.foreign = size.is_some();
        client.ticket = Some(ticket);
        if let Some(size) = size {
            client.resize(size);
        }
        client
    }

    /// A list of sessions.
    #[must_use]
    pub fn list() -> LoginClient {
        LoginClient::new(Request::List, None, &ClientOptions::default())
    }

    fn new(request: Request, size: Option<WindowSize>, options: &ClientOptions) -> LoginClient {
        let terminal = size.is_some();
        let policy = if terminal { TERMINAL_ACKS } else { COMMAND_ACKS };
        // A client that comes back from another process has not seen what the session was asked for: the smaller fits both kinds.
        let small = !matches!(&request, Request::Start(_, start) if start.terminal.is_none());
        LoginClient {
            request,
            stage: Stage::Asking,
            stream: StreamEnd::new(options.rate_bits),
            log: SendLog::default(),
            incoming: Incoming::new(0, OUTPUT_WINDOW + SLACK, policy),
            events: VecDeque::new(),
            ticket: None,
            wanted: None,
            may_be_there: false,
            number: None,
            terminal,
            screen: size.map(SessionScreen::new),
            foreign: false,
            input_window: input_window(small),
            input_ended: false,
            confirms: false,
            leaving: false,
            exited: false,
            input_told: 0,
            trip: TripMeter::default(),
            now: Time::ZERO,
        }
    }

    /// Takes input: as many bytes as it says.
    pub fn input(&mut self, bytes: &[u8]) -> usize {
        let taken = &bytes[..bytes.len().min(self.input_room())];
        self.log.push(Channel::Input, taken, false, self.now);
        taken.len()
    }

    /// Bytes that [`LoginClient::input`] takes.
    #[must_use]
    pub fn input_room(&self) -> usize {
        if self.input_ended || self.stage == Stage::Over {
            return 0;
        }
        self.input_window.saturating_sub(self.log.kept()) as usize
    }

    /// There is no more input: the end of a command's standard input.
    pub fn end_input(&mut self) {
        if !core::mem::replace(&mut self.input_ended, true) {
            self.control(Control::End(Channel::Input));
        }
    }

    /// The window has this size now.
    pub fn resize(&mut self, size: WindowSize) {
        if let Some(screen) = &mut self.screen {
            screen.resize(size);
        }
        self.control(Control::Resize(size));
    }

    /// Sends a signal to the program.
    pub fn signal(&mut self, signal: SessionSignal) {
        self.control(Control::Signal(signal));
    }

    /// Leaves the session running. [`LoginClient::finished`] once the server has heard of it.
    pub fn detach(&mut self) {
        self.leave(Control::Detach);
    }

    /// Ends the session, as a telephone line that is hung up does. [`LoginClient::finished`] once the server has heard of it.
    pub fn hang_up(&mut self) {
        self.leave(Control::HangUp);
    }

    fn leave(&mut self, control: Control) {
        if !core::mem::replace(&mut self.leaving, true) {
            self.input_ended = true;
            self.log.control(control, self.now);
        }
    }

    /// What the program does not read is not worth more memory than the window has beside input: then the newest is left out.
    fn control(&mut self, control: Control) {
        let room = (self.input_window + SLACK).saturating_sub(self.log.kept());
        if !self.leaving && room > 4 * crate::log::CONTROL {
            self.log.control(control, self.now);
        }
    }

    /// So many bytes of output were written: room for more.
    pub fn output_taken(&mut self, bytes: usize) {
        self.incoming.take(bytes as u64, self.now);
    }

    /// The next event.
    pub fn next_event(&mut self) -> Option<ClientEvent> {
        self.events.pop_front()
    }

    /// Appends at most `room` bytes for the stream. What does not fit follows with the next call.
    pub fn send(&mut self, into: &mut Vec<u8>, room: usize, now: Time) {
        self.now = now;
        let mut room = room;
        loop {
            room = self.stream.give(into, room);
            if room == 0 || self.stream.has_more() || !self.make(room) {
                return;
            }
        }
    }

    /// Makes the next message, if there is one.
    fn make(&mut self, room: usize) -> bool {
        match self.stage {
            Stage::Away | Stage::Over => return false,
            Stage::Asking => {
                self.stream.put(&self.request.message(), 0);
                self.stage = Stage::Asked;
                self.may_be_there |= matches!(self.request, Request::Start(..));
                return true;
            }
            // What a session that goes on has of the input, it has to say first.
            Stage::Asked if !matches!(self.request, Request::Start(..)) => return false,
            Stage::Asked | Stage::Open => {}
        }
        if core::mem::take(&mut self.confirms) {
            let taken = self.incoming.tell(self.now);
            self.stream.put(&LoginMessage::Small(&[]), taken);
            return true;
        }
        if let Some(piece) = self.log.peek() {
            let taken = self.incoming.tell(self.now);
            let (cost, _) = self.stream.put_piece(&piece, room, self.terminal, taken);
            self.log.advance(cost);
            self.trip.sent(self.log.sent(), self.now);
            return true;
        }
        if self.stage == Stage::Open && self.incoming.due(self.now) {
            let taken = self.incoming.tell(self.now);
            self.stream.put(&LoginMessage::Small(&[]), taken);
            return true;
        }
        false
    }

    /// Whether [`LoginClient::send`] has anything.
    #[must_use]
    pub fn wants_to_send(&self, now: Time) -> bool {
        let makes = match self.stage {
            Stage::Away | Stage::Over => false,
            Stage::Asking => true,
            Stage::Asked => matches!(self.request, Request::Start(..)) && self.log.has_more(),
            Stage::Open => self.confirms || self.log.has_more() || self.incoming.due(now),
        };
        makes || self.stream.has_more()
    }

    /// The stream is lost: what was not acknowledged is kept.
    pub fn stream_lost(&mut self) {
        if self.stage != Stage::Over {
            self.stage = Stage::Away;
        }
        // On the next stream, the request shows it.
        self.confirms = false;
        self.stream.restart();
        self.incoming.restart();
        self.trip.restart();
    }

    /// There is a new stream: what [`LoginClient::send`] has begins with a [`Request`].
    pub fn reconnect(&mut self, now: Time) {
        self.stream_lost();
        self.now = now;
        if self.stage == Stage::Over {
            return;
        }
        self.stage = Stage::Asking;
        match (&self.ticket, &self.wanted) {
            // The server has not begun: all over again.
            (Some(ticket), Some(wanted)) if !self.may_be_there => {
                self.request = Request::Start(ticket.clone(), wanted.clone());
                self.log.rewind(0);
            }
            (Some(ticket), _) => {
                let received = self.incoming.received();
                let point = self.number.map(|client| ResumePoint { client, received });
                self.request = Request::Resume(ResumeRequest { ticket: ticket.clone(), point });
            }
            // A list is asked for again.
            (None, _) => {}
        }
    }

    /// The ticket, once the session is there.
    #[must_use]
    pub fn ticket(&self) -> Option<&Ticket> {
        self.ticket.as_ref().filter(|_| self.wanted.is_none())
    }

    /// The smoothed time from a keystroke to what the server says of it, its echo for example; nothing before the first.
    #[must_use]
    pub fn round_trip(&self) -> Option<Duration> {
        self.trip.smoothed()
    }

    /// When [`LoginClient::send`] is to be called if nothing else happens.
    #[must_use]
    pub fn deadline(&self) -> Option<Deadline> {
        // What is due already waits for room in the stream.
        let due = |at: &Time| self.stage == Stage::Open && *at > self.now;
        let at = self.incoming.deadline().filter(due)?;
        Some(Deadline { at, why: "acknowledge output" })
    }

    /// Whether nothing follows for this client, and the server knows what it has to: the stream may be closed. That of a client that
    /// leaves may be closed once the server has said that it heard so: what is on its way when a stream is closed may be lost.
    #[must_use]
    pub fn finished(&self) -> bool {
        let exit_told = self.exited && self.incoming.untold() == 0 && self.incoming.is_taken();
        let leave_heard = self.leaving && self.log.acked() == self.log.end();
        // Of a session that has not begun there is nothing to be told without a stream.
        let never_began = self.leaving && self.stage == Stage::Away && self.ticket().is_none();
        match self.stage {
            Stage::Over => true,
            _ => !self.stream.has_more() && (exit_told || leave_heard || never_began),
        }
    }
}
