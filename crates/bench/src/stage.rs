//! Two hosts, a link, and what runs between them while it is measured.

use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};

use strait_scheduler::Rate;
use strait_testbed::outside::{Sshd, SshdProgram};
use strait_testbed::{DaemonProcess, Extra, LinkSpec, ProcessCost, TestTunnel, TwoHosts, Workdir, interrupt};

use crate::error::Error;
use crate::peers::PeerWay;
use crate::report::BenchSection;
use crate::wireguard::{WireGuard, WireguardSearch, find, inside};

/// Inner MTU of both tunnels: what an outer path of 1,500 bytes carries, and wireguard-go's default.
pub(crate) const MTU: u32 = 1420;
/// Where programs are found, and how much is to be measured.
#[derive(Clone, Debug)]
pub(crate) struct BenchSetup {
    /// The `strait` to measure.
    pub(crate) program: PathBuf,
    /// Where wireguard-go is installed if it is nowhere.
    pub(crate) cache: PathBuf,
    /// How much.
    pub(crate) effort: BenchEffort,
    /// Which sections of a benchmark that has several; all, where there is none.
    pub(crate) part: Option<String>,
    /// Which tunnels of the benchmark `peers` beside Strait; all, where there is none.
    pub(crate) tunnels: Vec<PeerWay>,
    /// An older and a newer release of a package, between which a delta is measured; without them, generated ones.
    pub(crate) releases: Option<[PathBuf; 2]>,
}

impl BenchSetup {
    /// Checks that the program is there that is measured.
    ///
    /// # Errors
    /// [`Error::NoProgram`].
    pub(crate) fn has_program(&self) -> Result<(), Error> {
        if self.program.is_file() { Ok(()) } else { Err(Error::NoProgram(self.program.clone())) }
    }

    /// An sshd on the second of `hosts` with its files in `dir`, which clients on the first trust; or why there is none.
    pub(crate) fn sshd(&self, hosts: &TwoHosts, dir: &Workdir) -> Result<Sshd, String> {
        let program = SshdProgram::find(&self.cache.with_file_name("openssh"))?;
        let address = hosts.address_of_b().0;
        let started = Sshd::start(&program, &hosts.b, address, &dir.path().join("sshd"));
        started.and_then(|sshd| sshd.trusted_at(address).map(|()| sshd)).map_err(|error| error.to_string())
    }
}

/// How much is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BenchEffort {
    /// As much as figures need that are to be trusted.
    Full,
    /// A few seconds, to see that all is well.
    Quick,
}

impl BenchEffort {
    /// One or the other.
    pub(crate) fn pick<T>(self, full: T, quick: T) -> T {
        if self == BenchEffort::Full { full } else { quick }
    }
}

/// A way from the first host to the second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BenchRoute {
    /// Beside the tunnels.
    Plain,
    /// Through Strait.
    Strait,
    /// Through wireguard-go.
    WireGuard,
}

impl BenchRoute {
    /// In the order of tables and of runs.
    pub(crate) const ALL: [BenchRoute; 3] = [BenchRoute::Plain, BenchRoute::Strait, BenchRoute::WireGuard];

    /// Its name in tables.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            BenchRoute::Plain => "plain link",
            BenchRoute::Strait => "Strait",
            BenchRoute::WireGuard => "wireguard-go",
        }
    }
}

/// Hosts, link and tunnels. Dropped, it leaves nothing behind.
#[derive(Debug)]
pub(crate) struct BenchHosts {
    // Goes before the hosts it runs on.
    wireguard: Option<[WireGuard; 2]>,
    tunnel: TestTunnel,
}

impl BenchHosts {
    /// A link like `spec` with Strait over it, paced at the link's rate if it has one, with what `extra` has besides.
    pub(crate) fn set(program: &Path, spec: LinkSpec, extra: Extra<'_>) -> Result<BenchHosts, Error> {
        if !program.is_file() {
            return Err(Error::NoProgram(program.to_owned()));
        }
        let node = format!("mtu = {MTU}\n{}", extra.node);
        let tunnel = TestTunnel::open(program, spec, Extra { node: &node, ..extra })?;
        Ok(BenchHosts { wireguard: None, tunnel })
    }

