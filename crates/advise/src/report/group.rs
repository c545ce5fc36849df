//! Classes of one kind.

use serde::Serialize;
use strait_wire::Service;

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

/// Returns the services of a table, with the reports of their classes.
pub(super) fn services<'a>(
    table: &FigureTable,
    group: &'a ClassGroup,
) -> impl Iterator<Item = (Service, &'a ClassReport)> {
    let keys: Vec<ClassKey> = table.sorted().into_iter().map(|(key, _)| key).collect();
    keys.into_iter().zip(&group.classes).filter_map(|(key, class)| match key {
        ClassKey::Service(service) => Some((service, class)),
        _ => None,
    })
}

/// True for each version of IP, 4 and 6, that packets of a table of pairs have.
pub(super) fn versions(pairs: &FigureTable) -> [bool; 2] {
    let pairs = pairs.sorted();
    [false, true]
        .map(|v6| pairs.iter().any(|(key, _)| matches!(key, ClassKey::Pair(one, _) if one.is_ipv6() == v6)))
}

fn name(key: &ClassKey, terms: &PriceTerms<'_>) -> String {
    let given = match key {
        ClassKey::File(FileId(number)) => terms.names.get(*number as usize),
        _ => None,
    };
    given.cloned().unwrap_or_else(|| key.to_string())
}
