//! Every flag of `strait-demo`, with its words.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Parser, ValueHint};
use strait_node::config::duration;
use strait_terminal::Failure;
use strait_terminal::pages::EXIT_CODES;
use strait_terminal::program::TunnelProgram;

use crate::link::DemoLink;
use crate::path::{DemoPath, LossShare};

/// Watch two hosts exchange files over a thin link, without and with a tunnel.
#[derive(Debug, Parser)]
#[command(name = "strait-demo", version, after_help = format!("{EXIT_CODES}\n`strait demo` runs this program."))]
pub(crate) struct DemoFlags {
    /// The rate of the link between the two hosts, in each direction; files move as often over as takes half a second
    #[arg(long, value_name = "RATE|unshaped", default_value = "1.5Mbit")]
    pub(crate) link: DemoLink,
    /// The round-trip time of a small packet while nothing else is on the way, such as 600ms by satellite
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub(crate) rtt: Option<Duration>,
    /// The share of packets that are lost on the way, each by itself, such as 1%
    #[arg(long, value_name = "PERCENT")]
    pub(crate) loss: Option<LossShare>,
    /// Files to move, instead of the generated sample
    #[arg(long, value_name = "PATH", num_args = 1.., value_hint = ValueHint::FilePath)]
    pub(crate) files: Vec<PathBuf>,
    /// Print one JSON document instead of the table
    #[arg(long)]
    pub(crate) json: bool,
    /// Keep the folder with the configurations, keys and logs of both daemons, and say where it is
    #[arg(long)]
    pub(crate) keep_logs: bool,
    /// Only write the generated sample into this folder
    #[arg(long, value_name = "FOLDER", conflicts_with_all = ["files", "json", "keep_logs"], value_hint = ValueHint::DirPath)]
    pub(crate) save_sample: Option<PathBuf>,
    /// The program that runs the tunnels.
    #[command(flatten)]
    pub(crate) program: TunnelProgram,
}

impl DemoFlags {
    /// The path between the two hosts.
    pub(crate) fn path(&self) -> Result<DemoPath, Failure> {
        DemoPath::new(self.link, self.rtt, self.loss).ok_or_else(|| {
            Failure::new("a link without a rate has no round trip and no loss")
                .remedy("name a rate too, for example --link 10Mbit")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_definition_is_consistent() {
        DemoFlags::command().debug_assert();
    }

    #[test]
    fn usual_command_lines() {
        for line in [
            "strait-demo --link 512kbit --files a b --json --keep-logs",
            "strait-demo --save-sample /tmp/x",
            "strait-demo --link 2Mbit --rtt 600ms --loss 1%",
            "strait-demo --strait target/release/strait",
        ] {
            DemoFlags::try_parse_from(line.split(' ')).unwrap_or_else(|error| panic!("{line}: {error}"));
        }
    }

    #[test]
    fn wrong_command_lines() {
        for (line, expected) in [
            ("strait-demo --link fast", "is not a link rate"),
            ("strait-demo --rtt 600", "is not a time span"),
            ("strait-demo --loss 1", "is not a share of loss"),
            ("strait-demo --files", "a value is required"),
        ] {
            let error = DemoFlags::try_parse_from(line.split(' ')).unwrap_err();
            assert_eq!(error.exit_code(), 2, "{line}");
            assert!(error.to_string().contains(expected), "{line}: {error}");
        }
    }
}
