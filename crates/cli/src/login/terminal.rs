//! The person's side of a session: keys, screen, window, and what the link does.
//!
//! ```text
//! here   the loop, the end
//! keys   keys, signals, the window: what the person does
//! show   output, prediction, the link: what the person sees
//! ```
//!
//! One loop: it moves all that can be moved, and sleeps only when nothing could ([`LoginTerminal::turn`]).

mod keys;
mod show;

use std::collections::VecDeque;
use std::io;
use std::os::fd::AsFd;
use std::time::Duration;

use strait_clock::Time;
use strait_login::prediction::{PredictMode, Predictor};
use strait_login::{SaneTerminal, WindowSize};
use strait_node::clock::Clock;
use strait_node::login::{PtySize, RawTerminal, TerminalSignals};
use strait_node::poll::{self, PollFd};

use super::driver::DrivenSession;
use super::escape::{EscapeCharacter, EscapeReader};
use super::output::OutputEnd;
use crate::failure::{Code, Failure};

/// Bytes that one read of the keyboard takes.
const KEYS: usize = 16 << 10;
/// How long what is left to say and to show may take at the end.
const LAST_WORDS: Duration = Duration::from_secs(3);
/// The time that input waits for an answer before that is said: three times the shortest retransmission timeout of TCP (RFC 6298 section
/// 2.4).
const UNANSWERED: Duration = Duration::from_secs(3);
/// The shortest sleep, should something be due that moves nothing.
const LEAST_SLEEP: Duration = Duration::from_millis(1);

/// How a session is shown, and what of it.
pub(super) struct LoginTerminalOptions {
    pub(super) peer: String,
    /// The account that was asked for; empty if none was named.
    pub(super) account: String,
    /// Whether the session has a terminal.
    pub(super) terminal: bool,
    /// Whether this client's keyboard is one, which is made raw.
    pub(super) raw: Option<RawTerminal>,
    pub(super) escape: EscapeCharacter,
    pub(super) predict: PredictMode,
}

/// How the client ends.
pub(super) enum LoginEnd {
    /// As the program did.
    Status(u8),
    /// The session goes on without it.
    Left(String),
    /// It is over, or cannot be reached.
    Failed(Failure),
}

/// The client of one session.
pub(super) struct LoginTerminal {
    options: LoginTerminalOptions,
    session: DrivenSession,
    signals: TerminalSignals,
    clock: Clock,
    escape: EscapeReader,
    predictor: Option<Predictor>,
    sane: SaneTerminal,
    out: OutputEnd,
    errors: OutputEnd,
    /// Typed bytes that the session has no room for.
    typed: VecDeque<u8>,
    /// Bytes of input that the session was given.
    given: u64,
    keyboard_ended: bool,
    /// Whether the keyboard can be read, as the last sleep found.
    keyboard_ready: bool,
    signal_ready: bool,
    /// Whether a line of this program's stands on the screen.
    said_lost: bool,
    /// The time of the oldest input, or of the request for the session, that is not answered.
    asked_at: Option<Time>,
    /// Seconds without an answer, as a line on the screen says.
    said_silent: Option<u64>,
    account: Option<String>,
    ending: Option<(LoginEnd, Time)>,
}

impl LoginTerminal {
    pub(super) fn new(
        options: LoginTerminalOptions,
        session: DrivenSession,
        signals: TerminalSignals,
        clock: Clock,
    ) -> io::Result<LoginTerminal> {
        let size = options.raw.as_ref().and_then(|raw| raw.size().ok()).map(window).unwrap_or_default();
        let predictor = (options.terminal && options.raw.is_some())
            .then(|| Predictor::new(options.predict, size.clamped()));
        let escape = EscapeReader::new(options.escape.0.filter(|_| options.raw.is_some()));
        Ok(LoginTerminal {
            session,
            signals,
            clock,
            escape,
            predictor,
            sane: SaneTerminal::default(),
            out: OutputEnd::new(io::stdout().as_fd())?,
            errors: OutputEnd::new(io::stderr().as_fd())?,
            typed: VecDeque::new(),
            given: 0,
            keyboard_ended: false,
            keyboard_ready: false,
            signal_ready: false,
            said_lost: false,
            asked_at: Some(clock.now()),
            said_silent: None,
            account: None,
            ending: None,
            options,
        })
    }

