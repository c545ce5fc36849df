//! What a tunnel decided, in words.

use strait_node::report::EstimateReport;

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
