//! Compression decisions, and the estimates behind them.

use serde::{Deserialize, Serialize};

/// The current decision on one class of traffic.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DecisionReport {
    /// The class: a flow.
    pub class: String,
    /// The peer that it is sent to; none if that peer was removed.
    pub peer: Option<String>,
    /// The trust domain of the rule that covers it.
    pub domain: Option<String>,
    /// Inner bytes in the last second with traffic of the class.
    pub bytes_per_second: u64,
    /// The chosen method, such as `zstd-3`, or `none`.
    pub choice: String,
    /// Why: `pays`, `fixed-by-rule`, `entropy-probe`, `incompressible`, `too-slow` or `unsupported-by-peer`.
    pub reason: String,
    /// Seconds since the choice was made.
    pub age_seconds: f64,
    /// The estimate behind the choice; none while the entropy probe skipped everything of the class.
    pub estimate: Option<EstimateReport>,
}

/// The estimate behind a decision. Where the choice is `none`, it is of the best method that was rejected.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EstimateReport {
    /// What was optimised: `throughput` when more packets are queued behind the block, `latency` when not.
    pub objective: String,
    /// Bytes of the block before compression.
    pub block_bytes: u64,
    /// The method that the estimate is of.
    pub method: String,
    /// Expected compression ratio: input bytes for each output byte.
    pub ratio: f64,
    /// Compression speed of this node, in input bytes a second.
    pub compress_bytes_per_second: Option<f64>,
    /// Decompression speed of the peer, in output bytes a second.
    pub decompress_bytes_per_second: Option<f64>,
    /// Link rate in bit/s; none when it is not known, and then the link is taken not to limit.
    pub link_rate_bits_per_second: Option<f64>,
    /// Link rate in bit/s up to which the method pays; none when it pays always or never: see `pays`.
    pub break_even_bits_per_second: Option<f64>,
    /// On which links the method pays: `always`, `never` or `below-break-even`.
    pub pays: String,
    /// Time of each stage without compression.
    pub uncompressed: StagesReport,
    /// Time of each stage with compression.
    pub compressed: StagesReport,
    /// The slowest part with the choice: `sender`, `link` or `receiver`.
    pub bottleneck: String,
    /// Speedup if the stages run one after the other.
    pub serial_speedup: f64,
    /// Speedup if the stages run in parallel.
    pub pipelined_speedup: f64,
    /// The second best method, or `none`.
    pub runner_up: Option<String>,
    /// How much longer the second best takes than the choice, in percent; negative while hysteresis keeps the choice.
    pub runner_up_slower_percent: Option<f64>,
}

impl DecisionReport {
    /// The reason, in words.
    #[must_use]
    pub fn reason_words(&self) -> &'static str {
        match self.reason.as_str() {
            "pays" => "takes the least time",
            "fixed-by-rule" => "set by the rule, and the data shrinks",
            "entropy-probe" => "skipped by the entropy probe (encrypted or compressed data)",
            "incompressible" => "the data does not shrink enough to pay",
            "too-slow" => "compression takes longer than it saves",
            "unsupported-by-peer" => "the peer supports none of the allowed codecs",
            _ => "unknown reason (this program is older than the daemon)",
        }
    }

    /// The expected compression ratio of what was chosen; none where nothing is compressed, or nothing was estimated.
    #[must_use]
    pub fn chosen_ratio(&self) -> Option<f64> {
        let estimate = self.estimate.as_ref().filter(|it| it.method == self.choice)?;
        Some(estimate.ratio).filter(|ratio| ratio.is_finite() && *ratio > 0.0)
    }

    /// Bytes a second behind compression, as the decision expects them; none where it has no estimate.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "a rate needs no 53 bits")]
    pub fn compressed_bytes_per_second(&self) -> Option<u64> {
        match self.choice.as_str() {
            "none" => Some(self.bytes_per_second),
            _ => self.chosen_ratio().map(|ratio| (self.bytes_per_second as f64 / ratio) as u64),
        }
    }
}

impl EstimateReport {
    /// Speedup of the method for its objective.
    #[must_use]
    pub fn speedup(&self) -> f64 {
        if self.objective == "throughput" { self.pipelined_speedup } else { self.serial_speedup }
    }
}

/// Microseconds that a block spends in each stage.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct StagesReport {
    /// Compressing.
    pub compress_us: f64,
    /// Encrypting and authenticating.
    pub encrypt_us: f64,
    /// Everything else at the sender.
    pub sender_us: f64,
    /// Transmission on the link.
    pub link_us: f64,
    /// Everything else at the receiver.
    pub receiver_us: f64,
    /// Verifying and decrypting.
    pub decrypt_us: f64,
    /// Decompressing.
    pub decompress_us: f64,
}
