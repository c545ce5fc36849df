use proptest::prelude::*;
use strait_clock::Time;
use strait_wire::Spi;
use strait_wire::history::{LoneHead, Place, Receipt, Receipts};

use super::*;
use crate::headers::tests::sample::{TCP, UDP};

mod shared;

const CONTEXTS: u16 = 4;
const FLOW: LoneTerms = LoneTerms { scope: HistoryScope::Flow, share: 0, payload: true, invest: 4 };

/// Both ends of one direction, and what is between them.
struct Pair {
    sender: LoneSender,
    receiver: LoneReceiver,
    number: u64,
    association: u32,
    now: Time,
    room: Vec<u8>,
}

/// A unit on its way.
struct Sent {
    bytes: Vec<u8>,
    number: UnitNumber,
    receipt: Receipt,
    packet: Vec<u8>,
}

impl Pair {
    fn new() -> Pair {
        Pair {
            sender: LoneSender::new(CONTEXTS),
            receiver: LoneReceiver::new(CONTEXTS),
            number: 0,
            association: 1,
            now: Time::ZERO,
            room: vec![0; 2_000],
        }
    }

    fn spi(&self) -> Spi {
        Spi(self.association)
    }

    fn send(&mut self, packet: &[u8], terms: LoneTerms) -> Option<Sent> {
        self.number += 1;
        self.now += core::time::Duration::from_millis(20);
        let coded =
            self.sender.encode(packet, terms, (Receipts::NONE, self.now), packet.len(), &mut self.room)?;
        let number = UnitNumber { association: self.association, number: self.number };
        let receipt = Receipt::new(self.spi(), self.number);
        self.sender.sent(packet, number, receipt, self.now);
        let bytes = self.room[..coded.len].to_vec();
        Some(Sent { bytes, number, receipt, packet: packet.to_vec() })
    }

    /// Delivers it: never anything else than was sent.
    fn deliver(&mut self, sent: &Sent) -> Result<bool, HistoryError> {
        let decoded = self.receiver.decode(&sent.bytes, sent.number, &mut self.room)?;
        assert_eq!(&self.room[..decoded.len], sent.packet);
        Ok(decoded.kept)
    }

    fn acknowledge(&mut self, receipt: Receipt) {
        self.sender.acknowledged(receipt, UnitNumber { association: self.association, number: self.number });
    }

    /// Sends and delivers, with the receipt at once; bytes of the unit.
    fn exchange(&mut self, packet: &[u8], terms: LoneTerms) -> Option<usize> {
        let sent = self.send(packet, terms)?;
        if self.deliver(&sent).unwrap() {
            self.acknowledge(sent.receipt);
        }
        Some(sent.bytes.len())
    }
}

/// A segment with timestamps.
fn tcp(port: u16, seq: u32, ack: u32, stamp: u32, payload: &[u8]) -> Vec<u8> {
    let options =
        [&[1, 1, 8, 10][..], &(7_000 + stamp).to_be_bytes(), &(9_000 + stamp).to_be_bytes()].concat();
    TCP.port(port).tcp(seq, ack, 0x18, 500, &options).packet(payload)
}

/// A Modbus request over TCP with timestamps: its number and the register it asks for change.
fn poll(number: u16) -> Vec<u8> {
    let [high, low] = number.to_be_bytes();
    let payload = [high, low, 0, 0, 0, 6, 1, 3, 0, low % 4, 0, 2];
    let number = u32::from(number);
    tcp(502, 1_000 + 12 * number, 5_000 + 13 * number, 40 * number, &payload)
}

#[test]
fn polls_become_short() {
    let mut pair = Pair::new();
    assert_eq!(pair.exchange(&poll(0), FLOW), None, "a flow may have no second packet");
    let lens: Vec<usize> = (1..60).map(|number| pair.exchange(&poll(number), FLOW).unwrap()).collect();
    assert!(lens[20..].iter().all(|len| *len <= 20), "{lens:?}");
}

#[test]
fn without_receipts_nothing_is_referred_to() {
    let mut pair = Pair::new();
    for number in 0..200 {
        if let Some(sent) = pair.send(&poll(number), FLOW) {
            assert_eq!(LoneHead::parse(&sent.bytes).unwrap().0.against, None);
        }
    }
}

#[test]
fn flows_of_a_service_share_headers_over_udp_and_all_if_the_rule_says_so() {
    let udp: fn(u16) -> Vec<u8> = |port| UDP.port(port).packet(b"query");
    let tcp: fn(u16) -> Vec<u8> = |port| tcp(port, 1, 1, 1, b"query");
    let (flow, service) = (HistoryScope::Flow, HistoryScope::Service);
    for (packet, scope, contexts) in [(tcp, flow, 3), (udp, flow, 1), (tcp, service, 1), (udp, service, 1)] {
        let mut pair = Pair::new();
        for port in [40_000, 40_001, 40_002, 40_000] {
            let _ = pair.exchange(&packet(port), LoneTerms { scope, ..FLOW });
        }
        assert_eq!(pair.sender.contexts(), contexts);
    }
}

