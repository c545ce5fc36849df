//! Packets in lines, as `tcpdump` prints them.

use strait_testbed::{FrameDirection, SeenPacket};
use strait_wire::tcp::{Segment, TcpFlags};
use strait_wire::{Protocol, ip, udp};

/// Bytes behind the headers of TCP or UDP, or of IP if ESP is behind that.
pub(super) fn payload_len(packet: &[u8]) -> usize {
    let Ok(packet) = ip::Packet::parse(packet) else { return 0 };
    match packet.protocol() {
        Protocol::TCP => Segment::parse(packet.payload()).map_or(0, |segment| segment.payload().len()),
        Protocol::ESP => packet.payload().len(),
        _ => packet.payload().len().saturating_sub(udp::HEADER_LEN),
    }
}

/// A line a packet: milliseconds since the first, which way, and what is in it. Numbers of TCP count from the first packet's.
pub(super) fn lines(seen: &[SeenPacket]) -> Vec<String> {
    let Some(first) = seen.first() else { return Vec::new() };
    let mut base: [Option<u32>; 2] = [None; 2];
    let line = |packet: &SeenPacket| {
        let (from, to) = match packet.direction {
            FrameDirection::There => ("home", "server"),
            FrameDirection::Back => ("server", "home"),
        };
        let after = (packet.at - first.at).as_secs_f64() * 1e3;
        let what = described(packet, &mut base);
        format!("{after:8.1} ms  {from:>6} > {to}: {what}")
    };
    seen.iter().map(line).collect()
}

fn described(packet: &SeenPacket, base: &mut [Option<u32>; 2]) -> String {
    let Ok(parsed) = ip::Packet::parse(&packet.packet) else { return "?".to_owned() };
    let len = payload_len(&packet.packet);
    match parsed.protocol() {
        Protocol::TCP => {}
        Protocol::ESP => return format!("ESP, {len} bytes"),
        _ => return format!("UDP, {len} bytes"),
    }
    let Ok(segment) = Segment::parse(parsed.payload()) else { return "?".to_owned() };
    let side = usize::from(packet.direction == FrameDirection::Back);
    let own = *base[side].get_or_insert(segment.seq());
    let other = *base[1 - side].get_or_insert(segment.ack());
    let (from, ack) = (segment.seq().wrapping_sub(own), segment.ack().wrapping_sub(other));
    let push = if segment.flags().contains(TcpFlags::PSH) { "P" } else { "." };
    match len {
        0 => format!(". ack {ack}"),
        len => format!("{push} {from}:{}({len}) ack {ack}", from.wrapping_add(len as u32)),
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use strait_sim::{FlowShape, NodeId, TcpFields};

    use super::*;

    #[test]
    fn lines_are_as_the_papers() {
        let shape = FlowShape::new(NodeId(0).inner_v4(1), NodeId(1).inner_v4(2));
        let start = Instant::now();
        let seen = |after, direction, seq, ack, payload: &[u8]| SeenPacket {
            at: start + Duration::from_millis(after),
            direction,
            packet: shape
                .tcp_with(&TcpFields { seq, ack, flags: TcpFlags::PSH, ..TcpFields::default() }, payload),
        };
        let all = [
            seen(0, FrameDirection::There, 1774, 39_052, &[0; 4]),
            seen(454, FrameDirection::Back, 39_052, 1778, &[]),
            seen(455, FrameDirection::There, 1778, 39_052, &[0; 16]),
        ];
        assert_eq!(
            lines(&all),
            [
                "     0.0 ms    home > server: P 0:4(4) ack 0",
                "   454.0 ms  server > home: . ack 4",
                "   455.0 ms    home > server: P 4:20(16) ack 0",
            ]
        );
        assert_eq!((payload_len(&all[0].packet), payload_len(b"no packet")), (4, 0));
    }
}
