//! What is decided on traffic, and the figures behind it.

use serde::{Deserialize, Serialize};

/// A standing decision on one class of traffic.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DecisionReport {
    /// The class: a flow.
    pub class: String,
    /// Which peer it goes to.
    pub peer: Option<String>,
    /// The trust domain that it belongs to.
    pub domain: Option<String>,
    /// Bytes of it in the last second that had any.
    pub bytes_per_second: u64,
    /// What it is compressed with, or `none`.
    pub choice: String,
    /// What decided: `pays`, `ordered`, `looks-random`, `does-not-shrink`, `too-slow` or `peer-lacks`.
    pub reason: String,
    /// How long that has been so.
    pub since_seconds: f64,
    /// The figures; none while everything of the class looked random.
    pub weighed: Option<WeighedReport>,
}

/// The figures behind a decision. Where the choice is `none`, those of the best method beside it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WeighedReport {
    /// What counted: `throughput` when more waits behind a unit, `arrival` when not.
    pub by: String,
    /// Bytes of the unit.
    pub unit_bytes: u64,
    /// The method that the figures are of.
    pub method: String,
    /// Compression ratio X that is expected of it.
    pub ratio: f64,
    /// How fast this node compresses with it.
    pub compress_bytes_per_second: Option<f64>,
    /// How fast the peer expands.
    pub expand_bytes_per_second: Option<f64>,
    /// The link's rate; none when it was not given, so that it is taken not to limit.
    pub link_bits_per_second: Option<f64>,
    /// Up to which rate of the link the method pays; none when whatever it is, or never: see `pays`.
    pub pays_up_to_bits_per_second: Option<f64>,
    /// Whether it pays: `always`, `never` or `up-to` that rate.
    pub pays: String,
    /// Microseconds of each stage without compression.
    pub without: StagesReport,
    /// Microseconds of each stage with it.
    pub with: StagesReport,
    /// What limits what is done: `sender`, `link` or `receiver`.
    pub limit: String,
    /// Speedup of the method, one stage after the other.
    pub serial_speedup: f64,
    /// Speedup with stages at the same time.
    pub pipelined_speedup: f64,
    /// The next best method, or `none`.
    pub runner_up: Option<String>,
    /// How much longer it takes than the choice, in per cent.
    pub runner_up_percent_longer: Option<f64>,
}

impl WeighedReport {
    /// Speedup of the method in the form that counted.
    #[must_use]
    pub fn speedup(&self) -> f64 {
        if self.by == "throughput" { self.pipelined_speedup } else { self.serial_speedup }
    }
}

/// Microseconds that a unit spends in each stage.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct StagesReport {
    /// Compressing.
    pub compress: f64,
    /// Sealing.
    pub seal: f64,
    /// Everything else at the sender.
    pub send: f64,
    /// The link.
    pub link: f64,
    /// Everything else at the receiver.
    pub receive: f64,
    /// Opening.
    pub open: f64,
    /// Expanding.
    pub expand: f64,
}
