//! What TCP inside the tunnel sends twice over a path that loses datagrams, seen by tcpdump on the sender's own interface.

use std::sync::Arc;
use std::time::Duration;

use strait_clock::Random;
use strait_sim::{LinkSettings, LossModel, SimLink};
use strait_testbed::{EmulatedPath, Extra, FrameDirection, Relay, Transfer, paced};
use strait_wire::Protocol;
use strait_wire::ip::Packet;
use strait_wire::tcp::Segment;

use crate::capture::{Capture, packets};
use crate::pair::{Family, PATIENCE, Pair, allowed};

/// Bytes of the stream: some 2,000 datagrams, of which 20 are lost.
const SIZE: usize = 3_000_000;

/// One stream's data packets, as its sender's interface saw them.
#[derive(Debug, Default)]
struct SentStream {
    packets: u32,
    /// Those with bytes that had been sent before, and how many bytes those are.
    repeated: u32,
    repeated_bytes: u64,
}

impl SentStream {
    /// Of a capture on a TUN device.
    fn of(capture: &[u8]) -> SentStream {
        let mut sent = SentStream::default();
        let mut highest: Option<u32> = None;
        for bytes in packets(capture) {
            let Ok(packet) = Packet::parse(bytes) else { continue };
            if packet.protocol() != Protocol::TCP {
                continue;
            }
            let segment = Segment::parse(packet.payload()).unwrap();
            sent.note(segment.seq(), segment.payload().len(), &mut highest);
        }
        sent
    }

    /// One packet; one without data is an acknowledgement or begins or ends the connection.
    fn note(&mut self, seq: u32, len: usize, highest: &mut Option<u32>) {
        if len == 0 {
            return;
        }
        self.packets += 1;
        let end = seq.wrapping_add(u32::try_from(len).unwrap());
        let before = highest.unwrap_or(seq);
        // Sequence numbers wrap (RFC 9293 section 3.4): what is less than half of them behind came before.
        let behind = before.wrapping_sub(seq);
        if behind != 0 && behind < 1 << 31 {
            self.repeated += 1;
            self.repeated_bytes += u64::from(behind.min(end.wrapping_sub(seq)));
        }
        let ahead = end.wrapping_sub(before);
        *highest = Some(if ahead < 1 << 31 { end } else { before });
    }
}

#[test]
fn repeated_bytes_are_told_from_new_ones() {
    let mut sent = SentStream::default();
    let mut highest = None;
    // The numbers wrap between the second and the third.
    for (seq, len) in [(u32::MAX - 149, 100), (u32::MAX - 49, 100), (50, 100), (u32::MAX - 49, 50), (150, 0)]
    {
        sent.note(seq, len, &mut highest);
    }
    assert_eq!((sent.packets, sent.repeated, sent.repeated_bytes), (4, 1, 50));
    sent.note(100, 100, &mut highest);
    assert_eq!((sent.packets, sent.repeated, sent.repeated_bytes), (5, 2, 100), "half of it is new");
    assert_eq!(highest, Some(200));
}

/// A path that loses one of a hundred datagrams each way, of 10 Mbit/s and 60 ms.
fn lossy() -> EmulatedPath {
    let modem =
        LinkSettings::modem("10Mbit".parse().unwrap(), Duration::from_millis(30), Duration::from_millis(300));
    let link = |seed| SimLink::new(LinkSettings { loss: LossModel::Uniform(0.01), ..modem }, seed);
    EmulatedPath::new(link(1), link(2))
}

/// Sends a stream from the first site to the second, and gives what its sender's interface saw, and how many datagrams of it the
/// path lost.
fn stream(pair: &Pair, path: &EmulatedPath) -> (SentStream, u64) {
    let capture = Capture::inside(pair, 0, "tcp", &pair.dir.path().join("inside.pcap"));
    let lost = || path.counters(FrameDirection::There).lost;
    let before = lost();
    let mut random = Random::new(7);
    let content: Arc<[u8]> = (0..SIZE / 8).flat_map(|_| random.next_u64().to_le_bytes()).collect();
    let transfer = Transfer {
        from: &pair.hosts.a,
        to: &pair.hosts.b,
        address: pair.inside(1, Family::V4),
        name: "random bytes",
        content: &content,
        patience: PATIENCE,
    };
    let took = transfer.run(&mut |_| {}).unwrap_or_else(|error| panic!("{error}\n{}", pair.logs()));
    let lost = lost() - before;
    let sent = SentStream::of(&std::fs::read(capture.stop()).unwrap());
    println!(
        "{SIZE} bytes in {took:?}: the path lost {lost} datagrams; of {} packets inside, {} had bytes sent before, {} bytes",
        sent.packets, sent.repeated, sent.repeated_bytes
    );
    assert!(u64::from(sent.packets) * 65_535 > SIZE as u64, "the capture has {} packets", sent.packets);
    (sent, lost)
}

/// Streams through one path with these lines of `[[peer]]`, until one is clean or so many were sent.
fn streams(peer: &str, most: usize) -> Vec<(SentStream, u64)> {
    let path = lossy();
    let (hosts, _relay) = Relay::over(&path).unwrap();
    for host in [&hosts.a, &hosts.b] {
        // So that the sender's queue marks and need not drop: what TCP repeats then was lost on the path.
        host.run("ask for ECN", || std::fs::write("/proc/sys/net/ipv4/tcp_ecn", "1")).unwrap();
    }
    let rate = "10Mbit".parse().unwrap();
    let pair = Pair::up(hosts, Extra { link: &paced(rate, rate), peer, ..Extra::default() });
    let mut all = Vec::new();
    while all.len() < most && all.last().is_none_or(|(sent, _): &(SentStream, u64)| sent.repeated > 0) {
        all.push(stream(&pair, &path));
    }
    all
}

#[test]
fn tcp_repeats_nothing_through_a_path_whose_losses_are_repaired() {
    if !allowed() {
        return;
    }
    // Processors that other tests use can delay a repair for longer than the receiver keeps the order, or an acknowledgement for
    // longer than TCP waits: so one of four streams has to be clean, of which each would repeat twenty packets without repair.
    let streams = streams("", 4);
    let (sent, lost) = streams.last().unwrap();
    assert!(*lost > 5, "the path lost {lost} datagrams");
    assert_eq!((sent.repeated, sent.repeated_bytes), (0, 0), "{streams:?}");
}

#[test]
fn tcp_repeats_what_is_lost_where_repair_is_off() {
    if !allowed() {
        return;
    }
    let streams = streams("repair = \"off\"", 1);
    let (sent, lost) = streams.last().unwrap();
    assert!(*lost > 5 && sent.repeated > 5, "{streams:?}");
}
