//! What lengths of a rule's blocks tell an observer of the link.

use serde::{Deserialize, Serialize};

/// What lengths of a rule's blocks tell, and what the rule does about it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LeakReport {
    /// How blocks are padded: `none`, `padme`, `buckets` or `constant`.
    pub padding: String,
    /// What shares a block: `domain` or `flow`.
    pub mix: String,
    /// Whether blocks copy from a byte cache: then all flows of the domain are an oracle for each other, of all that is kept.
    #[serde(default)]
    pub cache: bool,
    /// Whether compressing pauses after many blocks that are nearly equal.
    pub pause: bool,
    /// Pauses of compressing that packets of the rule began.
    pub pauses: u64,
    /// Packets that were not compressed because of a pause.
    pub paused_packets: u64,
    /// Blocks compressed on trial or to be sent.
    pub blocks: u64,
    /// An attacker in the flow that carries a secret.
    pub same_flow: AttackerReport,
    /// An attacker in another flow of the trust domain.
    pub other_flow: AttackerReport,
}

/// What lengths tell one kind of attacker, who also sees the link.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct AttackerReport {
    /// Upper bound of what the size of a block tells, in bits, as a mean over blocks; none before the first block.
    pub bound_bits_per_block: Option<f64>,
    /// The same for 1,000 packets that matched the rule; with `constant` at most what its pauses leave.
    pub bound_bits_per_1000_packets: Option<f64>,
    /// Bits that the scripted attack of `docs/design/oracle.md` learned for 1,000 of its packets, under this policy and on this version;
    /// none where that was not measured.
    pub measured_yield: Option<f64>,
    /// The one-sided 95 % upper limit of that.
    pub measured_yield_upper: Option<f64>,
}
