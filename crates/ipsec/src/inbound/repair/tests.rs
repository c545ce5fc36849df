mod flood;
mod riding;

use strait_wire::SeqLow;
use strait_wire::ip::Version;
use strait_wire::missing::{MissingRange, MissingRanges};

use strait_wire::block;

use super::*;
use crate::OutboundSa;
use crate::inbound::Batch;
use crate::outbound::Order;
use crate::sample::{Receiver, STRAIT, Shape, endpoint, sa_spec};
use crate::wrap::Head;

const START: Time = Time::from_millis(1000);

/// A peer that repairs, and a receiver that it sends to.
struct Ends {
    sa: OutboundSa,
    receiver: Receiver,
}

impl Ends {
    fn new(terms: RepairTerms) -> Ends {
        let spec = sa_spec(STRAIT);
        let receiver = Receiver::of(InboundSa::new(&spec).repaired(terms));
        Ends { sa: OutboundSa::new(&spec), receiver }
    }

    fn seal(&mut self, next: Protocol, payload: &[u8]) -> Vec<u8> {
        let mut packet = vec![0; self.sa.sealed_len(0, payload.len())];
        let at = self.sa.payload_at(0);
        packet[at..at + payload.len()].copy_from_slice(payload);
        self.sa.seal(Head::Fresh(Tos(0)), &mut packet, payload.len(), next).unwrap();
        packet
    }

    /// Seals the next of the packets of a busy flow.
    fn bulk(&mut self, seq: u32) -> Vec<u8> {
        self.seal(Protocol::IPIP, &segment(seq))
    }

    /// Seals the packet `seq` again, which was sent `distance` numbers before.
    fn again(&mut self, seq: u32, distance: u16) -> Vec<u8> {
        self.seal(Protocol::AGGFRAG, &repetition(Protocol::IPIP, distance, &segment(seq)))
    }

    fn take(&mut self, datagram: &[u8], millis: u64) {
        let mut bytes = datagram.to_vec();
        let batch = Batch { from: endpoint().into(), tos: Tos(0), segment: bytes.len(), bytes: &mut bytes };
        let Receiver { half, site, .. } = &mut self.receiver;
        half.datagrams(batch, at(millis), site);
    }

    fn wait(&mut self, millis: u64) {
        let Receiver { half, site, .. } = &mut self.receiver;
        half.timeout(at(millis), site);
    }

    /// The sequence numbers of the packets that the host was given since the last call.
    fn given(&mut self) -> Vec<u32> {
        let packets = core::mem::take(&mut self.receiver.site.packets);
        packets.iter().map(|packet| u32::from_be_bytes(packet[24..28].try_into().unwrap())).collect()
    }

    /// The numbers that were asked for since the last call.
    fn asked(&mut self) -> Vec<(u32, u16)> {
        let orders = core::mem::take(&mut self.receiver.site.orders);
        let asked = orders.iter().filter_map(|order| match order {
            Order::AskAgain(_, missing) => Some(missing.ranges().to_vec()),
            _ => None,
        });
        asked.flatten().map(|range| (range.first.0, range.count)).collect()
    }

    /// A flow that has sent much already: numbers 1 to 5.
    fn busy(terms: RepairTerms) -> Ends {
        let mut ends = Ends::new(terms);
        for seq in 1..=5 {
            let datagram = ends.bulk(seq);
            ends.take(&datagram, 0);
        }
        assert_eq!(ends.given(), [1, 2, 3, 4, 5]);
        ends.receiver.site.orders.clear();
        ends
    }

    /// The same, where number 6 was lost and 7 to 9 have come; the datagram with number 6.
    fn with_a_gap() -> (Ends, Vec<u8>) {
        let mut ends = Ends::busy(RepairTerms::Kept);
        let lost = ends.bulk(6);
        for seq in 7..=9 {
            let datagram = ends.bulk(seq);
            ends.take(&datagram, u64::from(seq) - 6);
        }
        assert_eq!((ends.given(), ends.asked()), (Vec::new(), vec![(6, 1)]));
        (ends, lost)
    }

    fn duplicates(&self) -> u64 {
        self.receiver.peer.repair.duplicates.get()
    }

    fn drops(&self) -> Vec<(Reason, u64)> {
        self.receiver.counters.drops.iter().filter(|(_, count)| *count > 0).collect()
    }
}

