//! Two hosts, a link, a daemon each, and datagrams between them.

use std::net::{Ipv6Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use strait_scheduler::Rate;
use strait_testbed::{
    DaemonProcess, DatagramStream, LinkSpec, Namespace, Offloads, ProcessorQuota, TwoHosts, WireLink,
    Workdir, interrupt,
};
use strait_wire::udp;

use super::VpnMeasure;
use super::grid::RunAmount;
use super::node::{COMPRESSED, PLAIN, Protected, TransportPeer};
use crate::corpus::CorpusFile;
use crate::error::Error;
use crate::manual::{is_taken, written};
use crate::vpn::codecs::segments;
use crate::vpn::printed::EFFICIENCY;

/// The least MTU of IPv6, which the paper sets everywhere; a link's rate counts Ethernet's header besides.
const MTU: u32 = 1_280;
const ETHERNET: u32 = 14;
/// The longest datagram: the tunnel cuts packets of up to 64,488 bytes with IPv6's and UDP's header, the longest payload's has 84 more.
const LONGEST: usize = 64_428;
/// The queue of a link: at 56 kbit/s it holds twelve times what is in flight at most, so nothing is dropped.
const QUEUE: Duration = Duration::from_secs(1_500);
/// Bytes in flight at most: half of what a daemon's socket takes, as the kernel counts them. And datagrams at most.
const MOST: (usize, usize) = (700_000, 256);
/// Datagrams in flight at least: one at each end, one on the link, and one that waits.
const LEAST: usize = 4;
/// The time that the link has something to send, where no more is in flight than needed.
const AHEAD: f64 = 0.5;

/// The part of its share that a daemon without packets uses at most, and looks at it at most: some seconds.
const IDLE: f64 = 0.05;
const LOOKS: usize = 100;

/// Hosts, link and daemons. Dropped, it leaves nothing behind.
#[derive(Debug)]
pub(super) struct TransportStage {
    // In the order in which they must go: daemons, hosts, folder.
    pub(super) daemons: [DaemonProcess; 2],
    hosts: TwoHosts,
    _dir: Workdir,
    /// The place of what compresses.
    pub(super) codec: usize,
}

/// Seconds of one packet, from end to end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Transaction {
    /// Between two that arrive, with several in flight.
    pub between_arrivals: f64,
    /// The sending daemon's, at its share of a processor.
    pub sender: f64,
    /// On the link: all bytes of IP at its rate.
    pub link: f64,
    /// The receiving daemon's.
    pub receiver: f64,
    /// Packets that arrived.
    pub arrived: u64,
}

impl Transaction {
    /// One stage after another.
    pub(super) fn sum(&self) -> f64 {
        self.sender + self.link + self.receiver
    }
}

/// A link like the paper's, before it is slowed.
pub(super) fn fast_link() -> LinkSpec {
    LinkSpec { mtu: MTU, queue: QUEUE, offloads: Offloads::Off, ..LinkSpec::unshaped() }
}

/// Gives a link the rate of a network of so many Mbit/s: 80 % of it, of bytes of IP.
pub(super) fn set_rate(link: &mut WireLink, megabits: Option<f64>) -> Result<(), Error> {
    let bits = |megabits: f64| usable(megabits) * f64::from(MTU + ETHERNET) / f64::from(MTU);
    let rate = megabits.and_then(|megabits| Rate::from_bits(bits(megabits) as u64));
    Ok(link.set_rate(rate)?)
}

/// Bits a second of a network that can be used.
pub(super) fn usable(megabits: f64) -> f64 {
    megabits * 1e6 * EFFICIENCY
}

/// Datagrams of `len` bytes that are in flight over a network.
pub(super) fn ahead(len: usize, megabits: Option<f64>) -> usize {
    let most = (MOST.0 / len).clamp(LEAST, MOST.1);
    let needed = |megabits: f64| (usable(megabits) * AHEAD / 8.0 / len as f64).ceil() as usize;
    megabits.map_or(most, |megabits| needed(megabits).clamp(LEAST, most))
}

/// The time that a link needs for two of these, and a second.
pub(super) fn silence(len: usize, megabits: Option<f64>) -> Duration {
    let two = |megabits: f64| Duration::from_secs_f64(2.0 * 8.0 * len as f64 / usable(megabits));
    Duration::from_secs(1) + megabits.map_or(Duration::ZERO, two)
}

/// Contents behind UDP's header in packets that are as long as the paper's: the rest of a TCP header, and a block of a file.
pub(super) fn contents(file: &CorpusFile, size: usize) -> Arc<[Vec<u8>]> {
    let content = |mut segment: Vec<u8>| {
        segment.drain(..udp::HEADER_LEN);
        segment.truncate(LONGEST);
        segment
    };
    segments(file, size).into_iter().map(content).collect()
}

/// Fails unless a program takes a configuration of the paper's algorithms.
pub(super) fn require_legacy(program: &Path, host: &Namespace, path: &Path) -> Result<(), Error> {
    if is_taken(program, host, path)? {
        return Ok(());
    }
    let source = std::io::Error::other(
        "it lacks the algorithms of the paper's time; build one with `cargo build --release --package strait --features \
         danger-legacy` and name it with --strait",
    );
    Err(Error::doing(format!("use {}", program.display()))(source))
}

