//! What the packet process and the one that follows a directory say to each other.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use strait_keying::directory::LookUpEnd;

use crate::report::DirectoryReport;

/// What the process needs to know.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Mandate {
    pub(super) authority: String,
    pub(super) servers: Vec<String>,
    pub(super) max_stale_s: u64,
    /// Certificates that are held at most.
    pub(super) max_held: usize,
    /// Whether certificates are looked up when they are needed.
    pub(super) on_demand: bool,
    /// Whether daily keys are used.
    pub(super) daily_keys: bool,
    /// The file for what is held.
    pub(super) cache: Option<PathBuf>,
    /// As whom it goes on.
    pub(super) user: String,
}

/// What it is told.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Wanted {
    /// The certificate that answers this question, a whole message.
    Find(Vec<u8>),
    /// The node with this key is no peer any more, to make room for others.
    Evicted(String),
    /// Daily keys of this node, to be published.
    Publish(Vec<u8>),
}

/// What it tells.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Told {
    /// A peer, by its certificate as text.
    Admit(String),
    /// A peer that is none any more, by its key, and why.
    Dismiss(String, String),
    /// Daily keys of a peer.
    DailyKeys(Vec<u8>),
    /// So many servers have the daily keys of this node.
    Published(usize),
    /// The look-up for this question is over; what it found was told before.
    LookedUp(Vec<u8>, Ended),
    /// There is a newer list, so that what was not good may be now.
    NewerList,
    /// How things are.
    Report(Box<DirectoryReport>),
}

/// [`LookUpEnd`], as one process tells it the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Ended {
    Found,
    NotFound,
    Refused,
    Failed,
}

impl From<Ended> for LookUpEnd {
    fn from(ended: Ended) -> LookUpEnd {
        match ended {
            Ended::Found => LookUpEnd::Found,
            Ended::NotFound => LookUpEnd::NotFound,
            Ended::Refused => LookUpEnd::Refused,
            Ended::Failed => LookUpEnd::Failed,
        }
    }
}
