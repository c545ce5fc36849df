//! Flags of `send`, `get`, `ls` and `sync`.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::time::Duration;

use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches, ValueEnum, ValueHint};
use strait_node::config::{duration, size};
use strait_scheduler::Rate;
use strait_scheduler::calendar::DailyWindow;

/// Flags of `send`.
#[derive(Debug, Args)]
pub(crate) struct SendFiles {
    /// Files and folders, then where they go: PEER, PEER:FOLDER or PEER:FOLDER/PATH. A folder with a slash behind it stands for what is in it; - is standard input
    #[arg(value_name = "PATH", required = true, num_args = 2.., value_hint = ValueHint::AnyPath)]
    pub(crate) paths: Vec<OsString>,
    /// Put the transfer into the outbox, and send it at this time of day only, such as 01:00-06:00
    #[arg(long, value_name = "TIMES")]
    pub(crate) between: Option<DailyWindow>,
    /// If the transfer has to wait in the outbox, cancel it after this time, such as 3d
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub(crate) expire: Option<Duration>,
    /// If the transfer has to wait in the outbox, keep an encrypted copy of the files there and send that: the files may then change or be removed
    #[arg(long)]
    pub(crate) spool: bool,
    /// If the transfer has to wait in the outbox, send at most this much a day, such as 2GB
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub(crate) max_bytes: Option<u64>,
    /// File at the destination that resembles the one that is sent: only what differs is sent. If there is a file of the same name, that one is used
    #[arg(long, value_name = "NAME")]
    pub(crate) like: Option<OsString>,
    /// Send standard input also if nothing comes of it, which replaces a file at the peer by an empty one
    #[arg(long)]
    pub(crate) allow_empty: bool,
    /// How the files are sent.
    #[command(flatten)]
    pub(crate) how: TransferFlags,
}

/// Flags of `get`.
#[derive(Debug, Args)]
pub(crate) struct GetFiles {
    /// Files and folders of a peer, as PEER:FOLDER/PATH, then the folder here that they go to; - is standard output. Of one alone: the current folder
    #[arg(value_name = "PATH", required = true, num_args = 1.., value_hint = ValueHint::AnyPath)]
    pub(crate) paths: Vec<OsString>,
    /// How the files are sent.
    #[command(flatten)]
    pub(crate) how: TransferFlags,
}

/// Flags of `ls`.
#[derive(Debug, Args)]
pub(crate) struct ListFiles {
    /// What to list: PEER: for the folders that the peer lets this node use, PEER:FOLDER or PEER:FOLDER/PATH; BROKER: for what a broker holds for this node
    #[arg(value_name = "PLACE")]
    pub(crate) place: OsString,
    /// List what is in folders too
    #[arg(long, short)]
    pub(crate) recursive: bool,
    /// Of a broker: list what this node put there, and for whom
    #[arg(long)]
    pub(crate) sent: bool,
    /// Of a broker: list the names that are in each transfer too
    #[arg(long, conflicts_with = "sent")]
    pub(crate) names: bool,
    /// Print one JSON object for each name
    #[arg(long)]
    pub(crate) json: bool,
    /// Interface of the tunnel, such as strait0, or its configuration file; not needed if only one tunnel is running
    #[arg(long, short, value_name = "INTERFACE|FILE")]
    pub(crate) tunnel: Option<String>,
}

/// Flags of `sync`.
#[derive(Debug, Args)]
pub(crate) struct SyncFiles {
    /// The folder here
    #[arg(value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) folder: OsString,
    /// Where its content goes: PEER, PEER:FOLDER or PEER:FOLDER/PATH
    #[arg(value_name = "PLACE")]
    pub(crate) place: OsString,
    /// Remove what is there and not here
    #[arg(long)]
    pub(crate) delete: bool,
    /// Remove all that is there also if nothing is here, such as where nothing is mounted
    #[arg(long, requires = "delete")]
    pub(crate) allow_empty: bool,
    /// Say what would be sent and removed, and change nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// How the files are sent.
    #[command(flatten)]
    pub(crate) how: TransferFlags,
}

/// How files are sent.
#[derive(Debug, Args)]
pub(crate) struct TransferFlags {
    /// What is left out.
    #[command(flatten)]
    pub(crate) patterns: PatternFlags,
    /// Send extended attributes of the namespace `user` too
    #[arg(long)]
    pub(crate) xattrs: bool,
    /// Print one JSON object for each event instead of progress
    #[arg(long)]
    pub(crate) json: bool,
    /// Before or after other streams to the same peer
    #[arg(long, value_name = "WHEN", default_value = "normal")]
    pub(crate) priority: FilePriority,
    /// Limit of the rate, such as 500kbit
    #[arg(long, value_name = "RATE")]
    pub(crate) max_rate: Option<Rate>,
    /// Interface of the tunnel, such as strait0, or its configuration file; not needed if only one tunnel is running
    #[arg(long, short, value_name = "INTERFACE|FILE")]
    pub(crate) tunnel: Option<String>,
}

/// Before or after other streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum FilePriority {
    /// Before other streams; shares the link with ordinary packets of the tunnel
    Now,
    /// As files usually go
    Normal,
    /// Only while nothing else is to be sent
    Bulk,
}

/// `--include` and `--exclude` in the order given, as messages have them.
#[derive(Clone, Debug, Default)]
pub(crate) struct PatternFlags(pub(crate) Vec<Vec<u8>>);

impl FromArgMatches for PatternFlags {
    fn from_arg_matches(matches: &ArgMatches) -> Result<PatternFlags, clap::Error> {
        let of = |name: &str, sign: &'static [u8]| {
            let places = matches.indices_of(name).into_iter().flatten();
            let values = matches.get_many::<OsString>(name).into_iter().flatten();
            let line = move |value: &OsString| [sign, &value.clone().into_vec()[..]].concat();
            places.zip(values.map(line)).collect::<Vec<_>>()
        };
        let mut all = [of("include", b"+ "), of("exclude", b"- ")].concat();
        all.sort_unstable_by_key(|(place, _)| *place);
        Ok(PatternFlags(all.into_iter().map(|(_, line)| line).collect()))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = PatternFlags::from_arg_matches(matches)?;
        Ok(())
    }
}

impl Args for PatternFlags {
    fn augment_args(command: Command) -> Command {
        let pattern = |name: &'static str, help: &'static str| {
            let parser = clap::builder::ValueParser::os_string();
            Arg::new(name)
                .long(name)
                .value_name("PATTERN")
                .action(ArgAction::Append)
                .value_parser(parser)
                .help(help)
        };
        command
            .arg(pattern(
                "include",
                "Send what matches, even if a later --exclude matches it; patterns are those of rsync, and the first that matches decides",
            ))
            .arg(pattern("exclude", "Leave out what matches"))
    }

    fn augment_args_for_update(command: Command) -> Command {
        PatternFlags::augment_args(command)
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::super::{StraitCommand, StraitFlags};

    #[test]
    fn patterns_keep_their_order() {
        let line = "strait send a b: --exclude *.o --include x --exclude *";
        let command = StraitFlags::try_parse_from(line.split(' ')).unwrap().command;
        let StraitCommand::Send(flags) = command else { panic!() };
        assert_eq!(flags.how.patterns.0, [&b"- *.o"[..], b"+ x", b"- *"]);
    }
}
