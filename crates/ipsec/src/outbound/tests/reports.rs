//! Delivery reports: what is sent, and the effect of what is received.

use core::time::Duration;

use strait_clock::Time;
use strait_scheduler::{LimitedBy, Pace};
use strait_wire::aggfrag::{CONGESTION_LEN, Header, Payload};
use strait_wire::delivery::Delivery;

use super::*;
use crate::reports::{REPORT_LEN, ReceivedReport, Reception};

/// A sender whose rate is to be estimated, after it sent 20 packets.
fn sender() -> Sender {
    let mut sender = Sender::new(STRAIT, 1500, None, Vec::new());
    sender.order(Order::Rate(PEER, Pace::Estimated { at_most: None }));
    for _ in 0..20 {
        sender.send(&noise(9, 1000).packet(), &PLAIN);
        sender.drain();
        sender.now += Duration::from_millis(1);
    }
    sender
}

/// The peer says that so many datagrams arrived, the last of them at so many milliseconds of its clock.
fn received(datagrams: u64, at: u64) -> ReceivedReport {
    let delivery = Delivery {
        spi: SPI,
        gaps: 0,
        datagrams,
        bytes: datagrams * 1050,
        highest: datagrams,
        received_at: at * 1000,
        marked: Some(0),
    };
    ReceivedReport { delivery, tval: u32::try_from(at * 1000 + 500).unwrap() }
}

#[test]
fn packets_go_straight_until_peer_reports_a_queue_that_grows() {
    let mut sender = sender();
    let rate = |sender: &Sender| sender.peer.path.get().and_then(|path| path.estimate);
    sender.order(Order::Delivered(PEER, received(2, 100)));
    // Sent in 8 ms, received in 80; the second report of the same says that it was no accident.
    for (datagrams, at) in [(10, 180), (19, 270)] {
        let free = rate(&sender).unwrap();
        assert_eq!((free.rate, free.pacing, free.found), (None, None, None));
        sender.order(Order::Delivered(PEER, received(datagrams, at)));
    }
    let found = rate(&sender).unwrap();
    assert!((750_000..1_000_000).contains(&found.rate.unwrap().bits()), "{found:?}");
    assert_eq!((found.found, found.limited_by), (found.rate, LimitedBy::Link));
    assert!(found.pacing < found.rate, "what stands before the link goes first: {found:?}");
    assert_eq!((sender.peer.reports_in.get(), sender.dropped()), (3, 0));
}

#[test]
fn impossible_reports_are_counted_and_ignored() {
    let mut sender = sender();
    sender.order(Order::Delivered(PEER, received(2, 100)));
    let before = sender.peer.path.get().unwrap();
    let right = received(10, 150);
    let bent = |delivery: Delivery| ReceivedReport { delivery, ..right };
    for absurd in [
        bent(Delivery { highest: 1 << 40, ..right.delivery }),
        bent(Delivery { datagrams: u64::MAX, ..right.delivery }),
        bent(Delivery { bytes: 1 << 40, ..right.delivery }),
        bent(Delivery { received_at: 1, ..right.delivery }),
        bent(Delivery { received_at: u64::MAX, ..right.delivery }),
        ReceivedReport { tval: 1, ..right },
    ] {
        sender.order(Order::Delivered(PEER, absurd));
    }
    assert_eq!(sender.counters.drops.get(Reason::AbsurdReport), 6);
    assert_eq!(sender.peer.path.get().unwrap(), before);
    let other = bent(Delivery { spi: strait_wire::Spi(7), ..right.delivery });
    sender.order(Order::Delivered(PEER, other));
    assert_eq!(sender.dropped(), 6, "of an association that is no longer in use");
    sender.order(Order::Delivered(PEER, right));
    assert_ne!(sender.peer.path.get().unwrap(), before);
}

/// What arrived from the peer, to be reported.
fn arrived(pressing: bool) -> Reception {
    let delivery = Delivery {
        spi: SPI,
        gaps: 0,
        datagrams: 5,
        bytes: 5000,
        highest: 6,
        received_at: 1_000_000,
        marked: Some(0),
    };
    Reception { delivery, loss_event_rate: 6, marked: true, pressing, echo: Some((77, Time::from_millis(1))) }
}

