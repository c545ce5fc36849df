//! Every command and flag of `strait-lab`, with its words.

mod lab;

use clap::{Parser, Subcommand};
use strait_terminal::pages::{Completions, EXIT_CODES, Man};

pub(crate) use lab::{
    Lab, LabBroker, LabCrime, LabEnskip, LabForm, LabKlogin, LabOutput, LabPaths, LabSched, LabTables,
    LabVerify, LabVpn,
};

/// The text under the help of `strait-lab` itself.
fn after() -> String {
    format!(
        "{EXIT_CODES}
Quick start:
  strait-lab lab slowdown          what encryption costs on links of any rate, by a paper and here

`strait lab` runs this program."
    )
}

/// Measure Strait on this machine: the papers' tables, the model against real tunnels.
#[derive(Debug, Parser)]
#[command(name = "strait-lab", version, after_help = after(), subcommand_required = true, arg_required_else_help = true)]
pub(crate) struct LabFlags {
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: LabCommand,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum LabCommand {
    /// Make a paper's tables again: its figures beside this machine's, and whether what it says holds
    Lab(Lab),
    /// Print a script that completes commands and flags in a shell
    Completions(Completions),
    /// Print the manual page, or write all of them into a folder
    Man(Man),
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
            "strait-lab lab crypto --quick",
            "strait-lab lab slowdown --json",
            "strait-lab lab codecs --corpus calgary --codec lzs zstd-3 --csv",
            "strait-lab lab vpn --figures figures",
            "strait-lab lab vpn --here --corpus calgary --quick --csv",
            "strait-lab lab vpn --pipeline --clients 8 --processors 4 --figures figures",
            "strait-lab lab vpn --measure --corpus calgary --figures figures --strait /usr/bin/strait --json",
            "strait-lab lab vpn --measure --pipeline --clients 3 --processors 2 --quick --csv",
            "strait-lab lab sched --trace a.pcap --figures figures --json",
            "strait-lab lab klogin --quick --json",
            "strait-lab lab klogin --sshd /usr/sbin/sshd --csv",
            "strait-lab lab klogin --line 28.8kbit --rtt 300ms --file listing.txt --quick",
            "strait-lab lab broker --file counts.tsv --figures figures --quick --csv",
            "strait-lab lab broker --measure --quick --strait /usr/bin/strait",
            "strait-lab lab broker --measure slow fast --json",
            "strait-lab lab verify --link 10Mbit unshaped --block 4096 --codec lz4 --quick --json",
            "strait-lab lab crime --padding padme buckets --mix flow --pause false --place same-flow no-rule --codec lz4",
            "strait-lab lab crime --quick --json",
            "strait-lab lab crime --quick --csv",
            "strait-lab lab paths --quick --csv",
            "strait-lab lab verify --quick --csv",
            "strait-lab lab history --quick --csv",
            "strait-lab lab paths --path doubles beside --out figures --seed 7 --trace lte.trace --json --quick",
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
            ("strait-lab lab", "Usage: strait-lab lab <COMMAND>"),
            ("strait-lab lab codecs --codec gzip", "unknown compression `gzip`"),
            ("strait-lab lab crypto --csv --json", "cannot be used with"),
            ("strait-lab lab verify --csv --json", "cannot be used with"),
            ("strait-lab lab vpn --corpus calgary", "--here"),
            ("strait-lab lab vpn --measure --here", "cannot be used with"),
            ("strait-lab lab vpn --clients 3", "--pipeline"),
            ("strait-lab lab vpn --processors 3", "--pipeline"),
            ("strait-lab lab vpn --pipeline --clients 0", "write a whole number from 1 to 1000000"),
            ("strait-lab lab vpn --pipeline --processors two", "write a whole number from 1 to 1000000"),
            ("strait-lab lab verify --block 100", "100 is not in 2048..=65536"),
            ("strait-lab lab crime --padding some", "none, padme, buckets, constant"),
            ("strait-lab lab paths --path straight", "constant, doubles"),
            ("strait-lab lab broker --measure lan", "fast, slow"),
            ("strait-lab lab crime --quick --packets 1000", "cannot be used with"),
        ] {
            let error = LabFlags::try_parse_from(line.split(' ')).unwrap_err();
            assert_eq!(error.exit_code(), 2, "{line}");
            assert!(error.to_string().contains(expected), "{line}: {error}");
        }
    }
}