    /// Until the session ends, or the person leaves it.
    pub(super) fn run(mut self) -> LoginEnd {
        if let Some(raw) = &self.options.raw
            && let Err(error) = raw.begin()
        {
            return LoginEnd::Failed(Failure::new(format!("cannot use the terminal: {error}")));
        }
        loop {
            while self.turn() {}
            if let Some(end) = self.over() {
                return end;
            }
            if let Err(error) = self.sleep() {
                return self.close(LoginEnd::Failed(Failure::new(format!("cannot wait: {error}"))));
            }
        }
    }

    /// The end, once all of it was said and shown.
    fn over(&mut self) -> Option<LoginEnd> {
        let (_, since) = self.ending.as_ref()?;
        let now = self.clock.now();
        let shown = self.out.is_empty() && self.errors.is_empty();
        let told = self.session.is_over() || !self.session.has_stream();
        if !(shown && told) && now.since(*since) < LAST_WORDS {
            return None;
        }
        let (end, _) = self.ending.take()?;
        Some(self.close(end))
    }

    /// Puts the terminal back.
    fn close(&mut self, end: LoginEnd) -> LoginEnd {
        if self.options.raw.is_some() {
            let mut last = self.sane.restore();
            if !matches!(end, LoginEnd::Status(_)) {
                last.extend_from_slice(b"\r\n");
            }
            self.out.push(&last, 0);
            self.out.write();
        }
        if let Some(raw) = &self.options.raw {
            raw.end();
        }
        end
    }

    /// Moves what can be moved once; whether anything was.
    fn turn(&mut self) -> bool {
        let mut moved = self.session.turn();
        // Before what came is shown.
        self.say_silence();
        moved |= self.take_events();
        moved |= self.take_changes();
        moved |= self.take_signals();
        moved |= self.read_keyboard();
        moved |= self.give_input();
        moved |= self.write_output();
        moved |= self.predict_what_is_due();
        moved
    }

    fn write_output(&mut self) -> bool {
        let (credit, out) = self.out.write();
        let (more, errors) = self.errors.write();
        if credit + more > 0 {
            self.session.client().output_taken(credit + more);
        }
        if self.out.is_gone() && self.ending.is_none() {
            // A terminal that vanished, or a reader that has enough.
            if self.options.terminal {
                self.leave("its terminal is gone".to_owned());
            } else {
                self.session.client().hang_up();
                self.end(LoginEnd::Status(128 + PIPE));
            }
            return true;
        }
        out || errors
    }

    /// Leaves the session running.
    fn leave(&mut self, why: String) {
        self.session.client().detach();
        self.end(LoginEnd::Left(why));
    }

    fn end(&mut self, end: LoginEnd) {
        if self.ending.is_none() {
            self.ending = Some((end, self.clock.now()));
        }
    }

    fn wants_keys(&mut self) -> bool {
        // Keys for this program are read even where the session takes nothing for a while.
        let room = self.typed.len() < KEYS;
        !self.keyboard_ended
            && self.ending.is_none()
            && (room || self.options.raw.is_some() && self.typed.len() < 16 * KEYS)
    }

    fn sleep(&mut self) -> io::Result<()> {
        let now = self.clock.now();
        let keys = self.wants_keys();
        let predicted = self.predictor.as_ref().and_then(Predictor::deadline);
        let ending = self.ending.as_ref().map(|(_, since)| *since + LAST_WORDS);
        let silent = self.silence_due();
        let due = [self.session.deadline(), predicted, ending, silent].into_iter().flatten().min();
        let stdin = io::stdin();
        let keyboard = if keys { PollFd::readable(stdin.as_fd()) } else { PollFd::ignored() };
        let [stream, opener] = self.session.interest();
        let signals = PollFd::readable(self.signals.as_fd());
        let mut all = [keyboard, signals, stream, opener, self.out.interest(), self.errors.interest()];
        poll::wait(&mut all, due.map(|at| at.since(now).max(LEAST_SLEEP)))?;
        let [keyboard, signals, ..] = all.each_ref().map(PollFd::is_ready);
        self.keyboard_ready = keyboard;
        self.signal_ready = signals;
        Ok(())
    }
}

/// `SIGPIPE`.
const PIPE: u8 = 13;
/// What ssh ends with when its person ended the connection.
const HUNG_UP: u8 = 255;

/// The size of a window as sessions have it.
pub(super) fn window(size: PtySize) -> WindowSize {
    WindowSize { columns: size.columns, rows: size.rows, width: size.width, height: size.height }
}

/// What the exit code says of a failure.
pub(super) fn own(failure: Failure) -> Failure {
    failure.code(Code::Login)
}
