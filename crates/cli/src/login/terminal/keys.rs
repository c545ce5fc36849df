//! Keys, signals and the window: what the person does.

use std::io::{self, Read};

use strait_node::login::{TerminalSignal, stop_self};

use super::super::escape::{EscapeKey, HELP, Typed};
use super::{HUNG_UP, KEYS, LoginEnd, LoginTerminal, window};

/// Times that what is on its way is moved before this program stops.
const PARTING_TURNS: usize = 16;

impl LoginTerminal {
    pub(super) fn take_signals(&mut self) -> bool {
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

    pub(super) fn resize(&mut self) {
        let size = self.options.raw.as_ref().and_then(|raw| raw.size().ok()).map(window);
        if let Some(size) = size.filter(|_| self.options.terminal) {
            self.predict(|predictor, _| predictor.resize(size.clamped()));
            self.session.client().resize(size);
        }
    }

    pub(super) fn read_keyboard(&mut self) -> bool {
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
                        Typed::Key(key) => {
                            // What was typed before goes first, and is not left behind.
                            self.give_input();
                            self.escape_key(key);
                        }
                    }
                }
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => self.keyboard_ended(),
        }
        true
    }

    pub(super) fn keyboard_ended(&mut self) {
        self.keyboard_ended = true;
        if self.options.raw.is_some() {
            self.leave("its keyboard is gone".to_owned());
        }
    }

    pub(super) fn type_in(&mut self, bytes: &[u8]) {
        let offset = self.given + self.typed.len() as u64;
        self.predict(|predictor, now| predictor.typed(bytes, offset, now));
        self.typed.extend(bytes);
    }

    /// Gives the session what was typed.
    pub(super) fn give_input(&mut self) -> bool {
        let mut moved = false;
        while !self.typed.is_empty() {
            let (first, _) = self.typed.as_slices();
            let taken = self.session.client().input(first);
            if taken == 0 {
                break;
            }
            self.typed.drain(..taken);
            self.given += taken as u64;
            self.asked_at.get_or_insert(self.clock.now());
            moved = true;
        }
        if self.keyboard_ended && self.typed.is_empty() && self.session.client().input_room() > 0 {
            self.session.client().end_input();
            moved = true;
        }
        moved
    }

    pub(super) fn escape_key(&mut self, key: EscapeKey) {
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
    pub(super) fn state(&mut self) -> String {
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

    pub(super) fn stop(&mut self) {
        let Some(raw) = &self.options.raw else { return };
        // Output that comes meanwhile is not waited for.
        let _ = (0..PARTING_TURNS).take_while(|_| self.session.turn()).count();
        self.out.push(&self.sane.restore(), 0);
        self.out.write();
        raw.end();
        stop_self();
        // From here on it goes on.
        if raw.begin().is_err() {
            return;
        }
        let shown = self.sane.change_again(&self.shown_again());
        self.out.push(&shown, 0);
        self.resize();
    }
}
