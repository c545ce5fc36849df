//! Every command and flag of `strait`, with its help text.

mod advise;
mod lab;
#[cfg(test)]
mod reference;

use std::path::PathBuf;

use crate::demo::DemoLink;
use clap::{Args, Parser, Subcommand, ValueEnum, ValueHint};
use clap_complete::Shell;

pub(crate) use advise::Advise;
pub(crate) use lab::{Lab, LabOutput, LabSched, LabTables, LabVerify, LabVpn};

/// Printed under the help of `strait` itself.
const AFTER: &str = "\
Exit codes:
  0    done
  1    failed; the message says why and what to do
  2    wrong usage, or a missing permission or system feature (the message names the fix)
  3    no tunnel is running (show, why, down, reload)
  130  interrupted (128 + signal number)

Environment:
  NO_COLOR            if set: no colours
  STRAIT_LOG          log filter of the daemon, such as `debug` or `strait_keying=trace`
  STRAIT_RUNTIME_DIR  directory of the daemon sockets [default: /run/strait, or $XDG_RUNTIME_DIR/strait]

Quick start:
  strait demo                      two hosts, a slow link and a tunnel on this machine
  strait init site-a.toml          write a configuration to fill in, and a key
  strait up site-a.toml            start the tunnel
  strait show                      peers, link rate, queue, traffic, compression ratios, drops
  strait why                       compression decisions and their estimates
  strait advise x.pcap --link 2Mbit   what a tunnel would save on captured traffic
  strait lab slowdown              cost of encryption by link rate: a paper's figures and this machine's";

/// Connect sites over slow links: aggregate packets, compress when it pays, encrypt as standard ESP.
#[derive(Debug, Parser)]
#[command(name = "strait", version, after_help = AFTER, subcommand_required = true, arg_required_else_help = true)]
pub(crate) struct Flags {
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Create a private key file and print its public key
    Keygen(Keygen),
    /// Print the public key of a private key file
    Pubkey(Pubkey),
    /// Write a commented configuration to fill in, and a private key if there is none
    Init(Init),
    /// Check a configuration and report every error in it
    Check(Check),
    /// Start a tunnel
    Up(Up),
    /// Stop a tunnel and remove its interface, addresses and routes
    Down(Which),
    /// Show state and counters: peers, link rate, queue, traffic, compression ratios, drops by reason
    Show(Show),
    /// Explain compression decisions: the chosen method for each flow and the estimate behind it
    Why(Why),
    /// Reload the configuration of a running tunnel without losing a packet
    Reload(Which),
    /// Move files between two hosts over a slow link on this machine, without and with a tunnel
    Demo(Demo),
    /// Estimate what aggregation and compression would save on captured traffic
    Advise(Advise),
    /// Reproduce the tables of a paper: its figures, this machine's figures, and whether its claims hold
    Lab(Lab),
    /// Print a shell completion script
    Completions(Completions),
    /// Print the manual page, or write all manual pages to a directory
    Man(Man),
}

/// Flags of `keygen`.
#[derive(Debug, Args)]
pub(crate) struct Keygen {
    /// The file to create, with mode 0600; an existing file is never overwritten
    #[arg(long, short, value_name = "FILE", default_value = "strait.key", value_hint = ValueHint::FilePath)]
    pub(crate) out: PathBuf,
}

/// Flags of `pubkey`.
#[derive(Debug, Args)]
pub(crate) struct Pubkey {
    /// A private key file made by `keygen`
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) file: PathBuf,
}

/// Flags of `init`.
#[derive(Debug, Args)]
pub(crate) struct Init {
    /// The configuration to write; an existing file is never overwritten
    #[arg(default_value = "strait.toml", value_hint = ValueHint::FilePath)]
    pub(crate) file: PathBuf,
}

/// Flags of `check`.
#[derive(Debug, Args)]
pub(crate) struct Check {
    /// The configuration to check
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) file: PathBuf,
}

/// Flags of `up`.
#[derive(Debug, Args)]
pub(crate) struct Up {
    /// The configuration of the tunnel
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) file: PathBuf,
    /// Run in the foreground, for example under systemd
    #[arg(long, short)]
    pub(crate) foreground: bool,
    /// Log file of a tunnel in the background [default: /var/log/strait-INTERFACE.log]
    #[arg(long, value_name = "FILE", conflicts_with = "foreground", value_hint = ValueHint::FilePath)]
    pub(crate) log_file: Option<PathBuf>,
    /// Log format
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub(crate) log: LogForm,
}

/// Format of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogForm {
    /// One line of text for each event.
    Text,
    /// One JSON object for each event, one per line.
    Json,
}

/// Names a running tunnel.
#[derive(Debug, Args)]
pub(crate) struct Which {
    /// Interface of the tunnel, such as strait0, or its configuration file; not needed if only one tunnel is running
    #[arg(value_name = "INTERFACE|FILE")]
    pub(crate) tunnel: Option<String>,
}

/// Flags of `show`.
#[derive(Debug, Args)]
pub(crate) struct Show {
    /// Which tunnel; without it, all that are running.
    #[command(flatten)]
    pub(crate) which: Which,
    /// Print one JSON document
    #[arg(long)]
    pub(crate) json: bool,
}

