//! Flags of `login`.

use std::ffi::OsString;

use clap::{Args, ValueEnum};

use super::KerberosFlags;
use crate::login::{EscapeCharacter, escape_character};

/// Flags of `login`.
#[derive(Debug, Args)]
pub(crate) struct Login {
    /// The peer, by its name in the configuration, and the account there: PEER or USER@PEER; without a user, the first account that the peer's configuration has for this node
    #[arg(value_name = "PEER", required_unless_present_any = ["resume", "list", "here"])]
    pub(crate) peer: Option<String>,
    /// A command for the shell there, with its arguments; without one, the login shell
    #[arg(value_name = "COMMAND", trailing_var_arg = true, allow_hyphen_values = true, conflicts_with_all = ["resume", "lists"])]
    pub(crate) command: Vec<OsString>,
    /// Run the command in a terminal
    #[arg(short = 't', long = "terminal", conflicts_with = "no_terminal")]
    pub(crate) terminal: bool,
    /// Run the shell without a terminal
    #[arg(short = 'T', long = "no-terminal")]
    pub(crate) no_terminal: bool,
    /// Escape character: at the beginning of a line, this character and a key are a command to `strait login` (`~?` lists them). A character, ^ and a letter, or none
    #[arg(short = 'e', long, value_name = "CHAR", default_value = "~", value_parser = escape_character)]
    pub(crate) escape: EscapeCharacter,
    /// Predicted echo: show what is typed before the peer has answered
    #[arg(long, value_name = "WHEN", default_value = "auto")]
    pub(crate) predict: Predict,
    /// Go back to a session: with --resume=NUMBER to that one (its first digits are enough), else to the newest one at the peer, or at all peers
    #[arg(long, value_name = "SESSION", num_args = 0..=1, require_equals = true, default_missing_value = "", conflicts_with = "lists")]
    pub(crate) resume: Option<String>,
    /// List sessions that run at the peer, or at all peers where this user has left sessions
    #[arg(long, group = "lists")]
    pub(crate) list: bool,
    /// List sessions that peers have at this host: all of this user's daemons (root: of the system's), those of PEER, or those of PEER as USER
    #[arg(long, group = "lists")]
    pub(crate) here: bool,
    /// With --here and PEER or USER@PEER: end these sessions; programs are hung up, and killed if they run 5 s later
    #[arg(long, requires_all = ["here", "peer"], conflicts_with = "json")]
    pub(crate) end: bool,
    /// With --list or --here: print one JSON document
    #[arg(long, requires = "lists")]
    pub(crate) json: bool,
    /// Send this environment variable, too, besides LANG, LANGUAGE and LC_*; the peer's configuration says which it accepts
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
    /// While the round trip is longer than 60 ms
    Auto,
    /// Wherever the terminal echoes
    Always,
    /// Never
    Never,
}
