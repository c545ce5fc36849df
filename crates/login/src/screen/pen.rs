//! How text looks.

use std::io::Write;

use vt100::{Cell, Color, Screen};

/// How text looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(super) struct Pen {
    colors: (Color, Color),
    /// Bold, dim, italic, underlined, inverse.
    styles: [bool; 5],
}

impl Pen {
    pub(super) fn of_cell(cell: &Cell) -> Pen {
        let styles = [cell.bold(), cell.dim(), cell.italic(), cell.underline(), cell.inverse()];
        Pen { colors: (cell.fgcolor(), cell.bgcolor()), styles }
    }

    pub(super) fn of_screen(screen: &Screen) -> Pen {
        let styles = [screen.bold(), screen.dim(), screen.italic(), screen.underline(), screen.inverse()];
        Pen { colors: (screen.fgcolor(), screen.bgcolor()), styles }
    }

    /// Appends the sequence that sets it (SGR, ECMA-48 section 8.3.117).
    pub(super) fn put(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"\x1b[0");
        for (set, code) in self.styles.into_iter().zip([1, 2, 3, 4, 7]) {
            if set {
                add(out, format_args!(";{code}"));
            }
        }
        color(out, self.colors.0, 30);
        color(out, self.colors.1, 40);
        out.push(b'm');
    }
}

/// `base`: 30 for text, 40 for what is behind it.
fn color(out: &mut Vec<u8>, color: Color, base: u16) {
    match color {
        Color::Default => {}
        Color::Idx(index @ 0..8) => add(out, format_args!(";{}", base + u16::from(index))),
        Color::Idx(index @ 8..16) => add(out, format_args!(";{}", base + 52 + u16::from(index))),
        Color::Idx(index) => add(out, format_args!(";{};5;{index}", base + 8)),
        Color::Rgb(red, green, blue) => add(out, format_args!(";{};2;{red};{green};{blue}", base + 8)),
    }
}

fn add(out: &mut Vec<u8>, text: core::fmt::Arguments<'_>) {
    // A vector takes everything.
    let written = out.write_fmt(text);
    debug_assert!(written.is_ok(), "memory takes bytes");
}