/// What a packet of another flow becomes, when the first flow said the same.
fn of_another_flow(scope: HistoryScope) -> Vec<u8> {
    let mut pair = Pair::new();
    let payload = b"the cookie of this session is 0123456789abcdef";
    for _ in 0..4 {
        let _ = pair.exchange(&UDP.port(40_000).packet(payload), LoneTerms { scope, ..FLOW });
    }
    pair.send(&UDP.port(40_001).packet(payload), LoneTerms { scope, ..FLOW }).unwrap().bytes
}

#[test]
fn another_flow_is_set_against_headers_alone_unless_the_rule_says_so() {
    let (flow, service) = (of_another_flow(HistoryScope::Flow), of_another_flow(HistoryScope::Service));
    let (head, _) = LoneHead::parse(&flow).unwrap();
    assert!(head.against.is_some() && flow.ends_with(b"0123456789abcdef"), "{flow:02x?}");
    assert!(service.len() + 40 < flow.len(), "{} {}", service.len(), flow.len());
}

#[test]
fn payloads_stay_as_they_are_where_no_rule_allows_more() {
    let mut pair = Pair::new();
    for number in 0..30 {
        if let Some(sent) = pair.send(&poll(number), LoneTerms { payload: false, ..FLOW }) {
            assert!(!LoneHead::parse(&sent.bytes).unwrap().0.coded);
            if pair.deliver(&sent).unwrap() {
                pair.acknowledge(sent.receipt);
            }
        }
    }
}

#[test]
fn what_was_replaced_is_gone_and_what_was_not_agreed_is_refused() {
    let mut pair = Pair::new();
    let (first, second) = (Place::new(1), Place::new(2));
    let head = LoneHead { context: 0, keep: first, against: first, coded: false, receipts: Receipts::NONE };
    let unit = |head: &LoneHead| {
        let mut bytes = vec![0; head.head_len()];
        head.emit(&mut bytes).unwrap();
        // Nothing differs, and there is no payload.
        bytes.push(0);
        bytes
    };
    let number = |number| UnitNumber { association: 1, number };
    let mut room = [0; 200];
    let mut decode = |head: LoneHead, at| pair.receiver.decode(&unit(&head), number(at), &mut room);
    assert_eq!(decode(head, 5), Err(HistoryError::Gone));
    let kept = decode(LoneHead { against: None, ..head }, 6).unwrap();
    assert!(kept.kept);
    assert_eq!(
        decode(LoneHead { keep: second, ..head }, 5),
        Err(HistoryError::Gone),
        "older than what is there"
    );
    assert!(decode(LoneHead { keep: second, ..head }, 7).is_ok());
    let older = decode(LoneHead { against: None, keep: second, ..head }, 6).unwrap();
    assert!(!older.kept, "what is there is newer");
    let beyond = LoneHead { context: 4, ..head };
    assert_eq!(decode(beyond, 8), Err(HistoryError::OverBudget { most: 4 }));
}

/// Takes what leaves alone, and lets it leave.
fn take_alone(queue: &mut ReceiptQueue, now: Time) -> Option<strait_wire::history::Receipts> {
    queue.to_leave(now).inspect(|_| queue.left())
}

#[test]
fn receipts_ride_or_leave_alone_ever_more_rarely() {
    let mut queue = ReceiptQueue::default();
    let (mut alone, mut now) = (Vec::new(), Time::ZERO);
    for number in 0..100 {
        queue.note_kept(Receipt(number), now);
        now += core::time::Duration::from_secs(1);
        if take_alone(&mut queue, now).is_some() {
            alone.push(number);
        }
    }
    assert_eq!(alone, [0, 2, 6, 14, 30, 62, 94]);
    queue.note_kept(Receipt(200), now);
    assert_eq!(queue.to_ride(now).as_slice().last(), Some(&Receipt(200)));
    queue.rode(now);
    queue.note_kept(Receipt(201), now);
    assert!(take_alone(&mut queue, now).is_none(), "it may ride yet");
    assert!(take_alone(&mut queue, now + core::time::Duration::from_millis(200)).is_some());
}

#[test]
fn receipts_for_blocks_leave_after_fifty_milliseconds() {
    let mut queue = ReceiptQueue::for_blocks();
    let mut alone = Vec::new();
    for number in 0..10 {
        let now = Time::ZERO + core::time::Duration::from_millis(30) * u32::from(number);
        queue.note_kept(Receipt(number), now);
        alone.extend(take_alone(&mut queue, now).map(|receipts| receipts.as_slice().len()));
    }
    assert_eq!(alone, [3, 3, 3]);
}