/// The peer sends `bytes` of wire bytes every 50 ms for 100 s, and all of it is to be reported; wire bytes of the reports.
fn reported(rate: Option<Rate>, bytes: u64, pressing: bool) -> u64 {
    let mut sender = Sender::new(STRAIT, 1500, rate, Vec::new());
    for _ in 0..2000 {
        sender.peer.in_wire.add(bytes);
        sender.order(Order::Received(PEER, arrived(pressing)));
        sender.release();
        sender.now += Duration::from_millis(50);
    }
    let payloads = opened(&sender.wire, STRAIT);
    assert_eq!(sender.peer.reports_out.get(), payloads.len() as u64);
    let (next, payload, _) = &payloads[0];
    assert_eq!((*next, payload.len()), (Protocol::AGGFRAG, REPORT_LEN));
    let Header::Congestion { offset: 0, report } = Payload::parse(payload).unwrap().header else {
        panic!("not a report");
    };
    assert_eq!((report.loss_event_rate, report.congestion, report.techo), (6, true, 77));
    assert_eq!(Delivery::parse(&payload[CONGESTION_LEN..]), Ok(arrived(pressing).delivery));
    sender.peer.out_wire.get()
}

#[test]
fn reports_cost_a_share_of_the_bytes_received_and_the_credit() {
    // What is received of 128 kbit/s in 50 ms, of 1 Mbit/s, of polls.
    for (bytes, pressing, share) in [(800, true, 50), (6_250, true, 50), (123, false, 100)] {
        let cost = reported(None, bytes, pressing);
        let most = 2000 * bytes / share + 2_000;
        assert!((most * 9 / 10 - 2_000..=most).contains(&cost), "{bytes}: {cost} of {most}");
    }
}

#[test]
fn reports_cost_a_fiftieth_of_a_slow_link_back() {
    let slow = Rate::from_bits(64_000).unwrap();
    let (cost, most) = (reported(Some(slow), 62_500, true), slow.bytes_in(Duration::from_secs(100)) / 50);
    assert!((most * 9 / 10..=most + 120).contains(&cost), "{cost} of {most}");
}

#[test]
fn a_peer_cannot_make_this_node_send_more_reports_than_its_bytes_pay_for() {
    // Small datagrams, each of which is a loss.
    let cost = reported(slow(), 60, true);
    assert!(cost <= 2000 * 60 / 50 + 2_000, "{cost}");
}

/// A sender that sent a packet a moment ago, and has something to report.
fn answering(pressing: bool) -> Sender {
    let mut sender = Sender::new(STRAIT, 1500, slow(), Vec::new());
    sender.peer.in_wire.add(100_000);
    sender.order(Order::Received(PEER, arrived(pressing)));
    sender.send(&noise(9, 24).packet(), &PLAIN);
    sender.drain();
    sender.now += Duration::from_millis(60);
    sender.peer.in_wire.add(100_000);
    sender.order(Order::Received(PEER, arrived(pressing)));
    sender.wire.datagrams.clear();
    sender
}

#[test]
fn report_rides_behind_a_packet_that_goes_back_anyway() {
    let mut sender = answering(false);
    assert!(sender.wire.datagrams.is_empty(), "it waits");
    sender.now += Duration::from_millis(150);
    let packet = noise(9, 24).packet();
    sender.send(&packet, &PLAIN);
    sender.drain();
    sender.now += Duration::from_millis(300);
    sender.release();
    let payloads = opened(&sender.wire, STRAIT);
    assert_eq!(payloads.len(), 1, "nothing leaves alone");
    let payload = Payload::parse(&payloads[0].1).unwrap();
    assert!(matches!(payload.header, Header::Congestion { offset: 0, .. }));
    assert!(payload.region.starts_with(&packet));
    assert_eq!(Delivery::parse(payload.padding().unwrap()), Ok(arrived(false).delivery));
    assert_eq!(sender.peer.reports_out.get(), 2);
}