    /// A link of `rate` with Strait over it that knows of no rate, as a plain tunnel does: its queue is the link's.
    pub(crate) fn unpaced(program: &Path, rate: Rate) -> Result<BenchHosts, Error> {
        let mut stage =
            BenchHosts::set(program, LinkSpec { rate: None, ..LinkSpec::thin(rate) }, Extra::default())?;
        stage.tunnel.hosts.link.set_rate(Some(rate))?;
        Ok(stage)
    }

    /// The hosts.
    pub(crate) const fn hosts(&self) -> &TwoHosts {
        &self.tunnel.hosts
    }

    /// The daemons at both ends.
    pub(crate) const fn daemons(&self) -> &[DaemonProcess; 2] {
        self.tunnel.daemons()
    }

    /// Adds wireguard-go beside Strait, if it is to be had; says which it is, or why it is left out.
    pub(crate) fn add_wireguard(&mut self, cache: &Path) -> Result<String, Error> {
        match find(cache) {
            WireguardSearch::Missing(why) => Ok(format!("wireguard-go is left out: {why}")),
            WireguardSearch::Here { program, version } => {
                self.wireguard = Some(WireGuard::pair(&program, self.hosts(), MTU)?);
                Ok(format!("{version} is {}", program.display()))
            }
        }
    }

    /// The ways there are.
    pub(crate) fn ways(&self) -> Vec<BenchRoute> {
        BenchRoute::ALL
            .into_iter()
            .filter(|way| *way != BenchRoute::WireGuard || self.wireguard.is_some())
            .collect()
    }

    /// The second host's address, which a packet takes this way.
    pub(crate) fn address(&self, way: BenchRoute) -> IpAddr {
        match way {
            BenchRoute::Plain => self.hosts().address_of_b().0,
            BenchRoute::Strait => self.tunnel.far_address(),
            BenchRoute::WireGuard => inside(1).into(),
        }
    }

    /// The second host's address this way, and any port.
    pub(crate) fn any_port(&self, way: BenchRoute) -> SocketAddr {
        SocketAddr::new(self.address(way), 0)
    }

    /// What the processes at both ends of a way have used; nothing where there are none.
    pub(crate) fn costs(&self, way: BenchRoute) -> Result<Option<[ProcessCost; 2]>, Error> {
        match (way, &self.wireguard) {
            (BenchRoute::Strait, _) => Ok(Some(self.tunnel.costs()?)),
            (BenchRoute::WireGuard, Some([a, b])) => Ok(Some([a.cost()?, b.cost()?])),
            _ => Ok(None),
        }
    }
}

/// Measures one section.
pub(crate) type BenchPart = fn(&BenchSetup) -> Result<BenchSection, Error>;

/// A benchmark of several sections, each given to `done` when it is measured. A part that cannot run does not keep the others
/// from it; the first error is given back.
pub(crate) fn each_part(
    parts: &[(&str, BenchPart)],
    setting: &BenchSetup,
    done: &mut dyn FnMut(BenchSection),
) -> Result<(), Error> {
    let mut first = Ok(());
    let is_wanted = |name: &str| setting.part.as_ref().is_none_or(|part| part == name);
    for (_, part) in parts.iter().filter(|(name, _)| is_wanted(name)) {
        match part(setting) {
            Ok(section) => done(section),
            Err(error) if first.is_ok() => first = Err(error),
            Err(_) => {}
        }
        interrupt::check()?;
    }
    first
}

/// The line of `[link]` with which every packet goes by itself.
pub(crate) const ALONE: &str = "window = 1";

/// What such a tunnel is called in tables, beside the one that bundles.
pub(crate) const NAMES: [&str; 2] = ["window = 1", "Strait"];

/// Two links like `spec` with a tunnel over each that compresses by `rules`: where every packet goes by itself, and where
/// they are aggregated.
pub(crate) fn pair(program: &Path, spec: LinkSpec, rules: &str) -> Result<[BenchHosts; 2], Error> {
    let set = |link| BenchHosts::set(program, spec, Extra { link, sections: rules, ..Extra::default() });
    Ok([set(ALONE)?, set("")?])
}

/// A rule that compresses everything between the two sites with `codec`; with ports, only what goes there.
pub(crate) fn rule(codec: &str, ports: &str) -> String {
    format!(
        "\n[[compress]]\nfrom = \"10.77.0.0/24\"\nto = \"10.77.0.0/24\"\n{ports}\ndomain = \"bench\"\n\
         codec = \"{codec}\"\n"
    )
}
