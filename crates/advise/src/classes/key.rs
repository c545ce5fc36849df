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
pub(crate) enum Key {
    Protocol(Protocol),
    /// An upper-layer protocol and its port, 0 where there is none.
    Service(Protocol, u16),
    /// What is not a conversation of hosts, but an ordinary file.
    File(FileId),
    /// Two hosts, the lower address first, whichever of them sends.
    Pair(IpAddr, IpAddr),
}

impl Key {
    pub(crate) fn pair(flow: &Flow) -> Key {
        Key::Pair(flow.src.min(flow.dst), flow.src.max(flow.dst))
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Key::Protocol(protocol) => write!(f, "{protocol}"),
            Key::Service(protocol, 0) => write!(f, "{protocol}"),
            Key::Service(protocol, port) => match service::name(*port) {
                Some(name) => write!(f, "{name} ({protocol} {port})"),
                None => write!(f, "{protocol} {port}"),
            },
            Key::File(FileId(number)) => write!(f, "file {number}"),
            Key::Pair(one, other) => write!(f, "{one} - {other}"),
        }
    }
}
