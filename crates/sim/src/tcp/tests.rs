use super::*;
use crate::{EventQueue, LinkSettings, LossModel, NodeId, PairSettings, Reordering, SimLink};
use strait_scheduler::Rate;
use strait_wire::{Tos, ip};

const TURN: Duration = Duration::from_millis(1);

/// Both ends with a link each way between them, and no node.
struct TcpBench {
    now: Time,
    sender: TcpSender,
    receiver: TcpReceiver,
    links: [SimLink; 2],
    events: EventQueue<(usize, Vec<u8>)>,
}

impl TcpBench {
    fn new(forth: LinkSettings, segments: Option<u64>) -> TcpBench {
        let ends = [NodeId(0), NodeId(1)].map(|node| node.inner_v4(80));
        let settings = TcpSettings { segments, ..TcpSettings::default() };
        let back = LinkSettings { delay: forth.delay, ..LinkSettings::default() };
        TcpBench {
            now: Time::from_millis(1000),
            sender: TcpSender::new(FlowShape::new(ends[0], ends[1]), settings),
            receiver: TcpReceiver::new(FlowShape::new(ends[1], ends[0])),
            links: [SimLink::new(forth, 1), SimLink::new(back, 2)],
            events: EventQueue::default(),
        }
    }

    fn run(&mut self, span: Duration) {
        let end = self.now + span;
        while self.now < end && !self.sender.is_done() {
            for (way, packets) in [(0, self.sender.poll(self.now)), (1, self.receiver.poll(self.now))] {
                for packet in packets {
                    for (at, _) in
                        self.links[way].carry(packet.len() as u64, Tos(0), self.now).into_iter().flatten()
                    {
                        self.events.push(at, (way, packet.clone()));
                    }
                }
            }
            self.now += TURN;
            while let Some((at, (way, packet))) = self.events.pop_if(|at, _| at <= self.now) {
                let segment = ip::Packet::parse(&packet).unwrap().payload();
                if way == 0 { self.receiver.take(segment, at) } else { self.sender.take(segment, at) }
            }
        }
    }

    /// Payload that arrived in order, in Mbit/s, from `from` on for `span`.
    fn goodput(&mut self, from: Duration, span: Duration) -> f64 {
        self.run(from);
        let before = self.receiver.received();
        self.run(span);
        (self.receiver.received() - before) as f64 * 8.0 / span.as_secs_f64() / 1e6
    }
}

/// A link with a queue of `queue` ms.
fn link(mbit: u64, round: u64, queue: u64, loss: LossModel) -> LinkSettings {
    let rate = Rate::from_bits(mbit * 1_000_000);
    let queue = rate.map_or(0, |rate| rate.bytes_in(Duration::from_millis(queue)));
    LinkSettings { rate, delay: Duration::from_millis(round / 2), queue, loss, ..LinkSettings::default() }
}

const fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

#[test]
fn clean_link_is_filled() {
    // Of 1,400 bytes 1,348 are payload.
    for (mbit, round, queue) in [(2, 60, 100), (10, 100, 100), (10, 600, 600)] {
        let mut bench = TcpBench::new(link(mbit, round, queue, LossModel::None), None);
        let goodput = bench.goodput(seconds(20), seconds(30));
        println!("{mbit} Mbit/s, {round} ms: {goodput:.2} {:?}", bench.sender.tally());
        assert!(goodput > 0.93 * 0.963 * mbit as f64, "{mbit} Mbit/s, {round} ms: {goodput}");
        // What overflows in one round trip is sent again once.
        let TcpTally { again, timeouts, .. } = bench.sender.tally();
        let overflowed = bench.links[0].counters().overflowed;
        assert_eq!((again.saturating_sub(overflowed), timeouts, bench.receiver.repeated()), (0, 0, 0));
    }
}

#[test]
fn lost_segments_make_it_as_slow_as_linux_is() {
    // Linux with CUBIC through wireguard-go and a relay with this rate, delay and loss: 1.39 Mbit/s.
    let mut bench = TcpBench::new(link(10, 100, 100, LossModel::Uniform(0.01)), None);
    let goodput = bench.goodput(seconds(10), seconds(120));
    println!("{goodput:.2} {:?}", bench.sender.tally());
    assert!((1.0..2.0).contains(&goodput), "{goodput}");
}

