//! The bytes that bring a terminal from one state to another. Nothing scrolls, and nothing is erased from the top: some terminals add
//! what is erased so to their scrollback.

use std::io::Write;

use vt100::{Cell, Screen};

use super::Snapshot;
use super::modes::ChangedModes;
use super::pen::Pen;
use super::sifter::Charsets;
use super::snapshot::Hidden;

/// What is known of a terminal before it is painted.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Known<'a> {
    /// It is in this state.
    Same(&'a Snapshot),
    /// It shows the alternate screen or not, and is in these modes, if they are known; all else may be otherwise.
    Unsure { alternate: bool, modes: Option<&'a ChangedModes> },
    /// Its main screen is empty and shown; its modes and its saved cursor are right. `alternate`: the alternate one was shown before.
    Cleared { alternate: bool },
}

/// Appends what brings a terminal to the state `to`: nothing if it is there.
pub(crate) fn difference(from: Known<'_>, to: &Snapshot, out: &mut Vec<u8>) {
    let mut painter = Painter::new(from, out);
    let known = if let Known::Same(known) = from { Some(known) } else { None };
    let usual = ChangedModes::default();
    let before = match from {
        Known::Same(known) => Some((known.is_alternate(), Some(&known.modes))),
        Known::Unsure { alternate, modes } => Some((alternate, modes)),
        Known::Cleared { .. } => None,
    };
    painter.ready(from);
    // Each screen has keys of its own.
    if let Some((alternate, modes)) = before {
        to.modes.paint_keys(modes.unwrap_or(&usual), alternate, painter.out);
    }
    painter.screens(from, known, to);
    if let Some((alternate, modes)) = before {
        painter.words(known, to);
        if alternate != to.is_alternate() {
            to.modes.paint_keys(modes.unwrap_or(&usual), to.is_alternate(), painter.out);
        }
        if modes.is_none() {
            ChangedModes::reset(painter.out);
        }
        to.modes.paint(modes.unwrap_or(&usual), painter.out);
        painter.hidden_cursor(known.map(|known| &known.shown), &to.shown);
    }
    painter.finish(from, known, to);
}

struct Painter<'a> {
    out: &'a mut Vec<u8>,
    /// What the terminal's pen and cursor are, if that is known.
    pen: Option<Pen>,
    at: Option<(u16, u16)>,
    /// Whether positions count from a region, and which charsets are in use.
    origin: bool,
    charsets: Charsets,
    /// Whether the other screen was shown.
    switched: bool,
}

