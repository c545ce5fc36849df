//! Daily keys of this node and of its peers, and when they are used.

use std::collections::BTreeMap;

use super::{DailyKeys, Day, OwnDailyKeys};
use crate::PublicKey;
use crate::sessionless::shared::Kij;

/// When daily keys are used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DailyPolicy {
    /// Never.
    #[default]
    Off,
    /// Where both ends have one for the day; else the long-term keys alone.
    Prefer,
    /// Always: what does without is neither sent nor taken.
    Require,
}

/// Daily keys, by node.
#[derive(Debug)]
pub struct DailyRing {
    policy: DailyPolicy,
    pub(crate) own: OwnDailyKeys,
    peers: BTreeMap<PublicKey, DailyKeys>,
}

impl DailyRing {
    /// The keys of this node, used as `policy` says.
    #[must_use]
    pub const fn new(policy: DailyPolicy, own: OwnDailyKeys) -> DailyRing {
        DailyRing { policy, own, peers: BTreeMap::new() }
    }

    /// When they are used.
    #[must_use]
    pub const fn policy(&self) -> DailyPolicy {
        self.policy
    }

    /// The secrets of this node.
    #[must_use]
    pub const fn own(&self) -> &OwnDailyKeys {
        &self.own
    }

    /// Keeps what a peer published, unless it is older than what is known; says whether it is new.
    pub fn learn(&mut self, keys: DailyKeys) -> bool {
        let node = *keys.node();
        let is_newer = self.peers.get(&node).is_none_or(|known| known.number() < keys.number());
        if is_newer {
            self.peers.insert(node, keys);
        }
        is_newer
    }

    /// Forgets what a peer published.
    pub fn forget(&mut self, node: &PublicKey) -> bool {
        self.peers.remove(node).is_some()
    }

    /// The last day of which a peer's key is known.
    #[must_use]
    pub fn until(&self, peer: &PublicKey) -> Option<Day> {
        let (first, end) = self.peers.get(peer)?.days();
        (first < end).then(|| Day(end.0 - 1))
    }

    /// Whether there is a key of `day` at both ends.
    #[must_use]
    pub fn has(&self, peer: &PublicKey, day: Day) -> bool {
        self.policy != DailyPolicy::Off
            && self.own.on(day).is_some()
            && self.peers.get(peer).is_some_and(|keys| keys.on(day).is_some())
    }

    /// What is shared on `day` with the peer of `kij`; nothing where either end has no key of that day.
    #[must_use]
    pub fn agree(&self, kij: &Kij, day: Day) -> Option<Kij> {
        if self.policy == DailyPolicy::Off {
            return None;
        }
        kij.on_day(day, self.own.on(day)?, self.peers.get(&kij.peer())?.on(day)?)
    }
}
