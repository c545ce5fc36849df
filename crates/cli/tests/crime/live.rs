//! A live tunnel as the client uses it.

use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use strait_compress::Method;
use strait_ipsec::{LeakPolicy, Mix, Padding};
use strait_lab::crime::{CrimePlace, LengthOracle, sections};
use strait_testbed::attack::{WireTap, esp_of};
use strait_testbed::{DaemonProcess, Error, Extra, Feed, LinkSpec, Networks, Site, TwoHosts, Workdir};

/// How long anything may take: hosts share processors with other tests.
const PATIENCE: Duration = Duration::from_secs(20);
/// Datagrams shorter than this are the daemons' own: reports and conditions. An observer knows them by their length.
const LEAST: usize = 100;
/// The link, which is as fast as memory, is paced so: packets that are read together wait for each other then. At this rate, it pays to
/// compress what becomes a little shorter on any machine, however busy with other tests it measured itself to be.
const UP: &str = "up = \"5Mbit\"";
/// Silence after which nothing more is expected of a guess: two datagrams leave 2.5 ms apart.
const QUIET: Duration = Duration::from_millis(5);
/// How often the client sends a guess again that left in another number of datagrams, since something of the daemon's own came between.
const AGAIN: usize = 20;
/// SIGCONT and SIGSTOP.
const GO_ON: i32 = 18;
const HALT: i32 = 19;

/// Two sites with a daemon each, whose hosts have the addresses of the simulated ones.
pub(crate) struct LiveTunnel {
    feed: Feed,
    tap: WireTap,
    /// Datagrams of a guess, where that is known: the client drops what left otherwise.
    datagrams: Option<usize>,
    /// Guesses sent again.
    pub(crate) again: u64,
    // In the order in which they must go.
    daemons: [DaemonProcess; 2],
    _hosts: TwoHosts,
    _dir: Workdir,
}

impl LiveTunnel {
    /// A tunnel whose rules compress so and have this policy.
    pub(crate) fn open(policy: LeakPolicy, place: CrimePlace, method: Method) -> LiveTunnel {
        let dir = Workdir::create().unwrap();
        let hosts = TwoHosts::direct(LinkSpec { mtu: 1_600, ..LinkSpec::unshaped() }).unwrap();
        let sites = Site::pair(Path::new(env!("CARGO_BIN_EXE_strait")), &hosts, dir.path()).unwrap();
        let sections = sections(policy, place, method);
        let start = |at: usize, link: &str, sections: &str| {
            let (site, peer) = (&sites[at], &sites[1 - at]);
            let extra =
                Extra { node: "mtu = 1420", peer: "mtu = 1500", link, sections, networks: Networks::Reached };
            let text = site.configuration(&[peer], extra);
            let text = text.replace("10.98.0.0/16", "10.0.1.0/24").replace("10.99.0.0/16", "10.0.2.0/24");
            let path = site.folder().join("strait.toml");
            std::fs::write(&path, text).unwrap();
            site.start(&path, "run").unwrap()
        };
        let daemons = [start(0, UP, &sections), start(1, "", "")];
        daemons[0].wait_for_session("site-b", PATIENCE).unwrap();
        daemons[1].wait_for_session("site-a", PATIENCE).unwrap();
        // Nothing is behind the second site, and its host would say so.
        let quiet =
            hosts.b.command("ip").args(["route", "add", "blackhole", "10.0.2.0/24"]).status().unwrap();
        assert!(quiet.success());
        let (feed, tap) = (Feed::open(&hosts.a).unwrap(), WireTap::open(&hosts.link.b).unwrap());
        let alone = policy.mix == Mix::Flow;
        let datagrams = match place {
            _ if policy.padding == Padding::Constant => None,
            CrimePlace::NoRule => None,
            CrimePlace::OtherDomain => Some(2),
            CrimePlace::OtherFlow if alone => Some(2),
            CrimePlace::SamePacket | CrimePlace::SameFlow | CrimePlace::OtherFlow => Some(1),
        };
        LiveTunnel { feed, tap, datagrams, again: 0, daemons, _hosts: hosts, _dir: dir }
    }

    /// The lengths of what crosses until the wire is silent; at least one datagram does.
    fn crossing(&mut self) -> Result<Vec<usize>, Error> {
        let (begin, mut last, mut seen) = (Instant::now(), Instant::now(), Vec::new());
        while seen.is_empty() || last.elapsed() < QUIET {
            assert!(begin.elapsed() < PATIENCE, "nothing crosses");
            let length = self.tap.frame()?.and_then(esp_of).map(<[u8]>::len);
            match length {
                Some(length) if length >= LEAST => {
                    seen.push(length);
                    last = Instant::now();
                }
                Some(_) => {}
                None => thread::sleep(Duration::from_micros(50)),
            }
        }
        Ok(seen)
    }
}

impl LengthOracle for LiveTunnel {
    type Error = Error;

    fn carry(&mut self, packets: &[Vec<u8>]) -> Result<Vec<usize>, Error> {
        let mut seen = Vec::new();
        for _ in 0..AGAIN {
            // What came late for the guess before.
            while self.tap.frame()?.is_some() {}
            // The daemon finds all packets of the guess together. On a busy machine it would else wake up between two of them.
            self.daemons[0].signal(HALT)?;
            packets.iter().try_for_each(|packet| self.feed.send(packet))?;
            self.daemons[0].signal(GO_ON)?;
            seen = self.crossing()?;
            if self.datagrams.is_none_or(|datagrams| seen.len() == datagrams) {
                break;
            }
            self.again += 1;
        }
        Ok(seen)
    }
}
