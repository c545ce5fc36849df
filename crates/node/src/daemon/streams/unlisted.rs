//! Nodes that the configuration does not list, for as long as they have streams.

use std::collections::BTreeMap;
use std::time::Duration;

use strait_clock::Time;
use strait_ipsec::PeerId;

/// How long one is remembered that has no stream: so that one stream after the other finds its connection.
const IDLE: Duration = Duration::from_secs(60);
/// How often they are looked at.
const LOOK: Duration = Duration::from_secs(5);

/// The nodes that are there.
#[derive(Debug, Default)]
pub(super) struct UnlistedNodes {
    /// When each had a stream, as far as was seen.
    used: BTreeMap<PeerId, Time>,
    /// When they are looked at.
    look_at: Option<Time>,
}

impl UnlistedNodes {
    pub(super) fn add(&mut self, id: PeerId, now: Time) {
        self.used.insert(id, now);
        self.look_at.get_or_insert(now + LOOK);
    }

    pub(super) fn has(&self, id: PeerId) -> bool {
        self.used.contains_key(&id)
    }

    pub(super) fn count(&self) -> u64 {
        self.used.len() as u64
    }

    /// When [`UnlistedNodes::look`] has something to do.
    pub(super) const fn due(&self) -> Option<Time> {
        self.look_at
    }

    /// Forgets those that have not been `served` for a while, or are not `known` any longer; says which.
    pub(super) fn look(
        &mut self,
        served: impl Fn(PeerId) -> bool,
        known: impl Fn(PeerId) -> bool,
        now: Time,
    ) -> Vec<PeerId> {
        if self.look_at.is_none_or(|at| now < at) {
            return Vec::new();
        }
        let gone = self.used.extract_if(.., |id, used| {
            if served(*id) {
                *used = now;
            }
            *used + IDLE <= now || !known(*id)
        });
        let gone = gone.map(|(id, _)| id).collect();
        self.look_at = (!self.used.is_empty()).then(|| now + LOOK);
        gone
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_without_a_stream_is_forgotten_after_a_while() {
        let mut nodes = UnlistedNodes::default();
        let (served, other, gone) = (PeerId(1), PeerId(2), PeerId(3));
        assert_eq!(nodes.due(), None);
        let begin = Time::from_millis(1000);
        [served, other, gone].into_iter().for_each(|id| nodes.add(id, begin));
        let look = |nodes: &mut UnlistedNodes, now| nodes.look(|id| id == served, |id| id != gone, now);
        assert_eq!(look(&mut nodes, begin), []);
        assert_eq!(nodes.due(), Some(begin + LOOK));
        assert_eq!(look(&mut nodes, begin + LOOK), [gone]);
        assert_eq!(nodes.due(), Some(begin + 2 * LOOK));
        assert_eq!(look(&mut nodes, begin + IDLE), [other]);
        assert!(nodes.has(served) && nodes.count() == 1);
        assert_eq!(nodes.look(|_| false, |_| true, begin + 2 * IDLE), [served]);
        assert_eq!((nodes.due(), nodes.count()), (None, 0));
    }
}
