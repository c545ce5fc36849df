//! The keys that are not answered yet, and where their effect is expected.
//!
//! Keys from the front of the queue up to the first [barrier](Key::is_barrier) are one epoch: they change one row, from the *place* on at
//! which the cursor was. An epoch is shown once one of its keys was seen to be echoed, or where it begins behind a prompt
//! at which that was seen before. Keys behind a barrier get a place when the barrier was answered.

use std::collections::VecDeque;

use core::time::Duration;
use strait_clock::Time;
use vt100::Screen;

use super::keys::Key;
use super::line::{Line, Rules, Style};
use super::prompts::Prompts;
use crate::TerminalModes;

/// How long a program may take for its answer, from when the session has the input. As mosh's server has it: most programs
/// answer at once, and one that is waited for in vain keeps a wrong prediction on the screen.
pub(super) const ANSWER_TIME: Duration = Duration::from_millis(50);
/// Keys that may wait: more than is typed in a round trip of half a minute.
const QUEUE_MAX: usize = 256;

/// One key that is not answered. It may be part of a secret, and is never printed.
struct Guess {
    key: Key,
    /// The offset behind it in the session's input.
    end: u64,
    typed: Time,
    /// When the session was known to have it.
    taken: Option<Time>,
    /// Line feeds that had arrived when it was typed.
    lines: u64,
    shown: bool,
}

/// Where an epoch is.
struct Place {
    row: u16,
    /// The row, and the cursor in it, as the terminal had it behind the last key that was answered.
    base: Line,
    /// The column left of which no key goes.
    start: u16,
    /// The known prompt that the row begins with.
    prompt: Option<String>,
    /// What is left of the cursor where a line begins: a prompt, if something is echoed behind it.
    candidate: Option<String>,
    confirmed: bool,
    lines: u64,
}

/// All that is expected of the terminal.
#[derive(Default)]
pub(super) struct Guesses {
    queue: VecDeque<Guess>,
    place: Option<Place>,
    /// None until the session has said them.
    modes: Option<TerminalModes>,
    prompts: Prompts,
    overwrites: bool,
    /// Line feeds that arrived.
    lines: u64,
    /// The last key that was answered ended a line, or there was none.
    line_begins: bool,
    wrong: u64,
}

