//! Peers, and the host key that `ssh` is shown for each.
//!
//! No process of this user has a peer's private key: what proves the peer is the node. `ssh` still wants a key, so each user has a
//! secret of their own, and a peer's host key follows from it and the peer's public key. Another peer behind the same name has
//! another host key.

use std::fs::{self, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use strait_keying::PublicKey;
use strait_node::client;
use strait_node::config::PeerKeys;
use strait_node::folders::state_folder;
use strait_node::private_daemon::own_configuration;
use strait_ssh::HostKey;
use zeroize::Zeroizing;

use crate::failure::{Code, Failure};
use crate::flags::Which;
use crate::{configuration, keys, running};

/// The file with the user's secret, in the state directory.
const SECRET: &str = "ssh-host.secret";
/// What a host key is derived for (BLAKE3's key derivation).
const CONTEXT: &str = "strait 2026-11 SSH host key of a peer";

/// A peer by name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct KnownPeer {
    pub(super) name: String,
    pub(super) key: PublicKey,
}

/// The peers of a node.
#[derive(Debug)]
pub(super) struct Known {
    peers: Vec<KnownPeer>,
}

impl Known {
    /// The peers of the daemon that runs; without one, of the user's own configuration.
    pub(super) fn find(tunnel: Option<&str>) -> Result<Known, Failure> {
        let which = running::which(&Which { tunnel: tunnel.map(str::to_owned) });
        match (which, own_configuration()) {
            (Err(failure), Some(file)) if failure.number() == Code::NotRunning.number() => {
                Ok(Known { peers: configured(&file)? })
            }
            (which, _) => {
                let interface = which?;
                let reported = client::show(&interface).map_err(running::refused)?.peers.into_iter();
                let peers = reported.filter_map(|peer| {
                    let key = peer.public_key?.parse().ok()?;
                    Some(KnownPeer { name: peer.name, key })
                });
                Ok(Known { peers: peers.collect() })
            }
        }
    }

    /// All of them.
    pub(super) fn peers(&self) -> &[KnownPeer] {
        &self.peers
    }

    /// The peer that `ssh` names: `ssh` may have made the letters small, and puts a port that is not 22 behind brackets.
    pub(super) fn peer(&self, host: &str) -> Result<&KnownPeer, Failure> {
        let name =
            host.strip_prefix('[').and_then(|rest| rest.split_once("]:")).map_or(host, |(name, _)| name);
        let alike = || self.peers.iter().filter(|it| it.name.eq_ignore_ascii_case(name));
        let exact = self.peers.iter().find(|it| it.name == name);
        exact.or_else(|| alike().next().filter(|_| alike().count() == 1)).ok_or_else(|| {
            let names: Vec<&str> = self.peers.iter().map(|it| it.name.as_str()).collect();
            let remedy = if names.is_empty() {
                "add a [[peer]] to the configuration".to_owned()
            } else {
                format!("peers with session keys are: {}", names.join(", "))
            };
            Failure::new(format!("no peer is called `{name}`")).remedy(remedy)
        })
    }

    /// The line of known hosts for what `ssh` looks for.
    pub(super) fn line(&self, host: &str) -> Result<String, Failure> {
        Ok(self.host_key(self.peer(host)?)?.known_host(host))
    }

    /// The host key that is shown for a peer.
    pub(super) fn host_key(&self, peer: &KnownPeer) -> Result<HostKey, Failure> {
        let folder = state_folder().ok_or_else(|| {
            Failure::new("there is no folder for this user's secret of host keys")
                .remedy("set STRAIT_STATE_DIR")
        })?;
        strait_node::runtime::make(&folder).map_err(Failure::new)?;
        let secret = secret(&folder.join(SECRET))?;
        derived(&secret, &peer.key).ok_or_else(|| Failure::new("no host key can be made"))
    }
}

/// The host key that follows from a user's secret and a peer's public key.
fn derived(secret: &[u8; 32], peer: &PublicKey) -> Option<HostKey> {
    let mut hasher = blake3::Hasher::new_derive_key(CONTEXT);
    hasher.update(secret).update(peer.as_bytes());
    HostKey::from_seed(&Zeroizing::new(*hasher.finalize().as_bytes()))
}

