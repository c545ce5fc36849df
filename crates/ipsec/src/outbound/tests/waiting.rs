//! What waits for the link: who goes first, in which aggregate, and which sender is made to slow down.

mod headers;

use core::time::Duration;

use strait_clock::Time;

use super::*;

/// A thin link behind the sender: what it is given leaves it one after another, at its rate.
struct Line {
    sender: Sender,
    receiver: Receiver,
    rate: Rate,
    free_at: Time,
    /// Datagrams that it was given.
    seen: usize,
    /// What arrived, by the port it is for: when it was sent, when it arrived.
    arrived: Vec<(u16, Time, Vec<u8>)>,
}

impl Line {
    fn new(bits: u64, rules: Vec<crate::Rule>, queueing: Queueing) -> Line {
        let rate = Rate::from_bits(bits).unwrap();
        let sender = Sender::new(STRAIT, 1500, Some(rate), rules).waiting(queueing);
        let (receiver, free_at) = (Receiver::new(STRAIT), sender.now);
        Line { sender, receiver, rate, free_at, seen: 0, arrived: Vec::new() }
    }

    fn normal(bits: u64, rules: Vec<crate::Rule>) -> Line {
        Line::new(bits, rules, Queueing::NORMAL)
    }

    fn send(&mut self, shape: &Shape) {
        self.sender.send(&shape.packet(), &PLAIN);
    }

    /// Time goes on until `end`, and the sender sends what it may.
    fn run_until(&mut self, end: Time) {
        self.sender.out.release(self.sender.now, &mut self.sender.wire);
        self.carry();
        while let Some(deadline) = self.sender.out.poll_timeout().filter(|deadline| deadline.at <= end) {
            self.sender.now = self.sender.now.max(deadline.at);
            self.sender.out.release(self.sender.now, &mut self.sender.wire);
            self.carry();
        }
        self.sender.now = self.sender.now.max(end);
    }

    fn run_for(&mut self, millis: u64) {
        self.run_until(self.sender.now + Duration::from_millis(millis));
    }

    fn carry(&mut self) {
        for (datagram, tos) in &self.sender.wire.datagrams[self.seen..] {
            self.free_at = self.free_at.max(self.sender.now) + self.rate.time_for(datagram.len() as u64 + 28);
            self.receiver.take(datagram, *tos);
            self.receiver.half.release(self.sender.now, &mut self.receiver.site);
            for packet in self.receiver.site.packets.drain(..) {
                let port = Packet::parse(&packet).unwrap().flow().dst_port;
                self.arrived.push((port, self.free_at, packet));
            }
        }
        self.seen = self.sender.wire.datagrams.len();
    }

    fn bytes_at(&self, port: u16) -> usize {
        self.arrived.iter().filter(|(to, ..)| *to == port).map(|(.., packet)| packet.len()).sum()
    }

    /// Keeps `count` packets of this flow under way for a while, as a transfer does that never slows down; a ping of another flow
    /// goes along every 50 ms. How long the pings take.
    fn pings_under(&mut self, bulk: &[Shape], millis: u64) -> Vec<Duration> {
        let end = self.sender.now + Duration::from_millis(millis);
        let (mut pings, mut next) = (Vec::new(), self.sender.now + Duration::from_millis(7));
        while self.sender.now < end {
            while self.sender.peer.queued.load(Ordering::Relaxed) < 64_000 {
                bulk.iter().for_each(|shape| self.send(shape));
                self.sender.out.release(self.sender.now, &mut self.sender.wire);
            }
            if self.sender.now >= next {
                pings.push(self.sender.now);
                self.send(&noise(PING, 56));
                next += Duration::from_millis(51);
            }
            self.run_for(1);
        }
        self.run_for(500);
        let arrived = self.arrived.iter().filter(|(port, ..)| *port == PING).map(|(_, at, _)| *at);
        let took: Vec<_> = arrived.zip(&pings).map(|(at, sent)| at.since(*sent)).collect();
        assert_eq!(took.len(), pings.len(), "no ping is lost");
        took
    }
}

const PING: u16 = 7777;

