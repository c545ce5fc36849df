//! Measuring a machine: a stopwatch, repeated values with their spread, and what machine it was.

mod machine;
mod sample;
mod settle;
mod stopwatch;

pub use machine::{Load, Machine};
pub use sample::{Sample, Spread, short};
pub use settle::settle;
pub use stopwatch::{Mark, Stopwatch};
