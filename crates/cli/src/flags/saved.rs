//! Flags of `saved`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum, ValueHint};
use strait_node::config::{Price, duration};
use strait_node::saved::SavedStep;

/// Seconds that are kept: 400 days.
const KEPT: Duration = Duration::from_secs(400 * 86_400);

/// Flags of `saved`.
#[derive(Debug, Args)]
pub(crate) struct Saved {
    /// Interface of the tunnel, such as strait0, or its configuration file; not needed if figures of only one tunnel are kept
    #[arg(value_name = "INTERFACE|FILE")]
    pub(crate) tunnel: Option<String>,
    /// How far back, such as 12h or 30d; up to 400d are kept
    #[arg(long, value_name = "TIME", value_parser = since, default_value = "30d")]
    pub(crate) since: Duration,
    /// What a line is of
    #[arg(long, value_name = "WHAT", default_value = "peer")]
    pub(crate) by: SavedBy,
    /// Instead show what the link to each peer was like: bytes on the wire, rate, queue delay, round trips, loss
    #[arg(long, conflicts_with_all = ["by", "since", "price", "chart"])]
    pub(crate) link: bool,
    /// How long a line of --link is
    #[arg(long, value_name = "STEP", requires = "link", default_value = "hour")]
    pub(crate) step: LinkStep,
    /// Price of traffic on the wire, such as 8/GB, to say what was saved in money [default: that of the configuration file, where one
    /// is named]
    #[arg(long, value_name = "PRICE")]
    pub(crate) price: Option<Price>,
    /// Print comma-separated values instead of a table
    #[arg(long, conflicts_with = "json")]
    pub(crate) csv: bool,
    /// Print one JSON document instead of a table
    #[arg(long)]
    pub(crate) json: bool,
    /// Also draw bytes before and on the wire into this SVG file
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) chart: Option<PathBuf>,
}

/// What a line of the savings is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum SavedBy {
    /// A peer: all traffic to it and from it.
    Peer,
    /// A rule: what was sent in compressed blocks, before and after compression.
    Rule,
    /// A service, such as https: what was sent, and its part of what was sent on the wire.
    Service,
    /// A class of the queue (interactive, normal, bulk): what was sent, and its part of what was sent on the wire.
    Class,
    /// A day, in this machine's time zone: all peers.
    Day,
}

/// How long a line of what links were like is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum LinkStep {
    /// A second, of the last 15 minutes.
    Second,
    /// A minute, of the last day.
    Minute,
    /// An hour, of the last day.
    Hour,
}

impl From<LinkStep> for SavedStep {
    fn from(step: LinkStep) -> SavedStep {
        match step {
            LinkStep::Second => SavedStep::Second,
            LinkStep::Minute => SavedStep::Minute,
            LinkStep::Hour => SavedStep::Hour,
        }
    }
}

fn since(given: &str) -> Result<Duration, String> {
    let span = duration(given).map_err(|error| error.to_string())?;
    if span <= KEPT { Ok(span) } else { Err(format!("`{given}` is longer than figures are kept: 400d")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_is_asked_for_than_is_kept() {
        assert_eq!(since("400d"), Ok(KEPT));
        assert!(since("401d").is_err() && since("some").is_err());
    }
}
