//! What one packet must not tell of another, or be taken for.

use super::*;

const SERVICE: LoneTerms = LoneTerms { scope: HistoryScope::Service, ..FLOW };

/// The same packet to a service, from this port.
fn query(port: u16, word: &str) -> Vec<u8> {
    UDP.port(port).packet(format!("{word} and enough words behind it to be worth a reference").as_bytes())
}

/// The next unit of `pair`, which has to leave.
fn sent(pair: &mut Pair, packet: &[u8], terms: LoneTerms) -> Sent {
    pair.send(packet, terms).unwrap()
}

#[test]
fn a_receipt_that_came_late_is_not_taken_for_a_later_unit() {
    let mut pair = Pair::new();
    for number in 0..4 {
        let _ = pair.exchange(&poll(number), FLOW);
    }
    let first = sent(&mut pair, &poll(4), FLOW);
    assert_eq!(pair.deliver(&first), Ok(true));
    // Its receipt stays behind while numbers come around, and the unit that has the same one now is lost.
    pair.number += Receipt::NUMBERS - 1;
    let lost = sent(&mut pair, &poll(900), FLOW);
    assert_eq!(lost.receipt, first.receipt);
    pair.acknowledge(first.receipt);
    for number in 901..920 {
        let next = sent(&mut pair, &poll(number), FLOW);
        assert!(pair.deliver(&next).is_ok());
    }
}

#[test]
fn a_receipt_that_waited_is_not_given_back() {
    let mut queue = ReceiptQueue::default();
    let after = |seconds| Time::ZERO + core::time::Duration::from_secs(seconds);
    queue.note_kept(Receipt(1), after(0));
    assert_eq!(queue.to_ride(after(4)).as_slice(), [Receipt(1)]);
    assert!(queue.to_ride(after(5)).is_empty());
    queue.note_kept(Receipt(2), after(60));
    assert_eq!(queue.to_leave(after(60)).unwrap().as_slice(), [Receipt(2)], "the first waited long enough");
}

#[test]
fn flows_of_a_service_that_share_nothing_share_no_context() {
    let mut pair = Pair::new();
    for (share, contexts) in [(1, 1), (2, 2), (1, 2)] {
        let _ = pair.exchange(&query(40_000, "word"), LoneTerms { share, ..SERVICE });
        assert_eq!(pair.sender.contexts(), contexts);
    }
    // Nor does one flow that the rules now call a service.
    let _ = pair.exchange(&UDP.port(0).packet(b"one"), FLOW);
    let _ = pair.exchange(&query(0, "word"), LoneTerms { share: 0, ..SERVICE });
    assert_eq!(pair.sender.contexts(), 4);
}

#[test]
fn nothing_refers_to_a_payload_that_no_rule_covers() {
    let mut pair = Pair::new();
    for round in 0..6 {
        let hidden = query(40_000 + round, "secret");
        let _ = pair.exchange(&hidden, LoneTerms { payload: false, ..SERVICE });
    }
    let guess = sent(&mut pair, &query(50_000, "secret"), SERVICE);
    assert!(!LoneHead::parse(&guess.bytes).unwrap().0.coded);
    assert_eq!(pair.deliver(&guess), Ok(true));
    pair.acknowledge(guess.receipt);
    let again = sent(&mut pair, &query(50_001, "secret"), SERVICE);
    assert!(LoneHead::parse(&again.bytes).unwrap().0.coded);
    assert!(pair.deliver(&again).is_ok());
}

#[test]
fn places_take_no_more_memory_than_the_longest_payload() {
    let mut kept = Vec::new();
    for len in [1_000, 10, PAYLOAD_MAX - 1, PAYLOAD_MAX, 4] {
        keep_payload(&mut kept, &vec![7; len]);
    }
    assert_eq!((kept.len(), kept.capacity()), (4, PAYLOAD_MAX));
}
