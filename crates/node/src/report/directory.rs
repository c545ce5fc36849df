//! The directory of keys, as a node follows it.

use serde::{Deserialize, Serialize};

use super::CacheReport;

/// The directory that is followed, and what came of it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DirectoryReport {
    /// The public key of the authority.
    pub authority: String,
    /// The server that is followed now, if one is.
    pub server: Option<String>,
    /// The number of the newest revocation list.
    pub list: Option<u64>,
    /// Its age in seconds.
    pub list_age_seconds: Option<u64>,
    /// The seconds by which the clock is behind the newest list, if it is further than clocks may be.
    #[serde(default)]
    pub clock_behind_seconds: Option<u64>,
    /// Whether there is a list that is young enough for new peers to be taken.
    pub is_fresh: bool,
    /// Peers that are known by a good certificate.
    pub certificates: usize,
    /// Certificates with networks that the configuration does not allow.
    pub outside_limits: u64,
    /// What directories said and was not taken, by reason, also reasons with a count of 0.
    pub not_taken: Vec<NotTakenReport>,
    /// Look-ups of certificates; none where all are followed.
    pub look_ups: Option<LookUpReport>,
    /// Where certificates are looked up, what is kept of them.
    pub caches: Vec<CacheReport>,
    /// Daily keys; none where they are not used.
    pub daily_keys: Option<DailyKeysReport>,
    /// How often following or asking a server failed.
    pub failures: u64,
    /// How it failed last.
    pub last_failure: Option<String>,
}

/// Daily keys of this node and its peers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DailyKeysReport {
    /// `prefer` or `require`.
    pub policy: String,
    /// The last day for which this node has a key, `2026-01-31`.
    pub own_until: Option<String>,
    /// Servers that have taken this node's keys.
    pub published: usize,
    /// Peers with which there is a key of today at both ends.
    pub peers: usize,
}

/// Look-ups of certificates.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LookUpReport {
    /// Look-ups under way.
    pub under_way: usize,
    /// How look-ups ended, also ends with a count of 0.
    pub ends: Vec<LookUpEndReport>,
    /// What all that were answered took together.
    pub seconds: f64,
    /// What the longest took.
    pub longest_seconds: f64,
}

/// Look-ups with one end.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LookUpEndReport {
    /// `found`, `not_found`, `refused` (not good), `failed` (no directory answered), `timed_out` or `busy` (not begun: too many).
    pub end: String,
    /// How many.
    pub count: u64,
}

/// What was not taken, for one reason.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NotTakenReport {
    /// Why.
    pub reason: String,
    /// How often.
    pub count: u64,
}
