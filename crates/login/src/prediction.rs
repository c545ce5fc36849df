//! Predicted echo: what a key will do is on the screen before the session has answered, as mosh has it (Winstein, Balakrishnan:
//! Mosh, USENIX ATC 2012, section 3).
//!
//! [`Predictor`] stands between the session's output, the keys and the real terminal. It follows output on a screen of its own, and
//! gives what to write to the terminal: output as it came, and around it what shows and takes back predictions. Only the row of the cursor is
//! ever touched. `docs/design/login-prediction.md` has the rules.
//!
//! - `doubt`: rows whose columns are not sure; in them nothing is ever written.
//! - `keys`: typed bytes as keys. `line`: a row, and what keys do to it.
//! - `guesses`: keys without an answer, and what is expected of them; `prompts`: where echo was seen.
//! - `display`: whether it is shown. `position`: where in output something may be written. `paint`: the bytes.

mod display;
mod doubt;
mod guesses;
mod keys;
mod line;
mod paint;
mod position;
mod prompts;
#[cfg(test)]
mod tests;

use core::num::NonZeroU16;
use core::time::Duration;

use strait_clock::Time;
use vt100::{Parser, Screen};

use self::display::Display;
use self::doubt::Doubt;
use self::guesses::Guesses;
use self::keys::{Key, KeyReader};
use self::line::Line;
use self::position::Position;
use crate::{TerminalModes, WindowSize};

/// An answer that takes longer is not waited for, even if the round trip is short: the link stalls. As mosh has it.
const LATE: Duration = Duration::from_millis(250);
/// What arrives at once and is longer was not typed, but pasted: nothing is felt of its echo. As mosh has it.
const PASTED: usize = 100;

/// When predictions are shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PredictMode {
    /// While the round trip is long, or an answer is late.
    #[default]
    Auto,
    /// Always, where the terminal was seen to echo.
    Always,
    /// Never.
    Never,
}

/// What a [`Predictor`] has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PredictCounts {
    /// Keys that were typed.
    pub keys: u64,
    /// Times that a prediction on the screen was taken back.
    pub wrong: u64,
}

/// Shows what keys do before the session has answered.
///
/// Every function that returns bytes wants them written to the terminal at once, in order, and nothing else written there.
pub struct Predictor {
    /// What the terminal shows, but for predictions.
    parser: Parser,
    position: Position,
    doubt: Doubt,
    reader: KeyReader,
    guesses: Guesses,
    display: Display,
    /// The row of the cursor as it was changed.
    painted: Option<Line>,
    keys: u64,
}

impl Predictor {
    /// For an empty terminal of this size.
    #[must_use]
    pub fn new(mode: PredictMode, size: WindowSize) -> Predictor {
        let (rows, columns) = cells(size);
        Predictor {
            parser: Parser::new(rows, columns, 0),
            position: Position::default(),
            doubt: Doubt::default(),
            reader: KeyReader::default(),
            guesses: Guesses::new(),
            display: Display::new(mode),
            painted: None,
            keys: 0,
        }
    }

    /// What the terminal shows, but for predictions.
    #[must_use]
    pub fn screen(&self) -> &Screen {
        self.parser.screen()
    }

    /// What was done.
    #[must_use]
    pub fn counts(&self) -> PredictCounts {
        PredictCounts { keys: self.keys, wrong: self.guesses.wrong() }
    }

    /// Whether something on the terminal is a prediction.
    #[must_use]
    pub fn is_showing(&self) -> bool {
        self.painted.is_some()
    }

    /// Takes what was typed and goes to the session; `input_offset` is the offset of its first byte in the session's input. Returns what
    /// shows its effect.
    pub fn typed(&mut self, bytes: &[u8], input_offset: u64, now: Time) -> Vec<u8> {
        let mut out = Vec::new();
        if !self.display.predicts() {
            return out;
        }
        let offset_of = |at: usize| input_offset.saturating_add(u64::try_from(at).unwrap_or(u64::MAX));
        let (screen, guesses) = (self.parser.screen(), &mut self.guesses);
        if bytes.len() > PASTED {
            self.reader = KeyReader::default();
            self.keys += 1;
            guesses.typed(Key::Other, offset_of(bytes.len()), screen, now);
        } else {
            self.reader.read(bytes, |key, at| {
                self.keys += 1;
                guesses.typed(key, offset_of(at), screen, now);
            });
        }
        self.show(&mut out);
        out
    }

    /// Takes output of the session's terminal, cut anywhere. Returns it with what takes predictions from the screen before it, and shows
    /// those behind it that still hold.
    pub fn output(&mut self, bytes: &[u8], now: Time) -> Vec<u8> {
        let mut out = Vec::with_capacity(bytes.len());
        self.take_back(&mut out);
        out.extend_from_slice(bytes);
        self.guesses.count_lines(bytes);
        let text = self.doubt.read(bytes);
        let mut from = 0;
        for end in text.doubtful {
            self.follow(&text.bytes[from..end]);
            if !self.position.is_in_string() {
                self.doubt.add(self.parser.screen());
            }
            from = end;
        }
        self.follow(&text.bytes[from..]);
        self.settle(now);
        self.show(&mut out);
        out
    }

    /// Follows output. One step for each stretch of text: behind it, the echo of a key may be what nothing later shows.
    fn follow(&mut self, mut bytes: &[u8]) {
        self.position.advance(bytes);
        while !bytes.is_empty() {
            let len = if self.guesses.is_empty() { bytes.len() } else { step(bytes) };
            self.parser.process(&bytes[..len]);
            self.doubt.process(&bytes[..len]);
            self.guesses.compare(self.parser.screen());
            bytes = &bytes[len..];
        }
    }

