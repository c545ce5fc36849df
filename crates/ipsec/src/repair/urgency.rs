//! Which packets need not wait until losses before them are repaired, and which are of no use once that took a round trip.
//!
//! A receiver cannot know whose packet was lost. So a flow that sends much waits for every repair; one that sends little passes, as does
//! an acknowledgement without data, whose place among others means nothing.

use core::hash::{Hash, Hasher};
use core::time::Duration;
use std::hash::DefaultHasher;

use strait_clock::Time;
use strait_scheduler::Tin;
use strait_wire::ip::Packet;
use strait_wire::tcp::{Segment, TcpFlags};
use strait_wire::{Protocol, block};

/// Bytes that a flow may send at once, and a second, and still send little: a voice call of 64 kbit/s with its headers, 11 kB/s, and a
/// request of two full packets.
const BURST: u64 = 3_000;
const PER_SECOND: u64 = 16_000;
/// What a flow is remembered to have sent at most: one that sent much sends little again after a second.
const REMEMBERED: u64 = 16_000;
/// Flows that are told apart; two that share a place count as one.
const FLOWS: usize = 256;
/// Packets of a payload that are looked at: as many acknowledgements as a datagram may take, with what shares it with them.
const LOOKED_AT: usize = 64;

/// How a payload stands to losses before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Urgency {
    /// Of a latency-sensitive flow that is not TCP: nothing waits for it, and sent again it would come too late.
    Fleeting,
    /// It need not wait for others; lost, it is sent again.
    Prompt,
    /// It waits until what is before it has come.
    Ordered,
}

/// What flows have sent of late.
#[derive(Debug)]
pub(crate) struct FlowRates {
    seed: u64,
    flows: Box<[FlowLevel; FLOWS]>,
}

/// What one flow has sent beyond what it may a second.
#[derive(Clone, Copy, Debug, Default)]
struct FlowLevel {
    bytes: u64,
    at: Time,
}

impl FlowRates {
    /// Nothing was sent; `seed` decides which flows share a place.
    pub(crate) fn new(seed: u64) -> FlowRates {
        FlowRates { seed, flows: Box::new([FlowLevel::default(); FLOWS]) }
    }

    /// How packets, whole ones one after another, stand to losses before them; notes that they are sent or received.
    pub(crate) fn classify(&mut self, packets: &[u8], now: Time) -> Urgency {
        let mut urgency = Urgency::Fleeting;
        for (count, packet) in block::packets(packets).enumerate() {
            let packet = packet.ok().and_then(|packet| Packet::parse(packet).ok());
            match packet {
                Some(packet) if count < LOOKED_AT => urgency = urgency.max(self.packet(&packet, now)),
                _ => return Urgency::Ordered,
            }
        }
        urgency
    }

    fn packet(&mut self, packet: &Packet<'_>, now: Time) -> Urgency {
        let flow = packet.flow();
        if carries_nothing(packet) {
            return Urgency::Prompt;
        }
        let mut hasher = DefaultHasher::new();
        (self.seed, flow).hash(&mut hasher);
        let place = (hasher.finish() % FLOWS as u64) as usize;
        let little =
            self.flows.get_mut(place).is_some_and(|level| level.note(packet.bytes().len() as u64, now));
        let interactive = Tin::of_dscp(packet.tos().dscp()) == Tin::Interactive;
        match (little || interactive, flow.protocol == Protocol::TCP) {
            (false, _) => Urgency::Ordered,
            (true, true) => Urgency::Prompt,
            (true, false) => Urgency::Fleeting,
        }
    }
}

impl FlowLevel {
    /// Notes a packet; whether its flow sends little.
    fn note(&mut self, len: u64, now: Time) -> bool {
        let span = now.since(self.at).min(Duration::from_secs(REMEMBERED / PER_SECOND + 1));
        let drained =
            u64::try_from(span.as_micros()).unwrap_or(u64::MAX).saturating_mul(PER_SECOND) / 1_000_000;
        self.bytes = (self.bytes.saturating_sub(drained) + len).min(REMEMBERED);
        self.at = now;
        self.bytes <= BURST
    }
}

