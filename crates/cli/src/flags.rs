//! Every command and flag of `strait`, with its words.

#[cfg(feature = "advise")]
mod advise;

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum, ValueHint};
use strait_terminal::pages::{Completions, Man};

#[cfg(feature = "advise")]
pub(crate) use advise::Advise;

/// Printed under the help of `strait` itself.
fn after() -> String {
    let advise = if cfg!(feature = "advise") {
        "\n  strait advise x.pcap --link 2Mbit   what it would save on captured traffic"
    } else {
        ""
    };
    format!(
        "\
Exit codes:
  0    done
  1    failed; the message says why and what to do
  2    wrong usage, or the system forbids or lacks what is needed (the message names the fix)
  3    no tunnel is running (show, why, down, reload)
  130  interrupted from the keyboard (128 + the signal's number)

Environment:
  NO_COLOR            when set to anything, no colours
  STRAIT_LOG          what the daemon logs, such as `debug` or `strait_keying=trace`
  STRAIT_RUNTIME_DIR  where daemons keep their sockets, instead of the system's place

Quick start:
  strait demo                      two hosts, a thin link and a tunnel, on this machine
  strait init site-a.toml          a configuration to fill in, and a key
  strait up site-a.toml            start the tunnel
  strait show                      what it does
  strait why                       what it compresses, and why{advise}
  strait lab slowdown              what encryption costs on links of any rate, by a paper and here"
    )
}

/// Join two sites over a thin link: bundle, compress when it pays, seal as ESP.
#[derive(Debug, Parser)]
#[command(name = "strait", version, after_help = after(), subcommand_required = true, arg_required_else_help = true)]
pub(crate) struct Flags {
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Make a private key in a new file, and print its public key
    Keygen(Keygen),
    /// Print the public key that belongs to a private key file
    Pubkey(Pubkey),
    /// Write a commented configuration to fill in, and a key if there is none
    Init(Init),
    /// Read a configuration and report every mistake in it
    Check(Check),
    /// Start a tunnel
    Up(Up),
    /// End a running tunnel and remove what it made
    Down(Which),
    /// Show what running tunnels do: peers, link and queue, bytes before and after, ratios, drops by reason
    Show(Show),
    /// Say what is compressed, with what, and the figures that decided it
    Why(Why),
    /// Have a running tunnel read its configuration again, without losing a packet
    Reload(Which),
    /// Say what bundles and compression would save on captured traffic, by service, and up to which link
    #[cfg(feature = "advise")]
    Advise(Advise),
    /// Watch two hosts exchange files over a thin link, without and with a tunnel (runs strait-lab)
    #[command(disable_help_flag = true)]
    Demo(PassedOn),
    /// Make a paper's tables again: its figures beside this machine's (runs strait-lab)
    #[command(disable_help_flag = true)]
    Lab(PassedOn),
    /// Print a script that completes commands and flags in a shell
    Completions(Completions),
    /// Print the manual page, or write all of them into a folder
    Man(Man),
}

/// Flags of `keygen`.
#[derive(Debug, Args)]
pub(crate) struct Keygen {
    /// The file to make; only its owner will be able to read it, and an existing file is never touched
    #[arg(long, short, value_name = "FILE", default_value = "strait.key", value_hint = ValueHint::FilePath)]
    pub(crate) out: PathBuf,
}

/// Flags of `pubkey`.
#[derive(Debug, Args)]
pub(crate) struct Pubkey {
    /// A private key file, as `keygen` makes it
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) file: PathBuf,
}

/// Flags of `init`.
#[derive(Debug, Args)]
pub(crate) struct Init {
    /// The configuration to write; an existing file is never touched
    #[arg(default_value = "strait.toml", value_hint = ValueHint::FilePath)]
    pub(crate) file: PathBuf,
}

/// Flags of `check`.
#[derive(Debug, Args)]
pub(crate) struct Check {
    /// The configuration to read
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) file: PathBuf,
}

/// Flags of `up`.
#[derive(Debug, Args)]
pub(crate) struct Up {
    /// The tunnel's configuration
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) file: PathBuf,
    /// Stay in the foreground, as supervisors such as systemd want it
    #[arg(long, short)]
    pub(crate) foreground: bool,
    /// Where a tunnel in the background writes its log [default: /var/log/strait-INTERFACE.log]
    #[arg(long, value_name = "FILE", conflicts_with = "foreground", value_hint = ValueHint::FilePath)]
    pub(crate) log_file: Option<PathBuf>,
    /// The form of the log
    #[arg(long, value_name = "FORM", default_value = "text")]
    pub(crate) log: LogForm,
}

/// The form of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogForm {
    /// For people.
    Text,
    /// One JSON object a line.
    Json,
}

/// Names a running tunnel.
#[derive(Debug, Args)]
pub(crate) struct Which {
    /// The tunnel's interface, such as strait0, or its configuration file; may be left out when only one is running
    #[arg(value_name = "INTERFACE|FILE")]
    pub(crate) tunnel: Option<String>,
}

/// Flags of `show`.
#[derive(Debug, Args)]
pub(crate) struct Show {
    /// Which tunnel; without it, all that are running.
    #[command(flatten)]
    pub(crate) which: Which,
    /// Print one JSON document for programs
    #[arg(long)]
    pub(crate) json: bool,
}

/// Flags of `why`.
#[derive(Debug, Args)]
pub(crate) struct Why {
    /// Only traffic to this peer
    pub(crate) peer: Option<String>,
    /// The tunnel's interface, such as strait0, or its configuration file; may be left out when only one is running
    #[arg(long, short, value_name = "INTERFACE|FILE")]
    pub(crate) tunnel: Option<String>,
    /// Go on, with a line for every decision that changes
    #[arg(long, short)]
    pub(crate) follow: bool,
    /// Print JSON for programs: one list, or with --follow one decision a line
    #[arg(long)]
    pub(crate) json: bool,
}

/// Arguments of a command that another program has.
#[derive(Debug, Args)]
pub(crate) struct PassedOn {
    /// Passed on to strait-lab as they are; --help shows them
    #[arg(value_name = "ARGUMENT", trailing_var_arg = true, allow_hyphen_values = true)]
    pub(crate) arguments: Vec<OsString>,
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
            "strait demo --help",
            "strait lab vpn --here --corpus calgary --quick --csv",
            "strait lab help",
            "strait completions bash",
            "strait man --out man",
        ] {
            Flags::try_parse_from(line.split(' ')).unwrap_or_else(|error| panic!("{line}: {error}"));
        }
    }

    #[test]
    fn what_another_program_has_is_passed_on_as_it_is() {
        for (line, expected) in [
            ("strait demo", ""),
            ("strait demo --help", "--help"),
            ("strait demo --link fast --files a -- b", "--link fast --files a -- b"),
            ("strait lab vpn --here -h --csv", "vpn --here -h --csv"),
        ] {
            let command = Flags::try_parse_from(line.split(' ')).unwrap().command;
            let (Command::Demo(passed) | Command::Lab(passed)) = command else { panic!("{line}") };
            assert_eq!(passed.arguments.join(" ".as_ref()).to_str(), Some(expected), "{line}");
        }
    }

    #[test]
    fn wrong_command_lines() {
        for (line, expected) in [
            ("strait up", "required"),
            ("strait frobnicate", "unrecognized subcommand"),
            ("strait up a --foreground --log-file b", "cannot be used with"),
        ] {
            let error = Flags::try_parse_from(line.split(' ')).unwrap_err();
            assert_eq!(error.exit_code(), 2, "{line}");
            assert!(error.to_string().contains(expected), "{line}: {error}");
        }
    }
}
