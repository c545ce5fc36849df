//! What makes a class, and its name.

use core::fmt;
use std::net::IpAddr;

use strait_wire::{Flow, Protocol, Service};

/// A file among the inputs, by its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct FileId(pub(crate) u32);

/// What all packets of a class have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ClassKey {
    Protocol(Protocol),
    Service(Service),
    /// What is not a conversation of hosts, but an ordinary file.
    File(FileId),
    /// Two hosts, the lower address first, whichever of them sends.
    Pair(IpAddr, IpAddr),
}

impl ClassKey {
    pub(crate) fn pair(flow: &Flow) -> ClassKey {
        ClassKey::Pair(flow.src.min(flow.dst), flow.src.max(flow.dst))
    }
}

impl fmt::Display for ClassKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ClassKey::Protocol(protocol) => write!(f, "{protocol}"),
            ClassKey::Service(service) => write!(f, "{service}"),
            ClassKey::File(FileId(number)) => write!(f, "file {number}"),
            ClassKey::Pair(one, other) => write!(f, "{one} - {other}"),
        }
    }
}
