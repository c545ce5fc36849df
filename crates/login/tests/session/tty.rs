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
}

impl Tty {
    pub(crate) fn new(size: WindowSize) -> Tty {
        let of = |number| NonZeroU16::new(number).unwrap();
        let (rows, columns) = (of(size.rows), of(size.columns));
        Tty { parser: vt100::Parser::new_with_callbacks(rows, columns, 0, Scrolled::default()) }
    }

    pub(crate) fn write(&mut self, bytes: &[u8]) {
        self.parser.process(bytes);
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
