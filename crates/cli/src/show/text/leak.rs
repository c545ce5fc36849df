//! What lengths of blocks tell, rule by rule.

use strait_node::report::{AttackerReport, LeakReport, RuleReport};

use crate::table::{Side, TextTable};

/// What stands above the table.
pub(crate) const TITLE: &str =
    "what lengths tell, in bits (bound: at most, by block; yield: of a scripted attack, by 1,000 packets)";

/// A line for each rule, in the order of the file.
pub(crate) fn table(rules: &[RuleReport]) -> TextTable {
    let mut table = TextTable::new([
        "rule",
        "domain",
        "padding",
        "mix",
        "blocks",
        "bound, same flow",
        "yield, same flow",
        "bound, other flow",
        "yield, other flow",
    ]);
    for column in 1..=3 {
        table = table.side(column, Side::Left);
    }
    for (number, rule) in (1..).zip(rules) {
        let LeakReport { padding, mix, blocks, same_flow, other_flow } = &rule.leak;
        table.row([
            format!("{number}"),
            rule.domain.clone(),
            padding.clone(),
            mix.clone(),
            blocks.to_string(),
            bound(same_flow),
            measured(same_flow),
            bound(other_flow),
            measured(other_flow),
        ]);
    }
    table
}

fn bound(attacker: &AttackerReport) -> String {
    attacker.bound_bits_per_block.map_or_else(|| "-".to_owned(), |bits| format!("{bits:.1}"))
}

/// The measured yield, with its upper limit.
fn measured(attacker: &AttackerReport) -> String {
    match (attacker.measured_yield, attacker.measured_yield_upper) {
        (Some(mean), Some(upper)) => format!("{mean:.1} (at most {upper:.1})"),
        _ => "not measured".to_owned(),
    }
}