impl Guesses {
    pub(super) fn new() -> Guesses {
        Guesses { line_begins: true, ..Guesses::default() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// Keys that were on the screen and were not what the terminal showed then.
    pub(super) fn wrong(&self) -> u64 {
        self.wrong
    }

    /// When the oldest key was typed that the session is not known to have.
    pub(super) fn oldest(&self) -> Option<Time> {
        self.queue.iter().find(|guess| guess.taken.is_none()).map(|guess| guess.typed)
    }

    /// When [`Guesses::settle`] has something to do.
    pub(super) fn deadline(&self) -> Option<Time> {
        self.queue.front()?.taken.map(|taken| taken + ANSWER_TIME)
    }

    /// Forgets all keys: what they do will be on a screen that is not known yet.
    pub(super) fn clear(&mut self) {
        self.queue.clear();
        self.place = None;
    }

    pub(super) fn count_lines(&mut self, output: &[u8]) {
        let lines = output.iter().filter(|byte| **byte == b'\n').count();
        self.lines = self.lines.saturating_add(u64::try_from(lines).unwrap_or(u64::MAX));
    }

    /// The terminal's modes changed: what was known of it holds no longer.
    pub(super) fn modes(&mut self, modes: TerminalModes) {
        if self.modes != Some(modes) {
            self.modes = Some(modes);
            self.place = None;
            if is_secret(modes) {
                // What was typed ahead may be the secret, or not: it is not shown.
                for guess in &mut self.queue {
                    guess.key = Key::Other;
                }
            }
        }
    }

    /// Takes a key that ends at `end` in the input.
    pub(super) fn typed(&mut self, key: Key, end: u64, screen: &Screen, now: Time) {
        let key = self.foretold(key, screen);
        if self.queue.is_empty() && !key.is_barrier() && !self.is_placed_at_cursor(screen) {
            self.set_place(screen);
        }
        let guess = Guess { key, end, typed: now, taken: None, lines: self.lines, shown: false };
        match self.queue.back_mut() {
            Some(last) if key.is_barrier() && last.key.is_barrier() => *last = guess,
            _ => self.queue.push_back(guess),
        }
    }

    /// The key, or [`Key::Other`] where nothing is known of what it does.
    fn foretold(&self, key: Key, screen: &Screen) -> Key {
        let Some(modes) = self.modes else { return Key::Other };
        let hopeless = is_secret(modes) || screen.hide_cursor() || self.queue.len() >= QUEUE_MAX;
        // A terminal that edits lines itself echoes what other keys send as text.
        let cooked = modes.canonical && !matches!(key, Key::Text(..) | Key::Erase);
        if key != Key::Enter && (hopeless || cooked) { Key::Other } else { key }
    }

    /// The session has the input up to `offset`.
    pub(super) fn taken(&mut self, offset: u64, now: Time) {
        for guess in self.queue.iter_mut().take_while(|guess| guess.end <= offset) {
            guess.taken.get_or_insert(now);
        }
    }

    /// Takes keys from the front whose effect the terminal shows.
    pub(super) fn compare(&mut self, screen: &Screen) {
        while self.take_answered(screen) {}
    }

    fn take_answered(&mut self, screen: &Screen) -> bool {
        let (row, column) = screen.cursor_position();
        let Some(place) = self.place.as_ref().filter(|place| place.row == row) else { return false };
        let rules = rules(place, self.overwrites, screen);
        let mut line = place.base.clone();
        let mut answered = None;
        for (index, guess) in self.queue.iter().enumerate() {
            if guess.key.is_barrier() || !line.apply(guess.key, rules) {
                break;
            }
            if line.cursor == column {
                let shown = Line::of(screen, row, column);
                let whole = guess.key != Key::Erase || line.agrees_under_cursor(&shown);
                // Where nothing is to change, the session must have it.
                let moved = line.cursor != place.base.cursor || line.cells != place.base.cells;
                if whole && line.agrees_with(&shown) && (moved || guess.taken.is_some()) {
                    answered = Some((index + 1, shown));
                    break;
                }
            }
        }
        let Some((count, shown)) = answered else { return false };
        let news = line.is_news_to(&place.base);
        self.answered(count, news, shown);
        true
    }

    /// The first `count` keys were answered, the row is `shown` now. `news`: nothing but an echo explains it.
    fn answered(&mut self, count: usize, news: bool, shown: Line) {
        let text = count == 1 && matches!(self.queue.front(), Some(Guess { key: Key::Text(_, 1), .. }));
        self.queue.drain(..count);
        let (Some(place), Some(modes)) = (&mut self.place, self.modes) else { return };
        if text && let Some(overwrites) = shown.overwrote(&place.base) {
            self.overwrites = overwrites;
        }
        if news {
            place.confirmed = true;
            if let Some(prompt) = place.candidate.take() {
                self.prompts.learn(&prompt, modes);
            }
        }
        place.base = shown;
        self.line_begins = false;
    }

    /// Decides of keys at the front that were answered in another way than was expected, or in none, and finds the place of those that
    /// follow.
    pub(super) fn settle(&mut self, screen: &Screen, now: Time) {
        while let Some(front) = self.queue.front() {
            let due = front.taken.is_some_and(|taken| now >= taken + ANSWER_TIME);
            let fresh = self.is_at_fresh_prompt(screen);
            if front.key.is_barrier() {
                let early = fresh && front.taken.is_some() && self.lines > front.lines;
                if !due && !early {
                    return;
                }
                self.line_begins = front.key == Key::Enter;
                self.queue.pop_front();
                if !early {
                    self.skip_taken();
                }
                self.set_place(screen);
            } else if due {
                self.refute();
                self.set_place(screen);
            } else if fresh && !front.shown && !self.is_placed_at_cursor(screen) {
                self.set_place(screen);
            } else {
                return;
            }
        }
    }

    /// The key at the front did something else.
    fn refute(&mut self) {
        let shown = self.queue.iter().take_while(|guess| guess.shown).count();
        if shown > 0 {
            self.wrong += 1;
            if let Some(prompt) = self.place.as_ref().and_then(|place| place.prompt.as_deref()) {
                self.prompts.forget(prompt);
            }
        }
        for guess in &mut self.queue {
            guess.shown = false;
        }
        self.line_begins = false;
        self.queue.pop_front();
        self.skip_taken();
    }

    /// What the session has is on the screen, whatever it did: the place of what follows is behind it.
    fn skip_taken(&mut self) {
        while self.queue.front().is_some_and(|guess| guess.taken.is_some() && !guess.key.is_barrier()) {
            self.queue.pop_front();
        }
    }

    fn is_placed_at_cursor(&self, screen: &Screen) -> bool {
        let cursor = screen.cursor_position();
        self.place
            .as_ref()
            .is_some_and(|place| (place.row, place.base.cursor) == cursor && place.lines == self.lines)
    }

    /// Begins an epoch at the cursor.
    fn set_place(&mut self, screen: &Screen) {
        let (row, cursor) = screen.cursor_position();
        let base = Line::of(screen, row, cursor);
        let text = base.text_before(cursor);
        let prompt = self.known_prompt(&text, screen);
        let start = match &prompt {
            _ if screen.alternate_screen() => 0,
            Some(prompt) => base.column_behind(prompt),
            None => cursor,
        };
        let candidate = (self.line_begins && !screen.alternate_screen()).then_some(text);
        let confirmed = prompt.is_some();
        let lines = self.lines;
        self.place = Some(Place { row, base, start, prompt, candidate, confirmed, lines });
    }

    /// The known prompt that `text` begins with. A program that has the whole screen has none.
    fn known_prompt(&self, text: &str, screen: &Screen) -> Option<String> {
        let modes = self.modes.filter(|_| !screen.alternate_screen())?;
        self.prompts.find(text, modes).map(str::to_owned)
    }

    /// Whether the cursor is behind a known prompt, and nothing was typed there.
    fn is_at_fresh_prompt(&self, screen: &Screen) -> bool {
        let (row, cursor) = screen.cursor_position();
        let line = Line::of(screen, row, cursor);
        let text = line.text_before(cursor);
        self.known_prompt(&text, screen).is_some_and(|prompt| prompt == text)
    }

    /// The row as it will be when the keys of the first epoch are answered, if that is to be shown.
    pub(super) fn draw(&mut self, screen: &Screen, underline: bool) -> Option<Line> {
        let (row, column) = screen.cursor_position();
        let place = self.place.as_ref().filter(|place| place.confirmed && place.row == row)?;
        if column >= screen.size().1.get() || screen.hide_cursor() {
            return None;
        }
        let mut rules = rules(place, self.overwrites, screen);
        rules.style.underline |= underline;
        let mut line =
            if column == place.base.cursor { Line::of(screen, row, column) } else { place.base.clone() };
        let mut count = 0;
        for guess in &mut self.queue {
            if guess.key.is_barrier() || !line.apply(guess.key, rules) {
                break;
            }
            guess.shown = true;
            count += 1;
        }
        (count > 0).then_some(line)
    }
}

/// A terminal that takes lines and does not echo them reads a secret.
fn is_secret(modes: TerminalModes) -> bool {
    modes.canonical && !modes.echo
}

fn rules(place: &Place, overwrites: bool, screen: &Screen) -> Rules {
    let style = Style {
        foreground: screen.fgcolor(),
        background: screen.bgcolor(),
        bold: screen.bold(),
        dim: screen.dim(),
        italic: screen.italic(),
        underline: screen.underline(),
        inverse: screen.inverse(),
    };
    Rules { start: place.start, edited: place.prompt.is_some(), overwrites, style }
}
