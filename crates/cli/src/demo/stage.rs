//! The two hosts, their link, and the daemons that run on them for a while.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Serialize;
use serde_json::Value;
use strait_scheduler::Rate;
use strait_testbed::sample::SampleFile;
use strait_testbed::{Cost, Daemon, Error, LinkSpec, LinkTraffic, Transfer, TwoHosts, Workdir};

use super::result::{Moved, Tunnel};
use super::site::Site;
use crate::failure::Failure;

/// The daemons' port on both hosts.
const PORT: u16 = 51820;

/// How long a file may stand still, and a session take: the slowest sensible link needs seconds for a handshake.
const PATIENCE: Duration = Duration::from_secs(60);

/// How the files travel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Way {
    /// Beside the tunnel, in the clear.
    Plain,
    /// Through the tunnel, encrypted only.
    Tunnel,
    /// Through the tunnel, compressed and encrypted.
    Compressed,
}

impl Way {
    /// In the order of the demonstration.
    pub(super) const ALL: [Way; 3] = [Way::Plain, Way::Tunnel, Way::Compressed];

    /// One word, for file names.
    pub(super) const fn word(self) -> &'static str {
        match self {
            Way::Plain => "plain",
            Way::Tunnel => "tunnel",
            Way::Compressed => "compressed",
        }
    }

    /// A few words, for people.
    pub(super) const fn words(self) -> &'static str {
        match self {
            Way::Plain => "plain link",
            Way::Tunnel => "tunnel",
            Way::Compressed => "tunnel, compressed",
        }
    }
}

/// Two hosts joined by a thin link. Dropped, it leaves nothing behind.
#[derive(Debug)]
pub(super) struct Stage {
    // In the order in which they must go: daemons, hosts, folder.
    daemons: Vec<Daemon>,
    hosts: TwoHosts,
    sites: [Site; 2],
    link: Rate,
    program: PathBuf,
    dir: Workdir,
}

impl Stage {
    /// Makes hosts, link, folder and keys.
    pub(super) fn set(link: Rate) -> Result<Stage, Failure> {
        let program = std::env::current_exe().map_err(Failure::doing("find this program's own file"))?;
        let dir = Workdir::create()?;
        let hosts = TwoHosts::direct(LinkSpec::thin(link))?;
        let outside = |address: IpAddr| SocketAddr::new(address, PORT);
        let sites = [
            Site::create("site-a", 1, outside(hosts.address_of_a().0), dir.path())?,
            Site::create("site-b", 2, outside(hosts.address_of_b().0), dir.path())?,
        ];
        Ok(Stage { daemons: Vec::new(), hosts, sites, link, program, dir })
    }

    /// Keeps the folder.
    pub(super) fn keep(&mut self) {
        self.dir.keep();
    }

    /// Where configurations, keys and logs are.
    pub(super) fn folder(&self) -> &Path {
        self.dir.path()
    }

    /// What has crossed the link so far.
    pub(super) fn traffic(&self) -> Result<LinkTraffic, Error> {
        self.hosts.link.traffic()
    }

    /// Gets everything running that this way needs.
    pub(super) fn start(&mut self, way: Way) -> Result<(), Failure> {
        if way == Way::Plain {
            return Ok(());
        }
        let [a, b] = &self.sites;
        for (host, site, peer) in [(&self.hosts.a, a, b), (&self.hosts.b, b, a)] {
            let config = site.write(peer, self.link, way)?;
            let folder = site.folder.join(way.word());
            self.daemons.push(Daemon::start(host, &self.program, &config, &folder)?);
        }
        for (daemon, peer) in self.daemons.iter().zip([b, a]) {
            daemon.wait_for_session(peer.name, PATIENCE)?;
        }
        Ok(())
    }

    /// Moves one file from the first site to the second.
    pub(super) fn transfer(
        &self,
        way: Way,
        file: &SampleFile,
        progress: &mut dyn FnMut(u64),
    ) -> Result<Moved, Error> {
        let before = self.traffic()?;
        let address = match way {
            Way::Plain => self.hosts.address_of_b().0,
            Way::Tunnel | Way::Compressed => Ipv4Addr::new(10, 77, 0, self.sites[1].number).into(),
        };
        let took = Transfer {
            from: &self.hosts.a,
            to: &self.hosts.b,
            address,
            name: &file.name,
            content: &file.bytes,
            patience: PATIENCE,
        }
        .run(progress)?;
        Ok(Moved { took, wire: self.traffic()?.since(before) })
    }

    /// Asks the daemons what they did and ends them, in order.
    pub(super) fn finish(&mut self) -> Result<Vec<Tunnel>, Failure> {
        let daemons = std::mem::take(&mut self.daemons);
        let asked: Vec<(Value, Cost)> = daemons
            .iter()
            .map(|daemon| Ok((daemon.show()?, daemon.cost()?)))
            .collect::<Result<_, Error>>()?;
        for daemon in daemons {
            let said = daemon.last_words();
            let status = daemon.stop()?;
            if !status.success() {
                return Err(Failure::new(format!("a daemon ended with {status}; its log ends:\n{said}")));
            }
        }
        let names = self.sites.iter().map(|site| site.name);
        Ok(names.zip(asked).map(|(name, (report, cost))| Tunnel { name, report, cost }).collect())
    }

    /// The ends of the daemons' logs.
    pub(super) fn last_words(&self) -> String {
        let logs = self.sites.iter().zip(&self.daemons);
        let ends = logs.map(|(site, daemon)| format!("{} said:\n{}", site.name, daemon.last_words()));
        ends.collect::<Vec<_>>().join("\n")
    }
}
