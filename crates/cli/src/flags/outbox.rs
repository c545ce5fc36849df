//! Flags of `carry`, `outbox` and `keys ssh`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueHint};

/// Flags of `carry`.
#[derive(Debug, Args)]
pub(crate) struct Carry {
    /// The folder of the stick; transfers go into its folder `strait`
    #[arg(value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) stick: PathBuf,
    /// The configuration with this node's key and its peers
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) file: PathBuf,
    /// Where transfers to this node go; without it they stay on the stick
    #[arg(long, value_name = "FOLDER", value_hint = ValueHint::DirPath)]
    pub(crate) into: Option<PathBuf>,
    /// Folder of the outbox [default: outbox/PUBLIC_KEY in the state directory]
    #[arg(long, value_name = "FOLDER", value_hint = ValueHint::DirPath)]
    pub(crate) outbox: Option<PathBuf>,
    /// Print one JSON document
    #[arg(long)]
    pub(crate) json: bool,
}

/// Flags of `outbox`.
#[derive(Debug, Args)]
pub(crate) struct OutboxFlags {
    /// The configuration with the node's key; without it, the outbox that `send` uses
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) file: Option<PathBuf>,
    /// Also list what is delivered, cancelled, expired or failed
    #[arg(long)]
    pub(crate) all: bool,
    /// Send what waits whenever its peer is there and its time has come, until a signal; the daemon has to be running
    #[arg(long, conflicts_with_all = ["all", "json", "watch", "cancel", "first", "last"])]
    pub(crate) run: bool,
    /// List anew each second, until nothing waits
    #[arg(long, conflicts_with_all = ["all", "json", "cancel", "first", "last"])]
    pub(crate) watch: bool,
    /// Cancel this transfer, named by its first digits
    #[arg(long, value_name = "ID", value_parser = digits, conflicts_with_all = ["all", "json", "first", "last"])]
    pub(crate) cancel: Option<String>,
    /// Put this transfer before all others of its priority
    #[arg(long, value_name = "ID", value_parser = digits, conflicts_with_all = ["all", "json", "last"])]
    pub(crate) first: Option<String>,
    /// Put this transfer behind all others of its priority
    #[arg(long, value_name = "ID", value_parser = digits, conflicts_with_all = ["all", "json"])]
    pub(crate) last: Option<String>,
    /// Folder of the outbox [default: outbox/PUBLIC_KEY in the state directory]
    #[arg(long, value_name = "FOLDER", value_hint = ValueHint::DirPath)]
    pub(crate) outbox: Option<PathBuf>,
    /// Interface of the tunnel, such as strait0, or its configuration file; not needed if only one tunnel is running
    #[arg(long, short, value_name = "INTERFACE|FILE", conflicts_with = "file")]
    pub(crate) tunnel: Option<String>,
    /// Print one JSON list
    #[arg(long)]
    pub(crate) json: bool,
}

/// The first digits of a transfer's name, or all 32.
fn digits(given: &str) -> Result<String, &'static str> {
    let is_name = (1..=32).contains(&given.len()) && given.bytes().all(|digit| digit.is_ascii_hexdigit());
    if is_name { Ok(given.to_ascii_lowercase()) } else { Err("a transfer has 32 hexadecimal digits") }
}

/// Flags of `keys`.
#[derive(Debug, Args)]
pub(crate) struct Keys {
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: KeysCommand,
}

/// Which keys.
#[derive(Debug, Subcommand)]
pub(crate) enum KeysCommand {
    /// Keys of OpenSSH, ssh-ed25519 without a passphrase; programs such as age take them, too
    #[command(subcommand)]
    Ssh(SshCommand),
    /// Print this node's key card, one line for peers with `keying = "sessionless"`; or print what a card says
    Card(KeysCard),
}

/// Flags of `keys card`.
#[derive(Debug, Args)]
pub(crate) struct KeysCard {
    /// A configuration, or a private key file made by `keygen`; with --show a card, or a file with one
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) file: String,
    /// Days for which the card is valid, from yesterday on
    #[arg(long, value_name = "N", default_value_t = 3650, value_parser = clap::value_parser!(u32).range(1..=36_500))]
    pub(crate) days: u32,
    /// What people call the node: 1 to 63 letters, digits, `-`, `_` and `.` [default: the name of the file]
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// Leave out the ML-KEM key: what is recorded then is not safe from a quantum computer
    #[arg(long)]
    pub(crate) without_ml_kem: bool,
    /// Verify a card and print what it says
    #[arg(long, conflicts_with_all = ["days", "name", "without_ml_kem"])]
    pub(crate) show: bool,
    /// With --show: print it as JSON
    #[arg(long, requires = "show")]
    pub(crate) json: bool,
}

/// In which direction.
#[derive(Debug, Subcommand)]
pub(crate) enum SshCommand {
    /// Make a private key file from an id_ed25519, or print the public key in an id_ed25519.pub
    Import(SshImport),
    /// Make an id_ed25519 and id_ed25519.pub from a private key file
    Export(SshExport),
    /// Print a node's public key as a line of an id_ed25519.pub
    Public(SshPublic),
}

/// Flags of `keys ssh import`.
#[derive(Debug, Args)]
pub(crate) struct SshImport {
    /// A file of `ssh-keygen -t ed25519`
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) file: PathBuf,
    /// The private key file to create, with mode 0600; an existing file is never overwritten
    #[arg(long, short, value_name = "FILE", default_value = "strait.key", value_hint = ValueHint::FilePath)]
    pub(crate) out: PathBuf,
}

/// Flags of `keys ssh export`.
#[derive(Debug, Args)]
pub(crate) struct SshExport {
    /// A private key file made by `keygen`
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) file: PathBuf,
    /// The file to create, with mode 0600, and the same with .pub; existing files are never overwritten
    #[arg(long, short, value_name = "FILE", default_value = "id_ed25519", value_hint = ValueHint::FilePath)]
    pub(crate) out: PathBuf,
}

/// Flags of `keys ssh public`.
#[derive(Debug, Args)]
pub(crate) struct SshPublic {
    /// A node's public key, as `pubkey` prints it
    #[arg(value_name = "KEY")]
    pub(crate) key: String,
}
