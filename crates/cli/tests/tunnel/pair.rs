//! Two sites with a daemon each, and what tests do with them.

use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;
use strait_scheduler::Rate;
pub(crate) use strait_testbed::outside::has;
use strait_testbed::{
    DaemonProcess, Extra, LinkSpec, Namespace, PORT, Site, Transfer, TwoHosts, WireLink, Workdir, children,
    sandbox,
};

/// How long anything may take: hosts share processors with other tests.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// Two sites, joined, each with a running daemon or none.
pub(crate) struct Pair {
    pub(crate) daemons: [Option<DaemonProcess>; 2],
    pub(crate) sites: [Site; 2],
    pub(crate) hosts: TwoHosts,
    pub(crate) dir: Workdir,
}

/// Whether hosts with tunnels can be made here; says so when a test is skipped.
pub(crate) fn allowed() -> bool {
    sandbox::allows_tests()
}

/// The program under test.
pub(crate) fn program() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_strait"))
}

/// A link fast enough not to matter.
pub(crate) fn fast() -> LinkSpec {
    LinkSpec::thin(Rate::from_bits(200_000_000).unwrap())
}

/// A site in the centre, numbered 9, and two others, numbered 1 and 2, each with a link to it, with these names; no daemons yet. A link
/// has the centre at its end `b`.
pub(crate) fn star(names: [&str; 3], dir: &Workdir) -> (Site, [Site; 2], [WireLink; 2]) {
    let [centre, a, b] = names.map(|name| Namespace::create(name).unwrap());
    let links =
        [WireLink::join(&a, &centre, 1, fast()).unwrap(), WireLink::join(&b, &centre, 2, fast()).unwrap()];
    let site = |host, number, address: IpAddr| {
        Site::create(program(), host, number, SocketAddr::new(address, PORT), dir.path()).unwrap()
    };
    let sites = [site(&a, 1, links[0].a.v4.into()), site(&b, 2, links[1].a.v4.into())];
    (site(&centre, 9, links[0].b.v4.into()), sites, links)
}

impl Pair {
    /// Two sites on `hosts`, with keys, and no daemons yet.
    pub(crate) fn idle(hosts: TwoHosts) -> Pair {
        let dir = Workdir::create().unwrap();
        let sites = Site::pair(program(), &hosts, dir.path()).unwrap();
        Pair { daemons: [None, None], sites, hosts, dir }
    }

    /// Two sites on `hosts` with daemons and a session.
    pub(crate) fn up(hosts: TwoHosts, extra: Extra<'_>) -> Pair {
        Pair::idle(hosts).and_up(extra)
    }

    /// The same with daemons and a session.
    pub(crate) fn and_up(mut self, extra: Extra<'_>) -> Pair {
        self.start(0, extra);
        self.start(1, extra);
        self.wait_for_session();
        self
    }

    /// Kills a daemon as hard as can be, and waits until it is gone.
    pub(crate) fn kill(&mut self, which: usize) {
        self.end(which, 9);
    }

    /// Tells the daemon of one site to end, and waits until it has.
    pub(crate) fn stop(&mut self, which: usize) {
        self.end(which, 15);
    }

    fn end(&mut self, which: usize, signal: i32) {
        let mut daemon = self.daemons[which].take().unwrap();
        daemon.signal(signal).unwrap();
        while daemon.ended().unwrap().is_none() {
            thread::sleep(Duration::from_millis(10));
        }
    }

    /// Starts the daemon of one site.
    pub(crate) fn start(&mut self, which: usize, extra: Extra<'_>) {
        let (site, peer) = (&self.sites[which], &self.sites[1 - which]);
        let config = site.configure("strait", &[peer], extra).unwrap();
        self.daemons[which] = Some(site.start(&config, "run").unwrap());
    }

    /// The daemon of one site.
    pub(crate) fn daemon(&self, which: usize) -> &DaemonProcess {
        self.daemons[which].as_ref().unwrap()
    }

    /// Waits until both can send to each other.
    pub(crate) fn wait_for_session(&self) {
        self.daemon(0).wait_for_session("site-b", PATIENCE).unwrap();
        self.daemon(1).wait_for_session("site-a", PATIENCE).unwrap();
    }

