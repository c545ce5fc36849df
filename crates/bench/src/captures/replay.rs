//! Packets through a real tunnel, as fast as it takes them.

use std::fmt;
use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

use serde_json::Value;
use strait_testbed::{DaemonProcess, Feed, LinkTraffic, interrupt};

use crate::error::Error;
use crate::stage::BenchHosts;

/// The networks behind the two sites of the testbed.
pub(super) const NETWORKS: [Ipv4Addr; 2] = [Ipv4Addr::new(10, 98, 0, 0), Ipv4Addr::new(10, 99, 0, 0)];
/// How many packets are fed at once at most: less than a tunnel device's queue of 500 holds.
const BURST: usize = 100;
/// How many bytes may wait in the tunnel before more are fed: what hosts keep under way on such a link, and more than leaves
/// between two looks.
const WAITING: usize = 48 * 1024;
/// Between two looks.
const TICK: Duration = Duration::from_millis(10);
/// How long nothing may move until everything has arrived.
const STILL: Duration = Duration::from_millis(400);
/// How long packets may take; the slowest capture takes a minute.
const PATIENCE: Duration = Duration::from_secs(180);
/// Bytes of a frame beside its IP packet.
const ETHERNET: u64 = 14;

/// A tunnel, and what feeds it.
#[derive(Debug)]
pub(super) struct CaptureReplay {
    stage: BenchHosts,
    feed: Feed,
}

/// What came of some packets.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReplayResult {
    /// Bytes of outer IP packets, those that go back included.
    pub(super) wire: u64,
    /// Bytes of the inner packets that arrived.
    pub(super) inner: u64,
    /// Packets that did not.
    pub(super) lost: u64,
}

impl fmt::Display for ReplayResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes on the wire, {} packets lost", self.wire, self.lost)
    }
}

/// Counters at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ReplayCounters {
    /// Bytes and frames on the link, both directions.
    link: (u64, u64),
    /// Bytes and packets that arrived.
    arrived: (u64, u64),
}

impl CaptureReplay {
    pub(super) fn new(stage: BenchHosts) -> Result<CaptureReplay, Error> {
        let feed = Feed::open(&stage.hosts().a)?;
        Ok(CaptureReplay { stage, feed })
    }

    /// Sends packets, so many at a time that some always wait and few are too many.
    pub(super) fn carry(&self, packets: &[Vec<u8>]) -> Result<ReplayResult, Error> {
        let (start, before, gone) = (Instant::now(), self.look()?, self.gone()?);
        let bytes: usize = packets.iter().map(Vec::len).sum();
        let waiting = (WAITING * packets.len() / bytes.max(1)).max(4);
        let mut fed = 0;
        for burst in packets.chunks((waiting / 4).min(BURST)) {
            while fed + burst.len() as u64 > self.gone()? - gone + waiting as u64 {
                self.wait(start)?;
            }
            burst.iter().try_for_each(|packet| self.feed.send(packet))?;
            fed += burst.len() as u64;
        }
        let after = self.still(start)?;
        let wire = |look: ReplayCounters| look.link.0 - ETHERNET * look.link.1;
        Ok(ReplayResult {
            wire: wire(after) - wire(before),
            inner: after.arrived.0 - before.arrived.0,
            lost: fed - (after.arrived.1 - before.arrived.1),
        })
    }

    /// The counters once nothing moves any more.
    fn still(&self, start: Instant) -> Result<ReplayCounters, Error> {
        let (mut last, mut since) = (self.look()?, Instant::now());
        while since.elapsed() < STILL {
            self.wait(start)?;
            let look = self.look()?;
            if look != last {
                (last, since) = (look, Instant::now());
            }
        }
        Ok(last)
    }

    fn wait(&self, start: Instant) -> Result<(), Error> {
        if start.elapsed() > PATIENCE {
            return Err(Error::Silent { what: "a capture", way: "Strait".to_owned() });
        }
        Ok(interrupt::pause(TICK)?)
    }

    fn look(&self) -> Result<ReplayCounters, Error> {
        let LinkTraffic { there, back } = self.stage.hosts().link.traffic()?;
        let [_, receiver] = self.stage.daemons();
        let shown = shown(receiver)?;
        let received = &shown["peers"][0]["received"];
        let arrived = (number(&received["bytes"]), number(&received["packets"]));
        Ok(ReplayCounters { link: (there.bytes + back.bytes, there.packets + back.packets), arrived })
    }

    /// Packets that have left the sender's queue, by the link or for good.
    fn gone(&self) -> Result<u64, Error> {
        let [sender, _] = self.stage.daemons();
        let shown = shown(sender)?;
        let drops = shown["drops"].as_array().into_iter().flatten();
        let dropped: u64 = drops.map(|drop| number(&drop["packets"])).sum();
        Ok(number(&shown["peers"][0]["sent"]["packets"]) + dropped)
    }
}

fn shown(daemon: &DaemonProcess) -> Result<Value, Error> {
    Ok(daemon.show()?)
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or(0)
}
