//! A peer that makes this node work for what it does not send.

use super::*;

#[test]
fn gaps_without_end_make_no_flood_of_requests() {
    let mut ends = Ends::busy(RepairTerms::Kept);
    let mut asked = 0;
    for millis in 0..1_000 {
        for _ in 0..10 {
            let _ = ends.sa.numbers.next().unwrap();
            // It says again and again that it keeps what it sends.
            let mut notice = [0; repetition::NOTICE_LEN];
            repetition::emit_notice(&mut notice, 0, 0).unwrap();
            let datagram = ends.seal(Protocol::AGGFRAG, &notice);
            ends.take(&datagram, millis);
        }
        ends.wait(millis);
        // Each is an order to the sender, which stops to read it.
        let orders = core::mem::take(&mut ends.receiver.site.orders);
        asked += orders.iter().filter(|order| matches!(order, Order::AskAgain(..))).count();
        let next = ends.receiver.half.poll_timeout().map(|deadline| deadline.at);
        assert!(next.is_none_or(|next| next > at(millis)), "{next:?}: there is nothing to do before");
    }
    assert!((50..=201).contains(&asked), "{asked} requests in a second for 10,000 gaps");
}
