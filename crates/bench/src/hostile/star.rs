//! A hub, its sites, and a host that is none of them, each joined to the hub by a link of its own.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use strait_testbed::attack::AttackRoute;
use strait_testbed::{
    DaemonProcess, Extra, LinkSpec, Namespace, PORT, Site, WireLink, Workdir, interrupt, paced,
};

use super::watch::HonestTraffic;
use crate::error::Error;

/// The hub's number among the sites, and that of the stranger's link.
const HUB: u8 = 250;
const STRANGER: u8 = 200;
/// How long a session may take: the slowest link needs a second for a handshake.
const PATIENCE: Duration = Duration::from_secs(30);

/// The signal that no process can catch (signal(7)).
const KILL: i32 = 9;
/// How often is looked whether a daemon has ended.
const TICK: Duration = Duration::from_millis(10);

/// A site that is to be joined to the hub.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spoke<'a> {
    pub(crate) name: &'a str,
    /// Its link, at whose rates its daemon paces, and has the hub pace.
    pub(crate) spec: LinkSpec,
    pub(crate) extra: Extra<'a>,
}

/// Daemons on a hub and its sites, with sessions. Dropped, it leaves nothing behind.
#[derive(Debug)]
pub(crate) struct HubStar {
    // In the order in which they must go: daemons, hosts, folder.
    pub(crate) hub: DaemonProcess,
    pub(crate) daemons: Vec<DaemonProcess>,
    pub(crate) centre: Site,
    pub(crate) sites: Vec<Site>,
    /// From each site to the hub.
    pub(crate) links: Vec<WireLink>,
    /// From a host without keys to the hub, which answers by it whatever comes from nowhere.
    pub(crate) stranger: WireLink,
    _dir: Workdir,
}

impl HubStar {
    /// With `extra` in the hub's configuration.
    pub(crate) fn up(program: &Path, spokes: &[Spoke<'_>], extra: Extra<'_>) -> Result<HubStar, Error> {
        if !program.is_file() {
            return Err(Error::NoProgram(program.to_owned()));
        }
        let (dir, host, other) =
            (Workdir::create()?, Namespace::create("hub")?, Namespace::create("stranger")?);
        let stranger = WireLink::join(&other, &host, STRANGER, LinkSpec::unshaped())?;
        AttackRoute::open_to_the_world(&stranger)?;
        let (mut sites, mut links) = (Vec::new(), Vec::new());
        for (number, spoke) in (1..).zip(spokes) {
            let site = Namespace::create(spoke.name)?;
            let link = WireLink::join(&site, &host, number, spoke.spec)?;
            let outside = SocketAddr::new(link.a.v4.into(), PORT);
            sites.push(Site::create(program, &site, number, outside, dir.path())?);
            links.push(link);
        }
        let outside = SocketAddr::new(stranger.b.v4.into(), PORT);
        let centre = Site::create(program, &host, HUB, outside, dir.path())?;
        let peers: Vec<&Site> = sites.iter().collect();
        let hub = centre.start(&centre.configure("hub", &peers, extra)?, "run")?;
        let mut daemons = Vec::new();
        for ((spoke, site), link) in spokes.iter().zip(&sites).zip(&links) {
            // Each sees the hub at its own link.
            let mut peer = centre.clone();
            peer.outside = SocketAddr::new(link.b.v4.into(), PORT);
            let [up, down] = spoke.spec.rates();
            let pace = up.zip(down).map(|(up, down)| paced(up, down)).unwrap_or_default();
            let pace = format!("{pace}{}", spoke.extra.link);
            let config = site.configure("site", &[&peer], Extra { link: &pace, ..spoke.extra })?;
            daemons.push(site.start(&config, "run")?);
        }
        for (daemon, site) in daemons.iter().zip(&sites) {
            daemon.wait_for_session("hub", PATIENCE)?;
            hub.wait_for_session(site.name(), PATIENCE)?;
        }
        Ok(HubStar { hub, daemons, centre, sites, links, stranger, _dir: dir })
    }

    /// Traffic between the site at a place and the hub.
    pub(crate) fn traffic<'a>(
        &'a self,
        place: usize,
        content: &'a Arc<[u8]>,
        window: Duration,
    ) -> HonestTraffic<'a> {
        let end = |site: &'a Site| (&site.host, site.inside());
        let ends = [end(&self.sites[place]), end(&self.centre)];
        HonestTraffic { ends, stranger: &self.stranger, content, window }
    }

    /// Kills the daemon of the site at a place and starts it again; says when it was ready.
    pub(crate) fn restart(&mut self, place: usize) -> Result<Instant, Error> {
        let (site, daemon) = (&self.sites[place], &mut self.daemons[place]);
        daemon.signal(KILL)?;
        while daemon.ended()?.is_none() {
            interrupt::pause(TICK)?;
        }
        *daemon = site.start(&site.folder().join("site.toml"), "run")?;
        Ok(Instant::now())
    }
}