    /// Moves `size` bytes over TCP to the site `to`, inside the tunnel, and has them compared.
    pub(crate) fn tcp(&self, to: usize, family: Family, size: usize) {
        let content: Arc<[u8]> = (0..size).map(|at| u8::try_from(at * 7 % 251).unwrap()).collect();
        let hosts = [&self.hosts.a, &self.hosts.b];
        let transfer = Transfer {
            from: hosts[1 - to],
            to: hosts[to],
            address: self.inside(to, family),
            name: "test",
            content: &content,
            patience: PATIENCE,
        };
        transfer.run(&mut |_| {}).unwrap_or_else(|error| panic!("{error}\n{}", self.logs()));
    }

    /// A site's address inside the tunnel.
    pub(crate) fn inside(&self, which: usize, family: Family) -> IpAddr {
        match family {
            Family::V4 => self.sites[which].inside().into(),
            Family::V6 => self.sites[which].inside_v6().into(),
        }
    }

    /// A socket at a site's address inside the tunnel, which waits 5 s for a datagram.
    pub(crate) fn socket(&self, which: usize, family: Family) -> UdpSocket {
        let address = SocketAddr::new(self.inside(which, family), 0);
        let socket = self.sites[which].host.run("bind", || UdpSocket::bind(address)).unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        socket
    }

    /// The ends of both logs.
    pub(crate) fn logs(&self) -> String {
        let ends = self.daemons.iter().flatten().map(DaemonProcess::last_words);
        ends.collect::<Vec<_>>().join("\n----\n")
    }

    /// How many packets a site has dropped for a reason.
    pub(crate) fn drops(&self, which: usize, reason: &str) -> u64 {
        let report = self.daemon(which).show().unwrap();
        let found = report["drops"].as_array().unwrap().iter().find(|drop| drop["reason"] == reason);
        found.and_then(|drop| drop["packets"].as_u64()).unwrap_or_else(|| panic!("no {reason} in {report:#}"))
    }

    /// The processes that serve streams for files at a site.
    pub(crate) fn file_workers(&self, which: usize) -> Vec<u32> {
        let service = children(self.daemon(which).pid()).unwrap();
        let service = service.into_iter().filter(|(name, _)| name == "strait-service");
        let workers = service.flat_map(|(_, number)| children(number).unwrap());
        workers.filter(|(name, _)| name == "strait-files").map(|(_, number)| number).collect()
    }

    /// What a site shows about its only peer.
    pub(crate) fn peer(&self, which: usize) -> Value {
        self.daemon(which).show().unwrap()["peers"][0].clone()
    }
}

/// IPv4 or IPv6, inside the tunnel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Family {
    V4,
    V6,
}

/// Sends echo requests from a host, each once the one before is answered, until one stays without an answer; how many were answered,
/// and what `ping` said last. Of several requests `ping` waits for the last answer for two round trips only, however long `-W` is.
pub(crate) fn echoes(from: &Namespace, count: usize, arguments: &[&str]) -> (usize, String) {
    let mut said = String::new();
    let answered = (0..count).take_while(|_| {
        let output =
            from.command("ping").args(["-n", "-c", "1", "-W", "10"]).args(arguments).output().unwrap();
        said = [output.stdout, output.stderr].map(|it| String::from_utf8_lossy(&it).into_owned()).concat();
        output.status.success()
    });
    (answered.count(), said)
}

/// Looks at a value until it stays as it is, and returns it.
pub(crate) fn settled<T: PartialEq>(what: &str, mut look: impl FnMut() -> T) -> T {
    let (mut last, mut same) = (look(), 0);
    eventually(what, || {
        let now = look();
        same = if now == last { same + 1 } else { 0 };
        last = now;
        same == 5
    });
    last
}

/// Looks again until `good` holds.
pub(crate) fn eventually(what: &str, mut good: impl FnMut() -> bool) {
    let start = Instant::now();
    while !good() {
        assert!(start.elapsed() < PATIENCE, "never: {what}");
        thread::sleep(Duration::from_millis(50));
    }
}
