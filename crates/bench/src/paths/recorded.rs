//! Packets at their recorded times, from both ends of a path.

use std::collections::BTreeMap;
use std::fs::File;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::Path;
use std::time::{Duration, Instant};

use strait_advise::{CaptureReader, Crossing};
use strait_clock::Time;
use strait_sim::FlowShape;
use strait_testbed::{Feed, interrupt};
use strait_testdata as data;
use strait_wire::ip::Packet;

use super::stage::PathStage;
use crate::error::Error;
use crate::stage::MTU;

/// The networks behind the two hosts.
const NETWORKS: [Ipv4Addr; 2] = [Ipv4Addr::new(10, 98, 0, 0), Ipv4Addr::new(10, 99, 0, 0)];
/// Until what was sent last has arrived and been answered.
const TAIL: Duration = Duration::from_secs(2);

/// A packet, and when it is sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TimedPacket {
    /// Counted from the first.
    at: Duration,
    /// From the network behind the first host, or the second.
    from: usize,
    bytes: Vec<u8>,
}

impl TimedPacket {
    /// A UDP datagram from the first network to the second.
    pub(super) fn there(at: Duration, payload: &[u8]) -> TimedPacket {
        let [from, to] = NETWORKS.map(|network| {
            let [a, b, ..] = network.octets();
            SocketAddr::new(Ipv4Addr::new(a, b, 0, 1).into(), PORT)
        });
        TimedPacket { at, from: 0, bytes: FlowShape::new(from, to).udp(payload) }
    }

    pub(super) fn len(&self) -> usize {
        self.bytes.len()
    }
}

/// Of datagrams that are not recorded.
const PORT: u16 = 5020;

/// Part of a capture.
#[derive(Clone, Copy, Debug)]
pub(super) struct CaptureSection {
    /// Below the folder of test data.
    pub(super) file: &'static str,
    /// Only what comes from or goes to this port.
    pub(super) port: Option<u16>,
    /// From which second on.
    pub(super) begin: u64,
}

impl CaptureSection {
    /// Its packets of so many seconds; nothing where there is no such file.
    pub(super) fn packets(&self, seconds: u64) -> Result<Option<Vec<TimedPacket>>, Error> {
        let Some(path) = data::find(self.file) else { return Ok(None) };
        let file = File::open(&path).map_err(Error::doing(format!("open {}", path.display())))?;
        let mut reader = CaptureReader::open(file).map_err(unreadable(&path))?;
        let mut ends = CaptureEnds::new();
        let (mut first, mut packets) = (None, Vec::new());
        let window = Duration::from_secs(self.begin)..Duration::from_secs(self.begin + seconds);
        while let Some(frame) = reader.frame().map_err(unreadable(&path))? {
            let at: Time = frame.at;
            let since = at.since(*first.get_or_insert(at));
            let crossed = ends.cross(&frame).map_err(unreadable(&path))?;
            if window.contains(&since) {
                let at = since - window.start;
                packets.extend(
                    crossed
                        .into_iter()
                        .filter(|(_, bytes)| self.covers(bytes))
                        .map(|(from, bytes)| TimedPacket { at, from, bytes }),
                );
            }
        }
        Ok(Some(packets))
    }

    fn covers(&self, packet: &[u8]) -> bool {
        let Some(port) = self.port else { return true };
        Packet::parse(packet).is_ok_and(|packet| {
            let flow = packet.flow();
            flow.src_port == port || flow.dst_port == port
        })
    }
}

fn unreadable<E: std::error::Error + Send + Sync + 'static>(path: &Path) -> impl FnOnce(E) -> Error {
    move |source| Error::Capture { path: path.to_owned(), source: Box::new(source) }
}

/// Who of a capture is behind which host: who speaks first is behind the first, whom that speaks to behind the second.
struct CaptureEnds {
    /// Of both directions. Both see every frame, so that a host has the same number in both.
    crossings: [Crossing; 2],
    sides: BTreeMap<IpAddr, usize>,
}

impl CaptureEnds {
    fn new() -> CaptureEnds {
        let mtu = usize::try_from(MTU).unwrap_or(usize::MAX);
        let [a, b] = NETWORKS;
        CaptureEnds {
            crossings: [Crossing::new([a, b], mtu), Crossing::new([b, a], mtu)],
            sides: BTreeMap::new(),
        }
    }

    /// What a frame turns into, and behind which host it is sent; nothing when both its ends are behind the same.
    fn cross(
        &mut self,
        frame: &strait_advise::CapturedFrame<'_>,
    ) -> Result<Vec<(usize, Vec<u8>)>, strait_advise::UnknownLink> {
        let mut turned: [Vec<Vec<u8>>; 2] = Default::default();
        for (crossing, turned) in self.crossings.iter_mut().zip(&mut turned) {
            crossing.frame(frame, |packet| turned.push(packet.to_vec()))?;
        }
        let Some((kept, _)) = frame.ip()? else { return Ok(Vec::new()) };
        let Ok(packet) = Packet::parse(kept) else { return Ok(Vec::new()) };
        let known = self.sides.get(&packet.dst()).map(|side| 1 - side);
        let from = *self.sides.entry(packet.src()).or_insert(known.unwrap_or(0));
        let to = *self.sides.entry(packet.dst()).or_insert(1 - from);
        let [there, back] = turned;
        let sent = if from == 0 { there } else { back };
        Ok(if from == to { Vec::new() } else { sent.into_iter().map(|packet| (from, packet)).collect() })
    }
}

/// Bytes of outer IP packets, both ways, and of the packets that were fed.
#[derive(Clone, Copy, Debug)]
pub(super) struct FedBytes {
    pub(super) wire: u64,
    pub(super) inner: u64,
    pub(super) packets: u64,
}

/// Devices behind both ends of a path, from which packets come.
#[derive(Debug)]
pub(super) struct PathFeeds<'a> {
    stage: &'a PathStage,
    feeds: [Feed; 2],
}

impl PathFeeds<'_> {
    pub(super) fn open(stage: &PathStage) -> Result<PathFeeds<'_>, Error> {
        let hosts = stage.hosts();
        let [a, b] = NETWORKS;
        let feeds = [Feed::behind(&hosts.a, a)?, Feed::behind(&hosts.b, b)?];
        stage.reach(NETWORKS)?;
        Ok(PathFeeds { stage, feeds })
    }

    /// Sends packets at their times, and counts until nothing is on its way any more.
    pub(super) fn play(&self, packets: &[TimedPacket]) -> Result<FedBytes, Error> {
        let (before, begin) = (self.stage.wire(), Instant::now());
        for packet in packets {
            let wait = packet.at.saturating_sub(begin.elapsed());
            if !wait.is_zero() {
                interrupt::pause(wait)?;
            }
            if let Some(feed) = self.feeds.get(packet.from) {
                feed.send(&packet.bytes)?;
            }
        }
        interrupt::pause(TAIL)?;
        Ok(FedBytes {
            wire: self.stage.wire() - before,
            inner: packets.iter().map(|packet| packet.bytes.len() as u64).sum(),
            packets: packets.len() as u64,
        })
    }
}
