//! What passes to the model: whole escape sequences and characters, and none that costs much.
//!
//! The states are those of Williams' parser for DEC terminals, which the model's own parser follows. What is not at its end is held
//! back, so that between two calls the model is always between two sequences, and what a terminal has seen of the next is known.

use core::ops::ControlFlow;

/// Bytes of a sequence that are held at most: a title or a hyperlink. Strings that are longer, images and clipboards, the model has no
/// use for.
const MAX_HELD: usize = 4096;
/// Times that a character is repeated at most (REP, ECMA-48 section 8.3.103): a row of the widest window.
const MAX_REPEATED: u32 = 1000;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Ground,
    /// So many bytes of a character are to come.
    Character(u8),
    Escape,
    Csi,
    /// A string: a title, an image. `osc`: BEL ends it, too.
    Text {
        osc: bool,
    },
    /// After the ESC that ends a string.
    TextEscape,
}

/// Which characters bytes mean (ISO 2022): `0` stands for DEC's line drawing, all else for ASCII.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Charsets {
    pub(super) sets: [u8; 2],
    pub(super) shifted: bool,
}

impl Charsets {
    /// ASCII.
    pub(crate) const USUAL: Charsets = Charsets { sets: [b'B'; 2], shifted: false };

    fn draws(self) -> bool {
        self.sets[usize::from(self.shifted)] == b'0'
    }
}

/// What stands between output and the model.
#[derive(Debug)]
pub(super) struct Sifter {
    state: State,
    held: Vec<u8>,
    /// Whether what is held began with more than is held.
    cut: bool,
    charsets: Charsets,
}

impl Default for Sifter {
    fn default() -> Sifter {
        Sifter { state: State::Ground, held: Vec::new(), cut: false, charsets: Charsets::USUAL }
    }
}

impl Sifter {
    /// Gives `pass` what the model is to see of these bytes.
    pub(super) fn sift(&mut self, bytes: &[u8], mut pass: impl FnMut(&[u8])) {
        let mut rest = bytes;
        while !rest.is_empty() {
            if self.state == State::Ground {
                let run = self.plain(rest);
                let (plain, after) = rest.split_at(run);
                self.pass_plain(plain, &mut pass);
                rest = after;
                let Some((&first, after)) = rest.split_first() else { return };
                rest = after;
                self.begin(first, &mut pass);
            } else {
                let byte = rest[0];
                rest = &rest[1..];
                if self.go_on(byte).is_break() {
                    self.finish(&mut pass);
                    if self.state != State::Ground {
                        self.held.push(0x1b);
                    }
                } else if self.state == State::Ground {
                    // A byte that does not belong to the character before it.
                    self.finish(&mut pass);
                    rest = &bytes[bytes.len() - rest.len() - 1..];
                }
            }
        }
    }

    /// The bytes of an unfinished sequence, unless they are too many.
    pub(super) fn unfinished(&self) -> Option<&[u8]> {
        (!self.cut).then_some(&self.held)
    }

    pub(super) fn charsets(&self) -> Charsets {
        self.charsets
    }

    /// How many bytes at the front stand for themselves.
    fn plain(&self, bytes: &[u8]) -> usize {
        let special = |byte: &u8| matches!(byte, 0x0e | 0x0f | 0x1b | 0xc2..=0xf4);
        bytes.iter().position(special).unwrap_or(bytes.len())
    }

    fn pass_plain(&self, plain: &[u8], pass: &mut impl FnMut(&[u8])) {
        if !self.charsets.draws() {
            if !plain.is_empty() {
                pass(plain);
            }
            return;
        }
        let drawn: String = plain.iter().map(|byte| line_drawing(*byte)).collect();
        pass(drawn.as_bytes());
    }

    /// A byte that stands not for itself.
    fn begin(&mut self, byte: u8, pass: &mut impl FnMut(&[u8])) {
        match byte {
            0x0e | 0x0f => {
                self.charsets.shifted = byte == 0x0e;
                return pass(&[byte]);
            }
            0x1b => self.state = State::Escape,
            _ => {
                // The lead byte says how many follow (RFC 3629).
                self.state = State::Character(match byte {
                    0xc2..=0xdf => 1,
                    0xe0..=0xef => 2,
                    _ => 3,
                });
            }
        }
        self.held.push(byte);
    }

