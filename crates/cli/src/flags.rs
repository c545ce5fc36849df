//! Every command and flag of `strait`, with its help text.

#[cfg(feature = "advise")]
mod advise;
mod authority;
mod fetch;
mod files;
mod kerberos;
mod login;
mod outbox;
mod put;
#[cfg(test)]
mod reference;
mod saved;
mod ssh;
#[cfg(feature = "top")]
mod top;

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum, ValueHint};
use strait_terminal::pages::{Completions, Man};

#[cfg(feature = "advise")]
pub(crate) use advise::Advise;
pub(crate) use authority::{
    Authority, AuthorityCommand, AuthorityInit, AuthorityList, AuthorityPublish, AuthorityRenew,
    AuthorityRevoke, AuthoritySign,
};
pub(crate) use fetch::FetchFlags;
pub(crate) use files::{FilePriority, GetFiles, ListFiles, SendFiles, SyncFiles, TransferFlags};
pub(crate) use kerberos::KerberosFlags;
pub(crate) use login::{Login, Predict};
pub(crate) use outbox::{Carry, Keys, KeysCard, KeysCommand, OutboxFlags, SshCommand, SshExport, SshImport};
pub(crate) use put::{PutFlags, RmFlags};
pub(crate) use saved::{Saved, SavedBy};
pub(crate) use ssh::SshFlags;
#[cfg(feature = "top")]
pub(crate) use top::TopFlags;

/// Printed under the help of `strait` itself.
fn after() -> String {
    let advise = if cfg!(feature = "advise") {
        "\n  strait advise x.pcap --link 2Mbit   what a tunnel would save on captured traffic"
    } else {
        ""
    };
    let top = if cfg!(feature = "top") {
        "\n  strait top                       all of this on the whole screen, as it changes"
    } else {
        ""
    };
    format!(
        "\
Exit codes:
  0    done
  1    failed; the message says why and what to do
  2    wrong usage, or a missing permission or system feature (the message names the fix)
  3    no tunnel is running (show, why, top, down, reload, restart); interrupted, and goes on when run again (send, get, sync, put, fetch)
  4    queued: the transfer waits in the outbox (send)
  130  interrupted (128 + signal number)
  255  login: `strait login` failed, or left its session running; else the exit code of the program at the peer

Environment:
  NO_COLOR            if set: no colours
  STRAIT_LOG          log filter of the daemon, such as `debug` or `strait_keying=trace`
  STRAIT_CACHE_DIR    directory of the speed of this machine [default: /var/cache/strait, or $XDG_CACHE_HOME/strait]
  STRAIT_RUNTIME_DIR  directory of the daemon sockets [default: /run/strait, or $XDG_RUNTIME_DIR/strait]
  STRAIT_STATE_DIR    directory of state that is kept between runs [default: /var/lib/strait, or $XDG_STATE_HOME/strait]

Quick start:
  strait demo                      two hosts, a slow link and a tunnel on this machine
  strait init site-a.toml          write a configuration to fill in, and a key
  strait up site-a.toml            start the tunnel
  strait show                      peers, link rate, queue, traffic, compression ratios, drops
  strait why                       compression decisions and their estimates{top}{advise}
  strait lab slowdown              cost of encryption by link rate: a paper's figures and this machine's"
    )
}

