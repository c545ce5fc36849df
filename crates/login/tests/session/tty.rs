//! A terminal: what it shows, and what scrolled off it.

use std::num::NonZeroU16;

use strait_login::WindowSize;

#[derive(Default)]
pub(crate) struct Scrolled(Vec<String>);

impl vt100::Callbacks for Scrolled {
    fn on_scroll(&mut self, contents: vt100::capture::RowContents<'_>, alternate_screen: bool) {
        if alternate_screen {
            return;
        }
        let mut text = String::new();
        contents
            .write_formatted_basic(&mut text, &mut vt100::capture::BasicFormattedCaptureState::new())
            .unwrap();
        let mut pieces = text.split('\x1b');
        let first = pieces.next().unwrap_or_default().to_owned();
        let plain = pieces.fold(first, |all, piece| all + piece.split_once('m').map_or("", |(_, text)| text));
        self.0.push(plain.trim_end().to_owned());
    }
}

/// A terminal of this crate's tests.
pub(crate) struct Tty {
    parser: vt100::Parser<Scrolled>,
    /// A character that is not at its end. The parser below vt100, vte 0.15, loses the character behind one that is cut
    /// (issue 159 of alacritty/vte); terminals do not.
    begun: Vec<u8>,
}

impl Tty {
    pub(crate) fn new(size: WindowSize) -> Tty {
        let of = |number| NonZeroU16::new(number).unwrap();
        let (rows, columns) = (of(size.rows), of(size.columns));
        Tty {
            parser: vt100::Parser::new_with_callbacks(rows, columns, 0, Scrolled::default()),
            begun: Vec::new(),
        }
    }

    pub(crate) fn write(&mut self, bytes: &[u8]) {
        self.begun.extend_from_slice(bytes);
        let begun = self.begun.split_off(self.begun.len() - begun(&self.begun));
        self.parser.process(&self.begun);
        self.begun = begun;
    }

    /// The rows that it shows, without looks.
    pub(crate) fn rows(&self) -> Vec<String> {
        let (_, columns) = self.parser.screen().size();
        let rows = self.parser.screen().rows(0, columns.get());
        rows.map(|row| row.trim_end().to_owned()).collect()
    }

    pub(crate) fn cursor(&self) -> (u16, u16) {
        self.parser.screen().cursor_position()
    }

    /// The rows that scrolled off.
    pub(crate) fn scrolled(&self) -> &[String] {
        &self.parser.callbacks().0
    }

    /// How it looks: colours, modes, cursor.
    pub(crate) fn state(&self) -> (String, bool) {
        (self.parser.screen().input_mode_formatted(), self.parser.screen().alternate_screen())
    }
}

/// How many bytes at the end begin a character that goes on.
fn begun(bytes: &[u8]) -> usize {
    let wrong = bytes.utf8_chunks().last().map_or(&[][..], |last| last.invalid());
    // Without a length, the error is that there is no more.
    let goes_on = core::str::from_utf8(wrong).is_err_and(|error| error.error_len().is_none());
    if goes_on { wrong.len() } else { 0 }
}

#[test]
fn the_tests_terminal_loses_nothing_behind_a_character_that_is_cut() {
    let text = "aéb一é\u{301}c😀d\x1b[1;3H─e";
    let mut whole = Tty::new(WindowSize::USUAL);
    whole.write(text.as_bytes());
    assert_eq!(whole.rows()[0], "aé─e é\u{301}c😀d");
    for (first, second) in
        (0..text.len()).flat_map(|first| (first..text.len()).map(move |second| (first, second)))
    {
        let mut cut = Tty::new(WindowSize::USUAL);
        let bytes = text.as_bytes();
        [&bytes[..first], &bytes[first..second], &bytes[second..]]
            .into_iter()
            .for_each(|piece| cut.write(piece));
        assert_eq!(cut.rows(), whole.rows(), "cut at {first} and {second}");
    }
}
