//! Which transfers run: a pure function of the queue, the peers that are there, and the time.

use std::collections::{BTreeMap, BTreeSet};

use jiff::tz::TimeZone;
use strait_keying::PublicKey;

use super::changes::RETRY_MAX;
use super::record::{QueuedTransfer, TransferPriority};
use crate::TransferId;
use strait_scheduler::calendar::{WindowState, day};

/// Transfers that run at once, over all peers: each holds files open and 24 MiB of codecs.
pub const AT_ONCE: usize = 16;

/// Where transfers can go now.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReachablePeers {
    /// Peers that are there.
    pub there: BTreeSet<PublicKey>,
    /// Brokers that are there, by the peers that they are used for while these are away.
    pub brokers: BTreeMap<PublicKey, PublicKey>,
    /// Peers and brokers that take only [`TransferPriority::Now`], since the link to them is metered, and until when.
    pub urgent_only: BTreeMap<PublicKey, i64>,
}

impl From<BTreeSet<PublicKey>> for ReachablePeers {
    fn from(there: BTreeSet<PublicKey>) -> ReachablePeers {
        ReachablePeers { there, ..ReachablePeers::default() }
    }
}

/// A transfer that is to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunOrder {
    /// Which.
    pub id: TransferId,
    /// The broker that it goes to; nothing where it goes to its peer.
    pub broker: Option<PublicKey>,
    /// Its class, which gives its share of the link beside other classes.
    pub priority: TransferPriority,
    /// Bytes a second at most.
    pub max_rate: Option<u64>,
    /// Bytes that it may still send today.
    pub allowance: Option<u64>,
}

/// What is to be done now. What runs and is not in `run` is to be stopped; it goes on later where it was.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QueueDecision {
    /// What is to run, the most urgent first.
    pub run: Vec<RunOrder>,
    /// What is no longer wanted.
    pub expired: Vec<TransferId>,
    /// When to ask again if nothing else happens, in seconds since 1970.
    pub wake: Option<i64>,
}

/// Decides. `queue` stands in the order that the user gave it.
///
/// A transfer goes to its peer, or to the peer's broker as long as the peer is away and the broker has no copy of it. At each peer
/// and each broker that is there, the first transfer of each class runs that may: its window is open, it has bytes left for the day,
/// and its last failure is long enough ago. Classes share the link ([`TransferPriority::share`]); so a long transfer of a low
/// class delays no short one of a higher class, and none waits for ever.
#[must_use]
pub(super) fn next<'a>(
    queue: impl IntoIterator<Item = &'a QueuedTransfer>,
    reachable: &ReachablePeers,
    now: i64,
    zone: &TimeZone,
) -> QueueDecision {
    let (today, midnight) = day(now, zone);
    let mut places: BTreeMap<(TransferPriority, PublicKey), ()> = BTreeMap::new();
    let mut decision = QueueDecision::default();
    let mut wake = i64::MAX;
    for transfer in queue.into_iter().filter(|transfer| transfer.state.over().is_none()) {
        let expires = transfer.limits.expires.unwrap_or(i64::MAX);
        if expires <= now {
            decision.expired.push(transfer.id);
            continue;
        }
        wake = wake.min(expires);
        let peer = transfer.order.peer;
        let copy = transfer.waits_at(now);
        wake = wake.min(copy.map_or(i64::MAX, |copy| copy.until));
        let broker = match reachable.brokers.get(&peer) {
            _ if reachable.there.contains(&peer) => None,
            Some(broker) if copy.is_none() => Some(*broker),
            _ => continue,
        };
        let place = (transfer.limits.priority, broker.unwrap_or(peer));
        let held = reachable.urgent_only.get(&place.1).filter(|_| place.0 != TransferPriority::Now);
        if let Some(until) = held {
            wake = wake.min(*until);
            continue;
        }
        let (may_run, changes) = may_run(transfer, now, (today, midnight), zone);
        wake = wake.min(changes);
        if may_run && places.insert(place, ()).is_none() {
            decision.run.push(RunOrder {
                id: transfer.id,
                broker,
                priority: transfer.limits.priority,
                max_rate: transfer.limits.max_rate,
                allowance: transfer.allowance(today),
            });
        }
    }
    // Stable: within a class the user's order.
    decision.run.sort_by_key(|run| run.priority);
    decision.run.truncate(AT_ONCE);
    decision.wake = (wake < i64::MAX).then_some(wake);
    decision
}

/// Whether a transfer may run as far as time and bytes go, and when that may change.
fn may_run(
    transfer: &QueuedTransfer,
    now: i64,
    (today, midnight): (i32, i64),
    zone: &TimeZone,
) -> (bool, i64) {
    let retry_at = transfer.tries.retry_at;
    // A pause that is longer than any began on a clock that was set back since.
    if retry_at > now && retry_at <= now.saturating_add(RETRY_MAX) {
        return (false, retry_at);
    }
    let (open, mut changes) = match transfer.limits.between.map(|window| window.at(now, zone)) {
        None => (true, i64::MAX),
        Some(WindowState::Open(until)) => (true, until),
        Some(WindowState::Closed(until)) => (false, until),
    };
    let allowance = transfer.allowance(today);
    if allowance.is_some() {
        changes = changes.min(midnight);
    }
    (open && allowance != Some(0), changes)
}

#[cfg(test)]
mod tests;
