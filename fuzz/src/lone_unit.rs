//! Lone units: what an honest sender codes comes back or is gone, whatever happens on the way; anything else is refused within bounds.

use core::time::Duration;
use std::collections::VecDeque;

use strait_clock::Time;
use strait_compress::history::{
    HistoryError, HistoryScope, LoneReceiver, LoneSender, LoneTerms, PAYLOAD_MAX, ReceiptQueue, UnitNumber,
};
use strait_wire::Spi;
use strait_wire::history::{LONE_HEAD, LoneHead, PLACES, RECEIPT_LEN, RIDING_MAX, Receipt, Receipts};

const CONTEXTS: u16 = 3;
/// Neither a unit nor a receipt is under way for longer.
const UNDER_WAY: Duration = Duration::from_secs(2);
/// Room for a packet.
const ROOM: usize = 2_048;

/// Operations on both ends, and behind them units that no sender made.
pub fn check(data: &[u8]) {
    check_parsers(data);
    let mut ends = Ends::new();
    let mut input = data;
    while let Some(operation) = input.split_off_first() {
        ends.step(*operation, &mut input);
        assert!(ends.receiver.kept_bytes() <= usize::from(CONTEXTS) * PLACES * PAYLOAD_MAX);
    }
}

fn check_parsers(data: &[u8]) {
    if let Ok((head, rest)) = LoneHead::parse(data) {
        assert!(head.receipts.as_slice().len() <= RIDING_MAX);
        let mut bytes = vec![0xff; LONE_HEAD + RECEIPT_LEN * head.receipts.as_slice().len()];
        head.emit(&mut bytes).unwrap();
        assert_eq!([&bytes[..], rest].concat(), data);
    }
    if let Ok((mut receipts, blocks)) = Receipts::parse_alone(data) {
        let mut bytes = vec![0xff; receipts.alone_len()];
        receipts.emit_alone(blocks, &mut bytes).unwrap();
        assert_eq!(bytes, data);
        let all = receipts.as_slice().len();
        let taken = receipts.take_newest(2);
        assert_eq!(receipts.as_slice().len() + taken.as_slice().len(), all);
    }
}

/// A unit on its way.
struct Sent {
    bytes: Vec<u8>,
    number: UnitNumber,
    packet: Vec<u8>,
    left: Time,
}

/// Both ends of one direction, and what is between them.
struct Ends {
    sender: LoneSender,
    receiver: LoneReceiver,
    owed: ReceiptQueue,
    units: VecDeque<Sent>,
    receipts: VecDeque<(Receipt, Time)>,
    newest: UnitNumber,
    now: Time,
}

impl Ends {
    fn new() -> Ends {
        Ends {
            sender: LoneSender::new(CONTEXTS),
            receiver: LoneReceiver::new(CONTEXTS),
            owed: ReceiptQueue::default(),
            units: VecDeque::new(),
            receipts: VecDeque::new(),
            newest: UnitNumber { association: 1, number: 0 },
            now: Time::ZERO,
        }
    }

    fn step(&mut self, operation: u8, input: &mut &[u8]) {
        self.now += Duration::from_millis(20);
        match operation >> 4 {
            0..6 => self.send(operation, input),
            6..10 => self.deliver(operation),
            10 => drop(self.units.pop_front()),
            11 => self.give_back(),
            12 => self.acknowledge(),
            13 => drop(self.receipts.pop_front()),
            14 => self.pass_time(operation),
            _ if operation & 0x0c == 0 => self.renew(operation & 1 != 0),
            _ => self.forge(input),
        }
    }

    /// A packet: its flow by the operation, what is in it by the input.
    fn send(&mut self, operation: u8, input: &mut &[u8]) {
        let packet = packet(operation, take(input));
        self.newest.number += 1;
        let scope = if operation & 8 == 0 { HistoryScope::Flow } else { HistoryScope::Service };
        let terms = LoneTerms { scope, share: 7, payload: operation & 4 == 0, invest: 4 };
        let mut room = [0; ROOM];
        let with = (Receipts::NONE, self.now);
        let Some(coded) = self.sender.encode(&packet, terms, with, packet.len(), &mut room) else { return };
        let receipt = Receipt::new(Spi(self.newest.association), self.newest.number);
        self.sender.sent(&packet, self.newest, receipt, self.now);
        let (bytes, number, left) = (room[..coded.len].to_vec(), self.newest, self.now);
        self.units.push_back(Sent { bytes, number, packet, left });
    }

