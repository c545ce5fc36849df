//! Flags of commands that log in with a ticket.

use clap::Args;

/// Flags of `login` and `ssh`.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct KerberosFlags {
    /// Show the peer a Kerberos ticket for its service, as --kerberos=SERVICE@HOST; without a name, the one of the configuration, or strait@PEER
    #[arg(long, value_name = "SERVICE", num_args = 0..=1, require_equals = true, default_missing_value = "")]
    pub(crate) kerberos: Option<String>,
    /// With a ticket: pass one on to the session, with which its programs act as the user at other hosts
    #[arg(long)]
    pub(crate) delegate: bool,
}