#[test]
fn report_leaves_alone_where_packets_wait_for_repairs() {
    let mut sender = answering(false);
    let sa = crate::OutboundSa::new(&sa_spec(STRAIT)).repaired(crate::RepairTerms::Kept);
    sender.order(Order::Install(Box::new(sa)));
    sender.order(Order::NewPath(PEER, None, crate::LossPattern { share: 0.01, burst: 1.0 }));
    sender.order(Order::Received(PEER, arrived(false)));
    sender.send(&noise(9, 24).packet(), &PLAIN);
    sender.drain();
    sender.now += Duration::from_millis(300);
    sender.release();
    let payloads = opened(&sender.wire, STRAIT);
    let reports = payloads.iter().filter(|(_, payload, _)| payload.len() == REPORT_LEN && payload[0] == 1);
    assert_eq!((payloads.len(), reports.count()), (2, 1), "the packet, and the report");
}

#[test]
fn report_leaves_alone_where_nothing_goes_back_in_time() {
    for (pressing, within) in [(false, 200), (true, 50)] {
        let mut sender = answering(pressing);
        sender.now += Duration::from_millis(within - 1);
        sender.release();
        assert!(sender.wire.datagrams.is_empty(), "{pressing}");
        assert_eq!(sender.out.poll_timeout().map(|it| it.at), Some(sender.now + Duration::from_millis(1)));
        sender.now += Duration::from_millis(1);
        sender.release();
        assert_eq!(opened(&sender.wire, STRAIT)[0].1.len(), REPORT_LEN);
        assert_eq!(sender.out.poll_timeout(), None);
    }
}

#[test]
fn report_that_waits_is_forgotten_with_its_association() {
    let mut sender = answering(false);
    sender.order(Order::Withdraw(PEER, SPI));
    sender.now += Duration::from_millis(300);
    sender.release();
    assert_eq!((sender.out.poll_timeout(), sender.wire.datagrams.len()), (None, 0));
}

#[test]
fn report_does_not_ride_where_the_path_does_not_carry_both() {
    let mut sender = answering(false);
    let room = sender.out.links[&PEER].association.payload_room();
    for (len, rides) in [(room - REPORT_LEN + 1, false), (room - REPORT_LEN, true)] {
        let packet = noise(9, len - 28).packet();
        assert_eq!(packet.len(), len);
        sender.now += Duration::from_millis(12);
        sender.send(&packet, &PLAIN);
        sender.release();
        assert_eq!(
            sender.wire.datagrams.last().map(|(datagram, _)| datagram.len() > len),
            Some(true),
            "{len}"
        );
        assert_eq!(sender.peer.reports_out.get() == 2, rides, "{len}");
    }
}

#[test]
fn report_that_rides_costs_less_than_one_alone() {
    let (mut together, mut apart) = (answering(false), answering(false));
    let before = (together.peer.out_wire.get(), apart.peer.out_wire.get());
    let packet = noise(9, 24).packet();
    together.send(&packet, &PLAIN);
    together.drain();
    apart.now += Duration::from_millis(300);
    apart.release();
    apart.send(&packet, &PLAIN);
    apart.drain();
    assert_eq!((together.peer.reports_out.get(), apart.peer.reports_out.get()), (2, 2));
    let cost = (together.peer.out_wire.get() - before.0, apart.peer.out_wire.get() - before.1);
    assert!(cost.0 + 40 <= cost.1, "{cost:?}");
    let reports = (together.peer.reports_wire.get(), apart.peer.reports_wire.get());
    assert_eq!(cost.1 - cost.0, reports.1 - reports.0, "what reports took is counted");
}

#[test]
fn standard_peer_gets_no_reports() {
    let mut sender = Sender::new(Payloads::STANDARD, 1500, None, Vec::new());
    sender.order(Order::Received(PEER, arrived(true)));
    sender.order(Order::Delivered(PEER, received(1, 1)));
    assert_eq!((sender.wire.datagrams.len(), sender.dropped()), (0, 0));
    assert_eq!(sender.peer.path.get(), None);
}
