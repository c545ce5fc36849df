//! The terminal of a session, and how its client comes to show the same.
//!
//! Output is sent as it is, and the model follows what is sent. When more waits than a screen is worth, for longer than a path takes, or
//! while the client is away, the session *catches up*: the model takes the output, the client gets differences of screens, and what
//! scrolls off follows in messages of its own. While that lasts, output is sent as differences only, so that the client's scrollback has
//! every row in its order. When the client has everything, output is sent as it is again.

use core::time::Duration;

use strait_clock::Time;

use super::LoginServer;
use crate::message::{Channel, MAX_UNIT};
use crate::screen::{Known, SessionScreen, Snapshot, decode_rows, difference, encode_rows};
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
/// For how long output waits at least before the session catches up: a person does not see that.
const PATIENCE: Duration = Duration::from_millis(500);
/// Between two differences at least, as long as the first is on its way: what a film shows.
const FRAME: Duration = Duration::from_millis(40);

/// How the client comes to show the same.
#[derive(Debug)]
enum Mode {
    /// Output is sent as it is.
    Streams,
    /// Output goes to the model.
    CatchesUp {
        /// What the client shows when it has what was sent; nothing if that is not known.
        base: Option<Box<Snapshot>>,
        /// Whether it shows the alternate screen.
        alternate: bool,
        /// Whether the model has changed since.
        changed: bool,
        /// Where the last difference ends, and when it was sent.
        last: (u64, Time),
    },
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
}

impl Display {
    pub(super) fn new(options: &ServerOptions) -> Option<Display> {
        let screen = SessionScreen::new(options.terminal?);
        Some(Display { screen, mode: Mode::Streams, modelled: 0, resized: false })
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
            if let Mode::CatchesUp { base, changed, .. } = &mut self.mode {
                (*base, *changed) = (None, true);
            }
        }
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
        if let Mode::CatchesUp { changed, .. } = &mut display.mode {
            display.screen.process(bytes);
            *changed = true;
            if !reachable {
                display.screen.bound_rows(ROWS_AWAY);
            }
            return;
        }
        self.log.push(Channel::Terminal, bytes, echo, self.now);
        if !reachable && self.log.waiting() > self.worth() {
            self.catch_up();
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
        Some(since + PATIENCE.max(self.pace.smoothed().unwrap_or_default() * 2))
    }

    /// From here on the client gets differences.
    pub(super) fn catch_up(&mut self) {
        let Some(display) = self.display.as_mut().filter(|display| display.streams()) else { return };
        let base = display.screen.snapshot();
        // An unfinished sequence ends where the client is painted; of an unfinished character something may be left.
        let clean =
            display.screen.unfinished().is_some_and(|bytes| bytes.first().is_none_or(|first| *first == 0x1b));
        let waiting = self.log.take_after(display.modelled, Channel::Terminal, self.now);
        display.screen.keep_rows(true);
        display.screen.process(&waiting);
        display.mode = Mode::CatchesUp {
            alternate: base.is_alternate(),
            base: (clean && !display.resized).then(|| Box::new(base)),
            changed: true,
            last: (0, Time::ZERO),
        };
    }

    /// Another client, of whose terminal nothing is known but that it shows its main screen.
    pub(super) fn show_all(&mut self) {
        self.catch_up();
        let end = self.log.end();
        let unseen = core::mem::replace(&mut self.log, crate::log::SendLog::at(end));
        let Some(display) = &mut self.display else { return };
        let rows = unseen.bytes_of(Channel::Scrollback).filter_map(|bytes| decode_rows(bytes).ok());
        let rows = rows.flatten().collect();
        display.screen.give_back(rows);
        display.mode =
            Mode::CatchesUp { base: None, alternate: false, changed: true, last: (end, Time::ZERO) };
    }

    /// Puts the next difference or the next rows into the log, or ends catching up.
    pub(super) fn go_on_catching_up(&mut self) {
        let now = self.now;
        if self.log.has_more() {
            return;
        }
        let (acked, echoes) = (self.log.acked(), self.echoes > 0);
        let Some(display) = &mut self.display else { return };
        let Mode::CatchesUp { base, alternate, changed, last } = &mut display.mode else { return };
        if *changed && may_paint(*last, acked, now) {
            let (mut bytes, shown) = (Vec::new(), display.screen.snapshot());
            let known = base.as_deref().map_or(Known::Unsure { alternate: *alternate }, Known::Same);
            // A terminal that is in the middle of a sequence is not any more.
            if last.1 == Time::ZERO && matches!(known, Known::Same(_)) {
                bytes.push(0x18);
            }
            difference(known, &shown, &mut bytes);
            (*alternate, *base, *changed) = (shown.is_alternate(), Some(Box::new(shown)), false);
            display.resized = false;
            if bytes.len() <= TYPED && echoes {
                self.log.push(Channel::Terminal, &bytes, true, now);
            } else {
                bytes
                    .chunks(SCREEN_AT_ONCE)
                    .for_each(|part| self.log.push_whole(Channel::Screen, part.to_vec(), now));
            }
            *last = (self.log.end(), now);
            display.modelled = self.log.end();
            return;
        }
        let rows = display.screen.take_rows(ROWS_AT_ONCE);
        if !rows.is_empty() {
            for part in parts(&rows) {
                self.log.push_whole(Channel::Scrollback, encode_rows(part), now);
            }
        } else if !*changed {
            self.stream_again();
        }
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
        match &self.display.as_ref()?.mode {
            Mode::CatchesUp { changed: true, last, .. } if !self.log.has_more() => {
                Some(if last.0 <= self.log.acked() { self.now } else { last.1 + FRAME })
            }
            _ => None,
        }
    }

    /// Whether there is something to catch up with at once.
    pub(super) fn catches_up_now(&self, now: Time) -> bool {
        let Some(display) = &self.display else { return false };
        let Mode::CatchesUp { changed, last, .. } = &display.mode else { return false };
        !self.log.has_more()
            && (*changed && may_paint(*last, self.log.acked(), now)
                || display.screen.kept_bytes() > 0
                || !*changed && display.screen.unfinished().is_some())
    }
}

/// Whether a difference may follow the last.
fn may_paint(last: (u64, Time), acked: u64, now: Time) -> bool {
    last.0 <= acked || last.1 + FRAME <= now
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
