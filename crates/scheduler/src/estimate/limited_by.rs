//! What holds a sender back.

/// What keeps a sender from sending more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LimitedBy {
    /// There is no more to send.
    Traffic,
    /// It has not yet found out how much the link takes.
    Start,
    /// The link takes no more.
    Link,
    /// The rate that was given.
    Given,
}

impl LimitedBy {
    /// All of them.
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
