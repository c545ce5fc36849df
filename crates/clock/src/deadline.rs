//! When something has to happen, and why.

use crate::Time;

/// A time at which a state machine wants to be called, with its reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deadline {
    /// When.
    pub at: Time,
    /// Why, in a few words for a log.
    pub why: &'static str,
}

impl Deadline {
    /// The earlier of two deadlines that may not exist.
    #[must_use]
    pub fn earliest(one: Option<Deadline>, other: Option<Deadline>) -> Option<Deadline> {
        match (one, other) {
            (Some(a), Some(b)) => Some(if b.at < a.at { b } else { a }),
            (one, other) => one.or(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn earliest_prefers_the_sooner() {
        let a = Deadline { at: Time::from_millis(1), why: "a" };
        let b = Deadline { at: Time::from_millis(2), why: "b" };
        assert_eq!(Deadline::earliest(Some(b), Some(a)), Some(a));
        assert_eq!(Deadline::earliest(None, Some(b)), Some(b));
        assert_eq!(Deadline::earliest(None, None), None);
    }
}