impl<'a> Painter<'a> {
    fn new(from: Known<'_>, out: &'a mut Vec<u8>) -> Painter<'a> {
        let mut painter =
            Painter { out, pen: None, at: None, origin: false, charsets: Charsets::USUAL, switched: false };
        if let Known::Same(known) = from {
            painter.pen = Some(Pen::of_screen(&known.shown));
            let (row, column) = known.shown.cursor_position();
            // Past the end of a row, terminals differ in where they say they are.
            painter.at = Some((row, column)).filter(|_| column < known.shown.size().1.get());
            (painter.origin, painter.charsets) = (known.hidden.origin, known.charsets);
        }
        painter
    }

    fn put(&mut self, text: &str) {
        self.out.extend_from_slice(text.as_bytes());
    }

    fn number(&mut self, text: core::fmt::Arguments<'_>) {
        // A vector takes everything.
        let written = self.out.write_fmt(text);
        debug_assert!(written.is_ok(), "memory takes bytes");
    }

    /// What a terminal that may be in any state needs before it can be painted.
    fn ready(&mut self, from: Known<'_>) {
        if let Known::Unsure { .. } = from {
            // No sequence goes on; no region, origin or insertion; what is printed wraps; ASCII.
            self.put("\x18\x1b[?6l\x1b[r\x1b[4l\x1b[?7h\x1b(B\x1b)B\x0f");
        }
    }

    /// Before anything is painted over known cells.
    fn plain(&mut self) {
        if core::mem::take(&mut self.origin) {
            self.put("\x1b[?6l");
            self.at = None;
        }
        if self.charsets != Charsets::USUAL {
            self.charsets = Charsets::USUAL;
            self.put("\x1b(B\x1b)B\x0f");
        }
    }

    fn screens(&mut self, from: Known<'_>, known: Option<&Snapshot>, to: &Snapshot) {
        let (shows, was_alternate) = match from {
            Known::Same(known) => (known.is_alternate(), known.is_alternate()),
            Known::Unsure { alternate, .. } => (alternate, alternate),
            Known::Cleared { alternate } => (false, alternate),
        };
        let main_differs = known.is_none_or(|known| differ(known.main(), to.main()));
        if shows && (!to.is_alternate() || main_differs) {
            self.plain();
            self.switch(if to.is_alternate() { "\x1b[?47l" } else { "\x1b[?1049l" });
        }
        if main_differs || !to.is_alternate() {
            let clean = matches!(from, Known::Cleared { .. });
            self.grid(known.map(Snapshot::main), to.main(), clean);
        }
        if !to.is_alternate() {
            return;
        }
        if shows && !main_differs {
            return self.grid(known.map(|known| &known.shown), &to.shown, false);
        }
        // What is shown when the program leaves the alternate screen.
        let (row, column) = to.main().cursor_position();
        self.go(row, column.min(to.main().size().1.get() - 1));
        self.switch(if was_alternate { "\x1b[?47h" } else { "\x1b[?1049h" });
        self.grid(None, &to.shown, false);
    }

    /// Shows the other screen. In some terminals it has a region and an origin of its own.
    fn switch(&mut self, sequence: &str) {
        self.put(sequence);
        self.put("\x1b[?6l\x1b[r");
        (self.at, self.pen, self.switched) = (None, None, true);
    }

    /// `clean`: the cells are empty.
    fn grid(&mut self, from: Option<&Screen>, to: &Screen, clean: bool) {
        let (rows, columns) = to.size();
        let from = from.filter(|from| from.size() == to.size());
        for row in 0..rows.get() {
            self.row(from, to, row, columns.get(), clean);
        }
    }

    fn row(&mut self, from: Option<&Screen>, to: &Screen, row: u16, columns: u16, clean: bool) {
        let cell = |column: u16| to.cell(row, column);
        let blank = |column: u16| cell(column).is_none_or(is_blank);
        // From here on the row is empty.
        let end = (0..columns).rev().find(|column| !blank(*column)).map_or(0, |last| last + 1);
        let Some(from) = from else {
            if !clean {
                self.plain();
                self.pen(Pen::default());
                self.go(row, 0);
                self.put("\x1b[2K");
            }
            return self.cells(to, row, 0, end);
        };
        let differs = |column: &u16| from.cell(row, *column) != cell(*column);
        let Some(mut first) = (0..columns).find(differs) else { return };
        let last = (0..columns).rev().find(differs).unwrap_or(first);
        // The right half of a wide character cannot be painted alone.
        first -= u16::from(first > 0 && cell(first).is_some_and(Cell::is_wide_continuation));
        self.plain();
        self.cells(to, row, first, end.min(last + 1));
        if last >= end {
            self.pen(Pen::default());
            self.go(row, first.max(end));
            self.put("\x1b[K");
        }
    }

    fn cells(&mut self, to: &Screen, row: u16, first: u16, end: u16) {
        for column in first..end {
            let Some(cell) = to.cell(row, column).filter(|cell| !cell.is_wide_continuation()) else {
                continue;
            };
            self.pen(Pen::of_cell(cell));
            self.go(row, column);
            if cell.has_contents() {
                self.put(cell.contents());
            } else {
                self.put(" ");
            }
            let next = column + if cell.is_wide() { 2 } else { 1 };
            // Terminals do not agree on how wide such characters are.
            let sure = !cell.is_wide() && cell.contents().chars().count() <= 1;
            self.at = Some((row, next)).filter(|_| sure && next < to.size().1.get());
        }
    }

    /// The title, and whether the bell rang.
    fn words(&mut self, known: Option<&Snapshot>, to: &Snapshot) {
        let Some(known) = known else {
            if !to.title.is_empty() {
                self.number(format_args!("\x1b]2;{}\x07", to.title));
            }
            return;
        };
        if known.title != to.title {
            self.number(format_args!("\x1b]2;{}\x07", to.title));
        }
        if known.bells != to.bells {
            self.put("\x07");
        }
    }

    fn hidden_cursor(&mut self, known: Option<&Screen>, to: &Screen) {
        if known.is_none_or(|known| known.hide_cursor() != to.hide_cursor()) {
            self.put(if to.hide_cursor() { "\x1b[?25l" } else { "\x1b[?25h" });
        }
    }

    /// Region, saved cursor, cursor, pen and charsets.
    fn finish(&mut self, from: Known<'_>, known: Option<&Snapshot>, to: &Snapshot) {
        let (rows, columns) = (to.shown.size().0.get(), to.shown.size().1.get());
        let whole = Hidden { region: (0, rows - 1), origin: false, saved: (0, 0) };
        let before = match from {
            Known::Same(known) if !self.switched && known.shown.size() == to.shown.size() => known.hidden,
            Known::Same(known) => Hidden { saved: known.hidden.saved, ..whole },
            Known::Cleared { .. } => Hidden { saved: to.hidden.saved, ..whole },
            _ => whole,
        };
        if before.saved != to.hidden.saved {
            self.plain();
            self.pen(Pen::default());
            self.go(to.hidden.saved.0, to.hidden.saved.1.min(columns - 1));
            self.put("\x1b7");
        }
        if before.region != to.hidden.region {
            let (top, bottom) = to.hidden.region;
            if to.hidden.region == whole.region {
                self.put("\x1b[r");
            } else {
                self.number(format_args!("\x1b[{};{}r", top + 1, bottom + 1));
            }
            self.at = None;
        }
        if self.origin != to.hidden.origin {
            self.origin = to.hidden.origin;
            self.put(if self.origin { "\x1b[?6h" } else { "\x1b[?6l" });
            self.at = None;
        }
        self.cursor(known, &to.shown, to.hidden);
        self.pen(Pen::of_screen(&to.shown));
        self.charsets(to.charsets);
    }

    fn cursor(&mut self, known: Option<&Snapshot>, to: &Screen, hidden: Hidden) {
        let columns = to.size().1.get();
        let (row, column) = to.cursor_position();
        // In a region, positions are those of the region.
        let counted = if self.origin { row.saturating_sub(hidden.region.0) } else { row };
        if column < columns {
            if self.at != Some((row, column)) {
                self.number(format_args!("\x1b[{};{}H", counted + 1, column + 1));
                self.at = Some((row, column));
            }
            return;
        }
        // Past the end of a row, where the next character wraps: the last one is printed again.
        let same = known.is_some_and(|known| known.shown.cursor_position() == (row, column));
        if same && self.at.is_none() && !self.moved(known) {
            return;
        }
        // Where positions count from the region, a row outside of it is not reached, and nothing is to be printed elsewhere.
        if self.origin && !(hidden.region.0..=hidden.region.1).contains(&row) {
            return;
        }
        let continues = to.cell(row, columns - 1).is_some_and(Cell::is_wide_continuation);
        let last = columns - 1 - u16::from(continues && columns > 1);
        self.number(format_args!("\x1b[{};{}H", counted + 1, last + 1));
        self.at = Some((row, last));
        if let Some(cell) = to.cell(row, last) {
            self.pen(Pen::of_cell(cell));
            let contents = if cell.has_contents() { cell.contents() } else { " " };
            self.put(contents);
        }
        self.at = None;
    }

    /// Whether anything was painted, as far as that is known.
    fn moved(&self, known: Option<&Snapshot>) -> bool {
        known.is_none() || !self.out.is_empty()
    }

    fn pen(&mut self, pen: Pen) {
        if self.pen != Some(pen) {
            self.pen = Some(pen);
            pen.put(self.out);
        }
    }

    /// Moves to a cell, if the cursor is not there.
    fn go(&mut self, row: u16, column: u16) {
        if self.at != Some((row, column)) {
            self.number(format_args!("\x1b[{};{}H", row + 1, column + 1));
            self.at = Some((row, column));
        }
    }

    fn charsets(&mut self, to: Charsets) {
        if self.charsets == to {
            return;
        }
        let letter = |set: u8| char::from(if set == b'0' { b'0' } else { b'B' });
        self.number(format_args!("\x1b({}\x1b){}", letter(to.sets[0]), letter(to.sets[1])));
        self.put(if to.shifted { "\x0e" } else { "\x0f" });
        self.charsets = to;
    }
}

fn is_blank(cell: &Cell) -> bool {
    !cell.has_contents() && !cell.is_wide_continuation() && Pen::of_cell(cell) == Pen::default()
}

fn differ(one: &Screen, other: &Screen) -> bool {
    let (rows, columns) = one.size();
    one.size() != other.size()
        || one.cursor_position() != other.cursor_position()
        || (0..rows.get())
            .any(|row| (0..columns.get()).any(|column| one.cell(row, column) != other.cell(row, column)))
}
