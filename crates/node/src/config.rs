//! The configuration file: TOML in WireGuard's vocabulary, checked whole before anything is touched.
//!
//! Every mistake in a file is found in one go and shown with its line, the line's text and what to
//! write instead; nothing unknown is ignored.

mod beside;
mod broker;
mod checks;
mod compress;
mod diagnostic;
mod directory;
mod folder;
mod forward;
mod handed;
mod kerberos;
mod key_file;
mod login;
mod manual;
mod metering;
mod outside;
mod own;
mod peer;
mod price;
mod problem;
mod queueing;
mod reader;
mod sections;
mod sessionless;
mod target;
mod template;
mod value;

use std::fs::File;
use std::io::{self, Read};
use std::net::{IpAddr, SocketAddr};
use std::num::NonZero;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use ipnet::IpNet;
use strait_crypto::SuiteSet;
use strait_ipsec::outbound::Queueing;
use strait_ipsec::{IvMode, RuleSet};
use strait_keying::Lifetime;
use strait_scheduler::LinkRate;
use zeroize::Zeroizing;

pub use broker::{BrokerAccess, BrokerBucket, BrokerSection, BrokerStore};
pub use diagnostic::Diagnostic;
pub use directory::{DirectoryCertificates, DirectoryKeying, DirectorySection, PinnedPeer};
pub use folder::{FolderSection, FolderSymlinks};
pub use forward::ForwardScope;
pub(crate) use handed::HandedConfig;
pub use kerberos::KerberosSection;
pub use key_file::{KeyFileError, kem_key_file};
pub use login::LoginSection;
pub use manual::{
    Hosts, Manual, ManualAh, ManualCarrier, ManualEsp, ManualKeys, ManualMode, ManualPayloads, ManualProblem,
    ManualProtection, Spis,
};
pub(crate) use metering::hush_peer;
pub use metering::{BadPercent, MeteredSection};
pub use own::measured;
pub use peer::{Endpoint, PeerKeys, PeerPayloads, PeerSection};
pub use price::{BadPrice, Price};
pub use problem::Problem;
pub(crate) use sections::{DEFAULT_MTU, ENGINES_MAX};
pub use sessionless::SessionlessSection;
pub use target::ForwardTarget;
pub use template::template;
pub use value::{BadDuration, BadSize, duration, size};

use crate::udp::Listen;
use beside::{Access, Nothing, OnDisk, WithoutIdentity};

/// Most bytes in a configuration file: some ten thousand peers, each with a card that has an ML-KEM key, of 2 kB.
pub(crate) const FILE_MAX: u64 = 32 << 20;

/// Nodes that are no peers, at once: each has keys and a queue, as a peer has. More people at once are worth an entry.
const UNLISTED_MAX: usize = 64;

/// A whole configuration; one that exists is consistent.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// This node.
    pub node: NodeSection,
    /// Its link.
    pub link: LinkSection,
    /// Its sessions.
    pub session: Session,
    /// Whom it talks to, in the order of the file.
    pub peers: Vec<PeerSection>,
    /// What it may compress, in the order of the file.
    pub rules: RuleSet,
    /// The names of the trust domains, by their number.
    pub domains: Vec<String>,
    /// What of this host's files peers may read and write, in the order of the file.
    pub folders: Vec<FolderSection>,
    /// Which peers may log in here.
    pub logins: Vec<LoginSection>,
    /// What this host is to Kerberos.
    pub kerberos: KerberosSection,
    /// What this node is as a broker, if it is one.
    pub broker: Option<BrokerSection>,
    /// The directory that tells of peers which are not in the file, if there is one.
    pub directory: Option<DirectorySection>,
    /// What is lost because the link is quiet, as people read it.
    quiet_losses: Vec<String>,
    /// Of the file itself.
    access: Access,
}

