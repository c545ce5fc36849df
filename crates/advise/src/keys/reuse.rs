//! Misses of caches of each size, from one pass over the order of peers: a cache that lets go what was used least recently has an entry
//! as long as fewer others than its size were used since (Mattson, Gecsei, Slutz and Traiger, "Evaluation techniques for storage
//! hierarchies", 1970).

use core::cmp::Reverse;
use std::collections::BTreeSet;

use super::PeerIndex;

/// Most peers that are pinned: a person writes them into a file.
const PINS: usize = 10;
/// Sizes that are tried for the peers that are not pinned, in equal steps up to that which needs no pin.
const STEPS: usize = 16;

/// Counts of peers that were needed again, by the number of others since.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Returns {
    /// By the number of others.
    after: Vec<u64>,
}

impl Returns {
    /// Counts the returns of peers that are not `pinned`.
    pub(crate) fn count(changes: &[PeerIndex], pinned: &BTreeSet<PeerIndex>) -> Returns {
        let mut after = Vec::new();
        each_return(changes.iter().copied().filter(|peer| !pinned.contains(peer)), |_, others| {
            if after.len() <= others {
                after.resize(others + 1, 0);
            }
            after[others] += 1;
        });
        Returns { after }
    }

    /// The number of them that a cache with `size` entries misses.
    pub(crate) fn missed(&self, size: usize) -> u64 {
        self.after.iter().skip(size).sum()
    }

    /// The smallest cache that misses at most so many.
    pub(crate) fn smallest(&self, allowed: u64) -> usize {
        let mut missed = 0;
        let fits = |count: &&u64| {
            missed += **count;
            missed <= allowed
        };
        (self.after.len() - self.after.iter().rev().take_while(fits).count()).max(1)
    }
}

/// Calls `each` with every peer that is needed again, and how many others were needed since.
fn each_return(order: impl Iterator<Item = PeerIndex>, mut each: impl FnMut(PeerIndex, usize)) {
    let mut known = Vec::new();
    // The peer that was needed last stands last.
    let mut stack: Vec<PeerIndex> = Vec::new();
    for peer in order {
        let index = usize::from(peer);
        known.resize(known.len().max(index + 1), false);
        if core::mem::replace(&mut known[index], true) {
            let Some(at) = stack.iter().rposition(|other| *other == peer) else { continue };
            each(peer, stack.len() - 1 - at);
            stack[at..].rotate_left(1);
        } else {
            stack.push(peer);
        }
    }
}

/// Peers to pin, and the returns of the others.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Plan {
    pub(crate) pinned: BTreeSet<PeerIndex>,
    pub(crate) others: Returns,
}

impl Plan {
    /// The plan with the fewest entries, pinned ones among them, that misses at most `allowed`. A pin spares at least one entry besides its
    /// own, as who is busy needs none.
    pub(crate) fn best(changes: &[PeerIndex], allowed: u64) -> Plan {
        let without = Plan { pinned: BTreeSet::new(), others: Returns::count(changes, &BTreeSet::new()) };
        let size = without.size(allowed);
        let pinned = pins(changes, size, allowed);
        let others = Returns::count(changes, &pinned);
        let with = Plan { pinned, others };
        if with.size(allowed) + with.pinned.len() <= size { with } else { without }
    }

    /// Entries that it needs in order to miss at most `allowed`.
    pub(crate) fn size(&self, allowed: u64) -> usize {
        self.pinned.len() + self.others.smallest(allowed)
    }

    /// The number of returns that a cache misses which has `size` entries, pinned ones among them.
    pub(crate) fn missed(&self, size: usize) -> u64 {
        self.others.missed(size.saturating_sub(self.pinned.len()))
    }
}

/// The peers without which a cache for the others needs the fewest entries, with two more for each of them; none if that is more than
/// `size`. Pins bring others closer together, so that it is no more than is counted here.
fn pins(changes: &[PeerIndex], size: usize, allowed: u64) -> BTreeSet<PeerIndex> {
    let peers = changes.iter().max().map_or(0, |last| usize::from(*last) + 1);
    let mut far: Vec<[u64; STEPS]> = vec![[0; STEPS]; peers];
    let sizes: [usize; STEPS] = core::array::from_fn(|step| (size * step / STEPS).max(1));
    each_return(changes.iter().copied(), |peer, others| {
        let reached = sizes.iter().take_while(|size| **size <= others);
        far[usize::from(peer)].iter_mut().zip(reached).for_each(|(count, _)| *count += 1);
    });
    let tried = sizes.iter().enumerate().filter_map(|(step, size)| {
        let missed = far.iter().map(|counts| counts[step]).zip(0..=PeerIndex::MAX);
        let pinned = fewest(missed.filter(|(count, _)| *count > 0).collect(), allowed)?;
        Some((size + 2 * pinned.len(), pinned))
    });
    let best = tried.min_by_key(|(weight, _)| *weight);
    best.filter(|(weight, _)| *weight <= size).map(|(_, pinned)| pinned).unwrap_or_default()
}

/// The fewest peers, of those that are missed so often, without which at most `allowed` misses are left; none if these are too many to pin.
fn fewest(mut missed: Vec<(u64, PeerIndex)>, allowed: u64) -> Option<BTreeSet<PeerIndex>> {
    missed.sort_unstable_by_key(|entry| Reverse(*entry));
    let mut left: u64 = missed.iter().map(|(count, _)| count).sum();
    let mut pinned = BTreeSet::new();
    for (count, peer) in missed {
        if left <= allowed {
            break;
        }
        left -= count;
        pinned.insert(peer);
    }
    (pinned.len() <= PINS).then_some(pinned)
}

#[cfg(test)]
mod tests;