#[test]
fn every_byte_arrives_whatever_happens_to_packets() {
    for (loss, reordering) in [
        (LossModel::Uniform(0.2), None),
        (LossModel::Bursts { begin: 0.01, end: 0.2, lost: 1.0 }, None),
        // Less than a quarter of a round trip, which RFC 8985 waits for.
        (LossModel::None, Some(Reordering { share: 0.1, by: Duration::from_millis(8) })),
        (LossModel::Uniform(0.05), Some(Reordering { share: 0.1, by: Duration::from_millis(20) })),
    ] {
        let mut settings = LinkSettings { reordering, repeated: 0.05, ..link(10, 50, 50, loss) };
        settings.jitter = Duration::from_millis(3);
        let mut bench = TcpBench::new(settings, Some(2000));
        bench.run(seconds(3600));
        let what = format!("{loss:?} {reordering:?}: {:?} {:?}", bench.now, bench.sender.tally());
        println!("{what}");
        assert!(bench.sender.is_done() && bench.receiver.received() == 2000 * 1348, "{what}");
        let again = bench.sender.tally().again;
        assert!(
            loss != LossModel::None || again < 50,
            "most that are overtaken do not count as lost: {what}"
        );
    }
}

#[test]
fn content_arrives_with_a_short_last_segment_and_without_timestamps() {
    for loss in [LossModel::None, LossModel::Uniform(0.1)] {
        let content: Arc<[u8]> = (0..20_001_u32).map(|at| (at % 251) as u8).collect();
        let settings = TcpSettings { step: 1000, timestamps: false, ..TcpSettings::default() };
        let mut bench = TcpBench::new(link(1, 50, 100, loss), None);
        let shape = FlowShape::new(NodeId(0).inner_v4(80), NodeId(1).inner_v4(80));
        bench.sender = TcpSender::carrying(shape, settings, Arc::clone(&content));
        let first = bench.sender.poll(bench.now).remove(0);
        assert_eq!(first[40..], content[..1000], "no options");
        bench.run(seconds(60));
        let sender = &bench.sender;
        assert!(sender.is_done() && sender.acknowledged() == 20_001, "{:?}", sender.tally());
        assert_eq!(bench.receiver.received(), 20_001);
    }
}

#[test]
fn numbers_of_headers_are_found_near_what_is_expected() {
    for near in [0, 5, 1 << 32, (1 << 32) - 1, 7 << 40] {
        for ahead in [0, 1, 1000, 1 << 30] {
            assert_eq!(unwrapped((near + ahead) as u32, near), near + ahead);
            assert_eq!(unwrapped(near.saturating_sub(ahead) as u32, near), near.saturating_sub(ahead));
        }
    }
}

#[test]
fn transfers_between_hosts_behind_nodes_share_the_link() {
    let mut pair = PairSettings::default();
    (pair.forth, pair.back) = (link(10, 40, 100, LossModel::None), link(10, 40, 100, LossModel::None));
    let mut network = SimNetwork::pair(1, pair).unwrap();
    let [a, b] = [NodeId(0), NodeId(1)];
    assert!(network.run_until_up(a, b, seconds(10)));
    let mut transfers: Vec<TcpTransfer> =
        (0..3).map(|at| TcpTransfer::new(a, b, 80 + at, TcpSettings::default())).collect();
    let mut beside = 0;
    TcpTransfer::run(&mut transfers, &mut network, (seconds(30), TURN), |_, node, delivered| {
        beside += if node == b { delivered.len() } else { 0 };
    });
    let received: Vec<u64> = transfers.iter().map(|transfer| transfer.receiver().received()).collect();
    let all = received.iter().sum::<u64>() as f64 * 8.0 / 30e6;
    println!("{received:?} {all:.2} Mbit/s");
    assert!(all > 8.5, "{all}");
    assert!(received.iter().all(|bytes| *bytes > received.iter().max().unwrap() / 5), "{received:?}");
    assert!(beside as u64 >= received.iter().sum::<u64>() / 1348);
}
