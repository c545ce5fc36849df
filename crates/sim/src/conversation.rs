//! Numbered UDP packets from one host to another, and an account of each.

use std::collections::BTreeMap;

use strait_clock::{Random, Time};
use strait_wire::{Tos, ip, udp};

use crate::{Delivered, FlowShape};

/// What fills the packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Filler {
    /// Lines of a log, which shrink to a fraction.
    Text,
    /// Random hexadecimal digits, which shrink to about a half: blocks of many parts.
    Digits,
    /// Random bytes, which do not shrink.
    Random,
}

/// Counts of the packets of a conversation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ConversationTally {
    /// Numbers given out.
    pub sent: u64,
    /// Numbers that arrived at least once.
    pub arrived: u64,
    /// Arrivals beyond the first of a number.
    pub repeated: u64,
    /// Numbers that first arrived after a later one had.
    pub overtaken: u64,
    /// Arrivals whose bytes are not those that were sent.
    pub damaged: u64,
}

impl ConversationTally {
    /// Numbers that have not arrived.
    #[must_use]
    pub const fn missing(&self) -> u64 {
        self.sent - self.arrived
    }
}

/// Numbered packets of one flow.
#[derive(Debug)]
pub struct Conversation {
    shape: FlowShape,
    filler: Filler,
    tally: ConversationTally,
    seen: BTreeMap<u64, Time>,
    lens: Vec<usize>,
}

/// Least payload: the number.
const NUMBER: usize = 8;

impl Conversation {
    /// A conversation of which nothing was said yet.
    #[must_use]
    pub const fn new(shape: FlowShape, filler: Filler) -> Conversation {
        let tally = ConversationTally { sent: 0, arrived: 0, repeated: 0, overtaken: 0, damaged: 0 };
        Conversation { shape, filler, tally, seen: BTreeMap::new(), lens: Vec::new() }
    }

    /// The next packet, with `payload` bytes (at least 8) behind its UDP header.
    pub fn next_packet(&mut self, payload: usize) -> Vec<u8> {
        let len = payload.max(NUMBER);
        let packet = self.shape.udp(&self.payload(self.tally.sent, len));
        self.tally.sent += 1;
        self.lens.push(len);
        packet
    }

    /// Marks packets from here on with `tos`.
    pub const fn set_tos(&mut self, tos: Tos) {
        self.shape.tos = tos;
    }

    /// Accounts for those of `delivered` that belong to this conversation; gives their traffic classes.
    pub fn note(&mut self, delivered: &[Delivered]) -> Vec<Tos> {
        let mine = delivered.iter().filter_map(|one| Some((one.at, self.payload_of(&one.packet)?)));
        let mine: Vec<(Time, (Tos, Vec<u8>))> = mine.collect();
        mine.into_iter().map(|(at, (tos, payload))| self.arrival(at, tos, &payload)).collect()
    }

    /// Counts of its packets so far.
    #[must_use]
    pub const fn tally(&self) -> ConversationTally {
        self.tally
    }

    /// When number `number` first arrived.
    #[must_use]
    pub fn arrived_at(&self, number: u64) -> Option<Time> {
        self.seen.get(&number).copied()
    }

    fn arrival(&mut self, at: Time, tos: Tos, payload: &[u8]) -> Tos {
        let number = payload.first_chunk::<NUMBER>().map_or(u64::MAX, |number| u64::from_be_bytes(*number));
        let sent = usize::try_from(number).ok().and_then(|at| self.lens.get(at)).copied();
        if sent.is_none_or(|len| payload != self.payload(number, len)) {
            self.tally.damaged += 1;
        } else if self.seen.contains_key(&number) {
            self.tally.repeated += 1;
        } else {
            let overtaken = self.seen.last_key_value().is_some_and(|(last, _)| *last > number);
            self.tally.overtaken += u64::from(overtaken);
            self.tally.arrived += 1;
            self.seen.insert(number, at);
        }
        tos
    }

    fn payload_of(&self, packet: &[u8]) -> Option<(Tos, Vec<u8>)> {
        let packet = ip::Packet::parse(packet).ok()?;
        let flow = packet.flow();
        let (src, dst) = (self.shape.src, self.shape.dst);
        let mine = (flow.src, flow.src_port, flow.dst, flow.dst_port)
            == (src.ip(), src.port(), dst.ip(), dst.port());
        let datagram = udp::Datagram::parse(packet.payload()).ok()?;
        mine.then(|| (packet.tos(), datagram.payload().to_vec()))
    }

    fn payload(&self, number: u64, len: usize) -> Vec<u8> {
        let mut payload = number.to_be_bytes().to_vec();
        self.filler.fill(&mut payload, number, self.shape.src.port(), len);
        payload
    }
}

impl Filler {
    /// Makes `payload` as long as `len` says, with what follows from `number` and `port`.
    pub(crate) fn fill(self, payload: &mut Vec<u8>, number: u64, port: u16, len: usize) {
        let mut random = Random::new(number ^ u64::from(port) << 40);
        while payload.len() < len {
            match self {
                Filler::Text => {
                    let line = format!(
                        "Nov 21 03:1{} host app[{}]: request served in {} ms\n",
                        number % 6,
                        731,
                        number % 97
                    );
                    payload.extend_from_slice(line.as_bytes());
                }
                Filler::Digits => {
                    payload.extend_from_slice(format!("{:016x}", random.next_u64()).as_bytes());
                }
                Filler::Random => payload.extend_from_slice(&random.next_u64().to_be_bytes()),
            }
        }
        payload.truncate(len);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_packet_is_accounted_for() {
        let shape = FlowShape::new("10.0.1.1:1".parse().unwrap(), "10.0.2.1:2".parse().unwrap());
        for filler in [Filler::Text, Filler::Random] {
            let mut talk = Conversation::new(shape, filler);
            let packets: Vec<Vec<u8>> = (0..6).map(|_| talk.next_packet(300)).collect();
            let other = Conversation::new(FlowShape { src: "10.0.1.1:9".parse().unwrap(), ..shape }, filler)
                .next_packet(300);
            let mut bad = packets[5].clone();
            bad[100] ^= 1;
            let arrived = [&packets[0], &packets[2], &packets[1], &packets[2], &other, &bad];
            let delivered: Vec<Delivered> =
                arrived.map(|packet| Delivered { at: Time::ZERO, packet: packet.clone() }).to_vec();
            assert_eq!(talk.note(&delivered).len(), 5);
            let expected = ConversationTally { sent: 6, arrived: 3, repeated: 1, overtaken: 1, damaged: 1 };
            assert_eq!((talk.tally(), talk.tally().missing()), (expected, 3));
            assert_eq!(talk.arrived_at(4), None);
        }
    }
}