/// A packet of numbers below `bound`, which shrinks to half or so.
fn numbers(port: u16, random: &mut strait_clock::Random, bound: u64) -> Shape {
    let mut shape = text(port, 0);
    while shape.payload.len() < 1_340 {
        shape.payload.extend(format!("{} ", random.below(bound)).bytes());
    }
    shape
}

#[test]
fn a_ping_passes_a_transfer_that_fills_the_link() {
    let mut random = strait_clock::Random::new(5);
    let mut text = |port| numbers(port, &mut random, 5_000);
    for (what, bulk, rules) in [
        ("noise", vec![noise(80, 1_360)], Vec::new()),
        ("text", [1001; 20].map(&mut text).to_vec(), rules()),
        ("both", vec![text(1001), noise(80, 1_360), text(1002)], rules()),
    ] {
        let mut line = Line::normal(1_500_000, rules);
        let took = line.pings_under(&bulk, 3_000);
        let worst = took.iter().max().unwrap();
        assert!(took.len() >= 55 && *worst <= Duration::from_millis(25), "{what}: {worst:?}");
        let wire = line.sender.peer.out_wire.get();
        let used = line.rate.time_for(wire);
        assert!(used >= Duration::from_millis(2_950), "{what}: the link is kept busy, {used:?}");
    }
}

#[test]
fn flows_share_the_wire_whatever_the_sizes_of_their_packets() {
    let mut line = Line::normal(1_500_000, Vec::new());
    for _ in 0..5_000 {
        if line.sender.peer.queued.load(Ordering::Relaxed) < 64_000 {
            line.send(&noise(80, 1_360));
            (0..8).for_each(|_| line.send(&noise(81, 130)));
        }
        line.run_for(1);
    }
    let [large, small] = [80, 81].map(|port| line.bytes_at(port) as f64);
    // Small ones share datagrams, with their headers coded, so that of equal wire bytes they have somewhat more inside.
    assert!(small > large && small < large * 1.2, "{large} {small}");
}

#[test]
fn units_of_compressed_text_fill_their_datagrams() {
    let mut line = Line::normal(1_500_000, rules());
    let mut random = strait_clock::Random::new(4);
    for number in 0..3_000_u64 {
        while line.sender.peer.queued.load(Ordering::Relaxed) < 40_000 {
            line.send(&numbers(1001, &mut random, 3_000 + number));
            line.sender.out.release(line.sender.now, &mut line.sender.wire);
        }
        line.run_for(1);
    }
    let (skip, datagrams) = (100, &line.sender.wire.datagrams);
    let lens: Vec<usize> = datagrams[skip..].iter().map(|(datagram, _)| datagram.len()).collect();
    let mean = lens.iter().sum::<usize>() / lens.len();
    let blocks = line.sender.peer.out_blocks.get() as usize;
    assert!(mean > 1_472 * 9 / 10, "{mean} of 1,472 bytes a datagram");
    // Four datagrams a block on a link as slow as this.
    let fill = datagrams.len() as f64 / blocks as f64;
    assert!((3.5..4.2).contains(&fill), "{blocks} blocks in {} datagrams", datagrams.len());
}

#[test]
fn alternating_trust_domains_still_aggregate() {
    let mut line = Line::new(1_500_000, rules(), Queueing { lossless: true, ..Queueing::NORMAL });
    line.send(&noise(9, 1_400));
    line.run_for(0);
    for _ in 0..100 {
        line.send(&text(1001, 100));
        line.send(&text(1002, 100));
    }
    line.run_for(2_000);
    let groups = groups(&line.sender.wire);
    assert_eq!(groups.iter().map(|group| group.packets.len()).sum::<usize>(), 201);
    assert!(groups.len() < 40, "{} units for 200 packets", groups.len());
    for group in &groups {
        let domains: Vec<u16> = group.packets.iter().map(|packet| ruled(packet).0).collect();
        assert!(domains.iter().all(|domain| *domain == domains[0]), "{domains:?}");
    }
}