fn at(millis: u64) -> Time {
    START + Duration::from_millis(millis)
}

fn segment(seq: u32) -> Vec<u8> {
    Shape { seq, host: 1, ..Shape::new(Version::V4, Protocol::TCP, vec![7; 1_200]) }.packet()
}

fn repetition(next: Protocol, distance: u16, content: &[u8]) -> Vec<u8> {
    let mut payload = vec![0; repetition::HEADER_LEN];
    Repetition { next, distance }.emit(&mut payload).unwrap();
    payload.extend_from_slice(content);
    payload
}

#[test]
fn what_comes_behind_a_gap_waits_for_the_payload_that_is_sent_again() {
    let (mut ends, lost) = Ends::with_a_gap();
    let again = ends.again(6, 4);
    ends.take(&again, 100);
    assert_eq!(ends.given(), [6, 7, 8, 9]);
    ends.take(&lost, 101);
    assert_eq!((ends.given(), ends.drops()), (Vec::new(), vec![(Reason::Replayed, 1)]), "the first, late");
    let repair = &ends.receiver.peer.repair;
    assert_eq!([&repair.missing, &repair.repaired, &repair.held].map(crate::Tally::get), [1, 1, 3]);
}

#[test]
fn a_datagram_that_was_only_late_fills_its_gap() {
    let (mut ends, late) = Ends::with_a_gap();
    ends.take(&late, 4);
    assert_eq!(ends.given(), [6, 7, 8, 9]);
    let again = ends.again(6, 4);
    ends.take(&again, 100);
    assert_eq!((ends.given(), ends.drops(), ends.duplicates()), (Vec::new(), vec![], 1));
    let repair = &ends.receiver.peer.repair;
    assert_eq!([&repair.late, &repair.repaired, &repair.lost].map(crate::Tally::get), [1, 0, 0]);
}

#[test]
fn a_gap_that_is_not_repaired_ends_by_time() {
    let (mut ends, _) = Ends::with_a_gap();
    let mut due = 0;
    while let Some(deadline) = ends.receiver.half.poll_timeout() {
        due = deadline.at.since(START).as_millis() as u64;
        assert!(due <= 151 && ends.given().is_empty(), "{due}");
        ends.wait(due);
    }
    assert_eq!((due, ends.given()), (151, vec![7, 8, 9]), "it was seen at 1 ms");
    assert_eq!(ends.receiver.peer.repair.lost.get(), 1);
}

#[test]
fn a_gap_that_the_sender_will_not_fill_ends_at_once() {
    let (mut ends, _) = Ends::with_a_gap();
    let mut notice = [0; repetition::NOTICE_LEN];
    repetition::emit_notice(&mut notice, 4, 1).unwrap();
    let datagram = ends.seal(Protocol::AGGFRAG, &notice);
    ends.take(&datagram, 100);
    assert_eq!(ends.given(), [7, 8, 9]);
}

#[test]
fn what_the_sender_marks_and_acknowledgements_wait_for_no_repair() {
    let (mut ends, _) = Ends::with_a_gap();
    let shape = Shape { seq: 77, ..Shape::new(Version::V4, Protocol::UDP, vec![0; 160]) };
    let voice = ends.seal(Protocol::IPIP, &shape.packet());
    ends.take(&voice, 5);
    assert!(ends.given().is_empty(), "without a mark");
    let acknowledgement = Shape { seq: 78, ..Shape::new(Version::V4, Protocol::TCP, Vec::new()) };
    let acknowledgement = ends.seal(Protocol::IPIP, &acknowledgement.packet());
    ends.take(&acknowledgement, 6);
    assert_eq!(ends.given(), [78]);
    let mut block = vec![0; block::HEADER_LEN];
    block::Header { codec: block::PROMPT, kind: block::BlockKind::Alone, id: 1, part: 0, parts: 1 }
        .emit(&mut block)
        .unwrap();
    block.extend(segment(79));
    let block = ends.seal(Protocol::AGGFRAG, &block);
    ends.take(&block, 7);
    assert_eq!(ends.given(), [79], "the sender says so");
    let next = ends.bulk(10);
    ends.take(&next, 8);
    assert!(ends.given().is_empty(), "the busy flow itself");
}

