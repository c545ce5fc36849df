//! A path between two hosts: UDP datagrams through the model of a thin, long and lossy link, in real time.
#![allow(clippy::unwrap_used)]

use std::net::UdpSocket;
use std::thread;
use std::time::{Duration, Instant};

use strait_scheduler::Rate;
use strait_sim::{LinkSettings, LossModel, SimLink};
use strait_testbed::{EmulatedPath, FrameDirection, Relay, TwoHosts, sandbox};

/// How long nothing may arrive until it is given up.
const PATIENCE: Duration = Duration::from_secs(3);
/// Bytes of a datagram's headers.
const HEADERS: usize = 28;

fn link(settings: LinkSettings) -> SimLink {
    SimLink::new(settings, 11)
}

/// A rate and a delay of 20 ms there, 5 ms back.
fn modem(text: &str) -> EmulatedPath {
    let there =
        LinkSettings::modem(text.parse().unwrap(), Duration::from_millis(20), Duration::from_millis(300));
    EmulatedPath::new(link(there), link(LinkSettings::default()))
}

/// A socket on each host; the first sends to the second.
fn sockets(hosts: &TwoHosts) -> (UdpSocket, UdpSocket) {
    let (from, to) = (hosts.address_of_a().0, hosts.address_of_b().0);
    let sender = hosts.a.run("bind", || UdpSocket::bind((from, 0))).unwrap();
    let receiver = hosts.b.run("bind", || UdpSocket::bind((to, 0))).unwrap();
    sender.connect(receiver.local_addr().unwrap()).unwrap();
    receiver.connect(sender.local_addr().unwrap()).unwrap();
    receiver.set_read_timeout(Some(PATIENCE)).unwrap();
    // The hosts find each other's hardware address first.
    sender.send(b"first").unwrap();
    assert_eq!(receiver.recv(&mut [0; 9]).unwrap(), 5);
    (sender, receiver)
}

/// The part of a flood that arrived: the numbers of the datagrams in their order, with the time from the first sending.
struct Arrived {
    datagrams: Vec<(u32, Duration)>,
    /// The number of others that came over the path and found no room at the socket, while its thread waited for a processor.
    unread: u64,
}

impl Arrived {
    fn count(&self) -> u64 {
        self.datagrams.len() as u64 + self.unread
    }
}

/// Sends `count` numbered datagrams of 1,500 bytes with `gap` between them.
fn flood(hosts: &TwoHosts, count: u32, gap: Duration) -> Arrived {
    let (sender, receiver) = sockets(hosts);
    let begin = Instant::now();
    let sending = thread::spawn(move || {
        let mut bytes = vec![0; 1500 - HEADERS];
        for number in 0..count {
            bytes[..4].copy_from_slice(&number.to_be_bytes());
            sender.send(&bytes).unwrap();
            thread::sleep((gap * (number + 1)).saturating_sub(begin.elapsed()));
        }
    });
    let mut arrived = Vec::new();
    let mut bytes = [0; 1500];
    while let Ok(length) = receiver.recv(&mut bytes) {
        assert_eq!(length, 1500 - HEADERS);
        arrived.push((u32::from_be_bytes(*bytes.first_chunk().unwrap()), begin.elapsed()));
    }
    sending.join().unwrap();
    // The last column of the only socket of this host (proc_net_udp(5)).
    let sockets = hosts.b.run("read", || std::fs::read_to_string("/proc/thread-self/net/udp")).unwrap();
    let unread = sockets.lines().nth(1).unwrap().rsplit(' ').find(|word| !word.is_empty()).unwrap();
    Arrived { datagrams: arrived, unread: unread.parse().unwrap() }
}

