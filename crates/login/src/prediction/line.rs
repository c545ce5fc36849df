//! A row of the screen, and what keys do to it.

use vt100::{Cell, Color, Screen};

use super::keys::Key;

/// How a cell looks, but for its text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Style {
    pub(super) foreground: Color,
    pub(super) background: Color,
    pub(super) bold: bool,
    pub(super) dim: bool,
    pub(super) italic: bool,
    pub(super) underline: bool,
    pub(super) inverse: bool,
}

/// What a cell holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Content {
    /// Nothing was written there.
    Empty,
    /// A character of one cell, with what joined it.
    Narrow(String),
    /// One of two cells, of which this is the left one.
    Wide(String),
    /// The right one of the two.
    Rest,
}

/// One cell of a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct LineCell {
    pub(super) content: Content,
    pub(super) style: Style,
}

impl LineCell {
    fn of(cell: &Cell) -> LineCell {
        let content = match cell {
            cell if cell.is_wide_continuation() => Content::Rest,
            cell if !cell.has_contents() => Content::Empty,
            cell if cell.is_wide() => Content::Wide(cell.contents().to_owned()),
            cell => Content::Narrow(cell.contents().to_owned()),
        };
        let style = Style {
            foreground: cell.fgcolor(),
            background: cell.bgcolor(),
            bold: cell.bold(),
            dim: cell.dim(),
            italic: cell.italic(),
            underline: cell.underline(),
            inverse: cell.inverse(),
        };
        LineCell { content, style }
    }

    /// Nothing, or a space: they look alike.
    pub(super) fn is_blank(&self) -> bool {
        match &self.content {
            Content::Empty => true,
            Content::Narrow(text) => text == " ",
            Content::Wide(_) | Content::Rest => false,
        }
    }

    fn looks_like(&self, other: &LineCell) -> bool {
        self.content == other.content || (self.is_blank() && other.is_blank())
    }
}

/// A row and the column of the cursor in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Line {
    pub(super) cells: Vec<LineCell>,
    pub(super) cursor: u16,
    /// The leftmost column that a key has changed, or where the cursor was at first.
    low: u16,
}

/// What the place of a line says about keys.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rules {
    /// Left of this column no key moves or erases: a prompt is there.
    pub(super) start: u16,
    /// A line editor has the line, of which `Home` and `End` are known.
    pub(super) edited: bool,
    /// A character replaces the one under the cursor and moves none.
    pub(super) overwrites: bool,
    /// How what is typed looks.
    pub(super) style: Style,
}

impl Line {
    /// The row `row` of the screen as it is, with the cursor at `cursor`.
    pub(super) fn of(screen: &Screen, row: u16, cursor: u16) -> Line {
        let columns = screen.size().1.get();
        let cells = (0..columns).filter_map(|column| screen.cell(row, column).map(LineCell::of)).collect();
        Line { cells, cursor, low: cursor }
    }

    /// The text left of `end`.
    pub(super) fn text_before(&self, end: u16) -> String {
        let mut text = String::new();
        for cell in self.cells.iter().take(usize::from(end)) {
            match &cell.content {
                Content::Empty => text.push(' '),
                Content::Narrow(part) | Content::Wide(part) => text.push_str(part),
                Content::Rest => {}
            }
        }
        text
    }

    /// The column behind `text`, with which the row begins.
    pub(super) fn column_behind(&self, text: &str) -> u16 {
        let mut left = text;
        for (column, cell) in self.cells.iter().enumerate() {
            let part = match &cell.content {
                Content::Empty => " ",
                Content::Narrow(part) | Content::Wide(part) => part,
                Content::Rest => continue,
            };
            match left.strip_prefix(part) {
                Some(rest) if !left.is_empty() => left = rest,
                _ => return u16::try_from(column).unwrap_or(u16::MAX),
            }
        }
        self.columns()
    }

    /// Whether the one character that came into this row since `before`, left of the cursor, replaced one or moved those behind
    /// it. None where both would look alike.
    pub(super) fn overwrote(&self, before: &Line) -> Option<bool> {
        let behind = self.cell(self.cursor)?;
        let (replaced, moved) = (before.cell(self.cursor)?, before.cell(before.cursor)?);
        if moved.is_blank() || replaced.looks_like(moved) {
            return None;
        }
        match (behind.looks_like(replaced), behind.looks_like(moved)) {
            (true, false) => Some(true),
            (false, true) => Some(false),
            _ => None,
        }
    }

    fn columns(&self) -> u16 {
        u16::try_from(self.cells.len()).unwrap_or(u16::MAX)
    }

    fn cell(&self, column: u16) -> Option<&LineCell> {
        self.cells.get(usize::from(column))
    }

    /// The column behind the last cell in which something was written.
    fn end(&self) -> u16 {
        let written =
            self.cells.iter().rposition(|cell| cell.content != Content::Empty).map_or(0, |last| last + 1);
        u16::try_from(written).unwrap_or(u16::MAX)
    }

