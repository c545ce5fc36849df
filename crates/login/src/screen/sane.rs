//! Modes that a session left switched on in the person's terminal, when it ends without putting that back: a lost link, a killed editor.

use super::modes::ChangedModes;
use super::sifter::Sifter;

/// Follows the output that a terminal gets for what has to be put back in it.
#[derive(Debug, Default)]
pub struct SaneTerminal {
    sifter: Sifter,
    modes: ChangedModes,
}

impl SaneTerminal {
    /// Takes output that is written to the terminal.
    pub fn advance(&mut self, output: &[u8]) {
        let modes = &mut self.modes;
        self.sifter.sift(output, |piece| modes.take(piece));
    }

    /// Returns true while the session shows the other screen, as editors do.
    #[must_use]
    pub fn is_on_other_screen(&self) -> bool {
        self.modes.is_on_other_screen()
    }

    /// Returns the bytes that put the terminal back: none where that is not needed.
    #[must_use]
    pub fn restore(&self) -> Vec<u8> {
        let mut out = Vec::new();
        // A sequence that was cut off ends here.
        if self.sifter.unfinished().is_none_or(|begun| !begun.is_empty()) {
            out.push(0x18);
        }
        self.modes.restore(&mut out);
        out
    }

    /// Returns the bytes that change again what [`SaneTerminal::restore`] has put back. `drawn` draws what is shown.
    #[must_use]
    pub fn change_again(&self, drawn: &str) -> Vec<u8> {
        let mut out = Vec::new();
        self.modes.change_again(drawn, &mut out);
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(output: &str) -> SaneTerminal {
        let mut terminal = SaneTerminal::default();
        // A byte at a time: nothing depends on where output is cut.
        output.as_bytes().iter().for_each(|byte| terminal.advance(&[*byte]));
        terminal
    }

    fn restored(output: &str) -> String {
        String::from_utf8(after(output).restore()).unwrap()
    }

    #[test]
    fn what_a_program_switched_on_is_switched_off() {
        assert_eq!(restored("plain text\r\n"), "");
        assert_eq!(restored("\x1b[31mred"), "\x1b[m");
        // As vim begins, and ends.
        let begin = "\x1b[?1049h\x1b[?1h\x1b=\x1b[?2004h\x1b[?25l";
        assert_eq!(restored(begin), "\x1b[m\x1b[?25h\x1b[?2004l\x1b[?1l\x1b[?1049l\x1b>");
        assert_eq!(restored(&format!("{begin}\x1b[?25h\x1b[?2004;1l\x1b>\x1b[?1049l")), "");
        assert_eq!(restored("\x1b[?1000;1006h"), "\x1b[m\x1b[?1006l\x1b[?1000l");
        assert_eq!(restored("\x1b[?9999999999h\x1b[?;;;;;;;;;;;;;;;;;;;;;;h"), "");
        assert_eq!(restored("\x1b[?1049h\x1b[>1u\x1b(0\x1bc"), "");
        assert_eq!(restored("\x1b[?47h\x1b[?1049l"), "");
    }

    /// Output, what puts it back, and what a program itself puts back.
    const CHANGES: [(&str, &str, &str); 22] = [
        ("\x1b[>1u", "\x1b[<1u", "\x1b[<u"),
        ("\x1b[>1u\x1b[>5u\x1b[<u\x1b[>3u", "\x1b[<2u", "\x1b[<2u"),
        ("\x1b[=5u", "\x1b[=0u", "\x1b[=5;3u"),
        ("\x1b[?1049h\x1b[>1u", "\x1b[m\x1b[<1u\x1b[?1049l", "\x1b[<u\x1b[?1049l"),
        ("\x1b[>1u\x1b[?1049h", "\x1b[m\x1b[?1049l\x1b[<1u", "\x1b[?1049l\x1b[<u"),
        ("\x1b[>4;2m", "\x1b[>4m", "\x1b[>4m"),
        ("\x1b[?2048h", "\x1b[m\x1b[?2048l", "\x1b[?2048l"),
        ("\x1b[?2031h", "\x1b[m\x1b[?2031l", "\x1b[?2031l"),
        ("\x1b[?2026h", "\x1b[m\x1b[?2026l", "\x1b[?2026l"),
        ("\x1b[?1007h", "\x1b[m\x1b[?1007l", "\x1b[?1007l"),
        ("\x1b[?1016h", "\x1b[m\x1b[?1016l", "\x1b[?1016l"),
        ("\x1b[?5h", "\x1b[m\x1b[?5l", "\x1b[?5l"),
        ("\x1b[?6h", "\x1b[m\x1b[?6l\x1b[r\x1b[999;1H", "\x1b[?6l"),
        ("\x1b[4h", "\x1b[m\x1b[4l", "\x1b[4l"),
        ("\x1b(0", "\x1b(B", "\x1b(B"),
        ("\x0e", "\x0f", "\x0f"),
        ("\x1b%@", "\x1b%G", "\x1b%G"),
        ("\x1b[2;9r", "\x1b7\x1b[r\x1b8", "\x1b[r"),
        ("\x1b[5 q", "\x1b[0 q", "\x1b[ q"),
        ("\x1b]11;#102030\x07", "\x1b]111\x07", "\x1b]111\x1b\\"),
        ("\x1b]10;red;blue\x1b\\", "\x1b]110\x07\x1b]111\x07", "\x1b]110\x07\x1b]111\x07"),
        ("\x1b]4;1;red\x07", "\x1b]104\x07", "\x1b]104\x07"),
    ];

    #[test]
    fn whatever_a_session_changed_is_put_back_and_nothing_else() {
        for (output, back, own) in CHANGES {
            assert_eq!(restored(output), back, "{output:?}");
            assert_eq!(restored(&format!("{output}{own}")), "", "{output:?}");
        }
        // Questions change nothing.
        assert_eq!(restored("\x1b[c\x1b[>c\x1b[6n\x1b[?u\x1b[>q\x1b[?2026$p\x1b[?4m"), "");
        assert_eq!(restored("\x1b]11;?\x07\x1b]4;1;?\x07\x1bP$q q\x1b\\"), "");
        // Strings are no sequences, and one that was cut off ends.
        assert_eq!(restored("\x1b_Gf=100;[?5h\x0e\x1b\\"), "");
        assert_eq!(restored("\x1b[?5"), "\x18");
        assert_eq!(restored(&"\x1b[>1u".repeat(1000)), "\x1b[<16u");
    }

    #[test]
    fn a_terminal_that_was_put_back_is_changed_again() {
        let all: String = CHANGES.iter().map(|(output, ..)| *output).collect();
        for changed in CHANGES.iter().map(|(output, ..)| *output).chain([all.as_str()]) {
            let terminal = after(changed);
            let again = String::from_utf8(terminal.change_again("")).unwrap();
            // But for what is not changed again.
            let lasting = changed.replace("\x1b[?6h", "").replace("\x1b[?2026h", "");
            let lasting = lasting.replace("\x1b]4;1;red\x07", "").replace("\x1b%@", "");
            assert_eq!(restored(&again).len(), restored(&lasting).len(), "{changed:?}: {again:?}");
        }
        assert_eq!(after("\x1b[4h\x1b[?1049h").change_again("text"), b"\x1b[?1049htext\x1b[4h");
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
