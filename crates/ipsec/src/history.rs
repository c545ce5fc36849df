//! History: what both ends of an association agreed on for packets that are coded against earlier ones.

/// What the receiver of an association keeps of earlier packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HistoryTerms {
    /// Contexts that it keeps at most; 0 where nothing is kept.
    pub contexts: u16,
    /// A random number of the receiver's process. With another number, it has forgotten everything.
    pub epoch: u32,
}

impl HistoryTerms {
    /// Nothing is kept.
    pub const NONE: HistoryTerms = HistoryTerms { contexts: 0, epoch: 0 };
    /// Contexts that a node offers: a hub of 40 sites with six flows of telemetry each. A context takes 23 KiB at most.
    pub const CONTEXTS: u16 = 256;
}
