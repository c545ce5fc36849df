//! The server's end of a session.

mod event;
mod receive;
mod send;

use core::time::Duration;
use std::collections::VecDeque;

use strait_clock::{Deadline, Time};

pub use event::ServerEvent;

use crate::incoming::{AckPolicy, Incoming};
use crate::log::{Control, SendLog};
use crate::pace::Pace;
use crate::stream_end::{StreamEnd, TYPED};
use crate::{
    Exit, INPUT_WINDOW, OUTPUT_WINDOW, OutputKind, Refusal, RefusedReason, ResumeRequest, SLACK,
    TerminalModes, Ticket, WindowSize,
};

/// Output of a terminal that waits at most, so that a flood stalls the terminal and what follows an interrupt comes soon.
const WAITING_MOST: u64 = 64 << 10;
/// The least of that: two reads of a terminal.
const WAITING_LEAST: u64 = 8 << 10;
/// What of a link's time may wait, where its rate is known.
const WAITING: Duration = Duration::from_millis(40);
/// Input is acknowledged by its echo. Where there is none, the client is told after a time in which a program would have answered.
const INPUT_ACKS: AckPolicy = AckPolicy { every: 64 << 10, least: 1, delay: Duration::from_millis(100) };
/// Echoes that may be due at once: more are under way only where something is pasted.
const ECHOES: usize = 64;

/// What a session's server knows of it.
#[derive(Debug)]
pub struct ServerOptions {
    /// What lets the client come back; it is told.
    pub ticket: Ticket,
    /// The account, which the client is told: printable, at most 255 bytes.
    pub account: String,
    /// The size of the terminal; nothing for a command without one.
    pub terminal: Option<WindowSize>,
    /// The rate of the link to the client in bit/s, if it is known.
    pub rate_bits: Option<u64>,
}

/// What the client is told first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Greeting {
    Started,
    Resumed,
}

/// The server's end of a session. It outlives the streams.
///
/// After every call the caller takes all events, and then gives the stream what [`LoginServer::send`] has.
#[derive(Debug)]
pub struct LoginServer {
    ticket: Ticket,
    account: String,
    terminal: bool,
    /// Whether there is a stream, and what is to be said on it first.
    attached: bool,
    greeting: Option<Greeting>,
    stream: StreamEnd,
    log: SendLog,
    incoming: Incoming,
    pace: Pace,
    events: VecDeque<ServerEvent>,
    /// How many clients there were that knew nothing, less one: the client's number.
    client: u32,
    modes: Option<TerminalModes>,
    /// Keystrokes that the program got and that may be echoed yet.
    echoes: usize,
    exited: bool,
    input_closed: bool,
    now: Time,
}

impl LoginServer {
    /// A session whose request has been read. [`LoginServer::attach`] gives it its first stream.
    #[must_use]
    pub fn new(options: ServerOptions, now: Time) -> LoginServer {
        LoginServer {
            ticket: options.ticket,
            account: options.account,
            terminal: options.terminal.is_some(),
            attached: false,
            greeting: None,
            stream: StreamEnd::new(options.rate_bits),
            log: SendLog::default(),
            incoming: Incoming::new(0, INPUT_WINDOW + SLACK, INPUT_ACKS),
            pace: Pace::new(options.rate_bits, now),
            events: VecDeque::new(),
            client: 0,
            modes: None,
            echoes: 0,
            exited: false,
            input_closed: false,
            now,
        }
    }

    /// Takes output of the program, at most [`LoginServer::output_room`]; while there is no room, the terminal or pipe is not read.
    pub fn output(&mut self, kind: OutputKind, bytes: &[u8], now: Time) {
        self.now = now;
        if self.exited || bytes.is_empty() {
            return;
        }
        let echo = self.echoes > 0 && bytes.len() <= TYPED && kind == OutputKind::Terminal;
        self.echoes = if echo { self.echoes - 1 } else { 0 };
        self.log.push(kind.into(), bytes, echo, now);
    }

