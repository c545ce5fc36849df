//! The two hosts, their link, and the daemons that run on them for a while.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use serde::Serialize;
use strait_node::report::{DaemonReport, DecisionReport};
use strait_terminal::Failure;
use strait_testbed::sample::SampleFile;
use strait_testbed::{
    DaemonProcess, Error, Extra, LinkTraffic, ProcessCost, Site, Transfer, TwoHosts, Workdir, paced,
};

use crate::failed;
use crate::path::{DemoPath, DemoWire};
use crate::result::{DemoTunnel, Moved};

/// How long a file may stand still, and a session take: the slowest sensible link needs seconds for a handshake.
const PATIENCE: Duration = Duration::from_secs(60);

/// How the files travel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum DemoVariant {
    /// Beside the tunnel, in the clear.
    Plain,
    /// Through the tunnel, encrypted only.
    Tunnel,
    /// Through the tunnel, compressed and encrypted.
    Compressed,
}

impl DemoVariant {
    /// In the order of the demonstration.
    pub(crate) const ALL: [DemoVariant; 3] =
        [DemoVariant::Plain, DemoVariant::Tunnel, DemoVariant::Compressed];

    /// One word, for file names.
    pub(crate) const fn word(self) -> &'static str {
        match self {
            DemoVariant::Plain => "plain",
            DemoVariant::Tunnel => "tunnel",
            DemoVariant::Compressed => "compressed",
        }
    }

    /// A few words, for people.
    pub(crate) const fn words(self) -> &'static str {
        match self {
            DemoVariant::Plain => "plain link",
            DemoVariant::Tunnel => "tunnel",
            DemoVariant::Compressed => "tunnel, compressed",
        }
    }
}

/// Two hosts joined by a path. Dropped, it leaves nothing behind.
#[derive(Debug)]
pub(crate) struct DemoHosts {
    // In the order in which they must go: daemons, hosts, folder.
    daemons: Vec<DaemonProcess>,
    hosts: TwoHosts,
    wire: Option<DemoWire>,
    sites: [Site; 2],
    path: DemoPath,
    /// Classes of traffic that were seen already.
    seen: BTreeSet<String>,
    dir: Workdir,
}

impl DemoHosts {
    /// Makes hosts, link, folder and, with `program`, keys; the same program runs the tunnel.
    pub(crate) fn set(path: DemoPath, program: &Path) -> Result<DemoHosts, Error> {
        let dir = Workdir::create()?;
        let (hosts, wire) = path.hosts()?;
        let sites = Site::pair(program, &hosts, dir.path())?;
        Ok(DemoHosts { daemons: Vec::new(), hosts, wire, sites, path, seen: BTreeSet::new(), dir })
    }

    /// Keeps the folder.
    pub(crate) fn keep(&mut self) {
        self.dir.keep();
    }

    /// Where configurations, keys and logs are.
    pub(crate) fn folder(&self) -> &Path {
        self.dir.path()
    }

    /// What has crossed the link so far.
    pub(crate) fn traffic(&self) -> Result<LinkTraffic, Error> {
        self.hosts.link.traffic()
    }

    /// Packets that the path has lost so far by chance, where it does.
    pub(crate) fn lost(&self) -> Option<u64> {
        self.path.loss.and(self.wire.as_ref()).map(DemoWire::lost)
    }

    /// Gets everything running that this way needs.
    pub(crate) fn start(&mut self, way: DemoVariant) -> Result<(), Error> {
        if way == DemoVariant::Plain {
            return Ok(());
        }
        let [a, b] = &self.sites;
        for (site, peer) in [(a, b), (b, a)] {
            let link = self.path.link.rate().map(|rate| paced(rate, rate)).unwrap_or_default();
            let sections = if way == DemoVariant::Compressed { rule(site, peer) } else { String::new() };
            let extra = Extra { link: &link, sections: &sections, ..Extra::default() };
            let config = site.configure(way.word(), &[peer], extra)?;
            self.daemons.push(site.start(&config, way.word())?);
        }
        for (daemon, peer) in self.daemons.iter().zip([b, a]) {
            daemon.wait_for_session(peer.name(), PATIENCE)?;
        }
        Ok(())
    }

    /// Moves one file from the first site to the second.
    pub(crate) fn transfer(
        &self,
        way: DemoVariant,
        file: &SampleFile,
        progress: &mut dyn FnMut(u64),
    ) -> Result<Moved, Error> {
        let before = self.traffic()?;
        let address = match way {
            DemoVariant::Plain => self.hosts.address_of_b().0,
            DemoVariant::Tunnel | DemoVariant::Compressed => self.sites[1].inside().into(),
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

    /// What was decided on the file that was just moved, where anything was to be decided.
    pub(crate) fn chosen(&mut self, way: DemoVariant) -> Result<Option<DecisionReport>, Failure> {
        let (DemoVariant::Compressed, Some(sender)) = (way, self.daemons.first()) else { return Ok(None) };
        let decisions = report(sender)?.decisions.into_iter().flatten();
        let fresh: Vec<DecisionReport> = decisions.filter(|it| self.seen.insert(it.class.clone())).collect();
        Ok(fresh.into_iter().max_by_key(|it| it.bytes_per_second))
    }

    /// Asks the daemons what they did and ends them, in order.
    pub(crate) fn finish(&mut self) -> Result<Vec<DemoTunnel>, Failure> {
        let daemons = std::mem::take(&mut self.daemons);
        let asked = daemons
            .iter()
            .map(|daemon| Ok((report(daemon)?, daemon.cost().map_err(failed)?)))
            .collect::<Result<Vec<(DaemonReport, ProcessCost)>, Failure>>()?;
        for daemon in daemons {
            let said = daemon.last_words();
            let status = daemon.stop().map_err(failed)?;
            if !status.success() {
                return Err(Failure::new(format!("a daemon ended with {status}; its log ends:\n{said}")));
            }
        }
        let names = self.sites.iter().map(|site| site.name().to_owned());
        Ok(names.zip(asked).map(|(name, (report, cost))| DemoTunnel { name, report, cost }).collect())
    }

    /// The ends of the daemons' logs.
    pub(crate) fn last_words(&self) -> String {
        let logs = self.sites.iter().zip(&self.daemons);
        let ends = logs.map(|(site, daemon)| format!("{} said:\n{}", site.name(), daemon.last_words()));
        ends.collect::<Vec<_>>().join("\n")
    }
}

/// What a daemon says of itself.
fn report(daemon: &DaemonProcess) -> Result<DaemonReport, Failure> {
    serde_json::from_value(daemon.show().map_err(failed)?).map_err(|error| {
        Failure::new(format!("`strait show --json` said something else than a report: {error}"))
    })
}

/// What may be compressed.
fn rule(site: &Site, peer: &Site) -> String {
    let (from, to) = (site.inside(), peer.inside());
    format!("[[compress]]\nfrom = \"{from}/32\"\nto = \"{to}/32\"\ndomain = \"demo\"\n")
}
