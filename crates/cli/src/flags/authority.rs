//! Flags of `authority`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueHint};

/// Flags of `authority`.
#[derive(Debug, Args)]
pub(crate) struct Authority {
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: AuthorityCommand,
}

/// What to do with an authority.
#[derive(Debug, Subcommand)]
pub(crate) enum AuthorityCommand {
    /// Make an authority in a new folder: its key, and an empty revocation list
    Init(AuthorityInit),
    /// Sign a certificate for a node's card
    Sign(AuthoritySign),
    /// Revoke certificates: sign a new list with them
    Revoke(AuthorityRevoke),
    /// Sign the revocation list anew, as it is, so that nodes see that it is current
    Renew(AuthorityRenew),
    /// List certificates
    List(AuthorityList),
    /// Put certificates and the revocation list into directories
    Publish(AuthorityPublish),
}

/// Flags of `authority init`.
#[derive(Debug, Args)]
pub(crate) struct AuthorityInit {
    /// The folder to make; its key never leaves it
    #[arg(value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) dir: PathBuf,
    /// Print one JSON document
    #[arg(long)]
    pub(crate) json: bool,
}

/// Flags of `authority sign`.
#[derive(Debug, Args)]
pub(crate) struct AuthoritySign {
    /// The folder of the authority
    #[arg(value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) dir: PathBuf,
    /// A file with the node's card, or - for standard input
    #[arg(value_name = "CARD", value_hint = ValueHint::FilePath)]
    pub(crate) card: PathBuf,
    /// What the node is called [default: the name on its card]
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// Networks inside the tunnel that are the node's, such as 10.77.0.2/32
    #[arg(long, value_name = "NETWORK", num_args = 1.., required = true)]
    pub(crate) allowed_ips: Vec<ipnet::IpNet>,
    /// Where the node is reached, if it has such a place
    #[arg(long, value_name = "HOST:PORT")]
    pub(crate) endpoint: Option<String>,
    /// Days from now on that the certificate is valid
    #[arg(long, value_name = "DAYS", default_value_t = 365, value_parser = clap::value_parser!(u32).range(1..=36500))]
    pub(crate) days: u32,
    /// Print one JSON document
    #[arg(long)]
    pub(crate) json: bool,
}

/// Flags of `authority revoke`.
#[derive(Debug, Args)]
pub(crate) struct AuthorityRevoke {
    /// The folder of the authority
    #[arg(value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) dir: PathBuf,
    /// Serial numbers, or names of nodes whose certificates are all meant
    #[arg(value_name = "SERIAL|NAME", required = true)]
    pub(crate) which: Vec<String>,
    /// Print one JSON document
    #[arg(long)]
    pub(crate) json: bool,
}

/// Flags of `authority renew`.
#[derive(Debug, Args)]
pub(crate) struct AuthorityRenew {
    /// The folder of the authority
    #[arg(value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) dir: PathBuf,
    /// Print one JSON document
    #[arg(long)]
    pub(crate) json: bool,
}

/// Flags of `authority list`.
#[derive(Debug, Args)]
pub(crate) struct AuthorityList {
    /// The folder of the authority
    #[arg(value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) dir: PathBuf,
    /// Print one JSON document
    #[arg(long)]
    pub(crate) json: bool,
}

/// Flags of `authority publish`.
#[derive(Debug, Args)]
pub(crate) struct AuthorityPublish {
    /// The folder of the authority
    #[arg(value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) dir: PathBuf,
    /// The directories
    #[arg(value_name = "HOST:PORT", required = true)]
    pub(crate) servers: Vec<String>,
    /// Print one JSON document
    #[arg(long)]
    pub(crate) json: bool,
}
