//! The tables of `docs/reference`, for tests that compare them with the code.

use std::path::Path;

/// One row of a table in a reference page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReferenceRow {
    /// The heading above the table, without marks.
    pub heading: String,
    /// The cells, without white space around them.
    pub cells: Vec<String>,
}

impl ReferenceRow {
    /// The name that the row documents: the first text in backticks of its first cell.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        self.cells.first()?.split('`').nth(1)
    }
}

/// The rows of all tables in `docs/reference/PAGE` that document a name.
///
/// # Panics
///
/// If the page cannot be read: a reference page is part of the project.
#[must_use]
pub fn rows(page: &str) -> Vec<ReferenceRow> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference").join(page);
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let mut heading = String::new();
    let mut rows = Vec::new();
    for line in text.lines() {
        if let Some(title) = line.strip_prefix('#') {
            title.trim_start_matches('#').trim().replace('`', "").clone_into(&mut heading);
        }
        let Some(line) = line.strip_prefix('|').and_then(|line| line.strip_suffix('|')) else { continue };
        let cells = line.split(" | ").map(|cell| cell.trim().to_owned()).collect();
        rows.push(ReferenceRow { heading: heading.clone(), cells });
    }
    rows.retain(|row: &ReferenceRow| row.name().is_some());
    rows
}
