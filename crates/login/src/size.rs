//! The size of a terminal's window.

/// The size of a terminal's window, as RFC 4254 section 6.2 has it. Any value may arrive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WindowSize {
    /// Characters of a row.
    pub columns: u16,
    /// Rows.
    pub rows: u16,
    /// Pixels of a row; 0 where that is not known.
    pub width: u16,
    /// Pixels of a column; 0 where that is not known.
    pub height: u16,
}

impl WindowSize {
    /// Columns and rows at most: a wall of screens with a small font.
    pub const MAX: (u16, u16) = (1000, 500);
    /// Columns at least: in one column there is no place for a character of two, and the model of a screen would have to break off.
    const LEAST_COLUMNS: u16 = 2;
    /// Cells at most. A screen has 32 bytes for each, and a session up to four screens.
    pub const MAX_CELLS: u32 = 131_072;
    /// What a terminal has that says nothing.
    pub const USUAL: WindowSize = WindowSize { columns: 80, rows: 24, width: 0, height: 0 };

    /// The nearest size that a session has: at least two columns and a row, at most [`WindowSize::MAX`] and [`WindowSize::MAX_CELLS`]. What says 0
    /// does not know: it gets [`WindowSize::USUAL`].
    #[must_use]
    pub fn clamped(self) -> WindowSize {
        let usual = |asked: u16, usual: u16| if asked == 0 { usual } else { asked };
        let columns = usual(self.columns, WindowSize::USUAL.columns)
            .clamp(WindowSize::LEAST_COLUMNS, WindowSize::MAX.0);
        let rows = usual(self.rows, WindowSize::USUAL.rows).min(WindowSize::MAX.1);
        // Columns are at most 1,000, so that at least 131 rows are left.
        let most = u16::try_from(WindowSize::MAX_CELLS / u32::from(columns)).unwrap_or(u16::MAX);
        WindowSize { columns, rows: rows.min(most), ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_size_becomes_one_that_a_session_has() {
        let clamped = |columns, rows| {
            let size = WindowSize { columns, rows, width: 7, height: 9 }.clamped();
            assert_eq!((size.width, size.height), (7, 9));
            (size.columns, size.rows)
        };
        assert_eq!(clamped(0, 0), (80, 24));
        assert_eq!(clamped(1, 1), (2, 1));
        assert_eq!(clamped(200, 60), (200, 60));
        assert_eq!(clamped(u16::MAX, u16::MAX), (1000, 131));
        assert_eq!(clamped(2, u16::MAX), (2, 500));
    }
}