/// Starts a daemon whose configuration is this text.
pub(super) fn started(
    measure: &VpnMeasure,
    host: &Namespace,
    dir: &Workdir,
    text: &str,
) -> Result<DaemonProcess, Error> {
    let path = written(dir.path(), host.name(), text)?;
    require_legacy(&measure.program, host, &path)?;
    let folder = dir.path().join(host.name()).join("run");
    Ok(DaemonProcess::start(host, &measure.program, &path, &folder)?)
}

impl TransportStage {
    /// Hosts with daemons that protect and compress so, over a link as fast as memory.
    pub(super) fn set(
        measure: &VpnMeasure,
        protection: usize,
        codec: usize,
    ) -> Result<TransportStage, Error> {
        // The folder and all processes are to be gone after a signal, too.
        interrupt::check()?;
        let (dir, hosts) = (Workdir::create()?, TwoHosts::direct(fast_link())?);
        let [local, remote] = hosts.link.ends().map(|end| end.v6);
        let peer = TransportPeer { number: 0, end: 0, local, remote };
        let protected = Protected::of(protection, codec);
        let start = |host, peer| started(measure, host, &dir, &protected.configuration(&[peer]));
        let daemons = [start(&hosts.a, peer)?, start(&hosts.b, peer.other())?];
        Ok(TransportStage { daemons, hosts, _dir: dir, codec })
    }

    /// Packets of these contents over a network, in flight for so long; each end has `share` of a processor.
    pub(super) fn run(
        &mut self,
        megabits: Option<f64>,
        contents: &Arc<[Vec<u8>]>,
        compressed: bool,
        amount: RunAmount,
        share: f64,
    ) -> Result<Transaction, Error> {
        set_rate(&mut self.hosts.link, megabits)?;
        let len = contents.first().map_or(1, Vec::len);
        let stream = DatagramStream {
            from: &self.hosts.a,
            to: &self.hosts.b,
            address: address(self.hosts.link.b.v6, compressed),
            contents,
            ahead: ahead(len, megabits),
            silence: silence(len, megabits),
        };
        let running = stream.start()?;
        running.wait(1, amount.warm_up)?;
        let (before, first) = (self.counters()?, running.arrivals());
        let last = running.wait(first.count + amount.least, amount.window)?;
        let passed = self.counters()?.since(before);
        running.stop()?;
        // What is left in queues is dropped, or goes at once.
        set_rate(&mut self.hosts.link, None)?;
        drained(&self.daemons, share)?;
        let (count, seconds) = last.since(first).unwrap_or((0, f64::NAN));
        let each = |seconds: f64| seconds / count as f64;
        Ok(Transaction {
            between_arrivals: each(seconds),
            sender: each(passed.sender / share),
            link: megabits.map_or(0.0, |megabits| each(passed.bytes * 8.0 / usable(megabits))),
            receiver: each(passed.receiver / share),
            arrived: count,
        })
    }

    /// The share of a processor that the busier end has while it has enough to do, with a quota of this share.
    pub(super) fn busiest_share(
        &mut self,
        contents: &Arc<[Vec<u8>]>,
        amount: RunAmount,
        quota: f64,
    ) -> Result<f64, Error> {
        let ran = self.run(None, contents, false, amount, quota)?;
        Ok(ran.sender.max(ran.receiver) * quota / ran.between_arrivals)
    }

    fn counters(&self) -> Result<StageCounters, Error> {
        let [sender, receiver] = &self.daemons;
        let there = self.hosts.link.traffic()?.there;
        Ok(StageCounters {
            sender: sender.scheduled()?.as_secs_f64(),
            receiver: receiver.scheduled()?.as_secs_f64(),
            bytes: (there.bytes - there.packets * u64::from(ETHERNET)) as f64,
        })
    }
}

/// Waits until daemons that have this share of a processor have nothing left to do: until none does anything for two periods of its quota.
pub(super) fn drained(daemons: &[DaemonProcess], share: f64) -> Result<(), Error> {
    let used = || -> Result<f64, Error> {
        let all: Result<Vec<Duration>, _> = daemons.iter().map(DaemonProcess::scheduled).collect();
        Ok(all?.iter().map(Duration::as_secs_f64).sum())
    };
    let span = 2 * ProcessorQuota::period(share);
    let idle = span.as_secs_f64() * share.min(1.0) * IDLE;
    for _ in 0..LOOKS {
        let before = used()?;
        interrupt::pause(span)?;
        if used()? - before < idle {
            break;
        }
    }
    Ok(())
}

/// An address of the receiver, by whether what goes there is compressed.
pub(super) fn address(host: Ipv6Addr, compressed: bool) -> SocketAddr {
    SocketAddr::new(host.into(), if compressed { COMPRESSED } else { PLAIN })
}

/// Counters at one moment, or what passed between two.
#[derive(Clone, Copy, Debug)]
struct StageCounters {
    sender: f64,
    receiver: f64,
    bytes: f64,
}

impl StageCounters {
    fn since(self, earlier: StageCounters) -> StageCounters {
        StageCounters {
            sender: self.sender - earlier.sender,
            receiver: self.receiver - earlier.receiver,
            bytes: self.bytes - earlier.bytes,
        }
    }
}
