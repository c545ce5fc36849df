//! Modes that programs switch on in a terminal, beside what it shows: keys and the mouse, colours, the cursor's shape. They are followed
//! so that they can be painted and put back.

use std::io::Write;

use super::keys::KeyStack;

/// Bytes of a colour's name that are kept at most: more names no colour (`rgb:ffff/ffff/ffff`).
const MAX_COLOUR: usize = 32;
/// Colours of text, cursor and pointer by the numbers of their sequences (xterm's OSC 10 to 19).
const COLOURS: core::ops::RangeInclusive<u16> = 10..=19;
/// The sequence by which one of the palette is set.
const PALETTE: u16 = 4;
/// The most parameters of a sequence that are read: as many as Linux' console reads.
const MAX_NUMBERS: usize = 16;
/// Kinds of keys whose modifiers can be sent (xterm's XTMODKEYS: 0 to 7).
const MODIFIED: usize = 8;

/// A mode.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Mode {
    number: u16,
    /// True for those behind `?`.
    private: bool,
    /// True if it is on in a terminal in which nothing changed it.
    usual: bool,
    /// True if it is painted here; the others are, as far as they are, with the screen.
    painted: bool,
}

const fn private(number: u16) -> Mode {
    Mode { number, private: true, usual: false, painted: true }
}

/// Of xterm's control sequences, and of kitty (2026, 2031, 2048), Contour (2027) and Windows' console (9001).
static MODES: [Mode; 34] = [
    Mode { private: false, painted: false, ..private(2) },
    Mode { private: false, painted: false, ..private(4) },
    Mode { private: false, painted: false, usual: true, ..private(12) },
    Mode { private: false, painted: false, ..private(20) },
    private(1),
    private(5),
    Mode { painted: false, ..private(6) },
    Mode { painted: false, usual: true, ..private(7) },
    Mode { usual: true, ..private(8) },
    private(9),
    private(12),
    Mode { painted: false, usual: true, ..private(25) },
    Mode { painted: false, ..private(47) },
    private(66),
    Mode { painted: false, ..private(69) },
    private(1000),
    Mode { painted: false, ..private(1001) },
    private(1002),
    private(1003),
    private(1004),
    private(1005),
    private(1006),
    private(1007),
    private(1015),
    private(1016),
    Mode { painted: false, ..private(1047) },
    Mode { painted: false, ..private(1048) },
    Mode { painted: false, ..private(1049) },
    private(2004),
    Mode { painted: false, ..private(2026) },
    private(2027),
    private(2031),
    private(2048),
    private(9001),
];
/// Those of the other screen.
const SCREENS: [u16; 3] = [47, 1047, 1049];
/// Positions count from the region that scrolls.
const ORIGIN: u16 = 6;
/// Modes that terminals begin with as their users like: the screen's colours, keys that repeat, a cursor that blinks, the wheel as keys,
/// widths.
const CHOSEN: [u16; 5] = [5, 8, 12, 1007, 2027];
/// Modes that are not changed again: those that are or move the screen or the cursor, and synchronized output, which lasts for a moment.
const NOT_AGAIN: [u16; 6] = [ORIGIN, 47, 1047, 1048, 1049, 2026];

impl Mode {
    fn is_screen(&self) -> bool {
        self.private && SCREENS.contains(&self.number)
    }

    fn put(&self, on: bool, out: &mut Vec<u8>) {
        let mark = if self.private { "?" } else { "" };
        put(out, format_args!("\x1b[{mark}{}{}", self.number, if on { 'h' } else { 'l' }));
    }
}

/// Modes that are not as in a terminal in which nothing was changed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ChangedModes {
    /// In the order in which they were changed.
    modes: Vec<&'static Mode>,
    /// True if the keypad sends codes (DECKPAM).
    keypad: bool,
    /// The flags by which keys are sent: on the main screen, and on the other one.
    keys: [KeyStack; 2],
    /// The modifiers that are sent (xterm's XTMODKEYS); 0 as usual.
    modified: [u16; MODIFIED],
    /// The cursor's shape (DECSCUSR); 0 as usual.
    shape: u16,
    /// By their numbers.
    colours: Vec<(u16, String)>,
    palette: bool,
    /// The region that scrolls, as it was set (DECSTBM).
    region: Option<(u16, u16)>,
    /// The set of characters that is in use is not ASCII (ISO 2022), or bytes are not UTF-8.
    charset: Option<u8>,
    shifted: bool,
    not_utf8: bool,
    /// True if anything was written that may have changed how text looks.
    looks: bool,
}

