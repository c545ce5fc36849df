//! Which packets may share a block or a datagram.

use strait_compress::Allowed;
use strait_compress::history::HistoryScope;

use crate::{Domain, DomainTag, LeakPolicy};

/// Packets may share a block or bundle only if all of this is equal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Group {
    pub(crate) domain: Option<Domain>,
    /// What it may be compressed with; nothing where that is not worth trying.
    pub(crate) allowed: Allowed,
    /// What its rule does so that lengths tell less; nothing where it is not compressed.
    pub(crate) policy: LeakPolicy,
    /// What shares history, if anything does.
    pub(crate) history: Option<HistoryScope>,
    /// The byte cache that its payloads may be copied from, by its domain.
    pub(crate) cache: Option<DomainTag>,
    /// The keyed hash of the one flow of the group, once a packet waits; 0 where flows share blocks.
    pub(crate) flow: u64,
    pub(crate) dscp: u8,
    /// Which rules said so: a domain's number means nothing under others.
    pub(crate) edition: u32,
    /// Whether it is a datagram of a stream, which is sealed already and leaves alone.
    pub(crate) stream: bool,
}

impl Group {
    /// What is not compressed, and that no rule covers.
    pub(super) const fn plain(dscp: u8, edition: u32) -> Group {
        let (allowed, policy) = (Allowed::Nothing, LeakPolicy::NONE);
        let history = Some(HistoryScope::Flow);
        Group { domain: None, allowed, policy, history, cache: None, flow: 0, dscp, edition, stream: false }
    }

    /// Datagrams of streams.
    pub(super) const STREAM: Group = Group { stream: true, ..Group::plain(0, 0) };

    pub(crate) fn compresses(&self) -> bool {
        self.allowed.something() || self.cache.is_some()
    }

    /// Whether units of both shrink alike: the class of service says nothing of what is in a packet.
    pub(crate) fn shrinks_like(&self, other: &Group) -> bool {
        (self.domain, self.allowed, self.policy, self.edition)
            == (other.domain, other.allowed, other.policy, other.edition)
    }
}