#[test]
fn datagrams_take_a_thin_path_in_order_and_what_its_queue_cannot_hold_is_lost() {
    if !sandbox::allows_hosts() {
        return;
    }
    let path = modem("8Mbit");
    let (hosts, _relay) = Relay::over(&path).unwrap();
    // 24 Mbit/s for 0.4 s.
    let arrived = flood(&hosts, 800, Duration::from_micros(500));
    let datagrams = &arrived.datagrams;
    assert!(datagrams.is_sorted_by(|one, next| one.0 < next.0), "{datagrams:?}");
    let counted = path.counters(FrameDirection::There);
    assert_eq!(counted.entered, 801);
    assert_eq!(counted.carried, arrived.count() + 1);
    assert_eq!(counted.overflowed, 800 - arrived.count());
    // A processor that others use makes the sender late, and less is lost then; some is always.
    assert!(counted.overflowed > 0);
    // What arrives does so no faster than the path lets it: 1.514 ms a packet, the first after its 20 ms.
    let (first, last) = (datagrams[0].1, datagrams.last().unwrap().1);
    assert!(first >= Duration::from_micros(21_514), "{first:?}");
    assert!(last >= Duration::from_micros(1_514) * u32::try_from(datagrams.len()).unwrap(), "{last:?}");
    println!("{} of 800 arrived, the first after {first:?}, the last after {last:?}", arrived.count());
}

#[test]
fn loss_and_repetition_are_those_of_the_model() {
    if !sandbox::allows_hosts() {
        return;
    }
    let settings =
        LinkSettings { loss: LossModel::bursts(0.1, 5.0), repeated: 0.1, ..LinkSettings::default() };
    let path = EmulatedPath::new(link(settings), link(LinkSettings::default()));
    let (hosts, _relay) = Relay::over(&path).unwrap();
    let arrived = flood(&hosts, 2000, Duration::from_micros(500));
    let counted = path.counters(FrameDirection::There);
    assert_eq!(arrived.count() + 1, counted.carried + counted.repeated);
    assert!(counted.lost > 50 && counted.repeated > 50, "{counted:?}");
    assert_eq!(counted.entered, counted.carried + counted.lost);
}

#[test]
fn a_path_that_changes_is_another_from_then_on() {
    if !sandbox::allows_hosts() {
        return;
    }
    let path = modem("8Mbit");
    let (hosts, _relay) = Relay::over(&path).unwrap();
    assert_eq!(flood(&hosts, 10, Duration::ZERO).count(), 10);
    path.change(FrameDirection::There, |link| link.settings.rate = Rate::from_bits(100_000));
    // 1.211 s for ten.
    let arrived = flood(&hosts, 10, Duration::ZERO);
    assert_eq!(arrived.count(), 10);
    let last = arrived.datagrams.last().unwrap();
    assert!(last.1 >= Duration::from_millis(1_220), "{last:?}");
}

#[test]
fn a_path_marks_where_its_model_marks() {
    if !sandbox::allows_hosts() {
        return;
    }
    let settings = LinkSettings {
        mark_above: Some(3000),
        ..LinkSettings::modem("1Mbit".parse().unwrap(), Duration::from_millis(1), Duration::from_secs(1))
    };
    let path = EmulatedPath::new(link(settings), link(LinkSettings::default()));
    let (hosts, _relay) = Relay::over(&path).unwrap();
    let content: std::sync::Arc<[u8]> = vec![7; 200_000].into();
    // ECN-capable, so that marks are seen to be obeyed rather than to break the checksum.
    for host in [&hosts.a, &hosts.b] {
        host.run("ask for ECN", || std::fs::write("/proc/sys/net/ipv4/tcp_ecn", "1")).unwrap();
    }
    strait_testbed::Transfer {
        from: &hosts.a,
        to: &hosts.b,
        address: hosts.address_of_b().0,
        name: "test",
        content: &content,
        patience: Duration::from_secs(20),
    }
    .run(&mut |_| {})
    .unwrap();
    let counted = path.counters(FrameDirection::There);
    assert!(counted.marked > 0, "{counted:?}");
    assert_eq!(counted.lost + counted.overflowed, 0, "{counted:?}");
}
