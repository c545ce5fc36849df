//! Delivery reports: what is sent, and the effect of what is received.

use core::time::Duration;

use strait_scheduler::Pace;
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
    };
    ReceivedReport { delivery, tval: u32::try_from(at * 1000 + 500).unwrap() }
}

#[test]
fn peer_reports_set_the_rate() {
    let mut sender = sender();
    let rate = |sender: &Sender| sender.peer.path.get().and_then(|path| path.estimate);
    sender.order(Order::Delivered(PEER, received(2, 100)));
    let before = rate(&sender).unwrap();
    sender.order(Order::Delivered(PEER, received(19, 250)));
    assert!(rate(&sender).unwrap().pacing > before.pacing, "{:?}", rate(&sender));
    assert_eq!((sender.peer.reports_in.get(), sender.dropped()), (2, 0));
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

#[test]
fn delivery_reports_are_sent_as_often_as_link_rate_allows() {
    for (rate, least, most) in [(None, 3, 60), (Rate::from_bits(128_000), 10, 11), (slow(), 40, 62)] {
        let mut sender = Sender::new(STRAIT, 1500, rate, Vec::new());
        let delivery =
            Delivery { spi: SPI, gaps: 0, datagrams: 5, bytes: 5000, highest: 6, received_at: 1_000_000 };
        let echo = Some((77, sender.now));
        let told = Reception { delivery, loss_event_rate: 6, marked: true, echo };
        for _ in 0..200 {
            sender.order(Order::Received(PEER, told));
            sender.drain();
            sender.now += Duration::from_millis(50);
        }
        let payloads = opened(&sender.wire, STRAIT);
        assert!((least..=most).contains(&payloads.len()), "{rate:?}: {}", payloads.len());
        assert_eq!(sender.peer.reports_out.get(), payloads.len() as u64);
        let (next, payload, _) = &payloads[0];
        assert_eq!((*next, payload.len()), (Protocol::AGGFRAG, REPORT_LEN));
        let Header::Congestion { offset: 0, report } = Payload::parse(payload).unwrap().header else {
            panic!("not a report");
        };
        assert_eq!((report.loss_event_rate, report.congestion, report.techo), (6, true, 77));
        assert_eq!(Delivery::parse(&payload[CONGESTION_LEN..]), Ok(delivery));
    }
}

#[test]
fn standard_peer_gets_no_reports() {
    let mut sender = Sender::new(Payloads::STANDARD, 1500, None, Vec::new());
    let delivery = Delivery { spi: SPI, gaps: 0, datagrams: 5, bytes: 5000, highest: 6, received_at: 1 };
    let told = Reception { delivery, loss_event_rate: 0, marked: false, echo: None };
    sender.order(Order::Received(PEER, told));
    sender.order(Order::Delivered(PEER, received(1, 1)));
    assert_eq!((sender.wire.datagrams.len(), sender.dropped()), (0, 0));
    assert_eq!(sender.peer.path.get(), None);
}
