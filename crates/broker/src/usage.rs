//! How much each peer has in the store: sums of a list of all that is there, and what changed since that was begun.
//!
//! The sums are a cache. Other brokers may serve the same store, so that a limit can be exceeded by what they took within a minute.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use strait_keying::PublicKey;

/// Sums of bytes, by peer.
#[derive(Clone, Debug, Default)]
pub struct Sums {
    /// Of senders: contents and manifests.
    pub sent: BTreeMap<PublicKey, i128>,
    /// Of receivers: what their letters are about.
    pub kept: BTreeMap<PublicKey, i128>,
    /// Letters, and bytes of contents and letters.
    pub letters: i128,
    /// See `letters`.
    pub bytes: i128,
}

/// The cache.
#[derive(Debug, Default)]
pub struct Usage(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// What was listed last.
    listed: Sums,
    /// What changed between the beginnings of the last two lists, and after that.
    before: Sums,
    since: Sums,
}

/// Which sum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Of a sender.
    Sent,
    /// Of a receiver.
    Kept,
}

impl Usage {
    /// Bytes of a peer.
    #[must_use]
    pub fn of(&self, side: Side, peer: &PublicKey) -> u64 {
        self.lock().of(side, peer)
    }

    /// Adds bytes of a peer, if they fit its limit.
    #[must_use]
    pub fn add(&self, side: Side, peer: &PublicKey, bytes: u64, limit: Option<u64>) -> bool {
        let mut state = self.lock();
        if limit.is_some_and(|limit| state.of(side, peer).saturating_add(bytes) > limit) {
            return false;
        }
        *state.since.side(side).entry(*peer).or_default() += i128::from(bytes);
        true
    }

    /// Takes bytes of a peer away.
    pub fn subtract(&self, side: Side, peer: &PublicKey, bytes: u64) {
        *self.lock().since.side(side).entry(*peer).or_default() -= i128::from(bytes);
    }

    /// Letters that came, or went where they are less than 0, and bytes.
    pub fn count(&self, letters: i128, bytes: i128) {
        let mut state = self.lock();
        state.since.letters += letters;
        state.since.bytes += bytes;
    }

    /// Letters and bytes in the store.
    #[must_use]
    pub fn totals(&self) -> (u64, u64) {
        let state = self.lock();
        let all = [&state.listed, &state.before, &state.since];
        let sum = |of: fn(&Sums) -> i128| {
            u64::try_from(all.iter().map(|sums| of(sums)).sum::<i128>().max(0)).unwrap_or(u64::MAX)
        };
        (sum(|sums| sums.letters), sum(|sums| sums.bytes))
    }

    /// A list is begun.
    pub fn begin(&self) {
        let mut state = self.lock();
        let since = std::mem::take(&mut state.since);
        state.before.merge(since);
    }

    /// That list is whole.
    pub fn finish(&self, listed: Sums) {
        let mut state = self.lock();
        (state.listed, state.before) = (listed, Sums::default());
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn of(&self, side: Side, peer: &PublicKey) -> u64 {
        let all = [&self.listed, &self.before, &self.since];
        let sum: i128 = all.iter().filter_map(|sums| sums.get(side).get(peer)).sum();
        u64::try_from(sum.max(0)).unwrap_or(u64::MAX)
    }
}

impl Sums {
    fn side(&mut self, side: Side) -> &mut BTreeMap<PublicKey, i128> {
        match side {
            Side::Sent => &mut self.sent,
            Side::Kept => &mut self.kept,
        }
    }

    const fn get(&self, side: Side) -> &BTreeMap<PublicKey, i128> {
        match side {
            Side::Sent => &self.sent,
            Side::Kept => &self.kept,
        }
    }

    fn merge(&mut self, other: Sums) {
        for (mine, theirs) in [(&mut self.sent, other.sent), (&mut self.kept, other.kept)] {
            for (peer, bytes) in theirs {
                *mine.entry(peer).or_default() += bytes;
            }
        }
        self.letters += other.letters;
        self.bytes += other.bytes;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_changes_while_a_list_is_made_is_counted_at_least_once() {
        let (usage, peer) = (Usage::default(), PublicKey::from_bytes([1; 32]));
        assert!(usage.add(Side::Sent, &peer, 60, Some(100)));
        assert!(!usage.add(Side::Sent, &peer, 41, Some(100)));
        usage.begin();
        assert!(usage.add(Side::Sent, &peer, 40, Some(100)));
        assert_eq!(usage.of(Side::Sent, &peer), 100);
        let mut listed = Sums::default();
        *listed.side(Side::Sent).entry(peer).or_default() = 60;
        usage.finish(listed);
        assert_eq!(usage.of(Side::Sent, &peer), 100);
        usage.subtract(Side::Sent, &peer, 100);
        assert_eq!((usage.of(Side::Sent, &peer), usage.of(Side::Kept, &peer)), (0, 0));
        usage.subtract(Side::Sent, &peer, 5);
        assert_eq!(usage.of(Side::Sent, &peer), 0, "never below nothing");
    }
}
