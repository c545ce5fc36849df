//! J. P. McGregor and R. B. Lee, *Performance Impact of Data Compression on Virtual Private Network Transactions*
//! (LCN 2000): what security costs, and what compression gives back.
//!
//! - [`crypto`]: Table 1, how fast ciphers and hashes are;
//! - [`slowdown`]: Table 2, what they cost a transaction;
//! - [`codecs`]: Tables 4, 5 and 6, how far codecs shrink and how fast they are;
//! - [`combinations`], [`combinations_here`]: Table 7 and Figures 6 to 9, where compression pays, with stages one after
//!   another or in a pipeline.

mod codecs;
mod combinations;
mod crypto;
pub mod printed;
mod slowdown;
mod subject;
mod transaction;

pub use codecs::{codecs, methods};
pub use combinations::{
    Combination, Combinations, FormSpeedup, HubCell, MOST_CLIENTS, MeasuredCell, MeasuredFigures,
    MeasuredHub, PipelineSize, Times, Transaction, VpnMeasure, combinations, combinations_here,
    figures_measured, hub,
};
pub use crypto::crypto;
pub use slowdown::slowdown;

use crate::measure::RunValues;

/// As reports name it.
const PAPER: &str =
    "McGregor and Lee, Performance Impact of Data Compression on Virtual Private Network Transactions";

/// A sample's median; not-a-number when there is none.
fn median(sample: &RunValues) -> f64 {
    sample.spread().map_or(f64::NAN, |spread| spread.median)
}

/// Mbit/s of nanoseconds a byte.
fn megabits(nanos: f64) -> f64 {
    8e3 / nanos
}
