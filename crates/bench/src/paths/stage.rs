//! A path with hosts at its ends and a tunnel over it, or none; and one TCP stream with pings beside it.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use strait_scheduler::Rate;
use strait_sim::{LinkSettings, LossModel, SimLink};
use strait_testbed::{
    EmulatedPath, Extra, FrameDirection, LinkSpec, Networks, PingTrain, Relay, Stream, TestTunnel, TwoHosts,
    interrupt,
};

use crate::echo::within;
use crate::error::Error;
use crate::random::rate;
use crate::stage::{BenchSetup, MTU, rule};
use crate::wireguard::{WireGuard, WireguardSearch, find, inside};

/// What the modem's queue holds: as much as that of the shaped links of the other benchmarks.
const QUEUE: Duration = Duration::from_millis(300);
/// Bytes of a frame beside its IP packet.
const ETHERNET: u64 = 14;
/// Between two pings: few enough that they take less than a hundredth of 2 Mbit/s.
const PINGS: Duration = Duration::from_millis(100);
/// How long pings go before a stream, besides two round trips.
const IDLE: Duration = Duration::from_secs(2);
/// Until what a stream left in queues has drained, besides two round trips.
const DRAIN: Duration = Duration::from_secs(1);

/// What lies between two hosts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ThinPath {
    /// Mbit/s each way; none is as fast as memory.
    pub(crate) megabits: Option<f64>,
    /// Milliseconds of the empty path's round trip; none is the kernel's own link, without a delay.
    pub(crate) rtt: Option<u64>,
    /// What is lost, each way.
    pub(crate) loss: LossModel,
}

impl ThinPath {
    /// A path that loses nothing but what its queue cannot hold.
    pub(crate) const fn clean(megabits: f64, rtt: u64) -> ThinPath {
        ThinPath { megabits: Some(megabits), rtt: Some(rtt), loss: LossModel::None }
    }

    /// The rate each way, if there is one.
    pub(crate) fn rate(self) -> Option<Rate> {
        self.megabits.map(rate)
    }

    fn round_trip(self) -> Duration {
        Duration::from_millis(self.rtt.unwrap_or(0))
    }

    /// Its ends, and what must live as long as they are used; `seed` decides what is lost.
    pub(crate) fn hosts(self, seed: u64) -> Result<(TwoHosts, Option<(Relay, EmulatedPath)>), Error> {
        if let (Some(rate), Some(_)) = (self.rate(), self.rtt) {
            let modem = LinkSettings::modem(rate, self.round_trip() / 2, QUEUE);
            let settings = LinkSettings { loss: self.loss, ..modem };
            let path = EmulatedPath::new(SimLink::new(settings, seed), SimLink::new(settings, !seed));
            let (hosts, relay) = Relay::over(&path)?;
            return Ok((hosts, Some((relay, path))));
        }
        let hosts = TwoHosts::direct(self.rate().map_or(LinkSpec::unshaped(), LinkSpec::thin))?;
        Ok((hosts.with_cubic()?, None))
    }
}

impl fmt::Display for ThinPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.megabits {
            Some(megabits) => write!(f, "{megabits} Mbit/s")?,
            None => f.write_str("no limit")?,
        }
        if let Some(rtt) = self.rtt {
            write!(f, ", {rtt} ms")?;
        }
        match self.loss {
            LossModel::None => Ok(()),
            LossModel::Uniform(share) => write!(f, ", {} % lost", share * 100.0),
            LossModel::Bursts { begin, end, .. } => {
                write!(f, ", {:.0} % lost, {:.0} in a row", begin / (begin + end) * 100.0, 1.0 / end)
            }
        }
    }
}

/// What carries the traffic over a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PathWay {
    /// Nothing but the path.
    Plain,
    WireGuard,
    /// Strait, which is told the rate.
    Told,
    /// Strait, which finds it.
    Auto,
}

