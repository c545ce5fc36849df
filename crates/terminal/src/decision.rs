//! What a tunnel decided, in words.

use strait_node::report::{DecisionReport, WeighedReport};

/// Why, in words.
pub fn reason(decision: &DecisionReport) -> &'static str {
    match decision.reason.as_str() {
        "pays" => "it takes the least time",
        "ordered" => "the rule says so, and it shrinks",
        "looks-random" => "the data looks random: encrypted, or compressed already",
        "does-not-shrink" => "the data does not shrink enough to pay",
        "too-slow" => "compressing would take longer than it saves",
        "peer-lacks" => "the peer has none of the codecs that are allowed",
        _ => "for a reason that this program does not know",
    }
}

/// The next best, and how much worse it is.
pub fn runner_up(weighed: &WeighedReport) -> String {
    match (&weighed.runner_up, weighed.runner_up_percent_longer) {
        (Some(method), Some(percent)) if percent >= 0.0 => format!("{method}, {percent:.1} % longer"),
        (Some(method), Some(percent)) => {
            format!("{method}, {:.1} % shorter: too little to change for", -percent)
        }
        _ => "nothing".to_owned(),
    }
}
