//! What holds a sender back.

/// What keeps a sender from sending more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LimitedBy {
    /// The traffic: there is no more to send.
    Traffic,
    /// Nothing yet: more is tried with each step.
    Start,
    /// The link: it carries no more.
    Link,
    /// The configured rate.
    Given,
}

impl LimitedBy {
    /// Every value, in the order of their declaration.
    pub const ALL: [LimitedBy; 4] = [LimitedBy::Traffic, LimitedBy::Start, LimitedBy::Link, LimitedBy::Given];

    /// A name for tables, logs and JSON.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            LimitedBy::Traffic => "application",
            LimitedBy::Start => "startup",
            LimitedBy::Link => "link",
            LimitedBy::Given => "configuration",
        }
    }
}