impl ChangedModes {
    /// Takes a whole sequence that is written to the terminal.
    pub(super) fn take(&mut self, piece: &[u8]) {
        match piece {
            [0x0e | 0x0f] => self.shifted = piece == [0x0e],
            [0x1b, b'=' | b'>'] => self.keypad = piece[1] == b'=',
            [0x1b, b'n' | b'o'] => self.shifted = true,
            [0x1b, b'c'] => *self = ChangedModes::default(),
            [0x1b, b'(', set] => self.charset = Some(*set).filter(|set| *set != b'B'),
            [0x1b, b'%', set] => self.not_utf8 = *set == b'@',
            [0x1b, b'[', parameters @ .., last] => self.control(parameters, *last),
            [0x1b, b']', text @ .., 0x07] | [0x1b, b']', text @ .., 0x1b, b'\\'] => self.command(text),
            _ => {}
        }
    }

    fn control(&mut self, parameters: &[u8], last: u8) {
        let (mark, rest) = match parameters {
            [mark @ b'<'..=b'?', rest @ ..] => (*mark, rest),
            _ => (0, parameters),
        };
        let between = rest.iter().position(|byte| (0x20..0x30).contains(byte)).unwrap_or(rest.len());
        let (rest, between) = rest.split_at(between);
        let numbers: Vec<u16> = rest.split(|byte| *byte == b';').take(MAX_NUMBERS).map(number).collect();
        let first = numbers.first().copied().unwrap_or(0);
        let second = numbers.get(1).copied();
        let shown = usize::from(self.is_on_other_screen());
        match (mark, between, last) {
            (b'?' | 0, b"", b'h' | b'l') => {
                numbers.iter().for_each(|number| self.set(*number, mark == b'?', last == b'h'));
            }
            (0, b"", b'm') => self.looks = true,
            (0, b"", b'r') => {
                self.region = Some((first, second.unwrap_or(0))).filter(|region| *region != (0, 0));
            }
            (0, b" ", b'q') => self.shape = first,
            (b'>', b"", b'm') if rest.is_empty() => self.modified = [0; MODIFIED],
            (b'>', b"", b'm') => {
                if let Some(modified) = self.modified.get_mut(usize::from(first)) {
                    *modified = second.unwrap_or(0);
                }
            }
            (b'>', b"", b'u') => self.keys[shown].push(first),
            (b'<', b"", b'u') => self.keys[shown].pop(first),
            (b'=', b"", b'u') => self.keys[shown].change(first, second),
            _ => {}
        }
    }

    fn set(&mut self, number: u16, private: bool, on: bool) {
        let Some(mode) = MODES.iter().find(|mode| (mode.number, mode.private) == (number, private)) else {
            return;
        };
        // There is one other screen, which may be left by another number than it was entered.
        self.modes.retain(|changed| *changed != mode && !(changed.is_screen() && mode.is_screen()));
        if on != mode.usual {
            self.modes.push(mode);
        }
    }

    /// Takes a command to the operating system (OSC).
    fn command(&mut self, text: &[u8]) {
        let mut parts = text.split(|byte| *byte == b';');
        let which = parts.next().map_or(0, number);
        if COLOURS.contains(&which) {
            for (which, value) in (which..=*COLOURS.end()).zip(parts) {
                let fits = (1..=MAX_COLOUR).contains(&value.len()) && value.iter().all(u8::is_ascii_graphic);
                // A question changes nothing.
                if let Ok(value) = std::str::from_utf8(value)
                    && fits
                    && value != "?"
                {
                    self.colours.retain(|(known, _)| *known != which);
                    self.colours.push((which, value.to_owned()));
                }
            }
        } else if let Some(which) = which.checked_sub(100).filter(|which| COLOURS.contains(which)) {
            self.colours.retain(|(known, _)| *known != which);
        } else if which == PALETTE {
            self.palette |= parts.nth(1).is_some_and(|value| value != b"?");
        } else if which == 100 + PALETTE {
            self.palette &= parts.next().is_some();
        }
    }

    pub(super) fn is_on_other_screen(&self) -> bool {
        self.screen().is_some()
    }