/// Flags of `why`.
#[derive(Debug, Args)]
pub(crate) struct Why {
    /// Only decisions on traffic to this peer
    pub(crate) peer: Option<String>,
    /// Interface of the tunnel, such as strait0, or its configuration file; not needed if only one tunnel is running
    #[arg(long, short, value_name = "INTERFACE|FILE")]
    pub(crate) tunnel: Option<String>,
    /// Keep running and print a line whenever a decision changes
    #[arg(long, short)]
    pub(crate) follow: bool,
    /// Print JSON: one list of decisions, or with --follow one decision per line
    #[arg(long)]
    pub(crate) json: bool,
}

/// Flags of `demo`.
#[derive(Debug, Args)]
pub(crate) struct Demo {
    /// Link rate in each direction; each file is repeated until the transfer takes half a second
    #[arg(long, value_name = "RATE|unshaped", default_value = "1.5Mbit")]
    pub(crate) link: DemoLink,
    /// Files to transfer instead of the generated sample
    #[arg(long, value_name = "PATH", num_args = 1.., value_hint = ValueHint::FilePath)]
    pub(crate) files: Vec<PathBuf>,
    /// Print one JSON document instead of the table
    #[arg(long)]
    pub(crate) json: bool,
    /// Keep the directory with the configurations, keys and logs of both daemons, and print its path
    #[arg(long)]
    pub(crate) keep_logs: bool,
    /// Only write the generated sample to this directory
    #[arg(long, value_name = "DIRECTORY", conflicts_with_all = ["files", "json", "keep_logs"], value_hint = ValueHint::DirPath)]
    pub(crate) save_sample: Option<PathBuf>,
}

/// Flags of `completions`.
#[derive(Debug, Args)]
pub(crate) struct Completions {
    /// The shell
    pub(crate) shell: Shell,
}

/// Flags of `man`.
#[derive(Debug, Args)]
pub(crate) struct Man {
    /// Directory for strait.1 and one page for each command
    #[arg(long, short, value_name = "DIRECTORY", value_hint = ValueHint::DirPath)]
    pub(crate) out: Option<PathBuf>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_definition_is_consistent() {
        Flags::command().debug_assert();
    }

    #[test]
    fn usual_command_lines() {
        for line in [
            "strait keygen",
            "strait keygen --out a.key",
            "strait pubkey a.key",
            "strait init",
            "strait check a.toml",
            "strait up a.toml --foreground --log json",
            "strait up a.toml --log-file a.log",
            "strait down",
            "strait down strait0",
            "strait show --json strait0",
            "strait reload a.toml",
            "strait demo --link 512kbit --files a b --json --keep-logs",
            "strait demo --save-sample /tmp/x",
            "strait advise a.pcap b.pcapng --link 2Mbit --rtt 600ms --price 5 --from 10.0.0.0/8 --json",
            "strait advise --live eth0 --link 2Mbit --for 10s",
            "strait advise file --link 512kbit --mtu 1280 --html report.html",
            "strait lab crypto --quick",
            "strait lab slowdown --json",
            "strait lab codecs --corpus calgary --codec lzs zstd-3 --csv",
            "strait lab vpn --figures figures",
            "strait lab vpn --here --corpus calgary --quick --csv",
            "strait lab sched --trace a.pcap --figures figures --json",
            "strait lab verify --link 10Mbit unshaped --block 4096 --codec lz4 --quick --json",
            "strait completions bash",
            "strait man --out man",
        ] {
            Flags::try_parse_from(line.split(' ')).unwrap_or_else(|error| panic!("{line}: {error}"));
        }
    }

    #[test]
    fn wrong_command_lines() {
        for (line, expected) in [
            ("strait up", "required"),
            ("strait frobnicate", "unrecognized subcommand"),
            ("strait demo --link fast", "is not a link rate"),
            ("strait up a --foreground --log-file b", "cannot be used with"),
            ("strait demo --files", "a value is required"),
            ("strait advise a.pcap", "--link"),
            ("strait advise --link 2Mbit", "required"),
            ("strait advise a.pcap --live eth0 --link 2Mbit", "cannot be used with"),
            ("strait advise a.pcap --for 5s --link 2Mbit", "cannot be used with"),
            ("strait advise a.pcap --link 0", "is not a link rate"),
            ("strait advise a.pcap --link -1Mbit", "unexpected argument"),
            ("strait advise a.pcap --link 2Mbit --mtu 500", "500 is not in 576..=9000"),
            ("strait advise a.pcap --link 2Mbit --price=-1", "is not a price"),
            ("strait advise a.pcap --link 2Mbit --rtt 5", "is not a duration"),
            ("strait lab", "Usage: strait lab <COMMAND>"),
            ("strait lab codecs --codec gzip", "unknown compression `gzip`"),
            ("strait lab crypto --csv --json", "cannot be used with"),
            ("strait lab vpn --corpus calgary", "--here"),
            ("strait lab verify --block 100", "100 is not in 2048..=65536"),
        ] {
            let error = Flags::try_parse_from(line.split(' ')).unwrap_err();
            assert_eq!(error.exit_code(), 2, "{line}");
            assert!(error.to_string().contains(expected), "{line}: {error}");
        }
    }
}
