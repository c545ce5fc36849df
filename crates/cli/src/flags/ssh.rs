//! Flags of `ssh`.

use clap::Args;

use super::KerberosFlags;

/// Flags of `ssh`.
#[derive(Debug, Args)]
pub(crate) struct SshFlags {
    /// The peer; with --config any number of them, USER@PEER if the account there has another name than this user
    #[arg(value_name = "PEER")]
    pub(crate) peers: Vec<String>,
    /// Print what ~/.ssh/config needs for these peers, or for all
    #[arg(long, conflicts_with = "known_hosts")]
    pub(crate) config: bool,
    /// Print the host key that `ssh` is shown for this host, as a line of a known_hosts file
    #[arg(long, value_name = "HOST", conflicts_with = "peers")]
    pub(crate) known_hosts: Option<String>,
    #[command(flatten)]
    pub(crate) kerberos: KerberosFlags,
    /// Interface of the tunnel, such as strait0, or its configuration file; not needed if only one tunnel is running
    #[arg(long, short, value_name = "INTERFACE|FILE")]
    pub(crate) tunnel: Option<String>,
}