impl PathWay {
    pub(super) const fn name(self) -> &'static str {
        match self {
            PathWay::Plain => "plain",
            PathWay::WireGuard => "wireguard-go",
            PathWay::Told => "rate told",
            PathWay::Auto => "auto",
        }
    }
}

/// Where the programs are.
#[derive(Clone, Debug)]
pub(super) struct PathPrograms {
    strait: PathBuf,
    wireguard: Option<PathBuf>,
    /// Which wireguard-go it is, or why there is none.
    pub(super) note: String,
}

impl PathPrograms {
    pub(super) fn find(setting: &BenchSetup) -> Result<PathPrograms, Error> {
        let strait = setting.program.clone();
        if !strait.is_file() {
            return Err(Error::NoProgram(strait));
        }
        let (wireguard, note) = match find(&setting.cache) {
            WireguardSearch::Here { program, version } => {
                let note = format!("{version} is {}", program.display());
                (Some(program), note)
            }
            WireguardSearch::Missing(why) => (None, format!("wireguard-go is left out: {why}")),
        };
        Ok(PathPrograms { strait, wireguard, note })
    }
}

/// What runs at the ends of a path.
#[derive(Debug)]
enum PathEnds {
    Bare(TwoHosts),
    // Goes before the hosts it runs on.
    WireGuard([WireGuard; 2], TwoHosts),
    Strait(Box<TestTunnel>),
}

/// A path with what carries traffic over it. Dropped, it leaves nothing behind.
#[derive(Debug)]
pub(super) struct PathStage {
    pub(super) way: PathWay,
    path: ThinPath,
    // Goes before the relay: daemons say goodbye.
    ends: PathEnds,
    relay: Option<(Relay, EmulatedPath)>,
}

/// What one stream did.
#[derive(Clone, Copy, Debug)]
pub(super) struct PathRun {
    /// Mbit/s that arrived from the call to connect on.
    pub(super) goodput: f64,
    /// Milliseconds of a ping before, in the middle.
    pub(super) idle: f64,
    /// What 95 of 100 stayed within beside the stream.
    pub(super) beside: f64,
}

impl PathStage {
    /// Nothing where there is no wireguard-go; `peer` has more lines of Strait's `[[peer]]`.
    pub(super) fn set(
        programs: &PathPrograms,
        path: ThinPath,
        way: PathWay,
        peer: &str,
        seed: u64,
    ) -> Result<Option<PathStage>, Error> {
        let (hosts, relay) = path.hosts(seed)?;
        let ends = match (way, &programs.wireguard) {
            (PathWay::Plain, _) => PathEnds::Bare(hosts),
            (PathWay::WireGuard, None) => return Ok(None),
            (PathWay::WireGuard, Some(program)) => {
                PathEnds::WireGuard(WireGuard::pair(program, &hosts, MTU)?, hosts)
            }
            (PathWay::Told, _) => PathEnds::Strait(tunnel(programs, hosts, [path.rate(); 2], "", peer)?),
            (PathWay::Auto, _) => PathEnds::Strait(tunnel(programs, hosts, [None; 2], AUTO, peer)?),
        };
        Ok(Some(PathStage { way, path, ends, relay }))
    }

    pub(super) fn hosts(&self) -> &TwoHosts {
        match &self.ends {
            PathEnds::Bare(hosts) | PathEnds::WireGuard(_, hosts) => hosts,
            PathEnds::Strait(tunnel) => &tunnel.hosts,
        }
    }

    /// The second host's address this way.
    pub(super) fn address(&self) -> IpAddr {
        match &self.ends {
            PathEnds::Bare(hosts) => hosts.address_of_b().0,
            PathEnds::WireGuard(..) => inside(1).into(),
            PathEnds::Strait(tunnel) => tunnel.far_address(),
        }
    }