/// `[node]`.
#[derive(Clone, Debug, PartialEq)]
pub struct NodeSection {
    /// The file with the private key, relative names resolved against the configuration's folder; a node needs none
    /// whose peers' keys are all in the file.
    pub private_key_file: Option<PathBuf>,
    /// The file with the token that this node and its peers share, if they do.
    pub token_file: Option<PathBuf>,
    /// Addresses of the interface, each with its network.
    pub address: Vec<IpNet>,
    /// Where datagrams are received.
    pub listen: Listen,
    /// Largest inner packet.
    pub mtu: u16,
    /// The treatment of the segment sizes that SYNs in the tunnel announce.
    pub mss: Mss,
    /// Most bytes that a compressed block may expand to here.
    pub block: u32,
    /// How many threads compress, the one that carries packets among them; nothing for as many as there are cores.
    pub engines: Option<NonZero<usize>>,
    /// The interface's name.
    pub interface: String,
    /// Whether there is a tunnel device; without one, peers have streams only.
    pub tunnel: bool,
    /// What packets of a peer may reach besides this node.
    pub forward: ForwardScope,
    /// A mark on all outer datagrams, for policy routing.
    pub fwmark: Option<u32>,
    /// Where the routes to peers go.
    pub table: RouteTable,
    /// Whether packets leave by the tunnel only, but for its own and those to the networks below.
    pub lockdown: bool,
    /// Networks that packets may go to outside the tunnel.
    pub allow_outside: Vec<IpNet>,
    /// Name servers that are reached through the tunnel.
    pub dns: Vec<IpAddr>,
    /// Domains whose names they are asked for, and which are appended to names without dots.
    pub dns_search: Vec<String>,
    /// Whether the IV travels.
    pub iv: IvMode,
    /// Which suites may be used.
    pub suites: SuiteSet,
    /// Where metrics are served.
    pub metrics: Option<SocketAddr>,
    /// Where the page is served that shows the node.
    pub web: Option<SocketAddr>,
    /// The file with the token that the page asks for, if it does.
    pub web_token_file: Option<PathBuf>,
    /// As whom packets are handled, by name.
    pub user: Option<String>,
    /// The group whose members may look at the tunnel, by name.
    pub group: Option<String>,
    /// Bytes on disk, at most, of copies of the files that were sent last; nothing if none are kept.
    pub keep_sent: Option<u64>,
    /// Bytes of memory for what is kept of peers' data; a part of the machine's if nothing is said.
    pub memory: Option<u64>,
    /// Where byte caches are stored; in memory only if nowhere.
    pub cache_dir: Option<PathBuf>,
    /// Where the keys of all traffic are written, for analysers.
    pub danger_export_keys: Option<PathBuf>,
}

/// The treatment of the maximum segment sizes that SYNs in the tunnel announce.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mss {
    /// They are lowered to what fits the tunnel.
    Auto,
    /// They are left alone.
    Off,
}

/// Where routes to the peers' addresses are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RouteTable {
    /// In the main table, with policy routing where a default route would swallow the tunnel itself.
    Auto,
    /// Nowhere.
    Off,
    /// In this table.
    Number(u32),
}

/// `[link]`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LinkSection {
    /// How fast this node may send, in wire bits.
    pub up: LinkRate,
    /// How fast it can receive.
    pub down: LinkRate,
    /// Bytes that the link layer adds to each IP packet.
    pub overhead: u16,
    /// What traffic on it costs, if that was said.
    pub price: Option<Price>,
    /// How packets wait for it.
    pub queueing: Queueing,
    /// What its bytes cost.
    pub metered: MeteredSection,
}

/// `[session]`: how long keys are used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Session {
    /// Time, bytes and packets until they are replaced.
    pub lifetime: Lifetime,
}

/// A configuration that cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("cannot read the configuration {}: {source}{}", path.display(), remedy(source))]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The file is not text.
    #[error("{} is not a configuration: byte {offset} is not UTF-8 text", path.display())]
    NotText {
        /// The file.
        path: PathBuf,
        /// Where it stops being text.
        offset: usize,
    },
    /// The file is far too long.
    #[error("{} is not a configuration: it has more than {FILE_MAX} bytes", path.display())]
    TooLong {
        /// The file.
        path: PathBuf,
    },
    /// The file says something wrong, at least once.
    #[error("{}", diagnostic::Listing { origin: &path.display().to_string(), found })]
    Invalid {
        /// The file.
        path: PathBuf,
        /// Everything that is wrong, in the order of the file.
        found: Vec<Diagnostic>,
    },
}

fn remedy(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::NotFound => "; write one with `strait init`",
        io::ErrorKind::PermissionDenied => "; run as the user who owns it",
        _ => "",
    }
}

impl Config {
    /// How many nodes may log in at once that are no peers; 0 where a ticket admits none.
    #[must_use]
    pub fn unlisted(&self) -> usize {
        if self.logins.iter().any(LoginSection::is_for_unlisted) { UNLISTED_MAX } else { 0 }
    }

    /// Reads and checks the file at `path` and the keys it names.
    ///
    /// # Errors
    /// [`ConfigError`] with everything that is wrong.
    pub fn load(path: &Path) -> Result<Config, ConfigError> {
        Config::load_with_text(path).map(|(config, _)| config)
    }

