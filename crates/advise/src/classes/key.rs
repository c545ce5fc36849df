//! What makes a class, and its name.

use core::fmt;
use std::net::IpAddr;

use strait_wire::{Flow, Protocol};

use super::service;

/// A file among the inputs, by its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct FileId(pub(crate) u32);

/// What all packets of a class have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ClassKey {
    Protocol(Protocol),
    /// An upper-layer protocol and its port, 0 where there is none.
    Service(Protocol, u16),
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
            ClassKey::Service(protocol, 0) => write!(f, "{protocol}"),
            ClassKey::Service(protocol, port) => match service::name(*port) {
                Some(name) => write!(f, "{name} ({protocol} {port})"),
                None => write!(f, "{protocol} {port}"),
            },
            ClassKey::File(FileId(number)) => write!(f, "file {number}"),
            ClassKey::Pair(one, other) => write!(f, "{one} - {other}"),
        }
    }
}
