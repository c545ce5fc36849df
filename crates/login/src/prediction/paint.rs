//! Bytes that change a row of a real terminal from what it shows to what it should show, wherever the cursor is in that row, and leave
//! the rest as the program left it.
//!
//! Columns are absolute (CHA), rows are not left, and the cursor that a program saved (DECSC) is not touched.

use core::fmt::Write as _;

use vt100::{Color, Screen};

use super::line::{Content, Line, LineCell, Style};

/// Writes what makes `from` into `to`, both rows with the cursor in them.
pub(super) fn change(from: &Line, to: &Line, screen: &Screen, out: &mut Vec<u8>) {
    let mut text = String::new();
    if let Some((first, last)) = difference(from, to) {
        go_to(first, &mut text);
        write_cells(&to.cells[first..=last], &mut text);
        go_to(usize::from(to.cursor), &mut text);
        // What the program set for its own text.
        text.push_str(&screen.attributes_formatted());
    } else if from.cursor != to.cursor {
        go_to(usize::from(to.cursor), &mut text);
    }
    out.extend_from_slice(text.as_bytes());
}

/// The first and the last column that differ, whole characters in both rows.
fn difference(from: &Line, to: &Line) -> Option<(usize, usize)> {
    let columns = from.cells.len().min(to.cells.len());
    let differs = |column: &usize| from.cells[*column] != to.cells[*column];
    let mut first = (0..columns).find(differs)?;
    let mut last = (0..columns).rfind(differs)?;
    let is_rest = |column: usize| {
        [from, to].iter().any(|line| line.cells.get(column).is_some_and(|cell| cell.content == Content::Rest))
    };
    while first > 0 && is_rest(first) {
        first -= 1;
    }
    while last + 1 < columns && is_rest(last + 1) {
        last += 1;
    }
    Some((first, last))
}

fn go_to(column: usize, text: &mut String) {
    let _ = write!(text, "\x1b[{}G", column + 1);
}

fn write_cells(cells: &[LineCell], text: &mut String) {
    let mut style = None;
    let mut empty = 0;
    for (index, cell) in cells.iter().enumerate() {
        if cell.content != Content::Empty || style != Some(cell.style) {
            erase(&mut empty, text);
        }
        if style != Some(cell.style) {
            set_style(cell.style, text);
            style = Some(cell.style);
        }
        match &cell.content {
            Content::Empty => empty += 1,
            // Half a character, at the edge of what is written: a space keeps the columns in step.
            Content::Wide(_) if index + 1 == cells.len() => text.push(' '),
            Content::Rest if index == 0 => text.push(' '),
            Content::Narrow(part) | Content::Wide(part) => text.push_str(part),
            Content::Rest => {}
        }
    }
    erase(&mut empty, text);
}

/// Erases `count` cells and goes behind them (ECH, CUF): a space would be copied with the text of the line.
fn erase(count: &mut usize, text: &mut String) {
    if *count > 0 {
        let _ = write!(text, "\x1b[{count}X\x1b[{count}C");
        *count = 0;
    }
}

/// Sets exactly this style (SGR, ECMA-48 section 8.3.117).
fn set_style(style: Style, text: &mut String) {
    text.push_str("\x1b[0");
    let flags =
        [(style.bold, 1), (style.dim, 2), (style.italic, 3), (style.underline, 4), (style.inverse, 7)];
    for (_, number) in flags.iter().filter(|(on, _)| *on) {
        let _ = write!(text, ";{number}");
    }
    set_color(style.foreground, 30, text);
    set_color(style.background, 40, text);
    text.push('m');
}

fn set_color(color: Color, base: u16, text: &mut String) {
    let _ = match color {
        Color::Default => Ok(()),
        Color::Idx(index @ 0..=7) => write!(text, ";{}", base + u16::from(index)),
        Color::Idx(index @ 8..=15) => write!(text, ";{}", base + 52 + u16::from(index)),
        Color::Idx(index) => write!(text, ";{};5;{index}", base + 8),
        Color::Rgb(red, green, blue) => write!(text, ";{};2;{red};{green};{blue}", base + 8),
    };
}

#[cfg(test)]
mod tests {
    use core::num::NonZeroU16;

    use super::*;

    fn parser() -> vt100::Parser {
        vt100::Parser::new(NonZeroU16::new(3).unwrap(), NonZeroU16::new(20).unwrap(), 0)
    }

    fn line_of(parser: &vt100::Parser) -> Line {
        let (row, column) = parser.screen().cursor_position();
        Line::of(parser.screen(), row, column)
    }

    /// From each row to each other one: the terminal shows that one then, and has its cursor and attributes.
    #[test]
    fn any_row_becomes_any_other() {
        let rows = [
            "",
            "plain",
            "wide 中文 end",
            "中文",
            "\x1b[1;31mred\x1b[0m \x1b[48;5;200mback\x1b[m\x1b[10C!",
            "\x1b[38;2;1;2;3mrgb\x1b[95mbright\x1b[4D",
            "e\u{301}x\x1b[2D",
        ];
        for from in rows {
            for to in rows {
                let mut terminal = parser();
                terminal.process(b"above\r\n");
                terminal.process(from.as_bytes());
                let mut wanted = parser();
                wanted.process(b"above\r\n");
                wanted.process(to.as_bytes());
                let mut bytes = Vec::new();
                change(&line_of(&terminal), &line_of(&wanted), terminal.screen(), &mut bytes);
                let attributes = terminal.screen().attributes_formatted();
                terminal.process(&bytes);
                assert_eq!(line_of(&terminal), line_of(&wanted), "{from:?} to {to:?}: {bytes:?}");
                assert_eq!(terminal.screen().attributes_formatted(), attributes);
                assert_eq!(terminal.screen().contents_between(0, 0, 0, 20), "above");
            }
        }
    }
}
