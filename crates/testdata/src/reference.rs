//! The tables of `docs/reference`, for tests that compare them with the code.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::Value;

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

/// Adds the paths of all keys in a JSON value to `found`: `outer.inner`, with `[]` for the items of a list. An object that has the
/// key `shared` is documented once for all places, under the name that stands beside it there.
pub fn json_keys(value: &Value, at: &str, shared: Option<(&str, &str)>, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(fields) => {
            let at = shared.filter(|(key, _)| fields.contains_key(*key)).map_or(at, |(_, name)| name);
            for (name, value) in fields {
                let path = if at.is_empty() { name.clone() } else { format!("{at}.{name}") };
                json_keys(value, &path, shared, found);
                found.insert(path);
            }
        }
        Value::Array(items) => {
            items.iter().for_each(|item| json_keys(item, &format!("{at}[]"), shared, found));
        }
        _ => {}
    }
}