/// What happens to the next unit.
#[derive(Clone, Debug)]
enum Step {
    Packet { flow: u8, service: bool, payload: Vec<u8> },
    Lose(usize),
    Deliver(usize),
    Receipt(usize),
    LoseReceipt(usize),
    Rekey,
    Restart,
}

fn step() -> impl Strategy<Value = Step> {
    let payload = proptest::collection::vec(0..3_u8, 0..40);
    prop_oneof![
        8 => (0..6_u8, any::<bool>(), payload)
            .prop_map(|(flow, service, payload)| Step::Packet { flow, service, payload }),
        1 => any::<usize>().prop_map(Step::Lose),
        6 => any::<usize>().prop_map(Step::Deliver),
        4 => any::<usize>().prop_map(Step::Receipt),
        1 => any::<usize>().prop_map(Step::LoseReceipt),
        1 => Just(Step::Rekey),
        1 => Just(Step::Restart),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(debug_assertions) { 256 } else { 4_096 }))]
    #[test]
    fn whatever_is_lost_or_overtaken_nothing_wrong_is_delivered(steps in proptest::collection::vec(step(), 0..400)) {
        let mut pair = Pair::new();
        let (mut units, mut receipts): (Vec<Sent>, Vec<Receipt>) = (Vec::new(), Vec::new());
        let mut count = 0_u32;
        for step in steps {
            match step {
                Step::Packet { flow, service, payload } => {
                    count += 1;
                    let scope = if service { HistoryScope::Service } else { HistoryScope::Flow };
                    let port = 40_000 + u16::from(flow);
                    let packet = if flow % 2 == 0 {
                        UDP.port(port).packet(&payload)
                    } else {
                        tcp(port, count * 7, 5, count, &payload)
                    };
                    units.extend(pair.send(&packet, LoneTerms { scope, ..FLOW }));
                }
                Step::Lose(at) if !units.is_empty() => drop(units.swap_remove(at % units.len())),
                Step::Deliver(at) if !units.is_empty() => {
                    let unit = units.swap_remove(at % units.len());
                    // An association that was replaced is gone with its peer's memory of it.
                    if pair.deliver(&unit).is_ok_and(|kept| kept) {
                        receipts.push(unit.receipt);
                    }
                }
                Step::Receipt(at) if !receipts.is_empty() => {
                    let receipt = receipts.swap_remove(at % receipts.len());
                    pair.acknowledge(receipt);
                }
                Step::LoseReceipt(at) if !receipts.is_empty() => drop(receipts.swap_remove(at % receipts.len())),
                Step::Rekey => {
                    (pair.association, pair.number) = (pair.association + 1, 0);
                    pair.sender.new_association();
                    // A receipt tells four associations apart; nothing is under way for longer than that.
                    units.retain(|unit| unit.number.association + 3 > pair.association);
                    receipts.clear();
                }
                Step::Restart => {
                    pair.receiver = LoneReceiver::new(CONTEXTS);
                    (pair.association, pair.number) = (pair.association + 1, 0);
                    pair.sender.clear(CONTEXTS);
                    units.clear();
                    receipts.clear();
                }
                _ => {}
            }
        }
    }

    #[test]
    fn in_order_nothing_is_ever_gone(payloads in proptest::collection::vec((0..6_u8, proptest::collection::vec(0..3_u8, 0..60)), 0..300),
                                     delay in 0..12_usize, lose in 2..9_usize) {
        let mut pair = Pair::new();
        let mut receipts = std::collections::VecDeque::new();
        for (count, (flow, payload)) in payloads.into_iter().enumerate() {
            let packet = UDP.port(40_000 + u16::from(flow)).packet(&payload);
            if let Some(sent) = pair.send(&packet, FLOW)
                && count % lose != 0
                && pair.deliver(&sent).unwrap()
            {
                receipts.push_back(sent.receipt);
            }
            if receipts.len() > delay
                && let Some(receipt) = receipts.pop_front()
            {
                pair.acknowledge(receipt);
            }
        }
    }

    #[test]
    fn anything_else_is_refused(bytes: Vec<u8>, at in 0..60_usize, with: u8) {
        let mut pair = Pair::new();
        for number in 0..20 {
            let _ = pair.exchange(&poll(number), FLOW);
        }
        let mut unit = pair.send(&poll(20), FLOW).unwrap();
        let len = unit.bytes.len();
        unit.bytes[at % len] ^= with;
        let mut room = [0; 1_600];
        let _ = pair.receiver.decode(&unit.bytes, unit.number, &mut room);
        let next = UnitNumber { number: unit.number.number + 1, ..unit.number };
        let _ = pair.receiver.decode(&[&[0xe4][..], &bytes].concat(), next, &mut room);
        prop_assert!(pair.receiver.kept_bytes() <= usize::from(CONTEXTS) * 15 * PAYLOAD_MAX);
    }
}
