//! Where in the stream of output a terminal is: only between characters and sequences may anything of ours be written, and only
//! while text means text.

/// Follows output byte by byte, as terminals do (ECMA-48, and the state machine of DEC's terminals by Williams).
#[derive(Debug, Default)]
pub(super) struct Position {
    state: State,
    /// The number that is being read of a control sequence: `4` of insert mode is all that is looked for.
    parameter: u16,
    /// A private marker or an intermediate byte was in the sequence.
    private: bool,
    /// G0 is not a set of letters, but of lines.
    graphics: bool,
    /// G1 was selected by SO.
    shifted: bool,
    /// Insert mode (IRM) or origin mode (DECOM): a cell cannot be written as it is meant.
    insert: bool,
    origin: bool,
}

#[derive(Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Ground,
    /// This many bytes of a character in UTF-8 are to come.
    Character(u8),
    /// One byte of a character is to come, which may be a control of the C1 set.
    Latin,
    /// Terminals differ in what they made of the last byte: only what begins a sequence anywhere ends this.
    Unsure,
    Escape,
    /// After an intermediate byte of an escape sequence; whether it names G0.
    Intermediate(bool),
    Control,
    /// In a string (OSC, DCS, APC, PM, SOS); whether ESC was the last byte.
    Text(bool),
}

impl Position {
    /// Takes what the terminal is sent.
    pub(super) fn advance(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.byte(*byte);
        }
    }

    /// Whether something of ours may be written here.
    pub(super) fn is_plain(&self) -> bool {
        self.state == State::Ground && !self.graphics && !self.shifted && !self.insert && !self.origin
    }

    /// True if output is within a string, which no terminal shows.
    pub(super) fn is_in_string(&self) -> bool {
        matches!(self.state, State::Text(_))
    }

    fn byte(&mut self, byte: u8) {
        // CAN and SUB end any sequence; ESC begins one anywhere.
        match byte {
            0x18 | 0x1a => return self.state = State::Ground,
            0x1b if !matches!(self.state, State::Text(_)) => return self.state = State::Escape,
            0x0e | 0x0f if !matches!(self.state, State::Text(_)) => return self.shifted = byte == 0x0e,
            _ => {}
        }
        self.state = match self.state {
            State::Ground => ground(byte),
            State::Character(left) if (0x80..0xc0).contains(&byte) => {
                if left > 1 {
                    State::Character(left - 1)
                } else {
                    State::Ground
                }
            }
            State::Character(_) => ground(byte),
            State::Latin if (0xa0..0xc0).contains(&byte) => State::Ground,
            State::Latin if (0x80..0xa0).contains(&byte) => State::Unsure,
            State::Latin => ground(byte),
            State::Unsure => State::Unsure,
            State::Escape | State::Intermediate(_) | State::Control | State::Text(true) if byte >= 0x80 => {
                State::Unsure
            }
            State::Escape => self.escape(byte),
            State::Intermediate(g0) => match byte {
                0x20..=0x2f => State::Intermediate(false),
                0x00..0x20 | 0x7f => State::Intermediate(g0),
                _ => {
                    if g0 {
                        self.graphics = byte == b'0';
                    }
                    State::Ground
                }
            },
            State::Control => self.control(byte),
            State::Text(true) => match byte {
                b'\\' => State::Ground,
                // The string ended at ESC, and this belongs to a new sequence.
                _ => self.escape(byte),
            },
            State::Text(false) => match byte {
                0x07 => State::Ground,
                0x1b => State::Text(true),
                // As one byte it ends a string, and it is part of characters.
                0x9c => State::Unsure,
                _ => State::Text(false),
            },
        };
    }

    fn escape(&mut self, byte: u8) -> State {
        match byte {
            b'[' => {
                (self.parameter, self.private) = (0, false);
                State::Control
            }
            b']' | b'P' | b'_' | b'^' | b'X' => State::Text(false),
            b'(' => State::Intermediate(true),
            0x20..=0x2f => State::Intermediate(false),
            // A control acts at once, and DEL does nothing; the sequence goes on.
            0x00..0x20 | 0x7f => State::Escape,
            b'c' => {
                *self = Position::default();
                State::Ground
            }
            _ => State::Ground,
        }
    }

    fn control(&mut self, byte: u8) -> State {
        match byte {
            b'0'..=b'9' => {
                self.parameter = self.parameter.saturating_mul(10).saturating_add(u16::from(byte - b'0'));
            }
            b'?' => self.private = true,
            b';' | b':' => self.parameter = 0,
            b'h' | b'l' => {
                match (self.private, self.parameter) {
                    (false, 4) => self.insert = byte == b'h',
                    (true, 6) => self.origin = byte == b'h',
                    _ => {}
                }
                return State::Ground;
            }
            0x40..=0x7e => return State::Ground,
            _ => {}
        }
        State::Control
    }
}

/// The state after a byte between sequences.
fn ground(byte: u8) -> State {
    match byte {
        0xc2 => State::Latin,
        0xc3..=0xdf => State::Character(1),
        0xe0..=0xef => State::Character(2),
        0xf0..=0xf4 => State::Character(3),
        _ => State::Ground,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// For each byte of `bytes`, whether the place behind it is plain.
    fn places(bytes: &[u8]) -> String {
        let mut position = Position::default();
        let place = |byte: &u8| {
            position.advance(&[*byte]);
            if position.is_plain() { '+' } else { '-' }
        };
        bytes.iter().map(place).collect()
    }

    #[test]
    fn nothing_is_written_into_a_sequence() {
        assert_eq!(places(b"ab\r\n"), "++++");
        assert_eq!(places(b"\x1b[1;31mx"), "------++");
        assert_eq!(places("é中🙂".as_bytes()), "-+--+---+");
        assert_eq!(places(b"\x1b]0;t\x07a"), "-----++");
        assert_eq!(places(b"\x1b]0;t\x1b\\a"), "------++");
        assert_eq!(places(b"\x1b[1\x18a"), "---++");
        assert_eq!(places(b"\x1bMa"), "-++");
        assert_eq!(places(b"\x1b\x7f \x7fFa"), "----++");
        assert_eq!(places(b"\x1b(Ba"), "--++");
        assert_eq!(places(b"\x1b[?25\x94a\x1b[ma"), "---------++");
        assert_eq!(places(b"\x1b\xaaa\x18a"), "---++");
        assert_eq!(places(b"\xc2\xa3\xc2\x9bHa\x1b[m"), "-+------+");
        assert_eq!(places(b"\x1bP\x1b\xaaa\x1bMa"), "------++");
        assert_eq!(places(b"\x1b]\x9ca\x1b\\"), "-----+");
    }

    #[test]
    fn nothing_is_written_while_letters_are_lines_or_cells_move() {
        assert_eq!(places(b"\x1b(0q\x1b(Bq"), "------++");
        assert_eq!(places(b"\x0eq\x0fq"), "--++");
        assert_eq!(places(b"\x1b[4hq\x1b[4lq"), "--------++");
        assert_eq!(places(b"\x1b[?6hq\x1b[?6l"), "----------+");
        assert_eq!(places(b"\x1b[?6h\x1bc"), "------+");
    }
}
