//! TCP inside the tunnel that sends the same data again and again, because it does not arrive.

use strait_wire::Protocol;
use strait_wire::ip::Packet;
use strait_wire::tcp::Segment;

/// Streams that are watched at a time, each at a place that follows from its ports. Of hundreds that stand still at
/// once some are alone at theirs, and one is enough.
const PLACES: usize = 64;
/// How often the same segment has to be seen in a row to mean more than chance: when TCP itself begins to doubt
/// the path (RFC 1122 section 4.2.3.5, R1).
const TIMES: u8 = 3;
/// Spreads ports over the places (Knuth, The Art of Computer Programming, section 6.4: 2^32 by the golden ratio).
const SPREAD: u32 = 0x9e37_79b1;

/// The last segment of a stream.
#[derive(Clone, Copy, Debug)]
struct Last {
    seq: u32,
    times: u8,
}

/// The last segments of some streams.
#[derive(Clone, Debug)]
pub(crate) struct Repeats {
    places: [Last; PLACES],
}

impl Repeats {
    pub(crate) const fn new() -> Repeats {
        Repeats { places: [Last { seq: 0, times: 0 }; PLACES] }
    }

    /// Takes note of a packet; true when it carries data of TCP that are sent for the third time, with
    /// nothing else of its stream between.
    pub(crate) fn note(&mut self, packet: &Packet<'_>) -> bool {
        if packet.protocol() != Protocol::TCP || packet.is_later_fragment() {
            return false;
        }
        let Ok(segment) = Segment::parse(packet.payload()) else { return false };
        if segment.payload().is_empty() {
            return false;
        }
        let ports = u32::from(segment.src_port()) << 16 | u32::from(segment.dst_port());
        let place = ports.wrapping_mul(SPREAD) as usize >> (u32::BITS - PLACES.ilog2());
        let Some(last) = self.places.get_mut(place) else { return false };
        if last.seq != segment.seq() {
            *last = Last { seq: segment.seq(), times: 0 };
        }
        last.times += 1;
        let often = last.times == TIMES;
        if often {
            last.times = 0;
        }
        often
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::Shape;
    use strait_wire::ip::Version;

    fn segment(ports: [u16; 2], seq: u32) -> Shape {
        Shape { ports, seq, ..Shape::new(Version::V4, Protocol::TCP, vec![7; 1200]) }
    }

    fn note(repeats: &mut Repeats, shape: &Shape) -> bool {
        repeats.note(&Packet::parse(&shape.packet()).unwrap())
    }

    #[test]
    fn third_retransmission_triggers_probe() {
        let mut repeats = Repeats::new();
        for ports in [[4000, 80], [4002, 80]] {
            let often = [0; 7].map(|_| note(&mut repeats, &segment(ports, 0)));
            assert_eq!(often, [false, false, true, false, false, true, false]);
        }
    }

    #[test]
    fn progressing_stream_is_not_stalled() {
        let mut repeats = Repeats::new();
        for seq in [1, 2, 1, 2, 2, 3, 2, 4, 4, u32::MAX, 0, 0, 1] {
            assert!(!note(&mut repeats, &segment([4000, 80], seq)), "{seq}");
        }
    }

    #[test]
    fn only_tcp_retransmissions_are_detected() {
        let mut repeats = Repeats::new();
        let datagram = Shape::new(Version::V6, Protocol::UDP, vec![7; 1200]);
        // A later fragment: what stands where a header would is data.
        let mut fragment = segment([4000, 80], 1).packet();
        fragment[7] = 1;
        for _ in 0..10 {
            assert!(!note(&mut repeats, &datagram));
            assert!(!repeats.note(&Packet::parse(&fragment).unwrap()));
        }
    }

    #[test]
    fn detects_stall_among_many_streams() {
        let mut random = strait_clock::Random::new(1);
        for streams in [1, 10, 64, 100, 200] {
            let ports: Vec<u16> =
                (0..streams).map(|_| 32_768 + u16::try_from(random.below(28_232)).unwrap()).collect();
            let mut repeats = Repeats::new();
            let all = || (1..).zip(&ports);
            let often = all().chain(all()).chain(all()).filter(|(seq, port)| {
                let segment = segment([**port, 443], *seq);
                note(&mut repeats, &segment)
            });
            assert!(often.count() > 0, "{streams} streams");
        }
    }
}
