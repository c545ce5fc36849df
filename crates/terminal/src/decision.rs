//! What a tunnel decided, in words.

use strait_node::report::{DecisionReport, EstimateReport};

/// The reason of a decision, in words.
pub fn reason(decision: &DecisionReport) -> &'static str {
    match decision.reason.as_str() {
        "pays" => "takes the least time",
        "fixed-by-rule" => "set by the rule, and the data shrinks",
        "entropy-probe" => "skipped by the entropy probe (encrypted or compressed data)",
        "incompressible" => "the data does not shrink enough to pay",
        "too-slow" => "compression takes longer than it saves",
        "unsupported-by-peer" => "the peer supports none of the allowed codecs",
        _ => "unknown reason (this program is older than the daemon)",
    }
}

/// The second best method, and how much slower it is.
pub fn runner_up(estimate: &EstimateReport) -> String {
    match (&estimate.runner_up, estimate.runner_up_slower_percent) {
        (Some(method), Some(percent)) if percent >= 0.0 => format!("{method}, {percent:.1} % slower"),
        (Some(method), Some(percent)) => {
            format!("{method}, {:.1} % faster: too little to switch (hysteresis)", -percent)
        }
        _ => "none".to_owned(),
    }
}
