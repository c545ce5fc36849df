//! Which packets may share a block or a datagram.

use strait_compress::Allowed;

use crate::Domain;

/// Packets may share a block or bundle only if all of this is equal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Group {
    pub(crate) domain: Option<Domain>,
    /// What it may be compressed with; nothing where that is not worth trying.
    pub(crate) allowed: Allowed,
    pub(crate) dscp: u8,
    /// Which rules said so: a domain's number means nothing under others.
    pub(crate) edition: u32,
}

impl Group {
    pub(crate) fn compresses(&self) -> bool {
        self.allowed.something()
    }

    /// Whether units of both shrink alike: the class of service says nothing of what is in a packet.
    pub(crate) fn shrinks_like(&self, other: &Group) -> bool {
        (self.domain, self.allowed, self.edition) == (other.domain, other.allowed, other.edition)
    }
}
