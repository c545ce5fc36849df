//! Two hosts, a link, and a tunnel over it.

use std::net::IpAddr;
use std::path::Path;
use std::time::Duration;

use strait_scheduler::Rate;

use crate::{DaemonProcess, Error, Extra, LinkSpec, ProcessCost, Site, TwoHosts, Workdir};

/// Ethernet's header, which the link's token bucket counts with every datagram.
const OVERHEAD: u8 = 14;
/// Paced daemons send at this many thousandths of the link's rate: just under it, so that the queue stands with them
/// and not in the link.
const PACE: u64 = 995;
/// How long a session may take: the slowest link needs a second for a handshake.
const PATIENCE: Duration = Duration::from_secs(30);

/// Two sites with a daemon each and a session between them. Dropped, it leaves nothing behind.
#[derive(Debug)]
pub struct TestTunnel {
    // In the order in which they must go: daemons, hosts, folder.
    daemons: [DaemonProcess; 2],
    /// The hosts.
    pub hosts: TwoHosts,
    /// The sites on them.
    pub sites: [Site; 2],
    _dir: Workdir,
}

impl TestTunnel {
    /// A tunnel of two `program`s over a link like `spec`, paced at its rates if it has any; `extra` is the same at both ends.
    ///
    /// # Errors
    /// [`Error::System`] when the kernel refuses hosts or links, [`Error::Command`] when there are no keys, and as
    /// [`DaemonProcess::start`] and [`DaemonProcess::wait_for_session`].
    pub fn open(program: &Path, spec: LinkSpec, extra: Extra<'_>) -> Result<TestTunnel, Error> {
        TestTunnel::between(program, TwoHosts::direct(spec)?, spec.rates(), extra)
    }

    /// A tunnel of two `program`s between `hosts`, told the rates at which the first and the second send, if any.
    ///
    /// # Errors
    /// As [`TestTunnel::open`].
    pub fn between(
        program: &Path,
        hosts: TwoHosts,
        rates: [Option<Rate>; 2],
        extra: Extra<'_>,
    ) -> Result<TestTunnel, Error> {
        let dir = Workdir::create()?;
        let sites = Site::pair(program, &hosts, dir.path())?;
        let [a, b] = &sites;
        let [there, back] = rates;
        let start = |site: &Site, peer: &Site, up: Option<Rate>, down: Option<Rate>| {
            let link = format!(
                "{}{}",
                up.zip(down).map(|(up, down)| paced(up, down)).unwrap_or_default(),
                extra.link
            );
            site.start(&site.configure("tunnel", &[peer], Extra { link: &link, ..extra })?, "run")
        };
        let daemons = [start(a, b, there, back)?, start(b, a, back, there)?];
        for (daemon, peer) in daemons.iter().zip([b, a]) {
            daemon.wait_for_session(peer.name(), PATIENCE)?;
        }
        Ok(TestTunnel { daemons, hosts, sites, _dir: dir })
    }

    /// The daemons, in the order of the sites.
    #[must_use]
    pub const fn daemons(&self) -> &[DaemonProcess; 2] {
        &self.daemons
    }

    /// What the daemons have used.
    ///
    /// # Errors
    /// [`Error::System`] when one has ended.
    pub fn costs(&self) -> Result<[ProcessCost; 2], Error> {
        let [a, b] = &self.daemons;
        Ok([a.cost()?, b.cost()?])
    }

    /// The second site's IPv4 address inside the tunnel.
    #[must_use]
    pub const fn far_address(&self) -> IpAddr {
        IpAddr::V4(self.sites[1].inside())
    }
}

/// The lines of a configuration's `[link]` that pace at the rates, up and down, of a link of the testbed.
#[must_use]
pub fn paced(up: Rate, down: Rate) -> String {
    let [up, down] = [up, down].map(|rate| rate.bits() * PACE / 1000);
    format!("up = \"{up}bit\"\ndown = \"{down}bit\"\noverhead = {OVERHEAD}\n")
}
