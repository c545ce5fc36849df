//! What the session and the link say, on the person's terminal.

use core::time::Duration;

use strait_clock::Time;
use strait_login::prediction::Predictor;
use strait_login::{ClientEvent, Exit, OutputKind, RefusedReason};

use super::super::driver::LinkChange;
use super::super::tickets::{self, KeptTicket};
use super::{LoginEnd, LoginTerminal, UNANSWERED};
use crate::failure::Failure;
use crate::status_line::cut;

impl LoginTerminal {
    pub(super) fn take_events(&mut self) -> bool {
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
                    self.answered(offset);
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
    pub(super) fn show(&mut self, bytes: &[u8], whole: bool) {
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

    pub(super) fn predict(&mut self, step: impl FnOnce(&mut Predictor, Time) -> Vec<u8>) {
        if let Some(predictor) = &mut self.predictor {
            let shown = step(predictor, self.clock.now());
            self.out.push(&shown, 0);
        }
    }

    pub(super) fn predict_what_is_due(&mut self) -> bool {
        let now = self.clock.now();
        let due = self.predictor.as_ref().and_then(Predictor::deadline).is_some_and(|at| at <= now);
        if due {
            self.predict(Predictor::due);
        }
        // What is due again at once waits for the next sleep.
        false
    }

    pub(super) fn started(&mut self, account: String) {
        self.account = Some(account);
        self.answered(0);
        if let Some(ticket) = self.session.client().ticket().cloned().filter(|_| self.options.terminal) {
            let kept = KeptTicket::new(ticket, &self.options.peer, &self.options.account);
            if let Err(error) = kept.keep() {
                self.say(&format!("this session cannot be resumed by another command: {error}"));
            }
        }
    }

    pub(super) fn forget(&mut self) {
        if let Some(ticket) = self.session.client().ticket() {
            tickets::forget(ticket.session());
        }
    }

    pub(super) fn say_signal(&mut self, exit: &Exit) {
        if let Exit::Signal { name, core_dumped, .. } = exit
            && self.options.raw.is_none()
        {
            let core = if *core_dumped { " (core dumped)" } else { "" };
            self.errors.push(format!("strait: the program was ended by SIG{name}{core}\n").as_bytes(), 0);
        }
    }

    pub(super) fn take_changes(&mut self) -> bool {
        let mut moved = false;
        while let Some(change) = self.session.next_change() {
            moved = true;
            match change {
                LinkChange::Lost if self.ending.is_some() => {}
                LinkChange::Lost => {
                    self.said_lost = true;
                    (self.asked_at, self.said_silent) = (None, None);
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

    /// Notes that the session has answered input up to `offset`.
    fn answered(&mut self, offset: u64) {
        self.asked_at = self.asked_at.filter(|_| offset < self.given).map(|_| self.clock.now());
    }

    /// Returns the time since which the request for the session, or input on a terminal, waits for an answer of any kind. Elsewhere, a
    /// program may take no input for as long as it wants.
    fn unanswered_since(&self) -> Option<Time> {
        let is_awaited = self.predictor.is_some() || self.account.is_none();
        let asked = self.asked_at.filter(|_| is_awaited && self.ending.is_none())?;
        Some(asked.max(self.session.heard_at()))
    }

    /// Returns the time at which [`LoginTerminal::say_silence`] has something to say.
    pub(super) fn silence_due(&self) -> Option<Time> {
        let since = self.unanswered_since()?;
        let said = self.said_silent.map(|seconds| since + Duration::from_secs(seconds + 1));
        Some(said.unwrap_or(since + UNANSWERED))
    }

    /// Says for how long nothing has answered. On a terminal, the line goes away when something has; it is over the first line of a
    /// program's screen, else above the line with the cursor. Elsewhere, it is said once, and once that it is over.
    pub(super) fn say_silence(&mut self) {
        let now = self.clock.now();
        let silent =
            self.unanswered_since().map(|since| now.since(since)).filter(|silent| *silent >= UNANSWERED);
        let seconds = silent.map(|silent| silent.as_secs());
        if seconds == self.said_silent {
            return;
        }
        let before = core::mem::replace(&mut self.said_silent, seconds);
        if self.predictor.is_none() {
            return self.say_silence_once(before, seconds);
        }
        let (peer, keys, whole) = (&self.options.peer, self.escape.shown(), self.sane.is_on_other_screen());
        let line =
            seconds.map(|seconds| format!("{peer} has not answered for {seconds} s ({keys}. ends this)"));
        let own = match (line, before) {
            (Some(line), _) if whole => self.first_line(&line),
            (Some(line), None) => format!("\r\n{}\r\n{}", self.one_row(&line), self.shown_again()),
            (Some(line), Some(_)) => format!("\x1b7\x1b[1A\r\x1b[2K{}\x1b8", self.one_row(&line)),
            (None, _) if whole => self.shown_again(),
            // The line with the cursor is where it was before.
            (None, _) => format!("\r\x1b[2K\x1b[1A\x1b[2K\x1b[1A\x1b[2K{}", self.shown_again()),
        };
        self.predict(|predictor, _| predictor.beside(own.as_bytes()));
    }

    fn say_silence_once(&mut self, before: Option<u64>, now: Option<u64>) {
        let peer = &self.options.peer;
        let line = match (before, now) {
            (None, Some(seconds)) => format!("{peer} has not answered for {seconds} s"),
            (Some(seconds), None) if self.ending.is_none() => {
                format!("{peer} answers again, after {seconds} s")
            }
            _ => return,
        };
        self.say(&line);
    }

    fn columns(&self) -> usize {
        let columns = self.predictor.as_ref().map_or(80, |predictor| predictor.screen().size().1.get());
        usize::from(columns)
    }

    /// A line of this program's own that goes away again: no more of it than one row of the screen, less a column.
    fn one_row(&self, line: &str) -> String {
        cut(&format!("strait: {line}"), self.columns()).to_owned()
    }

    /// A line of this program's own over the first one, as much of it as there is room for.
    fn first_line(&self, line: &str) -> String {
        let line: String = format!(" strait: {line} ").chars().take(self.columns()).collect();
        format!("\x1b7\x1b[1;1H\x1b[0;7m{line}\x1b[m\x1b8")
    }

    /// Shows a line of this program's own.
    pub(super) fn say(&mut self, line: &str) {
        if self.options.raw.is_none() {
            self.errors.push(format!("strait: {line}\n").as_bytes(), 0);
        } else if self.sane.is_on_other_screen() {
            let shown = self.first_line(line);
            self.out.push(shown.as_bytes(), 0);
        } else {
            // Whatever is typed next is shown behind the prompt.
            let own = format!("\r\nstrait: {line}\r\n{}", self.shown_again());
            match &mut self.predictor {
                Some(predictor) => self.out.push(&predictor.beside(own.as_bytes()), 0),
                None => self.out.push(own.as_bytes(), 0),
            }
        }
    }

    /// Draws what a line of this program's own has hidden of a program's screen.
    pub(super) fn draw_again(&mut self) {
        if self.sane.is_on_other_screen() {
            let shown = self.shown_again();
            self.out.push(shown.as_bytes(), 0);
        }
    }

    /// Returns the bytes that draw again whatever a line of this program's own has hidden.
    pub(super) fn shown_again(&self) -> String {
        let Some(predictor) = &self.predictor else { return String::new() };
        // Else the line with the cursor, as a shell would do it.
        if self.sane.is_on_other_screen() {
            predictor.screen().state_formatted()
        } else {
            predictor.row_again()
        }
    }
}
