//! Which outbox is meant.

use std::path::{Path, PathBuf};

use strait_keying::{PrivateKey, PublicKey};
use strait_node::client;
use strait_node::config::{Config, PeerKeys};
use strait_node::folders::state_folder;
use strait_node::private_daemon::own_configuration;
use strait_transfer::outbox::{FolderDisk, Outbox};

use crate::configuration::load;
use crate::failure::{Code, Failure};
use crate::flags::Which;
use crate::{files, keys, running};

/// The file with the key of a user who has no node of their own, in the state directory.
const KEY: &str = "outbox.key";

/// An outbox: the key that encrypts it, the folder, and whose peers its transfers go to.
pub(crate) struct OutboxHome {
    pub(crate) key: PrivateKey,
    pub(crate) folder: PathBuf,
    /// The configuration whose peers are meant; none where it is another user's, who runs the daemon.
    configuration: Option<PathBuf>,
    /// The daemon that transfers go over; none where any does that has the peer.
    interface: Option<String>,
}

impl OutboxHome {
    /// That of the node with this configuration; in this folder, if one is named.
    pub(crate) fn of(configuration: &Path, folder: Option<&Path>) -> Result<OutboxHome, Failure> {
        let key = super::node(configuration)?;
        Ok(OutboxHome {
            folder: place(folder, &key)?,
            key,
            interface: Some(load(configuration)?.node.interface),
            configuration: Some(configuration.to_owned()),
        })
    }

    /// That in which `send` leaves transfers: of the daemon that runs; of the user's own node where none runs; of the user, where the
    /// daemon is another user's, whose key this one cannot read.
    pub(crate) fn find(tunnel: Option<&str>, folder: Option<&Path>) -> Result<OutboxHome, Failure> {
        if let Some(file) = tunnel.map(Path::new).filter(|file| file.is_file()) {
            return OutboxHome::of(file, folder);
        }
        let which = running::which(&Which { tunnel: tunnel.map(str::to_owned) });
        match (which, own_configuration()) {
            (Err(failure), Some(file)) if failure.number() == Code::NotRunning.number() => {
                let file = std::path::absolute(file).map_err(Failure::doing("find the configuration"))?;
                OutboxHome::of(&file, folder)
            }
            (Err(failure), None) if failure.number() == Code::NotRunning.number() && has_own() => {
                OutboxHome::own(None, folder)
            }
            (which, _) => {
                let interface = which?;
                let report = client::show(&interface).map_err(running::refused)?;
                if !client::is_own(&interface) {
                    return OutboxHome::own(tunnel.is_some().then_some(interface), folder);
                }
                OutboxHome::of(Path::new(&report.node.configuration), folder)
            }
        }
    }

    /// That of this user, who only uses another's daemon.
    fn own(interface: Option<String>, folder: Option<&Path>) -> Result<OutboxHome, Failure> {
        let state = state_folder().ok_or_else(no_folder)?;
        strait_node::runtime::make(&state).map_err(Failure::new)?;
        let file = state.join(KEY);
        keys::make_or_read(&file)?;
        let key = keys::read_private(&file)?;
        Ok(OutboxHome { folder: place(folder, &key)?, key, configuration: None, interface })
    }

    /// Opens it.
    pub(crate) fn open(&self) -> Result<Outbox<FolderDisk>, Failure> {
        super::open(&self.folder, &self.key)
    }

    /// The daemons that transfers may go over now.
    pub(crate) fn interfaces(&self) -> Vec<String> {
        match &self.interface {
            Some(interface) => vec![interface.clone()],
            None => client::running().unwrap_or_default(),
        }
    }

    /// The configuration of the node; none where that is another user's.
    pub(crate) fn config(&self) -> Result<Option<Config>, Failure> {
        self.configuration.as_deref().map(load).transpose()
    }

    /// What the broker is called that is used for a peer while that is away.
    pub(crate) fn broker_of(&self, peer: &str) -> Option<String> {
        let config = self.config().ok().flatten()?;
        config.peers.into_iter().find(|it| it.name == peer)?.via
    }

    /// The commands that have to run for transfers to go, of those that do not run.
    pub(crate) fn lacking(&self) -> Vec<String> {
        let named =
            self.configuration.as_ref().map_or_else(String::new, |file| format!(" {}", file.display()));
        // Those that listen: one that hangs is not waited for.
        let running = client::running().unwrap_or_default();
        let has_daemon = self.interfaces().iter().any(|interface| running.contains(interface));
        let daemon = (!has_daemon).then(|| format!("`strait up{named}`"));
        let sender = (!files::is_delivered(&self.folder)).then(|| format!("`strait outbox{named} --run`"));
        daemon.into_iter().chain(sender).collect()
    }

    /// The key of a peer, by its name, if files may come to go to it.
    pub(crate) fn peer(&self, name: &str) -> Result<PublicKey, Failure> {
        let unknown = || Failure::new(format!("no peer is called `{name}`"));
        let no_session = |keys| Failure::new(format!("{name} has {keys}, and files need a session"));
        let manual = || no_session("manual keys");
        let config = self.config()?;
        let known = config.iter().flat_map(|config| &config.peers).find(|peer| peer.name == name);
        let sessionless = || no_session("keys without sessions");
        if let Some(peer) = known {
            return match &peer.keys {
                PeerKeys::Session { .. } if peer.sessionless.is_some() && peer.via.is_none() => {
                    Err(sessionless())
                }
                PeerKeys::Session { public_key, .. } => Ok(*public_key),
                PeerKeys::Manual(_) => Err(manual()),
            };
        }
        // It may be a directory's, of which the daemon knows.
        let reports = self.interfaces().into_iter().filter_map(|interface| client::show(&interface).ok());
        let found =
            reports.flat_map(|report| report.peers).find(|peer| peer.name == name).ok_or_else(unknown)?;
        if found.sessionless.is_some() {
            return Err(sessionless());
        }
        let key = found.public_key.ok_or_else(manual)?;
        key.parse().map_err(|error| Failure::new(format!("the key of {name}: {error}")))
    }
}

/// The folder that is named, or that of this key in the state directory.
fn place(folder: Option<&Path>, key: &PrivateKey) -> Result<PathBuf, Failure> {
    if let Some(folder) = folder {
        return Ok(folder.to_owned());
    }
    // A public key has characters that no file name may have.
    let name: String = key.public().as_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
    state_folder().map(|state| state.join("outbox").join(name)).ok_or_else(no_folder)
}

fn has_own() -> bool {
    state_folder().is_some_and(|state| state.join(KEY).is_file())
}

fn no_folder() -> Failure {
    Failure::new("there is no folder for the outbox")
        .remedy("name one with `--outbox`, or set STRAIT_STATE_DIR")
}
