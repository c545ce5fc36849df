//! Flags of `put` and `rm`.

use std::ffi::OsString;
use std::time::Duration;

use clap::{Args, ValueHint};
use strait_node::config::duration;
use strait_scheduler::Rate;

use super::files::{FilePriority, PatternFlags};

/// Flags of `put`.
#[derive(Debug, Args)]
pub(crate) struct PutFlags {
    /// Files and folders, then the broker, a peer of the configuration. A folder with a slash behind it stands for what is in it
    #[arg(value_name = "PATH", required = true, num_args = 2.., value_hint = ValueHint::AnyPath)]
    pub(crate) paths: Vec<OsString>,
    /// Who can fetch and open it: a peer of the configuration; once for each. A recipient of age (age1...) can open a copy and fetches nothing
    #[arg(long, value_name = "PEER", required = true)]
    pub(crate) to: Vec<String>,
    /// Where it goes at the receivers: the name of a `[[folder]]` there, or FOLDER/PATH
    #[arg(long, value_name = "FOLDER", default_value = "inbox")]
    pub(crate) folder: String,
    /// Remove it from the broker after this time if it was not fetched, such as 7d [default: as long as the broker keeps anything]
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub(crate) expire: Option<Duration>,
    /// Make each path a transfer of its own
    #[arg(long)]
    pub(crate) each: bool,
    /// Do not pad: the broker sees the exact size after compression
    #[arg(long)]
    pub(crate) exact_size: bool,
    /// What is left out.
    #[command(flatten)]
    pub(crate) patterns: PatternFlags,
    /// Print one JSON object for each event instead of progress
    #[arg(long)]
    pub(crate) json: bool,
    /// Before or after other streams to the broker
    #[arg(long, value_name = "WHEN", default_value = "normal")]
    pub(crate) priority: FilePriority,
    /// Limit of the rate, such as 500kbit
    #[arg(long, value_name = "RATE")]
    pub(crate) max_rate: Option<Rate>,
    /// Interface of the tunnel, such as strait0, or its configuration file; not needed if only one tunnel is running
    #[arg(long, short, value_name = "INTERFACE|FILE")]
    pub(crate) tunnel: Option<String>,
}

/// Flags of `rm`.
#[derive(Debug, Args)]
pub(crate) struct RmFlags {
    /// Transfers in this node's inbox at a broker, as BROKER:ID; the first digits of an id are enough
    #[arg(value_name = "BROKER:ID", required = true)]
    pub(crate) transfers: Vec<String>,
    /// Transfers that this node put there: they are removed from all inboxes
    #[arg(long)]
    pub(crate) sent: bool,
    /// Interface of the tunnel, such as strait0, or its configuration file; not needed if only one tunnel is running
    #[arg(long, short, value_name = "INTERFACE|FILE")]
    pub(crate) tunnel: Option<String>,
}