#[test]
fn nothing_is_replayed_through_a_repetition() {
    let mut ends = Ends::busy(RepairTerms::Kept);
    let again = ends.again(3, 3);
    ends.take(&again, 1);
    assert_eq!((ends.given(), ends.drops(), ends.duplicates()), (Vec::new(), vec![], 1));
    let second = ends.again(3, 4);
    ends.take(&second, 1);
    ends.take(&second, 1);
    assert_eq!((ends.drops(), ends.duplicates()), (vec![(Reason::Replayed, 1)], 2));
}

#[test]
fn repetitions_of_numbers_far_off_change_nothing() {
    let mut ends = Ends::busy(RepairTerms::Kept);
    for distance in [6, 7, 100, u16::MAX] {
        // The datagrams are 6 to 9: number 0, and numbers before that.
        let datagram = ends.again(99, distance);
        ends.take(&datagram, 1);
    }
    assert!(ends.given().is_empty());
    assert_eq!(ends.drops().iter().map(|(_, count)| count).sum::<u64>(), 4, "{:?}", ends.drops());
    let itself = ends.again(98, 0);
    ends.take(&itself, 1);
    assert_eq!(ends.duplicates(), 1, "its own number has come");
    for _ in 0..9_000 {
        let _ = ends.sa.numbers.next().unwrap();
    }
    let old = ends.again(97, 9_005);
    ends.take(&old, 1);
    assert_eq!((ends.given(), ends.receiver.drops(Reason::TooOld)), (Vec::new(), 3));
}

#[test]
fn only_packets_come_again() {
    let mut ends = Ends::busy(RepairTerms::Kept);
    let _ = ends.sa.numbers.next().unwrap();
    let inner = repetition(Protocol::IPIP, 1, &segment(90));
    let contents: [(Protocol, &[u8]); 6] = [
        (Protocol::AGGFRAG, &inner),
        (Protocol::AGGFRAG, &[0xf1; 20]),
        (Protocol::AGGFRAG, &[0xf2; 20]),
        (Protocol::AGGFRAG, &[0xf3; 20]),
        (Protocol::AGGFRAG, &[]),
        (Protocol::ESP, &segment(91)),
    ];
    for (count, (next, content)) in (1..).zip(contents) {
        let datagram =
            ends.seal(Protocol::AGGFRAG, &repetition(next, 1 + u16::try_from(count).unwrap() - 1, content));
        ends.take(&datagram, 1);
        assert_eq!(ends.receiver.drops(Reason::MalformedEsp), count, "{next:?} {content:?}");
    }
    assert!(ends.given().is_empty());
    let proper = ends.again(6, 7);
    ends.take(&proper, 1);
    assert_eq!(ends.given(), [6], "the number was not used up");
}

#[test]
fn without_agreement_there_are_neither_requests_nor_repetitions() {
    let mut ends = Ends::busy(RepairTerms::Off);
    let again = ends.again(6, 1);
    ends.take(&again, 1);
    let mut missing = MissingRanges::new(crate::sample::SPI);
    assert!(missing.push(MissingRange { first: SeqLow(1), count: 1 }));
    let mut payload = vec![0; missing.wire_len()];
    missing.emit(&mut payload).unwrap();
    let request = ends.seal(Protocol::AGGFRAG, &payload);
    ends.take(&request, 1);
    assert_eq!((ends.given(), ends.drops()), (Vec::new(), vec![(Reason::UnknownPayload, 2)]));
    let _ = ends.bulk(9);
    let next = ends.bulk(10);
    ends.take(&next, 1);
    assert_eq!((ends.given(), ends.asked()), (vec![10], Vec::new()));
}

#[test]
fn a_sender_that_said_nothing_is_asked_once_it_says_that_it_keeps_payloads() {
    let mut ends = Ends::busy(RepairTerms::OnNotice);
    let _ = ends.bulk(6);
    for seq in 7..=9 {
        let datagram = ends.bulk(seq);
        ends.take(&datagram, 1);
    }
    assert_eq!((ends.given(), ends.asked()), (vec![7, 8, 9], Vec::new()));
    let mut notice = [0; repetition::NOTICE_LEN];
    repetition::emit_notice(&mut notice, 0, 0).unwrap();
    let datagram = ends.seal(Protocol::AGGFRAG, &notice);
    ends.take(&datagram, 2);
    for seq in 20..=23 {
        let datagram = ends.bulk(seq);
        ends.take(&datagram, 2);
    }
    assert_eq!(ends.given(), [20, 21, 22, 23]);
    let _ = ends.bulk(24);
    for seq in 25..=27 {
        let datagram = ends.bulk(seq);
        ends.take(&datagram, 3);
    }
    assert_eq!((ends.given(), ends.asked()), (Vec::new(), vec![(15, 1)]));
}

