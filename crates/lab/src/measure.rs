//! Measuring a machine: a stopwatch, repeated values with their spread, and what machine it was.

mod machine;
mod pin;
mod sample;
mod settle;
mod stopwatch;

pub use machine::{BusyWatch, MachineInfo, MachineLoad};
pub use pin::pin;
pub use sample::{RunValues, Spread, short};
pub use settle::settle;
pub use stopwatch::{RepeatTimer, ThreadMoment};