/// Connect sites over slow links: aggregate packets, compress when it pays, encrypt as standard ESP.
#[derive(Debug, Parser)]
#[command(name = "strait", version, after_help = after(), subcommand_required = true, arg_required_else_help = true)]
pub(crate) struct StraitFlags {
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: StraitCommand,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum StraitCommand {
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
    /// Show what tunnels have saved by peer, rule, service or day, since when you like, also while none runs
    Saved(Saved),
    /// Watch a running tunnel on the whole screen: link, queue, flows and their compression, drops, savings
    #[cfg(feature = "top")]
    Top(TopFlags),
    /// Reload the configuration of a running tunnel without losing a packet
    Reload(Which),
    /// Put an updated program, or another configuration, in the place of a running tunnel; if it does not come up, go back
    Restart(Restart),
    /// Send files and folders to a peer, compressed as the link needs; for a peer that is away they wait in the outbox
    Send(SendFiles),
    /// Get files and folders from a peer
    Get(GetFiles),
    /// List the folders of a peer, or what is in one
    Ls(ListFiles),
    /// Make a folder of a peer like a folder here
    Sync(SyncFiles),
    /// Leave files and folders at a broker, encrypted to peers that fetch them when they like
    Put(PutFlags),
    /// Remove transfers from a broker
    Rm(RmFlags),
    /// Fetch what a broker holds for this node, and the receipts of what this node sent
    Fetch(FetchFlags),
    /// Log in at a peer: a terminal or a command, which goes on when the link fails
    Login(Login),
    /// Carry `ssh`, scp, sftp, rsync and git to a peer: an SSH server on standard input and output, which `ssh` starts
    Ssh(SshFlags),
    /// Estimate what aggregation and compression would save on captured traffic
    #[cfg(feature = "advise")]
    Advise(Advise),
    /// Move files between two hosts over a slow link, without and with a tunnel (runs strait-demo)
    #[command(disable_help_flag = true)]
    Demo(PassedOn),
    /// Reproduce the tables of a paper: its figures and this machine's figures (runs strait-lab)
    #[command(disable_help_flag = true)]
    Lab(PassedOn),
    /// Hold sealed objects of peers for peers, until they fetch them (runs strait-broker)
    #[command(disable_help_flag = true)]
    Broker(PassedOn),
    /// Sign certificates of nodes and revoke them: an authority, whose key is in a folder
    Authority(Authority),
    /// Keep certificates of nodes and serve them to nodes (runs strait-directory)
    #[command(disable_help_flag = true)]
    Directory(PassedOn),
    /// Write transfers that wait in the outbox to a stick, and read from it what is for this node
    Carry(Carry),
    /// List transfers that wait for their peer, send them when it is there, cancel them or change their order
    Outbox(OutboxFlags),
    /// Convert keys to and from files of OpenSSH
    Keys(Keys),
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

/// Flags of `restart`.
#[derive(Debug, Args)]
pub(crate) struct Restart {
    /// The tunnel.
    #[command(flatten)]
    pub(crate) which: Which,
    /// The program to start [default: the one that this command is run from]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) program: Option<PathBuf>,
    /// Go back also if no peer that was up before is up again within this time, such as 30s
    #[arg(long, value_name = "TIME", value_parser = strait_node::config::duration)]
    pub(crate) unless_heard: Option<Duration>,
}

/// Flags of `show`.
#[derive(Debug, Args)]
pub(crate) struct Show {
    /// Which tunnel; without it, all that are running.
    #[command(flatten)]
    pub(crate) which: Which,
    /// Show the threads that compress instead: blocks, and what they take
    #[arg(long, conflicts_with = "json")]
    pub(crate) engines: bool,
    /// Print one JSON document
    #[arg(long)]
    pub(crate) json: bool,
}

/// Flags of `why`.
#[derive(Debug, Args)]
pub(crate) struct Why {
    /// Only decisions on traffic to this peer
    pub(crate) peer: Option<String>,
    /// Interface of the tunnel, such as strait0, or its configuration file; not needed if only one tunnel is running, or has the peer
    #[arg(long, short, value_name = "INTERFACE|FILE")]
    pub(crate) tunnel: Option<String>,
    /// Keep running and print a line whenever a decision changes
    #[arg(long, short)]
    pub(crate) follow: bool,
    /// Print JSON: one list of decisions, or with --follow one decision per line
    #[arg(long)]
    pub(crate) json: bool,
}

/// Arguments of a command that another program has.
#[derive(Debug, Args)]
pub(crate) struct PassedOn {
    /// Passed on to the other program as they are; --help shows them
    #[arg(value_name = "ARGUMENT", trailing_var_arg = true, allow_hyphen_values = true)]
    pub(crate) arguments: Vec<OsString>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_definition_is_consistent() {
        StraitFlags::command().debug_assert();
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
            "strait restart",
            "strait restart a.toml --program ./strait --unless-heard 30s",
            #[cfg(feature = "top")]
            "strait top",
            #[cfg(feature = "top")]
            "strait top strait0 --every 2s",
            "strait demo --link 512kbit --files a b --json --keep-logs",
            "strait send a b c:",
            "strait send - c:docs/name",
            "strait get c:docs/a c:docs/b . --xattrs",
            "strait get c:docs/a -",
            "strait ls c: --json",
            "strait sync here c:docs --delete --dry-run --exclude *.o --max-rate 1Mbit --priority bulk",
            "strait demo --help",
            "strait lab vpn --here --corpus calgary --quick --csv",
            "strait lab help",
            "strait carry /media/stick site-a.toml --into inbox --json",
            "strait send a c: --between 22:00-06:00 --expire 3d",
            "strait outbox site-a.toml --all --json",
            "strait outbox site-a.toml --run",
            "strait outbox site-a.toml --cancel 00112233445566778899aabbccddeeff",
            "strait outbox --first 0011",
            "strait outbox --watch -t strait0",
            "strait send a b --spool --max-bytes 2GB",
            "strait login office",
            "strait login alice@office ls -l --json",
            "strait login -t office top -e none",
            "strait login -T -e ^a --predict always office",
            "strait login --resume",
            "strait login --resume=0123 office",
            "strait login --list --json office",
            "strait keys ssh import id_ed25519 --out a.key",
            "strait keys ssh export a.key --out id_ed25519",
            "strait keys ssh public +qwerty=",
            "strait authority init ca --json",
            "strait authority sign ca card.txt --name a --allowed-ips 10.0.0.1/32 fd00::/64 --endpoint a:1 --days 5",
            "strait authority revoke ca 5 north",
            "strait authority publish ca a:7707 b:7707",
            "strait directory directory.toml --log json",
            "strait completions bash",
            "strait man --out man",
        ] {
            StraitFlags::try_parse_from(line.split(' ')).unwrap_or_else(|error| panic!("{line}: {error}"));
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
            let command = StraitFlags::try_parse_from(line.split(' ')).unwrap().command;
            let (StraitCommand::Demo(passed) | StraitCommand::Lab(passed)) = command else {
                panic!("{line}")
            };
            assert_eq!(passed.arguments.join(" ".as_ref()).to_str(), Some(expected), "{line}");
        }
    }

    #[test]
    fn wrong_command_lines() {
        for (line, expected) in [
            ("strait up", "required"),
            ("strait send a", "2 values required"),
            ("strait restart --unless-heard 30", "is not a time span"),
            ("strait frobnicate", "unrecognized subcommand"),
            ("strait up a --foreground --log-file b", "cannot be used with"),
            ("strait send a b: --between 6-7", "two different times of day"),
            ("strait outbox a.toml --run --json", "cannot be used with"),
            ("strait outbox a.toml --cancel x", "32 hexadecimal digits"),
            ("strait outbox a.toml --tunnel strait0", "cannot be used with"),
            ("strait send a b --max-bytes 2GBit", "is not a size"),
            ("strait outbox a.toml --json --first 00112233445566778899aabbccddeeff", "cannot be used with"),
            #[cfg(feature = "top")]
            ("strait top --every 2", "is not a time span"),
            #[cfg(feature = "top")]
            ("strait top --every 1ms", "from 100ms to 1h"),
            ("strait login", "required"),
            ("strait login --json office", "--list"),
            ("strait login -t -T office", "cannot be used with"),
            ("strait login -e ab office", "write one character"),
            ("strait keys ssh", "subcommand"),
        ] {
            let error = StraitFlags::try_parse_from(line.split(' ')).unwrap_err();
            assert_eq!(error.exit_code(), 2, "{line}");
            assert!(error.to_string().contains(expected), "{line}: {error}");
        }
    }
}