    /// Returns what this program itself writes on the terminal and leaves the row of the cursor as the session has it, with what takes
    /// predictions from the screen before it, and shows them behind it.
    pub fn beside(&mut self, own: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        self.take_back(&mut out);
        out.extend_from_slice(own);
        self.show(&mut out);
        out
    }

    /// Takes bytes that bring the terminal to the session's screen, whatever was on it: what was predicted is forgotten.
    pub fn redrawn(&mut self, bytes: &[u8], now: Time) -> Vec<u8> {
        let mut out = Vec::new();
        self.take_back(&mut out);
        self.guesses.clear();
        out.append(&mut self.output(bytes, now));
        out
    }

    /// The session has the input below this offset. The program's answer is expected at once, or in a moment: see
    /// [`Predictor::deadline`].
    pub fn confirmed(&mut self, input_offset: u64, now: Time) -> Vec<u8> {
        self.guesses.taken(input_offset, now);
        self.guesses.compare(self.parser.screen());
        self.due(now)
    }

    /// Returns the bytes that show the row of the cursor on an empty row, from its beginning, and bring the cursor to its place. No column
    /// is named where one is in doubt: what is before the cursor is written twice.
    #[must_use]
    pub fn row_again(&self) -> String {
        let screen = self.parser.screen();
        let (row, column) = screen.cursor_position();
        let front = |columns| screen.rows_formatted(0, columns).nth(usize::from(row)).unwrap_or_default();
        let whole = front(screen.size().1.get());
        let place = if self.doubt.is_sure(screen) {
            format!("\x1b[{}G", column + 1)
        } else {
            format!("\x1b[m\r{}", front(column))
        };
        ["\x1b[m".to_owned(), whole, place, screen.attributes_formatted()].concat()
    }

    /// To be called at [`Predictor::deadline`]: takes back what was not answered.
    pub fn due(&mut self, now: Time) -> Vec<u8> {
        let mut out = Vec::new();
        self.settle(now);
        self.show(&mut out);
        out
    }

    /// The smoothed round trip to the session.
    pub fn round_trip(&mut self, smoothed: Duration) {
        self.display.round_trip(smoothed, self.painted.is_some());
    }

    /// The modes of the session's terminal, where they changed in its output.
    pub fn modes(&mut self, modes: TerminalModes) -> Vec<u8> {
        self.guesses.modes(modes);
        let mut out = Vec::new();
        self.show(&mut out);
        out
    }

    /// The terminal has this size now. What was predicted is forgotten.
    pub fn resize(&mut self, size: WindowSize) -> Vec<u8> {
        let mut out = Vec::new();
        self.take_back(&mut out);
        self.guesses.clear();
        let (rows, columns) = cells(size);
        self.parser.set_size(rows, columns);
        self.doubt.resize(self.parser.screen());
        out
    }

    /// When [`Predictor::due`] is to be called.
    #[must_use]
    pub fn deadline(&self) -> Option<Time> {
        let late = self.guesses.oldest().filter(|_| self.display.predicts() && !self.display.is_late());
        let late = late.map(|typed| typed + LATE);
        late.into_iter().chain(self.guesses.deadline()).min()
    }

    fn settle(&mut self, now: Time) {
        self.guesses.settle(self.parser.screen(), now);
        if self.guesses.is_empty() {
            self.display.late(false);
        } else if self.guesses.oldest().is_some_and(|typed| now >= typed + LATE) {
            self.display.late(true);
        }
    }

    /// Brings the row of the cursor to what is predicted of it.
    fn show(&mut self, out: &mut Vec<u8>) {
        let screen = self.parser.screen();
        let is_due = self.display.shows() && !self.guesses.is_empty();
        let is_plain = self.position.is_plain() && self.doubt.is_between();
        let wanted = if is_due && is_plain && self.doubt.is_sure(screen) {
            self.guesses.draw(screen, self.display.underlines())
        } else {
            None
        };
        if self.painted.is_some() || wanted.is_some() {
            let real = real_line(screen);
            let wanted = wanted.map(|mut line| {
                line.keep_last_column(&real);
                line
            });
            let from = self.painted.as_ref().unwrap_or(&real);
            paint::change(from, wanted.as_ref().unwrap_or(&real), screen, out);
            self.painted = wanted;
        }
    }

    /// Brings the row of the cursor to what the session has shown.
    fn take_back(&mut self, out: &mut Vec<u8>) {
        if let Some(painted) = self.painted.take() {
            let screen = self.parser.screen();
            paint::change(&painted, &real_line(screen), screen, out);
        }
    }
}

/// The row of the cursor.
fn real_line(screen: &Screen) -> Line {
    let (row, column) = screen.cursor_position();
    Line::of(screen, row, column)
}

/// The length of a control character and the text behind it.
fn step(bytes: &[u8]) -> usize {
    let next = bytes.iter().skip(1).position(|byte| *byte < 0x20);
    next.map_or(bytes.len(), |at| at + 1)
}

fn cells(size: WindowSize) -> (NonZeroU16, NonZeroU16) {
    let size = size.clamped();
    (
        NonZeroU16::new(size.rows).unwrap_or(NonZeroU16::MIN),
        NonZeroU16::new(size.columns).unwrap_or(NonZeroU16::MIN),
    )
}
