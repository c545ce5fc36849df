//! The papers' tables, made again: ours, theirs, and how the two compare. One module a paper, one function a table.
//!
//! - [`vpn`]: McGregor and Lee, *Performance Impact of Data Compression on Virtual Private Network Transactions*;
//! - [`sched`]: Taddeo, Ferrante and Piuri, *Scheduling Small Packets in IPSec-based Systems*;
//! - [`klogin`]: Braun, Claffy and Gross, *Measured interference of network security mechanisms with network performance*;
//! - [`broker`]: Kallio, *Performance comparison of streamed encryption and compression*;
//! - [`enskip`]: Muchsel, *ENskip Performance*;
//! - [`verify`]: the model against the tunnel itself;
//! - [`crime`]: Rizzo and Duong, *The CRIME attack*: what lengths tell of a cookie;
//! - [`history`](mod@history): what history is worth on the papers' links;
//! - [`paths`]: the estimated rate beside the true one over time;
//! - [`corpus`]: the files that blocks are drawn from, given or generated;
//! - [`rate`]: how fast ciphers, integrity algorithms and codecs are here, and [`measure`] the stopwatch for it.
//!
//! What comes out is a [`LabReport`]: figures and what they decide, for the program that prints them. A claim of a paper is
//! judged by a rule that is written beside it, on the figures the paper prints, on those computed from its own rates
//! and on this machine's; one that fails is reported as failing.

#![cfg_attr(test, allow(clippy::unwrap_used))]

pub mod broker;
mod claim;
pub mod corpus;
pub mod crime;
pub mod enskip;
mod error;
mod figure;
pub mod history;
pub mod klogin;
mod manual;
pub mod measure;
mod parallel;
pub mod paths;
pub mod rate;
mod report;
pub mod sched;
mod steps;
pub mod verify;
pub mod vpn;

#[cfg(test)]
mod tests;

pub use claim::{Claim, FigureSource, Judgement};
pub use corpus::Corpus;
pub use error::Error;
pub use figure::Figure;
pub use report::{Comparison, Exhibit, FigureUnit, LabReport, LabTable, Provenance, Row, TableCell};
pub use steps::{Effort, StepNote};
