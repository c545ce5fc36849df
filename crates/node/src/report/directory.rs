//! The directory of keys, as a node follows it.

use serde::{Deserialize, Serialize};

/// The directory that is followed, and what came of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DirectoryReport {
    /// The public key of the authority.
    pub authority: String,
    /// The server that is followed now, if one is.
    pub server: Option<String>,
    /// The number of the newest revocation list.
    pub list: Option<u64>,
    /// Its age in seconds.
    pub list_age_seconds: Option<u64>,
    /// Whether there is a list that is young enough for new peers to be taken.
    pub is_fresh: bool,
    /// Peers that are known by a good certificate.
    pub certificates: usize,
    /// Certificates with networks that the configuration does not allow.
    pub outside_limits: u64,
    /// What directories said and was not taken, by reason, also reasons with a count of 0.
    pub not_taken: Vec<NotTakenReport>,
    /// How often following a server failed.
    pub failures: u64,
    /// How it failed last.
    pub last_failure: Option<String>,
}

/// What was not taken, for one reason.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NotTakenReport {
    /// Why.
    pub reason: String,
    /// How often.
    pub count: u64,
}
