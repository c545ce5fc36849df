//! What the packet process may ask of the starter, and what it is answered: few verbs, each checked there, since the packet
//! process handles what strangers send.

use std::io;
use std::net::IpAddr;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::process::ProcessChannel;

/// What can be asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "verb", rename_all = "kebab-case")]
pub(super) enum StarterRequest {
    /// To make the network around the tunnel device, once. With it come the sockets that carry the mark, that for UDP first.
    SetUp {
        /// This node's public key, if it has one of its own.
        public_key: Option<String>,
    },
    /// To read the configuration and its manual keys again. With the answer comes where they can be read.
    Read,
    /// For a counter file that the configuration read last names. With the answer comes the file.
    Counter {
        /// Where it is.
        path: PathBuf,
    },
    /// For the marks of keys without sessions. With the answer come the file, to be read, and a channel on which more are written.
    Marks {
        /// This node's public key.
        node: String,
    },
    /// For the file with the secrets of daily keys. With the answer comes the file, to be read and written.
    DailySecrets {
        /// This node's public key.
        node: String,
    },
    /// To write what was found on paths, for the next start.
    Remember {
        /// The file as [`PathMemory`](crate::path_memory::PathMemory) reads it.
        text: String,
    },
    /// To run the command that the configuration has for steps of a cap.
    OnCap(CapEvent),
    /// To make addresses, routes, rules and marks what the configuration asks for.
    Route {
        /// Whether that is the configuration read last, from now on.
        take_over: bool,
        /// Where peers are beside the endpoints in the configuration.
        others: Vec<IpAddr>,
    },
    /// To remove everything and end.
    End {
        /// Whether what keeps packets from leaving in the clear stays; if nothing is said, it stays if an earlier run left it.
        stays_closed: Option<bool>,
    },
}

/// A step of a cap that was reached.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct CapEvent {
    /// The peer's name; nothing for the link.
    pub(super) peer: Option<String>,
    /// The step's name.
    pub(super) step: String,
    /// Wire bytes used.
    pub(super) used: u64,
    /// The cap.
    pub(super) cap: u64,
    /// What the end of the period will have.
    pub(super) forecast: Option<u64>,
}

/// What is answered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "answer", rename_all = "kebab-case")]
pub(super) enum StarterAnswer {
    /// It is done.
    Done,
    /// It is not.
    Refused {
        /// Why, and what to do.
        message: String,
    },
}

/// What is asked on the channel for marks; the next one waits for the answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::daemon) struct MarksRequest {
    /// Keys of senders, or of the node itself for the sender's mark, and their marks.
    pub(in crate::daemon) marks: Vec<(String, u64)>,
}

/// What is answered there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "answer", rename_all = "kebab-case")]
pub(in crate::daemon) enum MarksAnswer {
    /// They are on disk.
    Written {
        /// Keys for which there is no room.
        without: Vec<String>,
    },
    /// They are not on disk; it is tried again, and answered again when they are.
    Late {
        /// Why.
        message: String,
    },
}

/// Sends a request or an answer.
pub(in crate::daemon) fn send(
    channel: &ProcessChannel,
    message: &impl Serialize,
    descriptors: &[BorrowedFd<'_>],
) -> io::Result<()> {
    channel.send(&serde_json::to_vec(message)?, descriptors)
}

/// Reads a request or an answer that was received.
pub(in crate::daemon) fn read<M: for<'a> Deserialize<'a>>(
    (bytes, descriptors): (Vec<u8>, Vec<OwnedFd>),
) -> io::Result<(M, Vec<OwnedFd>)> {
    Ok((serde_json::from_slice(&bytes)?, descriptors))
}
