//! Every command and flag of `strait-lab`, with its words.

mod lab;

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueHint};
use strait_node::config::duration;
use strait_terminal::pages::{Completions, Man};
use strait_terminal::{Failure, program};

use crate::demo::{DemoLink, DemoPath, LossShare};
pub(crate) use lab::{
    Lab, LabBroker, LabCrime, LabEnskip, LabKlogin, LabOutput, LabPaths, LabSched, LabTables, LabVerify,
    LabVpn,
};

/// Printed under the help of `strait-lab` itself.
const AFTER: &str = "\
Exit codes:
  0    done
  1    failed; the message says why and what to do
  2    wrong usage, or the system forbids or lacks what is needed (the message names the fix)
  130  interrupted from the keyboard (128 + the signal's number)

Environment:
  NO_COLOR            when set to anything, no colours

Quick start:
  strait-lab demo                  two hosts, a thin link and a tunnel, on this machine
  strait-lab lab slowdown          what encryption costs on links of any rate, by a paper and here

`strait demo` and `strait lab` run this program.";

/// Show and measure Strait on this machine: a demonstration, the papers' tables, the model against real tunnels.
#[derive(Debug, Parser)]
#[command(name = "strait-lab", version, after_help = AFTER, subcommand_required = true, arg_required_else_help = true)]
pub(crate) struct LabFlags {
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: LabCommand,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum LabCommand {
    /// Watch two hosts exchange files over a thin link, without and with a tunnel
    Demo(Demo),
    /// Make a paper's tables again: its figures beside this machine's, and whether what it says holds
    Lab(Lab),
    /// Print a script that completes commands and flags in a shell
    Completions(Completions),
    /// Print the manual page, or write all of them into a folder
    Man(Man),
}

/// Which `strait` runs the tunnels.
#[derive(Debug, Args)]
pub(crate) struct TunnelProgram {
    /// The program that runs the tunnels [default: strait beside this program, or else in PATH]
    #[arg(long, value_name = "PATH", value_hint = ValueHint::ExecutablePath)]
    strait: Option<PathBuf>,
}

impl TunnelProgram {
    /// Its absolute path, as it is run from elsewhere.
    pub(crate) fn path(&self) -> Result<PathBuf, Failure> {
        match &self.strait {
            Some(path) => {
                let doing = || Failure::doing(format!("use {}", path.display()));
                path.metadata().map_err(doing())?;
                std::path::absolute(path).map_err(doing())
            }
            None => program::find("strait", "strait"),
        }
    }
}

/// Flags of `demo`.
#[derive(Debug, Args)]
pub(crate) struct Demo {
    /// How fast the link between the two hosts is, in each direction; files move as often over as takes half a second
    #[arg(long, value_name = "RATE|unshaped", default_value = "1.5Mbit")]
    pub(crate) link: DemoLink,
    /// The round-trip time of a small packet while nothing else is on the way, such as 600ms by satellite
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub(crate) rtt: Option<Duration>,
    /// How many packets are lost on the way, each by itself, such as 1%
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
    /// Which program runs the tunnels.
    #[command(flatten)]
    pub(crate) program: TunnelProgram,
}

impl Demo {
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
        LabFlags::command().debug_assert();
    }

    #[test]
    fn usual_command_lines() {
        for line in [
            "strait-lab demo --link 512kbit --files a b --json --keep-logs",
            "strait-lab demo --save-sample /tmp/x",
            "strait-lab demo --link 2Mbit --rtt 600ms --loss 1%",
            "strait-lab lab crypto --quick",
            "strait-lab lab slowdown --json",
            "strait-lab lab codecs --corpus calgary --codec lzs zstd-3 --csv",
            "strait-lab lab vpn --figures figures",
            "strait-lab lab vpn --here --corpus calgary --quick --csv",
            "strait-lab lab sched --trace a.pcap --figures figures --json",
            "strait-lab lab klogin --quick --json",
            "strait-lab lab klogin --sshd /usr/sbin/sshd --csv",
            "strait-lab lab broker --file counts.tsv --figures figures --quick --csv",
            "strait-lab lab verify --link 10Mbit unshaped --block 4096 --codec lz4 --quick --json",
            "strait-lab lab crime --padding padme buckets --mix flow --pause false --place same-flow no-rule --codec lz4",
            "strait-lab lab crime --quick --json",
            "strait-lab lab history --quick --csv",
            "strait-lab lab paths --path doubles beside --out figures --seed 7 --trace lte.trace --json --quick",
            "strait-lab demo --strait target/release/strait",
            "strait-lab lab verify --strait /usr/bin/strait",
            "strait-lab completions bash",
            "strait-lab man --out man",
        ] {
            LabFlags::try_parse_from(line.split(' ')).unwrap_or_else(|error| panic!("{line}: {error}"));
        }
    }

    #[test]
    fn wrong_command_lines() {
        for (line, expected) in [
            ("strait-lab frobnicate", "unrecognized subcommand"),
            ("strait-lab demo --link fast", "is not a link rate"),
            ("strait-lab demo --rtt 600", "is not a time span"),
            ("strait-lab demo --loss 1", "is not a share of loss"),
            ("strait-lab demo --files", "a value is required"),
            ("strait-lab lab", "Usage: strait-lab lab <COMMAND>"),
            ("strait-lab lab codecs --codec gzip", "unknown compression `gzip`"),
            ("strait-lab lab crypto --csv --json", "cannot be used with"),
            ("strait-lab lab vpn --corpus calgary", "--here"),
            ("strait-lab lab verify --block 100", "100 is not in 2048..=65536"),
            ("strait-lab lab crime --padding some", "none, padme, buckets, constant"),
            ("strait-lab lab paths --path straight", "constant, doubles"),
            ("strait-lab lab crime --quick --packets 1000", "cannot be used with"),
        ] {
            let error = LabFlags::try_parse_from(line.split(' ')).unwrap_err();
            assert_eq!(error.exit_code(), 2, "{line}");
            assert!(error.to_string().contains(expected), "{line}: {error}");
        }
    }
}
