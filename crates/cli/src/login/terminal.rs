//! The person's side of a session: keys, screen, window, and what the link does.
//!
//! One loop: it moves all that can be moved, and sleeps only when nothing could ([`LoginTerminal::turn`]).

use std::collections::VecDeque;
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::time::Duration;

use strait_clock::Time;
use strait_login::prediction::{PredictMode, Predictor};
use strait_login::{ClientEvent, Exit, OutputKind, RefusedReason, WindowSize};
use strait_node::clock::Clock;
use strait_node::login::{PtySize, RawTerminal, TerminalSignal, TerminalSignals, stop_self};
use strait_node::poll::{self, PollFd};

use super::driver::{DrivenSession, LinkChange};
use super::escape::{EscapeCharacter, EscapeKey, EscapeReader, HELP, Typed};
use super::output::OutputEnd;
use super::sane::SaneTerminal;
use super::tickets::{self, KeptTicket};
use crate::failure::{Code, Failure};

/// Bytes that one read of the keyboard takes.
const KEYS: usize = 16 << 10;
/// How long what is left to say and to show may take at the end.
const LAST_WORDS: Duration = Duration::from_secs(3);
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

    fn take_events(&mut self) -> bool {
        let mut moved = false;
        while let Some(event) = self.session.next_event() {
            moved = true;
            match event {
                ClientEvent::Started { account } => self.started(account),
                ClientEvent::Output { kind: OutputKind::Err, bytes } => self.errors.push(&bytes, bytes.len()),
                ClientEvent::Output { bytes, .. } => self.show(&bytes, false),
                ClientEvent::Screen(bytes) | ClientEvent::Scrollback(bytes) => self.show(&bytes, true),
                ClientEvent::Modes(modes) => self.predict(|predictor, _| predictor.modes(modes)),
                ClientEvent::InputTaken(offset) => {
                    let trip = self.session.client().round_trip();
                    self.predict(|predictor, now| {
                        if let Some(trip) = trip {
                            predictor.round_trip(trip);
                        }
                        predictor.confirmed(offset, now)
                    });
                }
                ClientEvent::OutputEnded(_) | ClientEvent::Sessions(_) => {}
                ClientEvent::Exited(exit) => {
                    self.forget();
                    self.end(LoginEnd::Status(exit.shell_status()));
                    self.say_signal(&exit);
                }
                ClientEvent::Refused(refusal) => {
                    if refusal.reason == RefusedReason::NoSuchSession {
                        self.forget();
                    }
                    let text = if refusal.text.is_empty() { "no reason given" } else { &refusal.text };
                    self.end(LoginEnd::Failed(Failure::new(format!("the peer refuses: {text}"))));
                }
            }
        }
        moved
    }

    /// Output of the session: `whole` for what draws its screen anew.
    fn show(&mut self, bytes: &[u8], whole: bool) {
        self.sane.advance(bytes);
        let now = self.clock.now();
        match &mut self.predictor {
            Some(predictor) => {
                let shown = if whole { predictor.redrawn(bytes, now) } else { predictor.output(bytes, now) };
                self.out.push(&shown, bytes.len());
            }
            None => self.out.push(bytes, bytes.len()),
        }
    }

    fn predict(&mut self, step: impl FnOnce(&mut Predictor, Time) -> Vec<u8>) {
        if let Some(predictor) = &mut self.predictor {
            let shown = step(predictor, self.clock.now());
            self.out.push(&shown, 0);
        }
    }

    fn predict_what_is_due(&mut self) -> bool {
        let now = self.clock.now();
        let due = self.predictor.as_ref().and_then(Predictor::deadline).is_some_and(|at| at <= now);
        if due {
            self.predict(Predictor::due);
        }
        // What is due again at once waits for the next sleep.
        false
    }

    fn started(&mut self, account: String) {
        self.account = Some(account);
        if let Some(ticket) = self.session.client().ticket().cloned().filter(|_| self.options.terminal) {
            let kept = KeptTicket::new(ticket, &self.options.peer, &self.options.account);
            if let Err(error) = kept.keep() {
                self.say(&format!("this session cannot be resumed by another command: {error}"));
            }
        }
    }

    fn forget(&mut self) {
        if let Some(ticket) = self.session.client().ticket() {
            tickets::forget(ticket.session());
        }
    }

    fn say_signal(&mut self, exit: &Exit) {
        if let Exit::Signal { name, core_dumped, .. } = exit
            && self.options.raw.is_none()
        {
            let core = if *core_dumped { " (core dumped)" } else { "" };
            self.errors.push(format!("strait: the program was ended by SIG{name}{core}\n").as_bytes(), 0);
        }
    }

    fn take_changes(&mut self) -> bool {
        let mut moved = false;
        while let Some(change) = self.session.next_change() {
            moved = true;
            match change {
                LinkChange::Lost if self.ending.is_some() => {}
                LinkChange::Lost => {
                    self.said_lost = true;
                    let keys = self.options.raw.is_some();
                    let keys =
                        if keys { format!(" ({}. ends this)", self.escape.shown()) } else { String::new() };
                    let peer = self.options.peer.clone();
                    self.say(&format!("the connection to {peer} is lost; trying to get it back{keys}"));
                }
                LinkChange::Back => {
                    if std::mem::take(&mut self.said_lost) {
                        let peer = self.options.peer.clone();
                        self.say(&format!("connected to {peer} again"));
                        self.draw_again();
                    }
                }
                LinkChange::Failed(failure) => self.end(LoginEnd::Failed(failure)),
            }
        }
        moved
    }

    /// Shows a line of this program's own.
    fn say(&mut self, line: &str) {
        if self.options.raw.is_none() {
            self.errors.push(format!("strait: {line}\n").as_bytes(), 0);
        } else if self.sane.is_on_other_screen() {
            // Over the first line, which is drawn again.
            self.out.push(format!("\x1b7\x1b[1;1H\x1b[0;7m strait: {line} \x1b[m\x1b8").as_bytes(), 0);
        } else {
            self.out.push(format!("\r\nstrait: {line}\r\n").as_bytes(), 0);
        }
    }

    /// Draws what a line of this program's own has hidden.
    fn draw_again(&mut self) {
        let Some(predictor) = &self.predictor else { return };
        let screen = predictor.screen();
        let shown = if self.sane.is_on_other_screen() {
            screen.state_formatted()
        } else {
            // The line with the cursor, as a shell would do it.
            let (row, _) = screen.cursor_position();
            screen.rows_formatted(0, screen.size().1.get()).nth(usize::from(row)).unwrap_or_default()
        };
        self.out.push(shown.as_bytes(), 0);
    }

    fn take_signals(&mut self) -> bool {
        if !std::mem::take(&mut self.signal_ready) {
            return false;
        }
        while let Some(signal) = self.signals.next() {
            match signal {
                TerminalSignal::Window => self.resize(),
                TerminalSignal::End(number) => {
                    let status = u8::try_from(128 + number).unwrap_or(255);
                    if self.options.terminal {
                        self.leave(format!("ended by signal {number}"));
                    } else {
                        self.session.client().hang_up();
                        self.end(LoginEnd::Status(status));
                    }
                }
            }
        }
        true
    }

    fn resize(&mut self) {
        let size = self.options.raw.as_ref().and_then(|raw| raw.size().ok()).map(window);
        if let Some(size) = size.filter(|_| self.options.terminal) {
            self.predict(|predictor, _| predictor.resize(size.clamped()));
            self.session.client().resize(size);
        }
    }

    fn read_keyboard(&mut self) -> bool {
        if !std::mem::take(&mut self.keyboard_ready) || !self.wants_keys() {
            return false;
        }
        let mut buffer = vec![0; KEYS];
        match io::stdin().lock().read(&mut buffer) {
            Ok(0) => self.keyboard_ended(),
            Ok(length) => {
                for typed in self.escape.read(buffer.get(..length).unwrap_or_default()) {
                    match typed {
                        Typed::Bytes(bytes) => self.type_in(&bytes),
                        Typed::Key(key) => self.escape_key(key),
                    }
                }
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => self.keyboard_ended(),
        }
        true
    }

    fn keyboard_ended(&mut self) {
        self.keyboard_ended = true;
        if self.options.raw.is_some() {
            self.leave("its keyboard is gone".to_owned());
        }
    }

    fn type_in(&mut self, bytes: &[u8]) {
        let offset = self.given + self.typed.len() as u64;
        self.predict(|predictor, now| predictor.typed(bytes, offset, now));
        self.typed.extend(bytes);
    }

    /// Gives the session what was typed.
    fn give_input(&mut self) -> bool {
        let mut moved = false;
        while !self.typed.is_empty() {
            let (first, _) = self.typed.as_slices();
            let taken = self.session.client().input(first);
            if taken == 0 {
                break;
            }
            self.typed.drain(..taken);
            self.given += taken as u64;
            moved = true;
        }
        if self.keyboard_ended && self.typed.is_empty() && self.session.client().input_room() > 0 {
            self.session.client().end_input();
            moved = true;
        }
        moved
    }

    fn escape_key(&mut self, key: EscapeKey) {
        match key {
            EscapeKey::End if self.session.has_stream() => {
                self.forget();
                self.session.client().hang_up();
                self.end(LoginEnd::Status(HUNG_UP));
            }
            EscapeKey::End => self.leave("the peer is not reached".to_owned()),
            EscapeKey::Detach => self.leave("as asked".to_owned()),
            EscapeKey::Stop => self.stop(),
            EscapeKey::State => {
                let state = self.state();
                self.say(&state);
                self.draw_again();
            }
            EscapeKey::Help => {
                let keys = HELP.map(|line| line.replace('%', &self.escape.shown()));
                let text = keys.join("\r\n  ");
                self.say(&format!("keys at the beginning of a line:\r\n  {text}"));
                self.draw_again();
            }
        }
    }

    /// The session in a line.
    fn state(&mut self) -> String {
        let account = self.account.clone().unwrap_or_else(|| "?".to_owned());
        let number = self.session.client().ticket().map(|ticket| ticket.session().to_string());
        let trip =
            self.session.client().round_trip().map(|trip| format!(", round trip {} ms", trip.as_millis()));
        let silent = self.clock.now().since(self.session.heard_at()).as_secs();
        let link = if self.session.has_stream() { "connected" } else { "not connected" };
        format!(
            "{account} at {}, session {}, {link}, heard {silent} s ago{}",
            self.options.peer,
            number.unwrap_or_default(),
            trip.unwrap_or_default()
        )
    }

    fn stop(&mut self) {
        let Some(raw) = &self.options.raw else { return };
        self.out.push(&self.sane.restore(), 0);
        self.out.write();
        raw.end();
        stop_self();
        // From here on it goes on.
        if raw.begin().is_err() {
            return;
        }
        if self.sane.is_on_other_screen()
            && let Some(predictor) = &self.predictor
        {
            let screen = predictor.screen();
            let shown = [&b"\x1b[?1049h"[..], screen.state_formatted().as_bytes()].concat();
            self.out.push(&shown, 0);
        } else {
            self.draw_again();
        }
        self.resize();
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
        let due = [self.session.deadline(), predicted, ending].into_iter().flatten().min();
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