    /// The next byte of what is held. `Break`: it is at its end. In the state `Ground` otherwise: the byte is not a part of it.
    fn go_on(&mut self, byte: u8) -> ControlFlow<()> {
        let (state, last) = match (self.state, byte) {
            (State::Character(left), 0x80..=0xbf) => {
                if left == 1 {
                    (State::Ground, true)
                } else {
                    (State::Character(left - 1), false)
                }
            }
            (State::Character(_) | State::Ground, _) => {
                self.state = State::Ground;
                return ControlFlow::Continue(());
            }
            // CAN and SUB end everything.
            (_, 0x18 | 0x1a) => (State::Ground, true),
            (State::Text { .. }, 0x1b) => (State::TextEscape, false),
            (State::Text { osc: true }, 0x07) => (State::Ground, true),
            (State::Text { .. }, _) => (self.state, false),
            // Another sequence begins.
            (_, 0x1b) => {
                self.state = State::Escape;
                return ControlFlow::Break(());
            }
            (State::Escape | State::TextEscape, b'[') => (State::Csi, false),
            (State::Escape | State::TextEscape, b']') => (State::Text { osc: true }, false),
            (State::Escape | State::TextEscape, b'P' | b'X' | b'^' | b'_') => {
                (State::Text { osc: false }, false)
            }
            (State::Escape | State::TextEscape, 0x30..=0x7e) | (State::Csi, 0x40..=0x7e) => {
                (State::Ground, true)
            }
            (State::TextEscape, _) => (State::Escape, false),
            (state, _) => (state, false),
        };
        self.state = state;
        if self.held.len() < MAX_HELD {
            self.held.push(byte);
        } else {
            self.cut = true;
        }
        if last { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    /// What is held passes.
    fn finish(&mut self, pass: &mut impl FnMut(&[u8])) {
        let mut held = core::mem::take(&mut self.held);
        if core::mem::take(&mut self.cut) {
            held.clear();
        }
        match held.as_slice() {
            // VARIATION SELECTOR-16 makes a character wide after it was printed. The model breaks off where there is no room for that;
            // terminals do not agree on it.
            [] | [0xef, 0xb8, 0x8f] => {}
            [0x1b, b'[', count @ .., b'b'] if repeats(count) => {
                pass(format!("\x1b[{MAX_REPEATED}b").as_bytes());
            }
            sequence => {
                match sequence {
                    [0x1b, b'(', set] => self.charsets.sets[0] = *set,
                    [0x1b, b')', set] => self.charsets.sets[1] = *set,
                    [0x1b, b'c'] => self.charsets = Charsets::USUAL,
                    _ => {}
                }
                pass(sequence);
            }
        }
        held.clear();
        self.held = held;
    }
}

/// Whether a count is too large to be repeated.
fn repeats(count: &[u8]) -> bool {
    let digits = count.iter().filter(|byte| byte.is_ascii_digit());
    let number =
        digits.fold(0_u32, |number, digit| number.saturating_mul(10).saturating_add(u32::from(digit - b'0')));
    number > MAX_REPEATED
}

/// DEC's special graphics (VT100 user guide, table 3-9).
fn line_drawing(byte: u8) -> char {
    const GRAPHICS: [char; 31] = [
        '◆', '▒', '␉', '␌', '␍', '␊', '°', '±', '␤', '␋', '┘', '┐', '┌', '└', '┼', '⎺', '⎻', '─', '⎼', '⎽',
        '├', '┤', '┴', '┬', '│', '≤', '≥', 'π', '≠', '£', '·',
    ];
    let place = byte.checked_sub(0x60).map(usize::from);
    // What is no graphic stays; what is no ASCII means nothing without the bytes around it.
    place.and_then(|place| GRAPHICS.get(place)).copied().unwrap_or(if byte < 0x80 {
        char::from(byte)
    } else {
        '\u{fffd}'
    })
}
