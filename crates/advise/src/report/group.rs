//! Classes of one kind.

use serde::Serialize;

use super::Class;
use super::class::Terms;
use crate::classes::{FileId, Key, Table};

/// Classes of one kind, that with the most bytes first.
#[derive(Clone, Debug, Serialize)]
pub struct Group {
    /// Those that were told apart.
    pub classes: Vec<Class>,
    /// The rest together, if there were more than can be told apart.
    pub others: Option<Others>,
}

/// Small classes merged into one, because there were too many.
#[derive(Clone, Debug, Serialize)]
pub struct Others {
    /// How many classes were merged.
    pub count: u64,
    /// All of them together.
    pub total: Class,
}

impl Group {
    pub(super) fn new(table: &Table, terms: &Terms<'_>) -> Group {
        let classes = table.sorted().into_iter().map(|(key, figures)| {
            let class = Class::new(name(&key, terms), figures, terms);
            if matches!(key, Key::Pair(..)) { class.with_waits(figures.turns, terms) } else { class }
        });
        let (count, figures) = table.others();
        let others =
            (count > 0).then(|| Others { count, total: Class::new("others".to_owned(), figures, terms) });
        Group { classes: classes.collect(), others }
    }
}

fn name(key: &Key, terms: &Terms<'_>) -> String {
    let given = match key {
        Key::File(FileId(number)) => terms.names.get(*number as usize),
        _ => None,
    };
    given.cloned().unwrap_or_else(|| key.to_string())
}
