//! The terminal of a session, and how its client comes to show the same.
//!
//! Output is sent as it is, and the model follows what is sent. When more waits than a screen is worth, for longer than a path takes, or
//! while the client is away, the session *catches up*: the model takes the output, the client gets differences of screens, and what
//! scrolls off follows in messages of its own. While that lasts, output is sent as differences only, so that the client's scrollback has
//! every row in its order. When the client has everything, output is sent as it is again.

use core::time::Duration;
use std::collections::VecDeque;

use strait_clock::Time;

use super::LoginServer;
use crate::log::{Piece, SendLog};
use crate::message::{Channel, MAX_UNIT};
use crate::screen::{
    ChangedModes, Known, SessionScreen, Snapshot, decode_rows, difference, encode_rows, is_question,
};
use crate::stream_end::TYPED;
use crate::{OutputKind, ServerOptions, WindowSize};

/// Bytes of rows that wait for a client that is there, at most: then the terminal is not read.
const ROWS_THERE: u64 = 64 << 10;
/// The same for a client that is away: the oldest are lost, and it is said.
const ROWS_AWAY: u64 = 1 << 20;
/// Bytes of rows in a message: on a link of 1.54 Mbit/s, and where they shrink to a third, a keystroke waits for 14 ms.
const ROWS_AT_ONCE: usize = 8 << 10;
/// Bytes of a difference in a message.
const SCREEN_AT_ONCE: usize = 32 << 10;
/// For how long output waits at least before the session catches up: a person does not see that. Or two round trips, once they are known.
const PATIENCE: Duration = Duration::from_millis(500);
/// The same before that: a satellite's link needs three round trips until its window is open.
const FIRST_PATIENCE: Duration = Duration::from_secs(2);
/// Between two differences at least, as long as the first is on its way: what a film shows. Or a quarter of a round trip.
const FRAME: Duration = Duration::from_millis(40);
/// What leaves within this time is not in the way of a key.
const SOON: Duration = Duration::from_millis(50);
/// For how long the first difference after a key waits, so that what the program answers is in it.
const BRIEF: Duration = Duration::from_millis(10);
/// What a key brings at first, in bytes: a line, a prompt, with their colours. So much does not wait for the window.
const ANSWER: u64 = 512;

/// Questions of programs to the terminal that wait for the next difference, at most: the oldest are lost.
const QUESTIONS: usize = 16;
/// For how long a question waits at most: the answer to one that the program has given up would be taken for what is typed. No program is
/// known that waits longer.
const QUESTION: Duration = Duration::from_secs(10);

/// How the client comes to show the same.
#[derive(Debug)]
enum Mode {
    /// Output is sent as it is.
    Streams,
    /// Output goes to the model.
    CatchesUp(CatchUp),
}

/// A client that is behind.
#[derive(Debug)]
struct CatchUp {
    /// What the client shows when it has what was sent; nothing if that is not known.
    base: Option<Box<Snapshot>>,
    /// Modes of its terminal then, also where the rest is not known.
    modes: Option<ChangedModes>,
    /// Whether it shows the alternate screen.
    alternate: bool,
    /// Whether it was painted since it fell behind.
    painted: bool,
    /// Whether the model has changed since the last difference.
    changed: bool,
    /// The next difference is sent when the log is acknowledged up to here, or at this time.
    next: (u64, Time),
    /// Whether the last difference does not wait for the window.
    urgent: bool,
}

impl CatchUp {
    fn new(base: Option<Snapshot>, alternate: bool, next: (u64, Time)) -> CatchUp {
        let base = base.map(Box::new);
        let modes = base.as_ref().map(|base| base.modes().clone());
        CatchUp { base, modes, alternate, painted: false, changed: true, next, urgent: true }
    }

    /// Whether a difference is due and may be sent.
    fn may_paint(&self, acked: u64, now: Time) -> bool {
        self.changed && (self.next.0 <= acked || self.next.1 <= now)
    }
}

/// The terminal of a session.
#[derive(Debug)]
pub(super) struct Display {
    pub(super) screen: SessionScreen,
    mode: Mode,
    /// Up to where the model has what is in the log.
    modelled: u64,
    /// Whether the window changed since the client was painted as a whole: terminals differ in what they make of that.
    resized: bool,
    /// Questions that came while the client was behind, and when.
    questions: VecDeque<(Time, Vec<u8>)>,
}

impl Display {
    pub(super) fn new(options: &ServerOptions) -> Option<Display> {
        let screen = SessionScreen::new(options.terminal?);
        let questions = VecDeque::new();
        Some(Display { screen, mode: Mode::Streams, modelled: 0, resized: false, questions })
    }

    pub(super) fn streams(&self) -> bool {
        matches!(self.mode, Mode::Streams)
    }

    /// Bytes that may come, beside what waits in the log.
    pub(super) fn room(&self, reachable: bool) -> u64 {
        // What is away never fills this up: the oldest rows go.
        if reachable { ROWS_THERE.saturating_sub(self.screen.kept_bytes()) } else { ROWS_THERE }
    }

