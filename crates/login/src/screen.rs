//! What a session's terminal shows, and the rows that scroll off it.
//!
//! - [`sifter`]: bytes on their way to the model, of which no escape sequence is cut and none costs much.
//! - [`snapshot`]: a state of the terminal that can be painted.
//! - [`paint`]: the bytes that bring a terminal from one state to another.
//! - [`pen`]: how text looks.
//! - [`questions`]: what programs ask the terminal.
//! - [`rows`]: rows that scrolled off, in messages and in a terminal.
//! - [`modes`]: modes that programs switch on beside what is shown, and [`keys`] among them.
//! - [`sane`]: what of these has to be put back in a person's terminal.

mod keys;
mod modes;
mod paint;
mod pen;
mod questions;
mod rows;
mod sane;
mod sifter;
mod snapshot;
#[cfg(test)]
pub(crate) mod tests;

use core::fmt;
use core::num::NonZeroU16;

pub(crate) use modes::ChangedModes;
pub(crate) use paint::{Known, difference};
pub(crate) use questions::is_question;
pub(crate) use rows::{ScrolledRow, decode_rows, encode_rows};
pub use sane::SaneTerminal;
use sifter::Sifter;
pub(crate) use snapshot::Snapshot;

use crate::WindowSize;
use rows::ScrolledRows;

/// A title that a program sets at most: more fits in no window.
const MAX_TITLE: usize = 256;

/// A model of a terminal.
pub(crate) struct SessionScreen {
    parser: vt100::Parser<ScreenEars>,
    sifter: Sifter,
    modes: ChangedModes,
    size: WindowSize,
}

/// What the model tells beside its cells.
#[derive(Debug, Default)]
struct ScreenEars {
    rows: ScrolledRows,
    title: String,
    bells: u64,
}

impl vt100::Callbacks for ScreenEars {
    fn audible_bell(&mut self, _: &mut vt100::Screen) {
        self.bells += 1;
    }

    fn set_window_title(&mut self, _: &mut vt100::Screen, title: &[u8]) {
        self.title = String::from_utf8_lossy(&title[..title.len().min(MAX_TITLE)]).into_owned();
        self.title.retain(|character| !character.is_control());
    }

    fn on_scroll(&mut self, contents: vt100::capture::RowContents<'_>, alternate_screen: bool) {
        if !alternate_screen {
            self.rows.add(&contents);
        }
    }
}

impl SessionScreen {
    /// An empty screen.
    pub(crate) fn new(size: WindowSize) -> SessionScreen {
        let size = size.clamped();
        let (rows, columns) = cells(size);
        let parser = vt100::Parser::new_with_callbacks(rows, columns, 0, ScreenEars::default());
        SessionScreen { parser, sifter: Sifter::default(), modes: ChangedModes::default(), size }
    }

    /// Output of the session.
    pub(crate) fn process(&mut self, bytes: &[u8]) {
        self.process_heard(bytes, |_| ());
    }

    /// The same; `hear` gets each whole sequence, and the text between them.
    pub(crate) fn process_heard(&mut self, bytes: &[u8], mut hear: impl FnMut(&[u8])) {
        let (parser, modes) = (&mut self.parser, &mut self.modes);
        self.sifter.sift(bytes, |piece| {
            hear(piece);
            modes.take(piece);
            parser.process(piece);
        });
    }

    /// The window has this size.
    pub(crate) fn resize(&mut self, size: WindowSize) {
        let size = size.clamped();
        let (rows, columns) = cells(size);
        // What goes off because of it goes off in the client's terminal, too, as that sees fit.
        let keeps = self.parser.callbacks_mut().rows.keep(false);
        self.parser.set_size(rows, columns);
        self.parser.callbacks_mut().rows.keep(keeps);
        self.size = size;
    }

    pub(crate) fn size(&self) -> WindowSize {
        self.size
    }

    /// Cells' worth of bytes: less output than this is sent as it is.
    pub(crate) fn worth(&self) -> u64 {
        (u64::from(self.size.columns) * u64::from(self.size.rows) * 2).max(4096)
    }

    /// Whether rows that scroll off are kept from now on.
    pub(crate) fn keep_rows(&mut self, keep: bool) {
        self.parser.callbacks_mut().rows.keep(keep);
    }

    /// Bytes of rows that are kept.
    pub(crate) fn kept_bytes(&self) -> u64 {
        self.parser.callbacks().rows.bytes()
    }

    /// Keeps at most so many bytes of rows: the oldest go, and are counted.
    pub(crate) fn bound_rows(&mut self, most: u64) {
        self.parser.callbacks_mut().rows.bound(most);
    }

    /// The oldest rows that are kept, about so many bytes; they are kept no more.
    pub(crate) fn take_rows(&mut self, bytes: usize) -> Vec<ScrolledRow> {
        self.parser.callbacks_mut().rows.take(bytes)
    }

    /// Rows that were taken are kept again.
    pub(crate) fn give_back(&mut self, rows: Vec<ScrolledRow>) {
        self.parser.callbacks_mut().rows.give_back(rows);
    }

    /// The bytes of an escape sequence or a character of which more is to come; nothing if they are too many to be kept.
    pub(crate) fn unfinished(&self) -> Option<&[u8]> {
        self.sifter.unfinished()
    }

    /// The state of the terminal.
    pub(crate) fn snapshot(&self) -> Snapshot {
        let ears = self.parser.callbacks();
        let modes = self.modes.clone();
        Snapshot::new(self.parser.screen(), self.sifter.charsets(), modes, (&ears.title, ears.bells))
    }

    /// The bytes that add rows to the scrollback of a terminal that shows this screen, and show it again.
    pub(crate) fn scroll_off(&mut self, rows: &[ScrolledRow]) -> Vec<u8> {
        let shown = self.snapshot();
        let mut bytes = rows::begin(&shown);
        rows::print(rows, &mut bytes);
        // The model says how many of them are still on the screen.
        self.process(&bytes);
        let (left, _) = self.parser.screen().cursor_position();
        let printed = bytes.len();
        rows::push(left, self.size.rows, &mut bytes);
        difference(Known::Cleared { alternate: shown.is_alternate() }, &shown, &mut bytes);
        rows::end(&mut bytes);
        self.process(&bytes[printed..]);
        bytes
    }
}

fn cells(size: WindowSize) -> (NonZeroU16, NonZeroU16) {
    let positive = |number: u16| NonZeroU16::new(number).unwrap_or(NonZeroU16::MIN);
    (positive(size.rows), positive(size.columns))
}

impl fmt::Debug for SessionScreen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SessionScreen").field("size", &self.size).finish_non_exhaustive()
    }
}