    /// Bytes of the outer IP packets that an emulated path has taken, both ways.
    pub(super) fn wire(&self) -> u64 {
        let Some((_, path)) = &self.relay else { return 0 };
        let counters = [FrameDirection::There, FrameDirection::Back].map(|way| path.counters(way));
        counters.iter().map(|it| it.bytes - ETHERNET * it.carried).sum()
    }

    /// Has the tunnel lead to the networks behind both hosts, if it does not yet.
    pub(super) fn reach(&self, networks: [Ipv4Addr; 2]) -> Result<(), Error> {
        let PathEnds::WireGuard([a, b], _) = &self.ends else { return Ok(()) };
        let [behind_a, behind_b] = networks;
        a.lead_to(behind_b, inside(1))?;
        b.lead_to(behind_a, inside(0))
    }

    /// One stream of `content`, and a pause after it: Mbit/s that arrived from the call to connect on.
    pub(super) fn transfer(&self, content: &Arc<[u8]>, window: Duration) -> Result<f64, Error> {
        let (from, to) = (&self.hosts().a, &self.hosts().b);
        let (address, begin) = (SocketAddr::new(self.address(), 0), Instant::now());
        let stream = Stream { from, to, address, content, warm_up: Duration::ZERO, window }.start()?;
        interrupt::pause(window)?;
        let goodput = stream.received() as f64 * 8.0 / begin.elapsed().as_secs_f64() / 1e6;
        stream.stop()?;
        interrupt::pause(self.path.round_trip() * 2 + DRAIN)?;
        Ok(goodput)
    }

    /// One stream of `content`, with pings before and beside it, and a pause after it.
    pub(super) fn stream(&self, content: &Arc<[u8]>, window: Duration) -> Result<PathRun, Error> {
        let (from, to) = (&self.hosts().a, &self.hosts().b);
        let address = SocketAddr::new(self.address(), 0);
        let pings = PingTrain::start(from, to, address, PINGS)?;
        let trips = self.path.round_trip() * 2;
        // The first pings find addresses and, with wireguard-go, keys.
        interrupt::pause(trips + IDLE / 2)?;
        let quiet = Instant::now();
        interrupt::pause(IDLE / 2 + trips)?;
        let begin = Instant::now();
        let goodput = self.transfer(content, window)?;
        let end = begin + window;
        let idle = within(&mut pings.round_trips(quiet, begin).0, 50);
        let beside = within(&mut pings.round_trips(begin, end).0, 95);
        pings.stop()?;
        Ok(PathRun { goodput, idle, beside })
    }
}

/// The lines of `[link]` that have Strait look for the rate of a link of the testbed.
const AUTO: &str = "up = \"auto\"\ndown = \"auto\"\noverhead = 14\n";

fn tunnel(
    programs: &PathPrograms,
    hosts: TwoHosts,
    rates: [Option<Rate>; 2],
    link: &str,
    peer: &str,
) -> Result<Box<TestTunnel>, Error> {
    let node = format!("mtu = {MTU}");
    let sections = rule("auto", "").replace("10.77.0.0/24", "10.0.0.0/8");
    let extra = Extra { node: &node, peer, link, sections: &sections, networks: Networks::Reached };
    Ok(Box::new(TestTunnel::between(&programs.strait, hosts, rates, extra)?))
}

/// The same stream over several paths, at the same time: none of them needs a noticeable part of the machine.
pub(super) fn side_by_side(
    stages: &[PathStage],
    content: &Arc<[u8]>,
    window: Duration,
) -> Result<Vec<PathRun>, Error> {
    thread::scope(|scope| {
        let running: Vec<_> =
            stages.iter().map(|stage| scope.spawn(|| stage.stream(content, window))).collect();
        let ended = stages.iter().zip(running).map(|(stage, thread)| {
            let way = stage.way.name().to_owned();
            thread.join().map_err(|_| Error::Silent { what: "a stream", way })?
        });
        // All are waited for, whatever becomes of one.
        ended.collect::<Vec<_>>().into_iter().collect()
    })
}
