//! Delivery reports in datagrams whose packets are held back, or come again.

use strait_wire::delivery::{self, Delivery};

use super::*;

/// A packet, and a report behind it that says `tval`.
fn riding(seq: u32, tval: u32) -> Vec<u8> {
    let mut payload = vec![0; aggfrag::CONGESTION_LEN];
    let report = aggfrag::CongestionReport { tval, ..aggfrag::CongestionReport::default() };
    aggfrag::emit_congestion(&mut payload, 0, &report).unwrap();
    payload.extend(segment(seq));
    let mut pad = [0; delivery::LEN];
    let counted = Delivery {
        spi: crate::sample::SPI,
        gaps: 0,
        datagrams: 9,
        bytes: 900,
        highest: 10,
        received_at: tval.into(),
        marked: Some(0),
    };
    counted.emit(&mut pad).unwrap();
    payload.extend(pad);
    payload
}

/// What the reports said that were taken since the last call.
fn heard(ends: &mut Ends) -> Vec<u32> {
    let orders = core::mem::take(&mut ends.receiver.site.orders);
    let heard = orders.iter().filter_map(|order| match order {
        Order::Delivered(_, heard) => Some(heard.tval),
        _ => None,
    });
    heard.collect()
}

#[test]
fn a_report_that_rides_is_taken_before_its_packets_are_held_back() {
    let (mut ends, lost) = Ends::with_a_gap();
    let datagram = ends.seal(Protocol::AGGFRAG, &riding(10, 77));
    ends.take(&datagram, 20);
    assert_eq!((heard(&mut ends), ends.given()), (vec![77], Vec::new()));
    ends.take(&lost, 60);
    assert_eq!((heard(&mut ends), ends.given()), (Vec::new(), vec![6, 7, 8, 9, 10]), "not taken twice");
    let datagram = ends.seal(Protocol::AGGFRAG, &riding(11, 78));
    ends.take(&datagram, 80);
    assert_eq!((heard(&mut ends), ends.given()), (vec![78], vec![11]), "no gap before it");
    assert_eq!(ends.drops(), []);
}

#[test]
fn a_report_in_a_payload_that_comes_again_is_too_old_to_be_taken() {
    let (mut ends, _) = Ends::with_a_gap();
    let again = repetition(Protocol::AGGFRAG, 4, &riding(6, 77));
    let again = ends.seal(Protocol::AGGFRAG, &again);
    ends.take(&again, 100);
    assert_eq!((heard(&mut ends), ends.given()), (Vec::new(), vec![6, 7, 8, 9]));
}
