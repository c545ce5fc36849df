//! Whether a unit of traffic is compressed, and with what.
//!
//! The packet path knows only [`Chooser`]. [`LiveChooser`] stands behind it: the equations of `model`, with rates
//! measured on both ends, for each class of traffic.

mod allowed;
mod class;
mod decision;
mod known;
mod live;
mod memory;
mod path_cost;
mod table;

use strait_clock::Time;
use strait_wire::Flow;

pub use allowed::{Allowed, BadAllowed};
pub use class::Class;
pub use decision::{Decision, DecisionReason, RunnerUp, Weighed};
pub use live::LiveChooser;
pub use path_cost::{EndpointCosts, PathCost, PeerCosts, PerByteCost};

use crate::Method;

/// The rule that lets a unit be compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RuleId {
    /// Its place in the configuration.
    pub place: u16,
    /// Which reading of the configuration that is: a place means nothing in another.
    pub edition: u32,
}

/// What is about to be sent: one packet, or several that would be compressed as one block.
#[derive(Clone, Copy, Debug)]
pub struct Unit<'a> {
    /// The conversation it belongs to; for a block of several, the first packet's.
    pub flow: &'a Flow,
    /// Whom it goes to: a number that means something to the caller.
    pub to: u32,
    /// The rule that matched it.
    pub rule: RuleId,
    /// What that rule says to compress with.
    pub allowed: Allowed,
}

/// What came of compressing a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// With what.
    pub method: Method,
    /// Bytes that went in.
    pub before: usize,
    /// Bytes among those that are the unit's own, where others shared the block.
    pub of: usize,
    /// Bytes that came out; nothing when it did not shrink and was sent as it was.
    pub after: Option<usize>,
    /// Nanoseconds that took; nothing where there is no clock, or another unit of the block has it already.
    pub took: Option<u64>,
    /// Bytes of history that it was compressed behind.
    pub prefix: usize,
}

/// Decides unit by unit, and learns from the outcome.
pub trait Chooser: Send {
    /// Whether a packet with this `payload` may shrink, so that it is worth putting into a block with others. Called
    /// once for each packet of the host.
    fn may_shrink(&mut self, unit: &Unit<'_>, payload: &[u8], now: Time) -> bool;

    /// What to compress `len` bytes of `unit` with, given the path that they take; a codec of [`crate::Codec::None`] says
    /// not to.
    fn choose(&mut self, unit: &Unit<'_>, len: usize, path_cost: &PathCost, now: Time) -> Method;

    /// Says what came of `unit`, chosen to be compressed. Call it once for each unit that was tried, in any order, and
    /// never for units that were not; where several shared a block, once for each of them.
    fn learn(&mut self, unit: &Unit<'_>, outcome: &Outcome, now: Time);

    /// A choice that changed since this was last asked, if one did.
    fn changed(&mut self) -> Option<Decision> {
        None
    }

    /// The standing decisions on what was sent lately, the busiest class first.
    fn decisions(&self, _now: Time) -> Vec<Decision> {
        Vec::new()
    }
}
