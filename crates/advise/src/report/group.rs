//! Classes of one kind.

use serde::Serialize;

use super::ClassReport;
use super::class::PriceTerms;
use crate::classes::{ClassKey, FigureTable, FileId};

/// Classes of one kind, that with the most bytes first.
#[derive(Clone, Debug, Serialize)]
pub struct ClassGroup {
    /// Those that were told apart.
    pub classes: Vec<ClassReport>,
    /// The rest together, if there were more than can be told apart.
    pub others: Option<Others>,
}

/// Small classes merged into one, because there were too many.
#[derive(Clone, Debug, Serialize)]
pub struct Others {
    /// How many classes were merged.
    pub count: u64,
    /// All of them together.
    pub total: ClassReport,
}

impl ClassGroup {
    pub(super) fn new(table: &FigureTable, terms: &PriceTerms<'_>) -> ClassGroup {
        let classes = table.sorted().into_iter().map(|(key, figures)| {
            let class = ClassReport::new(name(&key, terms), figures, terms);
            if matches!(key, ClassKey::Pair(..)) { class.with_waits(figures.turns, terms) } else { class }
        });
        let (count, figures) = table.others();
        let others = (count > 0)
            .then(|| Others { count, total: ClassReport::new("others".to_owned(), figures, terms) });
        ClassGroup { classes: classes.collect(), others }
    }
}

fn name(key: &ClassKey, terms: &PriceTerms<'_>) -> String {
    let given = match key {
        ClassKey::File(FileId(number)) => terms.names.get(*number as usize),
        _ => None,
    };
    given.cloned().unwrap_or_else(|| key.to_string())
}