#[test]
fn a_peer_that_never_answers_is_taken_to_keep_nothing() {
    let mut ends = Ends::busy(RepairTerms::Kept);
    let mut millis = 0;
    for turn in 0..VAIN_MAX {
        let _ = ends.bulk(0);
        let next = ends.bulk(u32::try_from(turn).unwrap() + 10);
        ends.take(&next, millis);
        millis += 200;
        ends.wait(millis);
    }
    ends.receiver.site.orders.clear();
    ends.given();
    let _ = ends.bulk(0);
    for seq in 100..104 {
        let datagram = ends.bulk(seq);
        ends.take(&datagram, millis);
    }
    assert_eq!((ends.given(), ends.asked()), (vec![100, 101, 102, 103], Vec::new()));
}

#[test]
fn on_a_long_path_nothing_is_held_back_or_asked_for() {
    let mut ends = Ends::busy(RepairTerms::Kept);
    let mut round = RepairRound::default();
    round.note(Duration::from_millis(600), START);
    assert!(!gaps::is_useful(round.get(&ends.receiver.peer, at(1))));
    assert_eq!(round.get(&ends.receiver.peer, at(31_000)), None, "a new try");
    let lost = ends.bulk(6);
    for seq in 7..=9 {
        let datagram = ends.bulk(seq);
        ends.take(&datagram, 0);
    }
    let again = ends.again(6, 4);
    ends.take(&again, 145);
    drop(lost);
    ends.given();
    ends.receiver.site.orders.clear();
    let lost = ends.bulk(11);
    for seq in 12..=15 {
        let datagram = ends.bulk(seq);
        ends.take(&datagram, 150);
    }
    assert_eq!((ends.given(), ends.asked()), (vec![12, 13, 14, 15], Vec::new()), "a repair took 145 ms");
    drop(lost);
}

#[test]
fn a_hostile_peer_holds_no_more_memory_than_its_bound() {
    let mut ends = Ends::busy(RepairTerms::Kept);
    let mut memory = 0;
    for turn in 0..6_000 {
        let _ = ends.sa.numbers.next().unwrap();
        let datagram = ends.bulk(turn);
        ends.take(&datagram, 1);
        memory = memory.max(ends.receiver.half.intake.associations.held_bytes());
    }
    assert!(memory <= 4 << 20, "{memory} bytes were held back");
    ends.wait(200);
    assert_eq!(ends.given().len(), 6_000);
    assert_eq!(ends.receiver.half.intake.associations.held_bytes(), 0);
}

#[test]
fn what_is_held_back_goes_with_its_association_and_is_counted() {
    let (mut ends, _) = Ends::with_a_gap();
    ends.receiver.half.handle(crate::inbound::Order::Withdraw(crate::sample::SPI));
    assert_eq!((ends.given(), ends.drops()), (Vec::new(), vec![(Reason::UnknownSpi, 3)]));
    assert_eq!(ends.receiver.half.intake.associations.held_bytes(), 0);
    ends.wait(1_000);
    assert_eq!(ends.receiver.half.poll_timeout(), None);
}

#[test]
fn repairs_that_came_late_are_not_the_last_on_a_path_that_is_short_enough() {
    let counters = PeerCounters::default();
    let mut round = RepairRound::default();
    round.note(Duration::from_millis(170), at(0));
    assert!(!round.is_useful(&counters, at(1)), "nothing else is known");
    let mut path = strait_scheduler::Path::default();
    path.sent(1, 100, None, at(0));
    let said = strait_scheduler::DeliveryCount {
        datagrams: 1,
        bytes: 100,
        highest: 1,
        received_at: 7,
        held: Duration::ZERO,
    };
    path.report(&said, 0, at(100)).unwrap();
    counters.path.show(&path, None);
    assert_eq!(counters.path.get().unwrap().least_round_trip, Some(Duration::from_millis(100)));
    assert!(round.is_useful(&counters, at(101)));
    assert_eq!(
        round.get(&counters, at(101)),
        Some(Duration::from_millis(170)),
        "answers may take as long again"
    );
}
