//! History: what both ends of an association agreed on for packets that are coded against earlier ones.

use core::time::Duration;

use crate::CacheList;

/// The time after which blocks of peers that sent none since are forgotten where memory is short. A flow that goes on after such a pause
/// sent what it is compressed behind long ago.
pub(crate) const FORGET_EVERY: Duration = Duration::from_secs(60);

/// What the receiver of an association keeps of earlier packets, and of whom.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HistoryTerms {
    /// Contexts that it keeps at most; 0 where nothing is kept.
    pub contexts: u16,
    /// A random number of both ends. With another number, an end was started anew or its machine restored from a snapshot, and both forget
    /// everything: a receiver that got nothing, and a sender that numbers what it sends from the beginning.
    pub epoch: u32,
    /// Byte caches of trust domains.
    pub caches: CacheList,
}

impl HistoryTerms {
    /// Nothing is kept.
    pub const NONE: HistoryTerms = HistoryTerms { contexts: 0, epoch: 0, caches: CacheList::NONE };
    /// Most streams of blocks, whatever the contexts.
    pub const STREAMS_MAX: u8 = 32;
    /// Contexts that a node offers: a hub of 40 sites with six flows of telemetry each. A context takes 23 KiB at most.
    pub const CONTEXTS: u16 = 256;
    /// A receiver keeps one stream of blocks for so many contexts: 32 for [`HistoryTerms::CONTEXTS`], which are 24 MiB at most.
    const CONTEXTS_A_STREAM: u16 = 8;

    /// Streams of blocks that are kept.
    #[must_use]
    pub fn streams(self) -> u8 {
        let streams = self.contexts.div_ceil(HistoryTerms::CONTEXTS_A_STREAM);
        u8::try_from(streams).unwrap_or(u8::MAX).min(HistoryTerms::STREAMS_MAX)
    }
}
