//! What a session left switched on in the person's terminal, when it ends without putting that back: a lost link, a killed editor.

/// Modes by their numbers (xterm's control sequences), and whether they are on in a terminal that nothing changed.
const MODES: [(u16, bool); 17] = [
    (1, false),
    (7, true),
    (9, false),
    (25, true),
    (47, false),
    (1000, false),
    (1001, false),
    (1002, false),
    (1003, false),
    (1004, false),
    (1005, false),
    (1006, false),
    (1015, false),
    (1047, false),
    (1048, false),
    (1049, false),
    (2004, false),
];
/// Those of the other screen.
const SCREENS: [u16; 3] = [47, 1047, 1049];
/// Digits of a number, and numbers of a sequence, at most.
const NUMBERS_MAX: usize = 16;

/// Follows output for what has to be put back.
#[derive(Debug, Default)]
pub(super) struct SaneTerminal {
    state: State,
    numbers: Vec<u16>,
    /// Modes that are not as they were.
    changed: Vec<u16>,
    /// Whether the keypad sends codes (DECKPAM).
    keypad: bool,
    /// Whether anything was written that may have changed colours.
    dirty: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Text,
    Escape,
    /// Behind `ESC [`.
    Sequence,
    /// Behind `ESC [ ?`.
    Private,
}

impl SaneTerminal {
    /// Output that is written to the terminal.
    pub(super) fn advance(&mut self, output: &[u8]) {
        for byte in output {
            self.byte(*byte);
        }
    }

    fn byte(&mut self, byte: u8) {
        self.state = match (self.state, byte) {
            (_, 0x1b) => State::Escape,
            (State::Text, _) => State::Text,
            (State::Escape, b'[') => State::Sequence,
            (State::Escape, b'=' | b'>') => {
                self.keypad = byte == b'=';
                State::Text
            }
            // A full reset.
            (State::Escape, b'c') => {
                *self = SaneTerminal::default();
                State::Text
            }
            (State::Sequence, b'?') => {
                self.numbers = vec![0];
                State::Private
            }
            (State::Sequence, b'm') => {
                self.dirty = true;
                State::Text
            }
            (State::Sequence, b'0'..=b';') => State::Sequence,
            (State::Private, b'0'..=b'9') => {
                if let Some(number) = self.numbers.last_mut() {
                    *number = number.saturating_mul(10).saturating_add(u16::from(byte - b'0'));
                }
                State::Private
            }
            (State::Private, b';') if self.numbers.len() < NUMBERS_MAX => {
                self.numbers.push(0);
                State::Private
            }
            (State::Private, b'h' | b'l') => {
                for number in std::mem::take(&mut self.numbers) {
                    self.set(number, byte == b'h');
                }
                State::Text
            }
            _ => State::Text,
        };
    }

    fn set(&mut self, number: u16, on: bool) {
        let Some((_, usual)) = MODES.iter().find(|(known, _)| *known == number) else { return };
        self.changed.retain(|changed| *changed != number);
        if on != *usual {
            self.changed.push(number);
        }
    }

    /// Whether the session shows the other screen, as editors do.
    pub(super) fn is_on_other_screen(&self) -> bool {
        self.changed.iter().any(|number| SCREENS.contains(number))
    }

    /// What puts the terminal back; nothing where that is not needed.
    pub(super) fn restore(&self) -> Vec<u8> {
        let mut out = Vec::new();
        // Colours first: the screen that is left is cleared in them.
        if self.dirty || !self.changed.is_empty() {
            out.extend_from_slice(b"\x1b[m");
        }
        for number in self.changed.iter().rev() {
            let usual = MODES.iter().any(|(known, usual)| known == number && *usual);
            out.extend_from_slice(format!("\x1b[?{number}{}", if usual { 'h' } else { 'l' }).as_bytes());
        }
        if self.keypad {
            out.extend_from_slice(b"\x1b>");
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_program_switched_on_is_switched_off() {
        let after = |output: &str| {
            let mut terminal = SaneTerminal::default();
            terminal.advance(output.as_bytes());
            String::from_utf8(terminal.restore()).unwrap()
        };
        assert_eq!(after("plain text\r\n"), "");
        assert_eq!(after("\x1b[31mred"), "\x1b[m");
        // As vim begins, and ends.
        let begin = "\x1b[?1049h\x1b[?1h\x1b=\x1b[?2004h\x1b[?25l";
        assert_eq!(after(begin), "\x1b[m\x1b[?25h\x1b[?2004l\x1b[?1l\x1b[?1049l\x1b>");
        assert_eq!(after(&format!("{begin}\x1b[?25h\x1b[?2004;1l\x1b>\x1b[?1049l")), "");
        assert_eq!(after("\x1b[?1000;1006h"), "\x1b[m\x1b[?1006l\x1b[?1000l");
        assert_eq!(after("\x1b[?9999999999h\x1b[?;;;;;;;;;;;;;;;;;;;;;;h"), "");
        assert_eq!(after("\x1b[?1049h\x1bc"), "");
    }

    #[test]
    fn the_other_screen_is_known() {
        let mut terminal = SaneTerminal::default();
        for part in ["\x1b[?10", "49h"] {
            assert!(!terminal.is_on_other_screen());
            terminal.advance(part.as_bytes());
        }
        assert!(terminal.is_on_other_screen());
        terminal.advance(b"\x1b[?1049l");
        assert!(!terminal.is_on_other_screen());
    }
}