    /// Returns the mode that shows the other screen.
    fn screen(&self) -> Option<&'static Mode> {
        self.modes.iter().copied().find(|mode| mode.is_screen())
    }

    fn painted(&self) -> Vec<&'static Mode> {
        self.modes.iter().copied().filter(|mode| mode.painted).collect()
    }

    /// Paints the flags by which keys are sent on a screen, for a terminal in which it is as in `from`.
    pub(super) fn paint_keys(&self, from: &ChangedModes, other_screen: bool, out: &mut Vec<u8>) {
        let screen = usize::from(other_screen);
        self.keys[screen].paint(&from.keys[screen], out);
    }

    /// Paints all other modes that are painted here, for a terminal in which they are as in `from`.
    pub(super) fn paint(&self, from: &ChangedModes, out: &mut Vec<u8>) {
        let (before, after) = (from.painted(), self.painted());
        // Of modes that exclude each other the last one counts.
        let same = before.iter().zip(&after).take_while(|(before, after)| before == after).count();
        for mode in before[same..].iter().rev().filter(|mode| !after.contains(mode)) {
            mode.put(mode.usual, out);
        }
        after[same..].iter().for_each(|mode| mode.put(!mode.usual, out));
        if self.keypad != from.keypad {
            out.extend_from_slice(if self.keypad { b"\x1b=" } else { b"\x1b>" });
        }
        for (which, (modified, before)) in self.modified.iter().zip(&from.modified).enumerate() {
            match (modified, modified == before) {
                (_, true) => {}
                (0, _) => put(out, format_args!("\x1b[>{which}m")),
                _ => put(out, format_args!("\x1b[>{which};{modified}m")),
            }
        }
        if self.shape != from.shape {
            put(out, format_args!("\x1b[{} q", self.shape));
        }
        for (which, _) in &from.colours {
            if !self.colours.iter().any(|(known, _)| known == which) {
                put(out, format_args!("\x1b]{}\x07", 100 + which));
            }
        }
        for colour in self.colours.iter().filter(|colour| !from.colours.contains(colour)) {
            put(out, format_args!("\x1b]{};{}\x07", colour.0, colour.1));
        }
    }

    /// Makes the modes that [`ChangedModes::paint`] paints usual in a terminal that may be in any, but for those that users choose.
    pub(super) fn reset(out: &mut Vec<u8>) {
        for mode in MODES.iter().filter(|mode| mode.painted && !CHOSEN.contains(&mode.number)) {
            mode.put(mode.usual, out);
        }
        out.extend_from_slice(b"\x1b>\x1b[0 q");
    }

    /// Puts everything back; nothing where that is not needed.
    pub(super) fn restore(&self, out: &mut Vec<u8>) {
        let other = self.is_on_other_screen();
        // Colours first: the screen that is left is cleared in them.
        if self.looks || !self.modes.is_empty() {
            out.extend_from_slice(b"\x1b[m");
        }
        // These move the cursor, and the other screen may have them for itself.
        let origin = self.modes.iter().any(|mode| mode.private && mode.number == ORIGIN);
        let region: &[u8] = match (self.region.is_some(), other, origin) {
            (_, true, true) => b"\x1b[?6l\x1b[r",
            // Where the cursor was is not known then: the last line.
            (_, false, true) => b"\x1b[?6l\x1b[r\x1b[999;1H",
            (true, true, false) => b"\x1b[r",
            (true, false, false) => b"\x1b7\x1b[r\x1b8",
            (false, _, false) => b"",
        };
        out.extend_from_slice(region);
        let usual = ChangedModes::default();
        usual.paint_keys(self, other, out);
        for mode in self.modes.iter().rev().filter(|mode| mode.number != ORIGIN) {
            mode.put(mode.usual, out);
        }
        if other {
            usual.paint_keys(self, false, out);
        }
        usual.paint(&ChangedModes { modes: Vec::new(), ..self.clone() }, out);
        let commands: [(bool, &[u8]); 4] = [
            (self.palette, b"\x1b]104\x07"),
            (self.charset.is_some(), b"\x1b(B"),
            (self.shifted, b"\x0f"),
            (self.not_utf8, b"\x1b%G"),
        ];
        commands.iter().filter(|(changed, _)| *changed).for_each(|(_, back)| out.extend_from_slice(back));
    }

    /// Changes again what [`ChangedModes::restore`] has put back, but for origin mode, the palette, and what lasts for a moment. `drawn`
    /// draws the screen.
    pub(super) fn change_again(&self, drawn: &str, out: &mut Vec<u8>) {
        let usual = ChangedModes::default();
        self.paint_keys(&usual, false, out);
        if let Some(screen) = self.screen() {
            screen.put(true, out);
            self.paint_keys(&usual, true, out);
        }
        out.extend_from_slice(drawn.as_bytes());
        if let Some((top, bottom)) = self.region {
            let bottom = if bottom == 0 { String::new() } else { bottom.to_string() };
            put(out, format_args!("\x1b7\x1b[{top};{bottom}r\x1b8"));
        }
        let lasting = |mode: &&&Mode| !mode.painted && !NOT_AGAIN.contains(&mode.number);
        self.modes.iter().filter(lasting).for_each(|mode| mode.put(!mode.usual, out));
        self.paint(&usual, out);
        if let Some(set) = self.charset {
            out.extend_from_slice(&[0x1b, b'(', set]);
        }
        if self.shifted {
            out.push(0x0e);
        }
    }
}

fn number(digits: &[u8]) -> u16 {
    let digits = digits.iter().take_while(|byte| byte.is_ascii_digit());
    digits.fold(0_u16, |number, digit| number.saturating_mul(10).saturating_add(u16::from(digit - b'0')))
}

pub(super) fn put(out: &mut Vec<u8>, text: core::fmt::Arguments<'_>) {
    // A vector takes everything.
    let written = out.write_fmt(text);
    debug_assert!(written.is_ok(), "memory takes bytes");
}