/// Whether this is a TCP packet with neither data nor a change of the connection.
pub(crate) fn is_pure_acknowledgement(packet: &[u8]) -> bool {
    Packet::parse(packet).is_ok_and(|packet| carries_nothing(&packet))
}

fn carries_nothing(packet: &Packet<'_>) -> bool {
    if packet.flow().protocol != Protocol::TCP || packet.is_fragment() {
        return false;
    }
    let changes = (TcpFlags::SYN | TcpFlags::FIN | TcpFlags::RST).bits();
    Segment::parse(packet.payload()).is_ok_and(|segment| {
        segment.payload().is_empty()
            && segment.flags().contains(TcpFlags::ACK)
            && segment.flags().bits() & changes == 0
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::Shape;
    use strait_wire::ip::Version;

    fn udp(port: u16, len: usize) -> Vec<u8> {
        let shape = Shape::new(Version::V4, Protocol::UDP, vec![0; len]);
        Shape { ports: [port, 53], ..shape }.packet()
    }

    fn tcp(flags: u8, len: usize) -> Vec<u8> {
        Shape { flags, ..Shape::new(Version::V6, Protocol::TCP, vec![0; len]) }.packet()
    }

    fn at(millis: u64) -> Time {
        Time::from_millis(10_000 + millis)
    }

    #[test]
    fn a_flow_that_sends_much_is_ordered_until_it_paused() {
        let mut rates = FlowRates::new(1);
        let packet = udp(7, 1_000);
        let urgencies: Vec<Urgency> = (0..5).map(|_| rates.classify(&packet, at(0))).collect();
        assert_eq!(urgencies[..2], [Urgency::Fleeting; 2]);
        assert_eq!(urgencies[3..], [Urgency::Ordered; 2]);
        assert!((0..100).all(|turn| rates.classify(&packet, at(turn * 20)) == Urgency::Ordered || turn < 5));
        assert_eq!(rates.classify(&packet, at(2_000 + 1_100)), Urgency::Fleeting);
    }

    #[test]
    fn a_voice_call_sends_little() {
        let mut rates = FlowRates::new(2);
        let packet = udp(9, 172);
        assert!((0..500).all(|turn| rates.classify(&packet, at(turn * 20)) == Urgency::Fleeting));
    }

    #[test]
    fn acknowledgements_pass_and_connections_that_end_wait() {
        let mut rates = FlowRates::new(4);
        for _ in 0..20 {
            rates.classify(&tcp(0x10, 1_200), at(0));
        }
        for (flags, len, expected) in [
            (0x10, 0, Urgency::Prompt),
            (0xd8, 0, Urgency::Prompt),
            (0x11, 0, Urgency::Ordered),
            (0x12, 0, Urgency::Ordered),
            (0x14, 0, Urgency::Ordered),
            (0x10, 1, Urgency::Ordered),
        ] {
            assert_eq!(rates.classify(&tcp(flags, len), at(1)), expected, "{flags:#x} {len}");
        }
        assert_eq!(FlowRates::new(4).classify(&tcp(0x12, 0), at(1)), Urgency::Prompt, "a flow that begins");
    }

    #[test]
    fn one_packet_of_a_busy_flow_makes_a_block_ordered() {
        let mut rates = FlowRates::new(3);
        let (bulk, small) = (udp(1, 1_200), udp(2, 40));
        for _ in 0..10 {
            rates.classify(&bulk, at(0));
        }
        assert_eq!(rates.classify(&small, at(1)), Urgency::Fleeting);
        assert_eq!(rates.classify(&[&small[..], &bulk].concat(), at(1)), Urgency::Ordered);
        assert_eq!(rates.classify(&[0xff; 40], at(1)), Urgency::Ordered, "no packet");
        let many = small.repeat(LOOKED_AT + 1);
        assert_eq!(rates.classify(&many, at(5_000)), Urgency::Ordered);
    }
}
