//! The server's end of a session.

mod display;
mod event;
mod receive;
mod send;

use core::time::Duration;
use std::collections::VecDeque;

use strait_clock::{Deadline, Time};

use display::Display;
pub use event::ServerEvent;

use crate::incoming::{AckPolicy, Incoming};
use crate::log::{Control, SendLog};
use crate::pace::Pace;
use crate::stream_end::{StreamEnd, TYPED};
use crate::{
    Exit, OUTPUT_WINDOW, OutputKind, Refusal, RefusedReason, ResumeRequest, SLACK, TerminalModes, Ticket,
    WindowSize, input_window,
};

/// Output of a terminal that waits at most, so that a flood stalls the terminal and what follows an interrupt comes soon.
const WAITING_MOST: u64 = 64 << 10;
/// The least of that: a screen's worth of text, about.
const WAITING_LEAST: u64 = 2 << 10;
/// What of a link's time may wait, where its rate is known.
const WAITING: Duration = Duration::from_millis(40);
/// Input is acknowledged by its echo. Where there is none, the client is told after a time in which a program would have answered.
const INPUT_ACKS: AckPolicy =
    AckPolicy { every: 64 << 10, least: 1, delay: Duration::from_millis(100), spaced: false };
/// Echoes that may be due at once: more are under way only where something is pasted.
const ECHOES: usize = 64;

/// What a session's server knows of it.
#[derive(Debug)]
pub struct ServerOptions {
    /// What lets the client come back, as its request has it.
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
    /// Its terminal, if it has one.
    display: Option<Display>,
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
    /// Whether a client has shown that it has the ticket.
    known: bool,
    modes: Option<TerminalModes>,
    /// Up to where output does not wait for the window, since a key was typed.
    hurried: u64,
    /// Keystrokes that the program got and that may be echoed yet.
    echoes: usize,
    /// What ends the session's output, and what of that waits until the client has caught up.
    ends: Vec<Control>,
    closing: Vec<Control>,
    exited: bool,
    input_closed: bool,
    now: Time,
}

impl LoginServer {
    /// A session whose request has been read. [`LoginServer::attach`] gives it its first stream.
    #[must_use]
    pub fn new(options: ServerOptions, now: Time) -> LoginServer {
        let window = input_window(options.terminal.is_some()) + SLACK;
        LoginServer {
            display: Display::new(&options),
            ticket: options.ticket,
            account: options.account,
            attached: false,
            greeting: None,
            stream: StreamEnd::new(options.rate_bits),
            log: SendLog::default(),
            incoming: Incoming::new(0, window, INPUT_ACKS),
            pace: Pace::new(options.rate_bits, now),
            events: VecDeque::new(),
            client: 0,
            known: false,
            modes: None,
            hurried: 0,
            echoes: 0,
            ends: Vec::new(),
            closing: Vec::new(),
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
        self.take_output(kind, bytes, echo);
    }

    /// Bytes that [`LoginServer::output`] takes.
    #[must_use]
    pub fn output_room(&self) -> usize {
        let room = OUTPUT_WINDOW.saturating_sub(self.log.kept());
        let Some(display) = &self.display else { return room as usize };
        let reachable = self.reachable();
        if !reachable || !display.streams() {
            return display.room(reachable) as usize;
        }
        let rate = self.pace.raw_in(WAITING).filter(|_| !self.pace.is_starting());
        let waiting = rate.map_or(WAITING_MOST, |bytes| bytes as u64);
        let most = waiting.clamp(WAITING_LEAST, WAITING_MOST);
        room.min(most.saturating_sub(self.log.waiting())) as usize
    }

    /// There is no more output of this kind.
    pub fn output_ended(&mut self, kind: OutputKind) {
        self.close(Control::End(kind.into()));
    }

    fn close(&mut self, control: Control) {
        self.ends.push(control.clone());
        if self.display.as_ref().is_none_or(Display::streams) {
            self.log.control(control, self.now);
        } else {
            self.closing.push(control);
        }
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
            self.close(Control::Exited(exit));
        }
    }

    /// Whether the program has ended and the client has all that there is to tell: nothing follows on the stream.
    #[must_use]
    pub fn finished(&self) -> bool {
        self.exited && self.closing.is_empty() && self.log.acked() == self.log.end()
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
            self.begin_again();
        }
        self.known |= resume.is_some();
        self.greeting = Some(if resume.is_some() { Greeting::Resumed } else { Greeting::Started });
        self.stream.restart();
        self.incoming.restart();
        self.pace.restart(now);
        (self.attached, self.now) = (true, now);
        Ok(())
    }

    /// Gets ready for a client that has nothing. What it gets of a command's output is what no other has taken.
    fn begin_again(&mut self) {
        if self.display.is_none() {
            self.log.rewind(self.log.acked());
            return;
        }
        self.show_all();
        self.closing.clone_from(&self.ends);
        if let Some(modes) = self.modes {
            self.log.control(Control::Modes(modes), self.now);
        }
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

    /// Whether a client has shown that it has the ticket. Until then, no client may be able to come back if the stream is lost.
    #[must_use]
    pub fn is_known(&self) -> bool {
        self.known
    }

    /// The next event.
    pub fn next_event(&mut self) -> Option<ServerEvent> {
        self.events.pop_front()
    }

    /// When [`LoginServer::send`] is to be called if nothing else happens, even without room; there may be room for output then.
    #[must_use]
    pub fn deadline(&self) -> Option<Deadline> {
        let silence = self.pace.silent_at().filter(|_| self.display.is_some());
        let reasons = [
            (self.incoming.deadline(), "acknowledge input"),
            (silence, "the path is silent"),
            (self.catches_up_at(), "output has waited long"),
            (self.paints_at(), "the next difference of screens"),
        ];
        // What is due already waits for room in the stream.
        let due = reasons.into_iter().filter_map(|(at, why)| Some(Deadline { at: at?, why }));
        due.filter(|due| self.attached && due.at > self.now).min_by_key(|due| due.at)
    }

    /// The session's ticket, to compare with that of a request.
    #[must_use]
    pub fn ticket(&self) -> &Ticket {
        &self.ticket
    }
}
