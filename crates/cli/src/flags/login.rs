//! Flags of `login`.

use std::ffi::OsString;

use clap::{Args, ValueEnum};

use super::KerberosFlags;
use crate::login::{EscapeCharacter, escape_character};

/// Flags of `login`.
#[derive(Debug, Args)]
pub(crate) struct Login {
    /// The peer, by its name in the configuration, and the account there: PEER or USER@PEER; without a user, the first account that the peer's configuration has for this node
    #[arg(value_name = "PEER", required_unless_present_any = ["resume", "list"])]
    pub(crate) peer: Option<String>,
    /// A command for the shell there, with its arguments; without one, the login shell
    #[arg(value_name = "COMMAND", trailing_var_arg = true, allow_hyphen_values = true, conflicts_with_all = ["resume", "list"])]
    pub(crate) command: Vec<OsString>,
    /// Give a command a terminal, too
    #[arg(short = 't', long = "terminal", conflicts_with = "no_terminal")]
    pub(crate) terminal: bool,
    /// Give the shell no terminal
    #[arg(short = 'T', long = "no-terminal")]
    pub(crate) no_terminal: bool,
    /// The character before keys for this program at the beginning of a line (`~?` lists them), ^ and a letter, or none
    #[arg(short = 'e', long, value_name = "CHAR", default_value = "~", value_parser = escape_character)]
    pub(crate) escape: EscapeCharacter,
    /// Show what keys will do before the peer has answered: auto is above a round trip of 60 ms
    #[arg(long, value_name = "WHEN", default_value = "auto")]
    pub(crate) predict: Predict,
    /// Go back to a session: the one with this number, as --resume=NUMBER or the beginning of one, or the newest of the peer, or of all
    #[arg(long, value_name = "SESSION", num_args = 0..=1, require_equals = true, default_missing_value = "", conflicts_with = "list")]
    pub(crate) resume: Option<String>,
    /// List sessions that run at the peer, or at all peers that this user left sessions at
    #[arg(long)]
    pub(crate) list: bool,
    /// With --list: print one JSON document
    #[arg(long, requires = "list")]
    pub(crate) json: bool,
    /// Send this variable of the environment beside LANG, LANGUAGE and LC_*; the peer's configuration says which it takes
    #[arg(long, value_name = "NAME")]
    pub(crate) env: Vec<OsString>,
    #[command(flatten)]
    pub(crate) kerberos: KerberosFlags,
    /// Interface of the tunnel, such as strait0, or its configuration file; not needed if only one tunnel is running
    #[arg(long, value_name = "INTERFACE|FILE")]
    pub(crate) tunnel: Option<String>,
}

/// When keys are predicted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Predict {
    /// While the link is slow
    Auto,
    /// Wherever the terminal echoes
    Always,
    /// Never
    Never,
}