    /// The oldest unit, or a later one, comes: its packet is what was sent, or it is gone.
    fn deliver(&mut self, operation: u8) {
        let at = usize::from(operation & 15) % self.units.len().max(1);
        let Some(Sent { bytes, number, packet, left }) = self.units.remove(at) else { return };
        if self.now.since(left) >= UNDER_WAY {
            return;
        }
        let mut room = [0; ROOM];
        match self.receiver.decode(&bytes, number, &mut room) {
            Ok(decoded) => {
                assert_eq!(&room[..decoded.len], packet);
                if decoded.kept {
                    self.owed.note_kept(Receipt::new(Spi(number.association), number.number), self.now);
                }
            }
            Err(error) => assert_eq!(error, HistoryError::Gone),
        }
    }

    /// Receipts leave, in a unit or alone.
    fn give_back(&mut self) {
        let alone = self.owed.to_leave(self.now);
        if alone.is_some() {
            self.owed.left();
        }
        let receipts = alone.unwrap_or_else(|| {
            let riding = self.owed.to_ride(self.now);
            if !riding.is_empty() {
                self.owed.rode(self.now);
            }
            riding
        });
        self.receipts.extend(receipts.as_slice().iter().map(|receipt| (*receipt, self.now)));
    }

    /// One comes.
    fn acknowledge(&mut self) {
        let Some((receipt, left)) = self.receipts.pop_front() else { return };
        if self.now.since(left) < UNDER_WAY {
            self.sender.acknowledged(receipt, self.newest);
        }
    }

    /// Numbers go by, or seconds.
    fn pass_time(&mut self, operation: u8) {
        match operation & 15 {
            numbers @ 0..8 => self.newest.number += u64::from(numbers) * (Receipt::NUMBERS / 4),
            seconds => self.now += Duration::from_secs((seconds - 7).into()),
        }
    }

    /// Other keys, perhaps after a restart of the receiver; no unit of four associations ago is under way.
    fn renew(&mut self, restarts: bool) {
        self.newest = UnitNumber { association: self.newest.association + 1, number: 0 };
        if restarts {
            self.receiver = LoneReceiver::new(CONTEXTS);
            self.sender.clear(CONTEXTS);
            self.owed.clear();
            self.units.clear();
            self.receipts.clear();
        } else {
            self.sender.new_association();
            self.units.retain(|unit| unit.number.association + 3 > self.newest.association);
        }
    }

    /// A unit that no sender made: it may be taken for whatever it says, and none that is honest goes with it until both begin anew.
    fn forge(&mut self, input: &mut &[u8]) {
        let unit = take(input);
        self.newest.number += 1;
        let mut room = [0; ROOM];
        if let Ok(decoded) = self.receiver.decode(unit, self.newest, &mut room) {
            assert!(decoded.len <= ROOM && LoneHead::parse(unit).is_ok());
        }
        self.sender = LoneSender::new(0);
        self.owed.clear();
        self.units.clear();
        self.receipts.clear();
    }
}

/// As many bytes of the input as its first one says.
fn take<'a>(input: &mut &'a [u8]) -> &'a [u8] {
    let len = input.split_off_first().map_or(0, |len| usize::from(*len));
    input.split_off(..len.min(input.len())).unwrap_or_default()
}

/// A packet of one of four flows, or whatever stands in the input.
fn packet(operation: u8, content: &[u8]) -> Vec<u8> {
    let port = 0x80 | operation & 1;
    let udp = [&[0x30, 0x39, 0, port][..], &u16::try_from(8 + content.len()).unwrap().to_be_bytes(), &[0, 0]]
        .concat();
    match operation >> 4 {
        0..2 => v4(17, &[&udp, content].concat()),
        2 => v6(17, &[&udp, content].concat()),
        3..5 => {
            let (numbers, content) = content.split_at(content.len().min(4));
            let mut tcp = [0x30, 0x39, 0, port, 0, 0, 0, 0, 0, 0, 0, 0, 0x50, 0x18, 1, 0, 0, 0, 0, 0];
            tcp[7..7 + numbers.len()].copy_from_slice(numbers);
            v4(6, &[&tcp[..], content].concat())
        }
        _ => content.to_vec(),
    }
}

fn v4(protocol: u8, upper: &[u8]) -> Vec<u8> {
    let [high, low] = u16::try_from(20 + upper.len()).unwrap().to_be_bytes();
    let mut header = [0x45, 0, high, low, 0, 0, 0x40, 0, 64, protocol, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
    let check = strait_wire::checksum::Sum::ZERO.add_bytes(&header).finish().to_be_bytes();
    [header[10], header[11]] = check;
    [&header[..], upper].concat()
}

fn v6(protocol: u8, upper: &[u8]) -> Vec<u8> {
    let [high, low] = u16::try_from(upper.len()).unwrap().to_be_bytes();
    [&[0x60, 0, 0, 0, high, low, protocol, 64][..], &[7; 32], upper].concat()
}