fn configured(file: &Path) -> Result<Vec<KnownPeer>, Failure> {
    let peers = configuration::load(file)?.peers.into_iter();
    let session = peers.filter_map(|peer| match peer.keys {
        PeerKeys::Session { public_key, .. } => Some(KnownPeer { name: peer.name, key: public_key }),
        PeerKeys::Manual(_) => None,
    });
    Ok(session.collect())
}

/// The secret in a file, which is made if there is none. `ssh` starts two processes at once that may both make it: the first counts.
fn secret(path: &Path) -> Result<Zeroizing<[u8; 32]>, Failure> {
    match read(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        found => return found.map_err(refused(path)),
    }
    let made = keys::seed().map_err(Failure::doing("read random numbers from the system"))?;
    let aside = aside(path);
    let _ = fs::remove_file(&aside);
    let linked = write(&aside, &made).and_then(|()| match fs::hard_link(&aside, path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        linked => linked,
    });
    let _ = fs::remove_file(&aside);
    linked.map_err(Failure::doing(format!("make {}", path.display())))?;
    read(path).map_err(refused(path))
}

/// Where a new secret is written first; no two processes have the same.
fn aside(path: &Path) -> PathBuf {
    path.with_extension(format!("new-{}", std::process::id()))
}

fn write(path: &Path, secret: &[u8; 32]) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(secret)?;
    file.sync_all()
}

fn read(path: &Path) -> io::Result<Zeroizing<[u8; 32]>> {
    let mut secret = Zeroizing::new([0; 32]);
    let mut file = fs::File::open(path)?;
    file.read_exact(&mut *secret)?;
    if file.read(&mut [0])? > 0 {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "it is longer than a secret"));
    }
    Ok(secret)
}

fn refused(path: &Path) -> impl FnOnce(io::Error) -> Failure + use<> {
    let path = path.display().to_string();
    move |error| {
        Failure::new(format!("cannot read the secret of this user's host keys, {path}: {error}"))
            .remedy("if it is damaged, remove it: a new one is made")
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;

    use strait_keying::PrivateKey;
    use strait_testbed::Workdir;

    use super::*;

    fn known(names: &[&str]) -> Known {
        let peer = |(at, name): (usize, &&str)| KnownPeer {
            name: (*name).to_owned(),
            key: PrivateKey::generate(&[u8::try_from(at).unwrap(); 32]).public(),
        };
        Known { peers: names.iter().enumerate().map(peer).collect() }
    }

    #[test]
    fn a_peer_is_found_as_ssh_names_it() {
        let known = known(&["site-b", "Site-C", "a", "A"]);
        for (host, name) in
            [("site-b", "site-b"), ("site-c", "Site-C"), ("[site-b]:2222", "site-b"), ("a", "a"), ("A", "A")]
        {
            assert_eq!(known.peer(host).unwrap().name, name);
        }
        let failure = known.peer("d").unwrap_err().to_string();
        assert!(failure.contains("`d`") && failure.contains("site-b, Site-C"), "{failure}");
    }

    #[test]
    fn a_host_key_follows_from_the_user_and_the_peer() {
        let known = known(&["a", "b"]);
        let line =
            |secret: u8, peer: usize| derived(&[secret; 32], &known.peers[peer].key).unwrap().known_host("x");
        assert_eq!(line(1, 0), line(1, 0));
        assert_ne!(line(1, 0), line(1, 1));
        assert_ne!(line(1, 0), line(2, 0));
    }

    #[test]
    fn a_secret_is_private_stays_and_is_made_once_by_many() {
        let dir = Workdir::create().unwrap();
        // The folder itself has a lock in it.
        let folder = dir.path().join("state");
        fs::create_dir(&folder).unwrap();
        let path = folder.join(SECRET);
        let first = secret(&path).unwrap();
        assert_eq!(*secret(&path).unwrap(), *first);
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 1);
        for wrong in [&[0_u8; 31][..], &[0; 33]] {
            fs::write(&path, wrong).unwrap();
            let failure = secret(&path).unwrap_err().to_string();
            assert!(failure.contains("remove it"), "{failure}");
            assert_eq!(fs::read(&path).unwrap(), wrong);
        }
    }
}
