//! Two hosts, a link, and what runs between them while it is measured.

use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use strait_scheduler::Rate;
use strait_testbed::{Cost, Daemon, Extra, LinkSpec, Site, TwoHosts, Workdir};

use crate::error::Error;
use crate::wireguard::{Found, WireGuard, find, inside};

/// Inner MTU of both tunnels: what an outer path of 1,500 bytes carries, and wireguard-go's default.
pub(crate) const MTU: u32 = 1420;
/// Ethernet's header, which the link's token bucket counts with every datagram.
const OVERHEAD: u8 = 14;
/// The daemons pace themselves at this many thousandths of the link's rate: just under it, so that the queue stands
/// with them and not in the link.
const PACE: u64 = 995;
/// How long a session may take: the slowest link needs a second for a handshake.
const PATIENCE: Duration = Duration::from_secs(30);

/// Where programs are found, and how much is to be measured.
#[derive(Clone, Debug)]
pub(crate) struct Setting {
    /// The `strait` to measure.
    pub(crate) program: PathBuf,
    /// Where wireguard-go is installed if it is nowhere.
    pub(crate) cache: PathBuf,
    /// How much.
    pub(crate) effort: Effort,
}

/// How much is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effort {
    /// As much as figures need that are to be trusted.
    Full,
    /// A few seconds, to see that all is well.
    Quick,
}

impl Effort {
    /// One or the other.
    pub(crate) fn pick<T>(self, full: T, quick: T) -> T {
        if self == Effort::Full { full } else { quick }
    }
}

/// A way from the first host to the second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// Beside the tunnels.
    Plain,
    /// Through Strait.
    Strait,
    /// Through wireguard-go.
    WireGuard,
}

impl Way {
    /// In the order of tables and of runs.
    pub(crate) const ALL: [Way; 3] = [Way::Plain, Way::Strait, Way::WireGuard];

    /// Its name in tables.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Way::Plain => "plain link",
            Way::Strait => "Strait",
            Way::WireGuard => "wireguard-go",
        }
    }
}

/// Hosts, link and tunnels. Dropped, it leaves nothing behind.
#[derive(Debug)]
pub(crate) struct Stage {
    // In the order in which they must go: daemons, hosts, folder.
    strait: Vec<Daemon>,
    wireguard: Option<[WireGuard; 2]>,
    /// The hosts.
    pub(crate) hosts: TwoHosts,
    sites: [Site; 2],
    _dir: Workdir,
}

impl Stage {
    /// A link like `spec` with Strait over it, paced at the link's rate if it has one, with the compression that
    /// `rules` gives.
    pub(crate) fn set(program: &Path, spec: LinkSpec, rules: &str) -> Result<Stage, Error> {
        if !program.is_file() {
            return Err(Error::NoProgram(program.to_owned()));
        }
        let dir = Workdir::create()?;
        let hosts = TwoHosts::direct(spec)?;
        let sites = Site::pair(program, &hosts, dir.path())?;
        let sections = format!("{}{rules}", spec.rate.map(link).unwrap_or_default());
        let mut stage = Stage { strait: Vec::new(), wireguard: None, hosts, sites, _dir: dir };
        stage.start(&sections)?;
        Ok(stage)
    }

    fn start(&mut self, sections: &str) -> Result<(), Error> {
        let [a, b] = &self.sites;
        for (site, peer) in [(a, b), (b, a)] {
            let node = format!("mtu = {MTU}");
            let config =
                site.configure("bench", &[peer], Extra { node: &node, sections, ..Extra::default() })?;
            self.strait.push(site.start(&config, "run")?);
        }
        for (daemon, peer) in self.strait.iter().zip([b, a]) {
            daemon.wait_for_session(peer.name(), PATIENCE)?;
        }
        Ok(())
    }

    /// Adds wireguard-go beside Strait, if it is to be had; says which it is, or why it is left out.
    pub(crate) fn add_wireguard(&mut self, cache: &Path) -> Result<String, Error> {
        match find(cache) {
            Found::Missing(why) => Ok(format!("wireguard-go is left out: {why}")),
            Found::Here { program, version } => {
                self.wireguard = Some(WireGuard::pair(&program, &self.hosts, MTU)?);
                Ok(format!("{version} is {}", program.display()))
            }
        }
    }

    /// The ways there are.
    pub(crate) fn ways(&self) -> Vec<Way> {
        Way::ALL.into_iter().filter(|way| *way != Way::WireGuard || self.wireguard.is_some()).collect()
    }

    /// The second host's address, which a packet takes this way.
    pub(crate) fn address(&self, way: Way) -> IpAddr {
        match way {
            Way::Plain => self.hosts.address_of_b().0,
            Way::Strait => self.sites[1].inside().into(),
            Way::WireGuard => inside(1).into(),
        }
    }

    /// The second host's address this way, and any port.
    pub(crate) fn any_port(&self, way: Way) -> SocketAddr {
        SocketAddr::new(self.address(way), 0)
    }

    /// What the processes at both ends of a way have used; nothing where there are none.
    pub(crate) fn costs(&self, way: Way) -> Result<Option<[Cost; 2]>, Error> {
        match (way, self.strait.as_slice(), &self.wireguard) {
            (Way::Strait, [a, b], _) => Ok(Some([a.cost()?, b.cost()?])),
            (Way::WireGuard, _, Some([a, b])) => Ok(Some([a.cost()?, b.cost()?])),
            _ => Ok(None),
        }
    }
}

/// The section of a configuration that paces at the rate of the link.
fn link(rate: Rate) -> String {
    let pace = rate.bits() * PACE / 1000;
    format!("[link]\nup = \"{pace}bit\"\ndown = \"{pace}bit\"\noverhead = {OVERHEAD}\n")
}

/// A rule that compresses everything between the two sites with `codec`; with ports, only what goes there.
pub(crate) fn rule(codec: &str, ports: &str) -> String {
    format!(
        "\n[[compress]]\nfrom = \"10.77.0.0/24\"\nto = \"10.77.0.0/24\"\n{ports}\ndomain = \"bench\"\n\
         codec = \"{codec}\"\n"
    )
}