    pub(super) fn resize(&mut self, size: WindowSize) {
        if size != self.screen.size() {
            self.screen.resize(size);
            self.resized = true;
            if let Mode::CatchesUp(behind) = &mut self.mode {
                (behind.base, behind.changed) = (None, true);
            }
        }
    }

    /// Output goes to the model alone. What it asks is for the terminal itself, and is kept.
    fn model(&mut self, bytes: &[u8], now: Time) {
        let questions = &mut self.questions;
        self.screen.process_heard(bytes, |piece| {
            if is_question(piece) {
                if questions.len() >= QUESTIONS {
                    questions.pop_front();
                }
                questions.push_back((now, piece.to_vec()));
            }
        });
    }

    /// The log is sent up to `sent`, the last of it these bytes of output.
    pub(super) fn sent(&mut self, bytes: &[u8], sent: u64) {
        if sent > self.modelled {
            // What is sent again the model has.
            let new = (sent - self.modelled).min(bytes.len() as u64) as usize;
            self.screen.process(&bytes[bytes.len() - new..]);
            self.modelled = sent;
        }
    }
}

impl LoginServer {
    /// Takes output where it goes: to the log, or to the model.
    pub(super) fn take_output(&mut self, kind: OutputKind, bytes: &[u8], echo: bool) {
        let reachable = self.reachable();
        let Some(display) = self.display.as_mut().filter(|_| kind == OutputKind::Terminal) else {
            return self.log.push(kind.into(), bytes, echo, self.now);
        };
        if let Mode::CatchesUp(behind) = &mut display.mode {
            behind.changed = true;
            display.model(bytes, self.now);
            if !reachable {
                display.screen.bound_rows(ROWS_AWAY);
            }
            return;
        }
        self.log.push(Channel::Terminal, bytes, echo, self.now);
        if !reachable && self.log.waiting() > self.worth() {
            self.catch_up((0, self.now));
        }
    }

    /// A key was typed: if much waits that does not leave soon, what the key brings is not to wait behind it.
    pub(super) fn typed(&mut self) {
        let Some(display) = self.display.as_ref().filter(|display| display.streams()) else { return };
        let waiting = self.log.end() - self.log.sent().max(display.modelled);
        // While the window opens, what waits leaves with an acknowledgement that may be a round trip away.
        let soon =
            self.pace.raw_in(SOON).filter(|_| !self.pace.is_starting()).map_or(0, |bytes| bytes as u64);
        if waiting > display.screen.worth().max(soon) {
            self.catch_up((u64::MAX, self.now + BRIEF));
        } else {
            self.hurried = self.log.end() + ANSWER;
        }
    }

    /// Whether what is next does not wait for the window.
    pub(super) fn is_urgent(&self, piece: &Piece<'_>) -> bool {
        let screen = matches!(piece, Piece::Bytes { channel: Channel::Screen, .. });
        self.log.sent() < self.hurried || screen && self.behind().is_some_and(|behind| behind.urgent)
    }

    fn behind(&self) -> Option<&CatchUp> {
        match &self.display.as_ref()?.mode {
            Mode::CatchesUp(behind) => Some(behind),
            Mode::Streams => None,
        }
    }

    /// Whether the client is there, as far as one can tell.
    pub(super) fn reachable(&self) -> bool {
        self.attached && self.pace.silent_at().is_none_or(|at| at > self.now)
    }

    fn worth(&self) -> u64 {
        self.display.as_ref().map_or(u64::MAX, |display| display.screen.worth())
    }

    /// When output has waited long enough, if much of it waits.
    pub(super) fn catches_up_at(&self) -> Option<Time> {
        let streams = self.display.as_ref().is_some_and(Display::streams);
        let since = self.log.waiting_since().filter(|_| streams && self.log.waiting() > self.worth())?;
        let patience = self.pace.smoothed().map_or(FIRST_PATIENCE, |smoothed| PATIENCE.max(smoothed * 2));
        Some(since + patience)
    }

    /// From here on the client gets differences, the first as `next` says.
    pub(super) fn catch_up(&mut self, next: (u64, Time)) {
        let Some(display) = self.display.as_mut().filter(|display| display.streams()) else { return };
        let base = display.screen.snapshot();
        // An unfinished sequence ends where the client is painted; of an unfinished character something may be left.
        let first = display.screen.unfinished().map(<[u8]>::first);
        let clean = first.is_some_and(|first| first.is_none_or(|first| *first == 0x1b));
        // A question in what waits is as old as the first of that.
        let since = self.log.waiting_since().unwrap_or(self.now);
        let waiting = self.log.take_after(display.modelled, Channel::Terminal, self.now);
        display.screen.keep_rows(true);
        display.model(&waiting, since);
        let alternate = base.is_alternate();
        let mut behind = CatchUp::new(Some(base), alternate, next);
        behind.base = behind.base.filter(|_| clean && !display.resized);
        display.mode = Mode::CatchesUp(behind);
    }

