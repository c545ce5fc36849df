//! What is counted for a class of traffic.

use strait_compress::Method;
use strait_compress::calibrate::CANDIDATES;

use crate::TunnelVariant;

/// Methods that are told apart: every candidate, and none.
const METHODS: usize = CANDIDATES.len() + 1;

/// Where a method stands among [`CANDIDATES`]; none, and what is not among them, stands behind.
pub(crate) fn place_of(method: Option<Method>) -> usize {
    let found = CANDIDATES.iter().position(|candidate| Some(*candidate) == method);
    found.unwrap_or(CANDIDATES.len())
}

/// One of two hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HostEnd {
    /// That with the lower address.
    Lower,
    Higher,
}

/// Sums over the packets of a class.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ClassFigures {
    pub(crate) packets: u64,
    /// Of IP packets, as they would be sent without a tunnel.
    pub(crate) bytes: u64,
    /// Of them, bytes that were not captured.
    pub(crate) missing: u64,
    /// On the wire, by [`TunnelVariant`].
    pub(crate) wire: [u64; TunnelVariant::ALL.len()],
    /// How often the other side spoke: packets with data that came from another end than the one with data before. Counted
    /// for pairs of hosts.
    pub(crate) turns: u64,
    /// Which end spoke last.
    pub(crate) last: Option<HostEnd>,
    /// Bytes by what they were compressed with where both is done; see [`place_of`].
    pub(crate) methods: [u64; METHODS],
    /// What each candidate makes of a sample, packet by packet.
    pub(crate) alone: CompressionSample,
    /// And of the same packets together with what waited with them.
    pub(crate) together: CompressionSample,
}

/// Results of compressing a sample of the traffic with every candidate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct CompressionSample {
    /// The length of the block that each byte was in, over all of them.
    pub(crate) lengths: u64,
    /// Bytes before.
    pub(crate) before: u64,
    /// And after, by candidate; as before where that was not smaller.
    pub(crate) after: [u64; CANDIDATES.len()],
}

impl ClassFigures {
    /// Adds all of `other`.
    pub(crate) fn merge(&mut self, other: &ClassFigures) {
        self.packets += other.packets;
        self.bytes += other.bytes;
        self.missing += other.missing;
        self.turns += other.turns;
        sum(&mut self.wire, &other.wire);
        sum(&mut self.methods, &other.methods);
        self.alone.merge(&other.alone);
        self.together.merge(&other.together);
    }
}

impl CompressionSample {
    /// The share of `part` of its bytes.
    pub(crate) fn share(&self, part: u64) -> CompressionSample {
        let share = |value: u64| {
            let product = u128::from(value) * u128::from(part) / u128::from(self.before.max(1));
            u64::try_from(product).unwrap_or(u64::MAX)
        };
        CompressionSample { lengths: share(self.lengths), before: part, after: self.after.map(share) }
    }

    /// The length of the block that a byte was in, on average.
    pub(crate) fn block(&self) -> u64 {
        self.lengths.checked_div(self.before).unwrap_or(0)
    }

    pub(crate) fn merge(&mut self, other: &CompressionSample) {
        self.lengths += other.lengths;
        self.before += other.before;
        sum(&mut self.after, &other.after);
    }
}

fn sum<const N: usize>(into: &mut [u64; N], from: &[u64; N]) {
    for (into, from) in into.iter_mut().zip(from) {
        *into += from;
    }
}
