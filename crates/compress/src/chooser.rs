//! Whether a unit of traffic is compressed, and with what.
//!
//! The packet path knows only [`Chooser`]. What stands behind it may remember, calculate or always say
//! the same.

mod backoff;
mod table;

use strait_clock::Time;
use strait_wire::Flow;

pub use backoff::Backoff;

use crate::Method;

/// The rule, by its place in the configuration, that lets a unit be compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RuleId(pub u16);

/// What is about to be sent: one packet, or several that would be compressed as one block.
#[derive(Clone, Copy, Debug)]
pub struct Unit<'a> {
    /// The conversation it belongs to; for a block of several, the first packet's.
    pub flow: &'a Flow,
    /// The rule that matched it.
    pub rule: RuleId,
    /// What that rule says to compress with.
    pub method: Method,
}

/// Decides unit by unit, and is told what came of it.
pub trait Chooser: Send {
    /// What to compress `unit` with; a codec of [`crate::Codec::None`] says not to.
    fn choose(&mut self, unit: &Unit<'_>, now: Time) -> Method;

    /// Says that `unit`, chosen to be compressed, went from `before` bytes to `after`.
    ///
    /// `after` equals `before` when it did not shrink and was sent as it was. Call it once for each unit
    /// that was tried, in any order, and never for units that were not.
    fn learn(&mut self, unit: &Unit<'_>, before: usize, after: usize, now: Time);
}