    /// Another client, of whose terminal nothing is known but that it shows its main screen.
    pub(super) fn show_all(&mut self) {
        self.catch_up((0, self.now));
        let end = self.log.end();
        let unseen = core::mem::replace(&mut self.log, SendLog::at(end));
        let Some(display) = &mut self.display else { return };
        let rows = unseen.bytes_of(Channel::Scrollback).filter_map(|bytes| decode_rows(bytes).ok());
        display.screen.give_back(rows.flatten().collect());
        display.mode = Mode::CatchesUp(CatchUp::new(None, false, (0, self.now)));
    }

    /// Puts the next difference or the next rows into the log, or ends catching up.
    pub(super) fn go_on_catching_up(&mut self) {
        let (acked, now) = (self.log.acked(), self.now);
        let Some(Display { screen, mode: Mode::CatchesUp(behind), .. }) = &mut self.display else { return };
        if self.log.has_more() {
            return;
        }
        if behind.may_paint(acked, now) {
            return self.paint();
        }
        if behind.changed {
            return;
        }
        let rows = screen.take_rows(ROWS_AT_ONCE);
        if rows.is_empty() {
            return self.stream_again();
        }
        for part in parts(&rows) {
            self.log.push_whole(Channel::Scrollback, encode_rows(part), now);
        }
    }

    /// Puts a difference into the log.
    fn paint(&mut self) {
        let (acked, now, frame) = (self.log.acked(), self.now, self.frame());
        let Some(Display { screen, mode: Mode::CatchesUp(behind), modelled, resized, questions }) =
            &mut self.display
        else {
            return;
        };
        let (mut bytes, shown) = (Vec::new(), screen.snapshot());
        match behind.base.as_deref() {
            Some(base) => {
                // A terminal that is in the middle of a sequence is not any more.
                if !behind.painted {
                    bytes.push(0x18);
                }
                difference(Known::Same(base), &shown, &mut bytes);
            }
            None => {
                let (alternate, modes) = (behind.alternate, behind.modes.as_ref());
                difference(Known::Unsure { alternate, modes }, &shown, &mut bytes);
            }
        }
        let asked = questions.drain(..).filter(|(at, _)| now.since(*at) <= QUESTION);
        asked.for_each(|(_, question)| bytes.extend(question));
        let in_flight = behind.painted && behind.next.0 > acked;
        *behind = CatchUp::new(Some(shown), false, (0, now));
        (behind.painted, behind.changed) = (true, false);
        behind.alternate = behind.base.as_ref().is_some_and(|base| base.is_alternate());
        behind.urgent = !in_flight || bytes.len() as u64 <= ANSWER;
        *resized = false;
        if bytes.len() <= TYPED && self.echoes > 0 {
            self.log.push(Channel::Terminal, &bytes, true, now);
        } else {
            let parts = bytes.chunks(SCREEN_AT_ONCE);
            parts.for_each(|part| self.log.push_whole(Channel::Screen, part.to_vec(), now));
        }
        behind.next = (self.log.end(), now + frame);
        *modelled = self.log.end();
    }

    fn frame(&self) -> Duration {
        FRAME.max(self.pace.smoothed().unwrap_or_default() / 4)
    }

    /// Output is sent as it is again.
    fn stream_again(&mut self) {
        let Some(display) = &mut self.display else { return };
        // The beginning of a sequence that the client has not seen. Of a string that is too long, the end is awaited.
        let Some(unfinished) = display.screen.unfinished() else { return };
        self.log.push(Channel::Terminal, unfinished, false, self.now);
        display.modelled = self.log.end();
        display.mode = Mode::Streams;
        display.screen.keep_rows(false);
        for control in core::mem::take(&mut self.closing) {
            self.log.control(control, self.now);
        }
    }

    /// When the next difference may be sent, if one is due.
    pub(super) fn paints_at(&self) -> Option<Time> {
        let behind = self.behind().filter(|behind| behind.changed && !self.log.has_more())?;
        Some(behind.next.1)
    }

    /// Whether there is something to catch up with at once.
    pub(super) fn catches_up_now(&self, now: Time) -> bool {
        let (Some(display), Some(behind)) = (&self.display, self.behind()) else { return false };
        let rests = display.screen.kept_bytes() > 0 || display.screen.unfinished().is_some();
        !self.log.has_more() && (behind.may_paint(self.log.acked(), now) || !behind.changed && rests)
    }
}

/// Rows in parts that fit in messages. One row has at most a few bytes for each of its cells' looks.
fn parts(rows: &[crate::screen::ScrolledRow]) -> impl Iterator<Item = &[crate::screen::ScrolledRow]> {
    let mut size = 0;
    rows.chunk_by(move |one, next| {
        size += one.text.len() + 10;
        let fits = size + next.text.len() + 10 <= MAX_UNIT;
        if !fits {
            size = 0;
        }
        fits
    })
}