    /// Does what `key` is expected to do. False, and nothing done, where that is not known.
    pub(super) fn apply(&mut self, key: Key, rules: Rules) -> bool {
        let done = match key {
            Key::Text(character, width) => self.write(character, width, rules),
            Key::Erase => self.erase(rules),
            Key::Left => self.step_left(rules.start),
            Key::Right => self.step_right(),
            Key::LineStart if rules.edited => Some(rules.start),
            Key::LineEnd if rules.edited => Some(self.end().max(rules.start)),
            Key::LineStart | Key::LineEnd | Key::Enter | Key::Other => None,
        };
        let Some(cursor) = done.filter(|column| *column < self.columns()) else { return false };
        self.cursor = cursor;
        self.low = self.low.min(cursor);
        true
    }

    // Each of these gives the column where the cursor is then.

    fn write(&mut self, character: char, width: u16, rules: Rules) -> Option<u16> {
        let end = self.cursor.checked_add(width)?;
        // The last column is where programs differ: some wrap the line there, some one character later.
        if end >= self.columns() || self.cell(self.cursor)?.content == Content::Rest {
            return None;
        }
        let text = character.to_string();
        let content = if width == 2 { Content::Wide(text) } else { Content::Narrow(text) };
        let at = usize::from(self.cursor);
        let new = LineCell { content, style: rules.style };
        let rest = LineCell { content: Content::Rest, style: rules.style };
        let new = [new, rest].into_iter().take(usize::from(width));
        if rules.overwrites {
            // Half of a wide character under it: what is left of that is not known.
            if self.cell(end)?.content == Content::Rest {
                return None;
            }
            self.cells.splice(at..usize::from(end), new);
        } else {
            self.cells.splice(at..at, new);
            self.cells.truncate(self.cells.len() - usize::from(width));
            self.close_last();
        }
        Some(end)
    }

    /// Half of a wide character that was moved over the edge is not shown.
    fn close_last(&mut self) {
        if let Some(last) = self.cells.last_mut()
            && matches!(last.content, Content::Wide(_))
        {
            last.content = Content::Empty;
        }
    }

    /// Has the last column as `real` has it, which the terminal shows: nothing is ever written there, as a terminal might wrap. A wide
    /// character that ends there stays whole.
    pub(super) fn keep_last_column(&mut self, real: &Line) {
        let columns = self.cells.len().min(real.cells.len());
        let wide = real.cells.last().is_some_and(|cell| cell.content == Content::Rest);
        let kept = columns.saturating_sub(if wide { 2 } else { 1 });
        self.cells[kept..columns].clone_from_slice(&real.cells[kept..columns]);
        if let Some(before) = self.cells[..kept].last_mut()
            && matches!(before.content, Content::Wide(_))
        {
            before.content = Content::Empty;
        }
    }

    fn erase(&mut self, rules: Rules) -> Option<u16> {
        let column = self.step_left(rules.start)?;
        let (from, to) = (usize::from(column), usize::from(self.cursor));
        let empty = LineCell { content: Content::Empty, style: Style::default() };
        self.cells.drain(from..to);
        self.cells.extend((from..to).map(|_| empty.clone()));
        Some(column)
    }

    /// The column of the character before the cursor, if it is not left of `start`.
    fn step_left(&self, start: u16) -> Option<u16> {
        let mut column = self.cursor.checked_sub(1)?;
        if self.cell(column)?.content == Content::Rest {
            column = column.checked_sub(1)?;
        }
        (column >= start).then_some(column)
    }

    /// Only over what was written: at the end of a line, line editors stay.
    fn step_right(&self) -> Option<u16> {
        let width = match self.cell(self.cursor)?.content {
            Content::Empty | Content::Rest => return None,
            Content::Narrow(_) => 1,
            Content::Wide(_) => 2,
        };
        Some(self.cursor + width)
    }

    /// Whether a row that the terminal has, `shown`, with the cursor where it is here, is what the keys have made: all that is
    /// between the leftmost change and the cursor, and the character under it.
    pub(super) fn agrees_with(&self, shown: &Line) -> bool {
        let range = usize::from(self.low)..=usize::from(self.cursor);
        match (self.cells.get(range.clone()), shown.cells.get(range)) {
            (Some(expected), Some(cells)) => {
                // Under the cursor a program may show more than was typed (suggestions).
                let typed = expected.len() - 1;
                expected.iter().zip(cells).take(typed).all(|(one, other)| one.looks_like(other))
            }
            _ => false,
        }
    }

    /// Whether the cell under the cursor is as the keys have made it.
    pub(super) fn agrees_under_cursor(&self, shown: &Line) -> bool {
        match (self.cell(self.cursor), shown.cell(self.cursor)) {
            (Some(one), Some(other)) => one.looks_like(other),
            _ => false,
        }
    }

    /// Whether something visible between the leftmost change and the cursor was not there in `before`.
    pub(super) fn is_news_to(&self, before: &Line) -> bool {
        let range = usize::from(self.low)..usize::from(self.cursor);
        range.into_iter().any(|column| match (self.cells.get(column), before.cells.get(column)) {
            (Some(cell), Some(old)) => !cell.is_blank() && !cell.looks_like(old),
            _ => false,
        })
    }
}
