//! Flags of `top`.

use std::time::Duration;

use clap::Args;
use strait_node::config::duration;

use super::Which;

/// The shortest and the longest time between two refreshes: ten a second, which a person still sees, and one an hour.
const EVERY_MIN: Duration = Duration::from_millis(100);
const EVERY_MAX: Duration = Duration::from_secs(3600);

/// Flags of `top`.
#[derive(Debug, Args)]
pub(crate) struct TopFlags {
    /// Which tunnel.
    #[command(flatten)]
    pub(crate) which: Which,
    /// Time between two refreshes, such as 2s
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = every)]
    pub(crate) every: Duration,
}

fn every(given: &str) -> Result<Duration, String> {
    let every = duration(given).map_err(|error| error.to_string())?;
    match (EVERY_MIN..=EVERY_MAX).contains(&every) {
        true => Ok(every),
        false => Err("write a time from 100ms to 1h".to_owned()),
    }
}