#[test]
fn no_packet_overtakes_one_of_its_flow_that_belongs_to_another_group() {
    let mut line = Line::new(1_500_000, rules(), Queueing { lossless: true, ..Queueing::NORMAL });
    for number in 0..200 {
        // Of one flow, some shrink and some do not; another flow keeps the first group aggregating.
        let shape = if number % 3 == 0 { noise(1001, 300) } else { text(1001, 300) };
        line.send(&Shape { id: number, dont_fragment: false, ..shape });
        line.send(&Shape { host: 2, ..text(1001, 200) });
    }
    line.run_for(5_000);
    let ids: Vec<u16> = line
        .arrived
        .iter()
        .filter(|(.., packet)| packet[15] == 1)
        .map(|(.., packet)| u16::from_be_bytes([packet[4], packet[5]]))
        .collect();
    assert_eq!(ids, (0..200).collect::<Vec<_>>());
}

#[test]
fn a_flood_of_flows_is_bounded_and_counted() {
    let mut line = Line::normal(1_500_000, Vec::new());
    for number in 0..100_000_u32 {
        let [.., a, b] = number.to_be_bytes();
        let ports = [u16::from_be_bytes([a, b]), 80];
        let host = u8::try_from(number >> 16).unwrap();
        line.send(&Shape { ports, host, ..noise(80, 20) });
        if number % 1_000 == 0 {
            line.run_for(1);
            assert!(line.sender.peer.queued.load(Ordering::Relaxed) <= 192 * 1024);
        }
    }
    line.run_for(10_000);
    let (sent, dropped) = (line.sender.peer.out_packets.get(), line.sender.dropped());
    assert_eq!((sent + dropped, line.arrived.len() as u64), (100_000, sent));
    assert_eq!(dropped, line.sender.peer.queue.overflow.get() + line.sender.peer.queue.late.get());
    assert!(sent > 1_000);
}

#[test]
fn ecn_capable_packets_are_marked_and_others_dropped() {
    for (ecn, marked) in [(Ecn::NotEct, false), (Ecn::Ect0, true), (Ecn::Ect1, true)] {
        let mut line = Line::normal(1_500_000, Vec::new());
        let shape = Shape { tos: ecn as u8, ..noise(80, 1_360) };
        line.pings_under(&[shape], 3_000);
        let queue = &line.sender.peer.queue;
        assert_eq!((queue.marked.get() > 10, queue.late.get() > 10), (marked, !marked), "{ecn:?}");
        let seen =
            |(.., packet): &&(u16, Time, Vec<u8>)| Packet::parse(packet).unwrap().tos().ecn() == Ecn::Ce;
        let arrived = line.arrived.iter().filter(seen).count() as u64;
        assert!(arrived == queue.marked.get(), "{arrived} of {} marks arrived", queue.marked.get());
    }
}

#[test]
fn a_hold_time_aggregates_on_an_idle_link() {
    let wait = Duration::from_millis(20);
    let mut line = Line::new(1_500_000, Vec::new(), Queueing { hold: wait, ..Queueing::NORMAL });
    let began = line.sender.now;
    line.send(&noise(80, 100));
    line.run_for(0);
    assert_eq!(line.sender.out.poll_timeout().map(|deadline| deadline.at), Some(began + wait));
    line.run_for(15);
    assert!(line.arrived.is_empty());
    line.send(&noise(80, 100));
    line.run_for(15);
    let times: Vec<Time> = line.arrived.iter().map(|(_, at, _)| *at).collect();
    assert_eq!((times.len(), line.sender.wire.datagrams.len()), (2, 1));
    assert!(times[0].since(began + wait) < Duration::from_millis(3), "{times:?}");
    // What fills its datagram does not wait.
    let began = line.sender.now;
    (0..12).for_each(|_| line.send(&noise(80, 100)));
    line.run_for(1);
    assert!(line.sender.wire.datagrams.len() == 2 && line.arrived.len() >= 13, "{}", line.arrived.len());
    assert!(line.arrived.last().unwrap().1.since(began) < wait);
}

