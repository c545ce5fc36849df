//! Two hosts with a daemon each, and what their peers are told of keys.

use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::time::Duration;

use strait_testbed::{DaemonProcess, Extra, LinkSpec, Site, TwoHosts, Workdir};

use crate::error::Error;
use crate::stage::MTU;

/// One suite for both: a session agrees on the fastest, and without a card each node takes AES-256-GCM.
const SUITE: &str = "aes-256-gcm";
/// How long a session may take.
const PATIENCE: Duration = Duration::from_secs(30);

/// How keys come about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Keying {
    /// By a handshake.
    Session,
    /// Without one.
    Sessionless,
}

impl Keying {
    pub(super) const ALL: [Keying; 2] = [Keying::Session, Keying::Sessionless];

    /// Its name in tables.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Keying::Session => "session",
            Keying::Sessionless => "sessionless",
        }
    }
}

/// Hosts, link and daemons. Dropped, it leaves nothing behind.
pub(super) struct KeyingStage {
    // In the order in which they must go.
    _daemons: [DaemonProcess; 2],
    pub(super) hosts: TwoHosts,
    sites: [Site; 2],
    _dir: Workdir,
}

impl KeyingStage {
    /// Two daemons that were just started. With sessions, one is up; without, neither has heard of the other.
    pub(super) fn set(program: &Path, keying: Keying) -> Result<KeyingStage, Error> {
        if !program.is_file() {
            return Err(Error::NoProgram(program.to_owned()));
        }
        let hosts = TwoHosts::direct(LinkSpec::unshaped())?;
        let dir = Workdir::create()?;
        let sites = Site::pair(program, &hosts, dir.path())?;
        let node = format!("mtu = {MTU}\nsuites = [\"{SUITE}\"]\n");
        let (node, peer) = (node, format!("keying = \"{}\"\n", keying.name()));
        let extra = Extra { node: &node, peer: &peer, ..Extra::default() };
        let [a, b] = &sites;
        let start = |site: &Site, peer: &Site| site.start(&site.configure("tunnel", &[peer], extra)?, "run");
        let daemons = [start(a, b)?, start(b, a)?];
        if keying == Keying::Session {
            for (daemon, peer) in daemons.iter().zip([b, a]) {
                daemon.wait_for_session(peer.name(), PATIENCE)?;
            }
        }
        Ok(KeyingStage { _daemons: daemons, hosts, sites, _dir: dir })
    }

    /// The second host inside the tunnel, and any port.
    pub(super) fn inside(&self) -> SocketAddr {
        SocketAddr::new(IpAddr::V4(self.sites[1].inside()), 0)
    }

    /// The second host beside the tunnel, and any port.
    pub(super) fn outside(&self) -> SocketAddr {
        SocketAddr::new(self.hosts.address_of_b().0, 0)
    }
}