    /// Bytes that [`LoginServer::output`] takes.
    #[must_use]
    pub fn output_room(&self) -> usize {
        let room = OUTPUT_WINDOW.saturating_sub(self.log.kept());
        if !self.terminal {
            return room as usize;
        }
        let waiting = self.pace.raw_in(WAITING).map_or(WAITING_MOST, |bytes| bytes as u64);
        let most = waiting.clamp(WAITING_LEAST, WAITING_MOST);
        room.min(most.saturating_sub(self.log.waiting())) as usize
    }

    /// There is no more output of this kind.
    pub fn output_ended(&mut self, kind: OutputKind) {
        self.log.control(Control::End(kind.into()), self.now);
    }

    /// How the terminal treats input from here on.
    pub fn modes(&mut self, modes: TerminalModes) {
        if self.modes != Some(modes) {
            self.modes = Some(modes);
            self.log.control(Control::Modes(modes), self.now);
        }
    }

    /// The program's terminal or pipe took so many bytes of input.
    pub fn input_written(&mut self, bytes: usize, now: Time) {
        self.now = now;
        self.incoming.take(bytes as u64, now);
        self.echoes = if bytes <= TYPED { (self.echoes + bytes).min(ECHOES) } else { 0 };
    }

    /// The program takes no more input: what arrives is thrown away, as if it were written.
    pub fn input_closed(&mut self) {
        self.input_closed = true;
        self.incoming.take_all(self.now);
    }

    /// The program ended: the client hears of it after all output. Output that comes later is thrown away.
    pub fn exited(&mut self, exit: Exit) {
        if !core::mem::replace(&mut self.exited, true) {
            self.log.control(Control::Exited(exit), self.now);
        }
    }

    /// Whether the program has ended and the client has all that there is to tell: nothing follows on the stream.
    #[must_use]
    pub fn finished(&self) -> bool {
        self.exited && self.log.acked() == self.log.end()
    }

    /// There is a stream: the first, or with `resume` a later one, whose ticket the caller has compared. A stream before it is of no
    /// use any more.
    ///
    /// # Errors
    /// [`Refusal`] for a client that has been replaced by another, or is not where it says; it is to be told so, and the session stays
    /// as it was.
    pub fn attach(&mut self, resume: Option<&ResumeRequest>, now: Time) -> Result<(), Refusal> {
        if let Some(point) = resume.and_then(|resume| resume.point) {
            let refuse = |text: &str| Refusal { reason: RefusedReason::Busy, text: text.to_owned() };
            if point.client != self.client {
                return Err(refuse("another client has resumed this session"));
            }
            if !self.log.rewind(point.received) {
                return Err(refuse("the client is not where this session is"));
            }
        } else if resume.is_some() {
            self.client += 1;
            self.log.rewind(self.log.acked());
        }
        self.greeting = Some(if resume.is_some() { Greeting::Resumed } else { Greeting::Started });
        self.stream.restart();
        self.incoming.restart();
        self.pace.restart(now);
        (self.attached, self.now) = (true, now);
        Ok(())
    }

    /// The stream is lost.
    pub fn stream_lost(&mut self, now: Time) {
        (self.attached, self.now) = (false, now);
        self.greeting = None;
        self.stream.restart();
    }

    /// Whether there is a stream.
    #[must_use]
    pub fn attached(&self) -> bool {
        self.attached
    }

    /// The next event.
    pub fn next_event(&mut self) -> Option<ServerEvent> {
        self.events.pop_front()
    }

    /// When [`LoginServer::send`] is to be called if nothing else happens.
    #[must_use]
    pub fn deadline(&self) -> Option<Deadline> {
        let at = self.incoming.deadline().filter(|_| self.attached)?;
        Some(Deadline { at, why: "acknowledge input" })
    }

    /// The session's ticket, to compare with that of a request.
    #[must_use]
    pub fn ticket(&self) -> &Ticket {
        &self.ticket
    }
}
