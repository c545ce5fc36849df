//! Aligned columns.

/// Which side of its column a cell stands on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Words.
    Left,
    /// Numbers.
    Right,
}

/// Rows of cells, as wide as they need to be.
#[derive(Debug)]
pub struct TextTable {
    sides: Vec<Side>,
    rows: Vec<Vec<String>>,
}

impl TextTable {
    /// A table whose first column holds words and the others numbers, with this head.
    pub fn new<const N: usize>(head: [&str; N]) -> TextTable {
        TextTable::with_head(head.map(str::to_owned))
    }

    /// The same with a head of any length.
    pub fn with_head(head: impl IntoIterator<Item = String>) -> TextTable {
        let head: Vec<String> = head.into_iter().collect();
        let sides = (0..head.len()).map(|column| if column == 0 { Side::Left } else { Side::Right });
        TextTable { sides: sides.collect(), rows: vec![head] }
    }

    /// Puts the words of a column on a side.
    pub fn side(mut self, column: usize, side: Side) -> TextTable {
        if let Some(slot) = self.sides.get_mut(column) {
            *slot = side;
        }
        self
    }

    /// Adds a row.
    pub fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().collect());
    }

    /// Whether there is nothing under the head.
    pub fn is_empty(&self) -> bool {
        self.rows.len() < 2
    }

    /// The head and every row, each cell with the side that it stands on.
    pub fn rows(&self) -> impl Iterator<Item = impl Iterator<Item = (&str, Side)>> {
        self.rows.iter().map(|row| row.iter().map(String::as_str).zip(self.sides.iter().copied()))
    }

    /// The table as text: two spaces between columns, every line indented by `indent`.
    pub fn render(&self, indent: usize) -> String {
        let widths: Vec<usize> = (0..self.sides.len()).map(|column| self.width(column)).collect();
        let mut out = String::new();
        for row in &self.rows {
            let mut line = " ".repeat(indent);
            for ((cell, side), width) in row.iter().zip(&self.sides).zip(&widths) {
                let gap = " ".repeat(width.saturating_sub(cell.chars().count()));
                match side {
                    Side::Left => line.extend([cell, gap.as_str(), "  "]),
                    Side::Right => line.extend([gap.as_str(), cell, "  "]),
                }
            }
            out.push_str(line.trim_end());
            out.push('\n');
        }
        out
    }

    fn width(&self, column: usize) -> usize {
        self.rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_stand_left_and_numbers_right() {
        let mut table = TextTable::new(["file", "bytes", "codec"]).side(2, Side::Left);
        assert!(table.is_empty());
        table.row(["a".to_owned(), "5".to_owned(), "lz4".to_owned()]);
        table.row(["bücher".to_owned(), "1234567".to_owned(), "zstd-3".to_owned()]);
        assert!(!table.is_empty());
        let expected = "  file      bytes  codec\n  a             5  lz4\n  bücher  1234567  zstd-3\n";
        assert_eq!(table.render(2), expected);
    }
}