    /// The same, with the text of the file.
    pub(crate) fn load_with_text(path: &Path) -> Result<(Config, Zeroizing<String>), ConfigError> {
        let (text, access) = read(path)?;
        let config = sections::read(&text, path, &OnDisk { access, known: None, token_known: false })?;
        Ok((config, text))
    }

    /// The same for a process that is to have neither the private key nor the token in its memory.
    ///
    /// # Errors
    /// As [`Config::load`], but for what is wrong with these two files.
    pub fn load_without_identity(path: &Path) -> Result<Config, ConfigError> {
        let (text, access) = read(path)?;
        sections::read(&text, path, &WithoutIdentity(access))
    }

    /// Checks `text` as if it stood in the file `origin`; touches no file, so manual keys have to be in the text.
    ///
    /// # Errors
    /// [`ConfigError::Invalid`] with everything that is wrong.
    pub fn parse(text: &str, origin: &Path) -> Result<Config, ConfigError> {
        sections::read(text, origin, &Nothing)
    }

    /// What is insecure about it and allowed, a sentence each; `path` is where it stands.
    #[must_use]
    pub fn warnings(&self, path: &Path) -> Vec<String> {
        let keys = self.node.danger_export_keys.as_ref().map(|keys| {
            format!(
                "the keys of all traffic are written to {}; anyone who reads it reads everything",
                keys.display()
            )
        });
        let open = self.node.metrics.filter(|address| !is_loopback(*address));
        let open =
            open.map(|address| format!("other hosts can read metrics at {address}, without a password"));
        let page = self.node.web.filter(|address| !is_loopback(*address));
        let page = page.map(|address| {
            format!(
                "the page at {address} is served without encryption: who sees its traffic on the way sees the token and all of the page"
            )
        });
        let mode = self.access.mode;
        let writable = (mode & 0o002 != 0).then(|| {
            let path = path.display();
            format!("every user can change {path} (mode {mode:03o}); run `chmod go-w {path}`")
        });
        let caches = self.caches().map(|(domain, capacity)| {
            format!(
                "all flows of the domain \"{domain}\" can be guessed from each other: it has a byte cache, which takes up to {} MiB for \
                 each peer and direction",
                capacity >> 20
            )
        });
        let as_root = |it: &&FolderSection| it.owner.as_deref() == Some("root") && !it.on_receive.is_empty();
        let commands = self.folders.iter().filter(as_root).map(|folder| {
            let (name, path) = (&folder.name, folder.path.display());
            format!(
                "root reads what peers send to the folder \"{name}\" and runs its command, both with all files of this host in reach; give \
                 it to a user with `chown -R USER {path}` and `owner = \"USER\"`"
            )
        });
        [keys, open, page, writable].into_iter().flatten().chain(caches).chain(commands).collect()
    }

    /// What `quiet` costs, a sentence each; nothing where the link is not quiet.
    #[must_use]
    pub fn quiet_losses(&self) -> &[String] {
        &self.quiet_losses
    }

    /// The trust domains that have a byte cache, and how many bytes it holds.
    fn caches(&self) -> impl Iterator<Item = (&str, u64)> {
        self.domains.iter().enumerate().filter_map(|(number, name)| {
            let mut of_domain =
                self.rules.rules().iter().filter(move |rule| usize::from(rule.domain.0) == number);
            Some((name.as_str(), of_domain.find_map(|rule| rule.cache)?.capacity.bytes()))
        })
    }
}

/// Whether only this host reaches `address`.
fn is_loopback(address: SocketAddr) -> bool {
    address.ip().to_canonical().is_loopback()
}

/// The text of the file, which may hold keys, and whose it is.
fn read(path: &Path) -> Result<(Zeroizing<String>, Access), ConfigError> {
    let unreadable = |source| ConfigError::Unreadable { path: path.to_owned(), source };
    let file = File::open(path).map_err(unreadable)?;
    let metadata = file.metadata().map_err(unreadable)?;
    // All the room at once, so that no copy is left behind by growing.
    let room = usize::try_from(metadata.len().min(FILE_MAX)).unwrap_or(0) + 1;
    let mut bytes = Zeroizing::new(Vec::with_capacity(room));
    let read = file.take(FILE_MAX + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    if u64::try_from(read).is_ok_and(|read| read > FILE_MAX) {
        return Err(ConfigError::TooLong { path: path.to_owned() });
    }
    match str::from_utf8(&bytes) {
        Ok(text) => {
            let access = Access { owner: metadata.uid(), mode: metadata.mode() & 0o777 };
            Ok((Zeroizing::new(text.to_owned()), access))
        }
        Err(error) => Err(ConfigError::NotText { path: path.to_owned(), offset: error.valid_up_to() }),
    }
}

#[cfg(test)]
mod tests;
