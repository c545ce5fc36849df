//! Flags of `fetch`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueHint};
use strait_node::config::duration;
use strait_scheduler::Rate;

use super::files::FilePriority;

/// Flags of `fetch`.
#[derive(Debug, Args)]
pub(crate) struct FetchFlags {
    /// The broker, a peer with `broker = true`, which may be left out if there is one only; then the transfers that are wanted, by the first digits of their names [default: all]
    #[arg(value_name = "BROKER|ID")]
    pub(crate) named: Vec<String>,
    /// Where all files go [default: the `[[folder]]` that a transfer names, if its sender may write there; else the current folder]
    #[arg(long, value_name = "FOLDER", value_hint = ValueHint::DirPath)]
    pub(crate) into: Option<PathBuf>,
    /// Replace files of the same name outside of every `[[folder]]`; without it a transfer that has one stays at the broker
    #[arg(long)]
    pub(crate) overwrite: bool,
    /// Fetch transfers of this peer only
    #[arg(long, value_name = "PEER")]
    pub(crate) from: Option<String>,
    /// Say what would be fetched and where it would go, and change nothing
    #[arg(long, conflicts_with = "wait")]
    pub(crate) dry_run: bool,
    /// Fetch what comes, until a signal: look so often
    #[arg(long, value_name = "TIME", num_args = 0..=1, require_equals = true, default_missing_value = "30s", value_parser = duration)]
    pub(crate) wait: Option<Duration>,
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
