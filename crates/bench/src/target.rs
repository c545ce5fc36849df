//! What figures have to reach.

use std::fmt;

use serde::Serialize;

/// What a figure has to reach.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Target {
    /// This much or more.
    AtLeast(f64),
    /// This much or less.
    AtMost(f64),
}

impl Target {
    /// Whether `value` reaches it.
    pub(crate) fn is_met_by(self, value: f64) -> bool {
        match self {
            Target::AtLeast(floor) => value >= floor,
            Target::AtMost(ceiling) => value <= ceiling,
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Target::AtLeast(floor) => write!(f, ">= {floor}"),
            Target::AtMost(ceiling) => write!(f, "<= {ceiling}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_hold_at_their_edge() {
        assert!(Target::AtLeast(2.5).is_met_by(2.5) && !Target::AtLeast(2.5).is_met_by(2.49));
        assert!(Target::AtMost(0.2).is_met_by(0.2) && !Target::AtMost(0.2).is_met_by(0.21));
        assert!(!Target::AtMost(0.2).is_met_by(f64::NAN));
    }
}
