//! One budget of a node's memory for what it keeps of its peers' data.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A pool with rules of its own has an eighth of a node's memory, and no more than forty peers need on links of 100 Mbit/s: blocks in the
/// making, payloads that wait behind a gap, and payloads that may have to be sent again. What is left is for history and byte caches.
const PART: usize = 8;
const PART_MAX: usize = 32 << 20;
const POOLS: usize = 3;

/// The memory that a node has for what it keeps of all peers' data.
#[derive(Debug)]
pub struct KeptMemory {
    bytes: usize,
    used: AtomicUsize,
}

impl Default for KeptMemory {
    /// Of 256 MiB.
    fn default() -> KeptMemory {
        KeptMemory::new(256 << 20)
    }
}

impl KeptMemory {
    /// So many bytes for all.
    #[must_use]
    pub const fn new(bytes: usize) -> KeptMemory {
        KeptMemory { bytes, used: AtomicUsize::new(0) }
    }

    /// Bytes of all of it.
    #[must_use]
    pub const fn bytes(&self) -> usize {
        self.bytes
    }

    /// Bytes of a pool with rules of its own.
    #[must_use]
    pub const fn part(&self) -> usize {
        let part = self.bytes / PART;
        if part < PART_MAX { part } else { PART_MAX }
    }

    /// Bytes that history and caches of all peers may take together.
    #[must_use]
    pub const fn most(&self) -> usize {
        self.bytes - POOLS * self.part()
    }

    /// Bytes that all take.
    #[must_use]
    pub fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }

    /// Says whether more than half is taken, so that unused data is to be given up.
    #[must_use]
    pub fn is_short(&self) -> bool {
        self.used() > self.most() / 2
    }
}

/// The part of a node's memory that one peer has. It takes no more than is left for others, and is to give back what it has beyond twice
/// that, so that one more peer always finds room: `n` greedy peers that come at once have an `n + 1`th each (dynamic thresholds:
/// Choudhury and Hahne, 1998).
#[derive(Debug)]
pub struct PeerMemory {
    node: Arc<KeptMemory>,
    used: AtomicUsize,
}

impl PeerMemory {
    /// Nothing of it yet.
    #[must_use]
    pub const fn of(node: Arc<KeptMemory>) -> PeerMemory {
        PeerMemory { node, used: AtomicUsize::new(0) }
    }

    /// Bytes that it takes.
    #[must_use]
    pub fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }

    fn take(&self, more: usize) -> bool {
        let (most, used) = (self.node.most(), &self.node.used);
        let own = self.used() + more;
        let fits = |used: usize| {
            let after = used.checked_add(more)?;
            (own <= most.checked_sub(after)?).then_some(after)
        };
        let taken = used.try_update(Ordering::Relaxed, Ordering::Relaxed, fits).is_ok();
        if taken {
            self.used.fetch_add(more, Ordering::Relaxed);
        }
        taken
    }

    fn give_back(&self, less: usize) {
        self.used.fetch_sub(less, Ordering::Relaxed);
        self.node.used.fetch_sub(less, Ordering::Relaxed);
    }
}

/// The part of a peer's memory that one keeper has; it is given back when this is dropped. Without a peer there is no limit.
#[derive(Debug, Default)]
pub struct MemoryShare {
    of: Option<Arc<PeerMemory>>,
    bytes: usize,
}

impl MemoryShare {
    /// Nothing of a peer's memory yet.
    #[must_use]
    pub const fn of(peer: Arc<PeerMemory>) -> MemoryShare {
        MemoryShare { of: Some(peer), bytes: 0 }
    }

    /// Has so many bytes from now on; false where there is no room for more, and it has as many as before.
    pub fn resize(&mut self, bytes: usize) -> bool {
        let Some(peer) = &self.of else { return true };
        let may = bytes <= self.bytes || peer.take(bytes - self.bytes);
        if may {
            peer.give_back(self.bytes.saturating_sub(bytes));
            self.bytes = bytes;
        }
        may
    }

    /// Says whether the peer has more than twice what is left for others, since these came later. Were it once, peers that have equal shares
    /// would take from each other without end.
    pub fn is_over(&self) -> bool {
        let is_over =
            |peer: &Arc<PeerMemory>| peer.used() / 2 > peer.node.most().saturating_sub(peer.node.used());
        self.of.as_ref().is_some_and(is_over)
    }
}

impl Drop for MemoryShare {
    fn drop(&mut self) {
        self.resize(0);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn greedy_peers_share_and_leave_room_for_one_more() {
        let node = Arc::new(KeptMemory::new(1_600_000));
        let mut shares: Vec<MemoryShare> = Vec::new();
        for peers in 1..20 {
            shares.push(MemoryShare::of(Arc::new(PeerMemory::of(Arc::clone(&node)))));
            for _ in 0..1_000 {
                for share in &mut shares {
                    let more = share.bytes + 1_000;
                    share.resize(if share.is_over() { more - 2_000 } else { more });
                }
            }
            let each = 1_000_000 / (peers + 1);
            let fair = each / 2..each * 2;
            assert!(shares.iter().all(|share| fair.contains(&share.bytes)), "{peers}: {shares:?}");
            assert!(node.most() - node.used() >= each / 2);
        }
    }

    proptest! {
        #[test]
        fn what_is_given_back_is_there_again(sizes in proptest::collection::vec((0..4_usize, 0..400_usize), 0..60)) {
            let node = Arc::new(KeptMemory::new(1_600));
            let peers = [(); 2].map(|()| Arc::new(PeerMemory::of(Arc::clone(&node))));
            let mut shares: [MemoryShare; 4] =
                core::array::from_fn(|at| MemoryShare::of(Arc::clone(&peers[at / 2])));
            for (at, bytes) in sizes {
                let before = shares[at].bytes;
                let resized = shares[at].resize(bytes);
                prop_assert_eq!(shares[at].bytes, if resized { bytes } else { before });
                let used = peers.each_ref().map(|peer| peer.used());
                prop_assert_eq!(used.iter().sum::<usize>(), node.used());
                prop_assert!(node.used() <= 1_000);
            }
            drop(shares);
            prop_assert_eq!(node.used(), 0);
        }
    }
}
