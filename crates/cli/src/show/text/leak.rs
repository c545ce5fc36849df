//! What lengths of blocks tell, rule by rule.

use strait_node::report::{AttackerReport, RuleReport};

use crate::table::{Side, TextTable};

/// What stands above the table.
pub(crate) const TITLE: &str = "what lengths tell, in bits";

/// Two lines for each rule, one for each attacker, in the order of the file.
pub(crate) fn table(rules: &[RuleReport]) -> TextTable {
    let mut table = TextTable::new([
        "rule",
        "domain",
        "padding",
        "mix",
        "pauses",
        "blocks",
        "attacker",
        "bound by block",
        "by 1,000 packets",
        "measured yield",
    ]);
    for column in [1, 2, 3, 6] {
        table = table.side(column, Side::Left);
    }
    for (number, rule) in (1_usize..).zip(rules) {
        let leak = &rule.leak;
        let may_pause = leak.pause || leak.padding == "constant";
        let cells = [
            number.to_string(),
            rule.domain.clone(),
            leak.padding.clone(),
            if leak.cache { "cache".to_owned() } else { leak.mix.clone() },
            if may_pause { leak.pauses.to_string() } else { "off".to_owned() },
            leak.blocks.to_string(),
        ];
        table.row(cells.into_iter().chain(attacker("same flow", &leak.same_flow)));
        let blank = core::array::from_fn::<_, 6, _>(|_| String::new());
        table.row(blank.into_iter().chain(attacker("other flow", &leak.other_flow)));
    }
    table
}

fn attacker(name: &str, attacker: &AttackerReport) -> [String; 4] {
    let bound = |bits: Option<f64>| bits.map_or_else(|| "-".to_owned(), |bits| format!("{bits:.1}"));
    let measured = match (attacker.measured_yield, attacker.measured_yield_upper) {
        (Some(mean), Some(upper)) => format!("{mean:.1} (at most {upper:.1})"),
        _ => "not measured".to_owned(),
    };
    let [block, packets] = [attacker.bound_bits_per_block, attacker.bound_bits_per_1000_packets].map(bound);
    [name.to_owned(), block, packets, measured]
}
