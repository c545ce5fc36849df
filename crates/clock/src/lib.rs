//! Time as a number, deadlines that say why, and seeded randomness.
//!
//! Nothing here reads a clock or the system's generator: a node passes real time in, a simulator
//! virtual time, and the very same code runs under both.

mod deadline;
mod random;
mod stopwatch;
mod time;

pub use deadline::Deadline;
pub use random::Random;
pub use stopwatch::Stopwatch;
pub use time::Time;