#[test]
fn a_hold_time_needs_no_rate() {
    let queueing = Queueing { hold: Duration::from_millis(20), ..Queueing::NORMAL };
    let mut sender = Sender::new(STRAIT, 1500, None, Vec::new()).waiting(queueing);
    sender.send(&noise(80, 100).packet(), &PLAIN);
    sender.send(&noise(80, 100).packet(), &PLAIN);
    assert!(sender.wire.datagrams.is_empty());
    let began = sender.now;
    sender.drain();
    assert_eq!((sender.now.since(began), sender.wire.datagrams.len()), (queueing.hold, 1));
}

#[test]
fn a_window_of_one_sends_each_packet_by_itself() {
    for rate in [slow(), None] {
        let queueing = Queueing { window: 1, lossless: true, ..Queueing::NORMAL };
        let mut sender = Sender::new(STRAIT, 1500, rate, rules()).waiting(queueing);
        for number in 0..50 {
            sender.send(&text(1001, 400).packet(), &PLAIN);
            sender.send(&noise(80, 40 + number).packet(), &PLAIN);
        }
        let (packet, header) = text(1001, 20_000).super_packet(1_000);
        sender.send(&packet, &header);
        sender.drain();
        let groups = groups(&sender.wire);
        assert_eq!((groups.len(), sender.peer.out_bundles.get()), (120, 0));
        assert!(groups.iter().all(|group| group.packets.len() == 1));
        assert_eq!(
            groups
                .iter()
                .filter(|group| group.coding.is_some_and(|coding| coding.codec != Codec::None))
                .count(),
            70
        );
    }
}

#[test]
fn a_short_last_segment_goes_alone_to_a_peer_that_takes_no_bundles() {
    // So fast that the super-packet waits whole.
    let rate = Rate::from_bits(50_000_000);
    let mut sender = Sender::new(Payloads::STANDARD, 1500, rate, vec![rule(7, 1, Method::DEFLATE)]);
    let (packet, header) = text(7, 1_300).super_packet(1_000);
    sender.send(&packet, &header);
    sender.send(&text(7, 60).packet(), &PLAIN);
    sender.drain();
    let mut receiver = Receiver::new(Payloads::STANDARD);
    receiver.take_all(&sender.wire);
    assert_eq!((sender.peer.out_packets.get(), receiver.peer.in_packets.get()), (3, 3));
}

#[test]
fn latency_sensitive_packets_respect_block_cap_of_peer() {
    // On a path of large datagrams one holds more than such a block.
    let payloads = Payloads::Strait { codecs: CodecSet::ALL, block_cap: 2_048 };
    let mut sender = Sender::new(payloads, 9_000, slow(), rules());
    sender.send(&noise(9, 8_000).packet(), &PLAIN);
    for host in 1..20 {
        sender.send(&Shape { host, ..text(1001, 200) }.packet(), &PLAIN);
    }
    sender.drain();
    let mut receiver = Receiver::new(payloads);
    receiver.take_all(&sender.wire);
    assert_eq!((receiver.site.packets.len(), receiver.dropped()), (20, 0));
}

#[test]
fn units_and_delays_are_counted() {
    let mut line = Line::normal(1_500_000, Vec::new());
    line.pings_under(&[noise(80, 300)], 2_000);
    let queue = &line.sender.peer.queue;
    assert_eq!(queue.in_units.get(), line.sender.peer.out_packets.get());
    assert!(
        queue.in_units.get() > 3 * queue.units.get(),
        "{} packets in {}",
        queue.in_units.get(),
        queue.units.get()
    );
    let delay = queue.delay(line.sender.now).unwrap();
    assert!(delay.mean > Duration::from_millis(5) && delay.worst >= delay.mean, "{delay:?}");
}

#[test]
fn promoted_packets_do_not_overtake_their_own_flow() {
    let mut random = strait_clock::Random::new(5);
    let mut line = Line::new(1_500_000, rules(), Queueing { lossless: true, ..Queueing::NORMAL });
    let mut number = 0_u32;
    let mut send = |line: &mut Line, from: u16, count: u32| {
        for _ in 0..count {
            let mut shape = text(1001, 0);
            shape.ports[0] = from;
            shape.payload = format!("{number:08} ").into_bytes();
            number += 1;
            while shape.payload.len() < 200 {
                shape.payload.extend(format!("{} ", random.below(1_000_000)).bytes());
            }
            line.send(&shape);
        }
    };
    for round in 0..100 {
        send(&mut line, 4_000, 60);
        line.run_for(8);
        send(&mut line, 5_000 + round, 1);
        line.run_for(12);
    }
    line.run_for(5_000);
    let of_flow = line.arrived.iter().filter(|(.., packet)| packet[20..22] == 4_000_u16.to_be_bytes());
    let numbers: Vec<&[u8]> = of_flow.map(|(.., packet)| &packet[28..36]).collect();
    assert!(numbers.len() > 1_000 && numbers.is_sorted(), "a flow stays in order");
}

/// A pure acknowledgement of a download to port 80, of so many thousand bytes.
fn acknowledgement(thousands: u32) -> Shape {
    let mut shape = Shape::new(Version::V4, Protocol::TCP, Vec::new());
    shape.ack = thousands * 1_000;
    shape
}

/// What arrives of acknowledgements 1 to 100 that come at once behind a transfer, in thousands; and how many were replaced.
fn acknowledged(queueing: Queueing) -> (Vec<u32>, u64) {
    let mut line = Line::new(256_000, Vec::new(), queueing);
    for _ in 0..4 {
        line.send(&noise(9, 1_300));
    }
    (1..=100).for_each(|thousands| line.send(&acknowledgement(thousands)));
    line.run_for(5_000);
    let ack = |packet: &Vec<u8>| {
        let segment = strait_wire::tcp::Segment::parse(Packet::parse(packet).unwrap().payload()).unwrap();
        segment.ack() / 1_000
    };
    let arrived = line.arrived.iter().filter(|(port, ..)| *port == 80).map(|(.., packet)| ack(packet));
    (arrived.collect(), line.sender.peer.queue.thinned.get())
}

#[test]
fn waiting_acknowledgements_give_way_to_the_newest_unless_all_are_wanted() {
    let (arrived, thinned) = acknowledged(Queueing::NORMAL);
    assert_eq!((arrived, thinned), (vec![1, 100], 98));
    let (arrived, thinned) = acknowledged(Queueing { thin_acks: false, ..Queueing::NORMAL });
    assert_eq!((arrived, thinned), ((1..=100).collect(), 0));
}

#[test]
fn held_acknowledgements_give_way_to_newer_ones_until_the_hold_time_ends() {
    let hold = Duration::from_millis(40);
    let mut line = Line::new(10_000_000, Vec::new(), Queueing { hold, ..Queueing::NORMAL });
    for thousands in 1..=200 {
        line.send(&acknowledgement(thousands));
        line.run_for(2);
    }
    line.run_for(100);
    // The first, of which it is not known what was before it; then one every 40 ms.
    let arrived = line.arrived.len() as u64;
    assert!((10..=13).contains(&arrived), "{arrived}");
    assert_eq!(arrived + line.sender.peer.queue.thinned.get(), 200);
    // Data does not wait longer than it would.
    let sent = line.sender.now;
    line.send(&acknowledgement(201));
    line.run_for(30);
    let data = Shape { payload: vec![5; 30], ack: 202_000, ..acknowledgement(202) };
    line.send(&data);
    line.run_for(100);
    let (_, at, packet) = line.arrived.last().unwrap();
    assert!(
        *packet == data.packet() && at.since(sent) <= hold + Duration::from_millis(2),
        "{:?}",
        at.since(sent)
    );
}

#[test]
fn acknowledgement_with_wrong_checksum_replaces_none() {
    let mut line = Line::normal(256_000, Vec::new());
    for _ in 0..4 {
        line.send(&noise(9, 1_300));
    }
    for thousands in 1..=3 {
        line.send(&acknowledgement(thousands));
    }
    let mut bad = acknowledgement(900).packet();
    bad[37] ^= 1;
    line.sender.send(&bad, &PLAIN);
    line.run_for(5_000);
    let arrived: Vec<_> =
        line.arrived.iter().filter(|(port, ..)| *port == 80).map(|it| it.2.clone()).collect();
    assert_eq!(arrived, [acknowledgement(1).packet(), acknowledgement(3).packet(), bad]);
}
