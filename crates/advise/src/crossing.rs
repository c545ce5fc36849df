//! The packets of a capture as if all of them went one way, from one network to another: for sending them through a
//! real tunnel.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use strait_wire::checksum::Sum;
use strait_wire::ip::{self, Packet, Version};
use strait_wire::{Protocol, tcp};

use crate::{CapturedFrame, Mender, Scissors, UnknownLink};

/// Where IPv4 has its addresses, its hops and its checksum (RFC 791 section 3.1).
const SRC_AT: usize = 12;
const DST_AT: usize = 16;
const END: usize = 20;
const TTL_AT: usize = 8;
const CHECKSUM_AT: usize = 10;
/// Hops that no packet dies of on its way through two hosts: what hosts begin with.
const TTL: u8 = 64;
/// Where UDP has its checksum (RFC 768).
const UDP_CHECKSUM_AT: usize = 6;
/// Hosts of a network of 16 bits.
const HOSTS: usize = 0xfffe;

/// Two networks, and who is in them.
#[derive(Debug)]
pub struct Crossing {
    networks: [Ipv4Addr; 2],
    mtu: usize,
    mender: Mender,
    scissors: Scissors,
    /// The numbers of hosts, in both networks.
    hosts: BTreeMap<[u8; 4], u16>,
}

impl Crossing {
    /// Sources are mapped to the first of these networks of 16 bits, destinations to the second; no packet will be longer
    /// than `mtu` bytes.
    #[must_use]
    pub fn new(networks: [Ipv4Addr; 2], mtu: usize) -> Crossing {
        let (mender, scissors) = (Mender::default(), Scissors::default());
        Crossing { networks, mtu, mender, scissors, hosts: BTreeMap::new() }
    }

    /// Calls `each` with the packets that a frame turns into: none if it carries no whole IPv4 packet. Each host gets an address
    /// of its own; checksums that were right stay right.
    ///
    /// # Errors
    /// [`UnknownLink`] when the link type is not supported.
    pub fn frame(
        &mut self,
        frame: &CapturedFrame<'_>,
        mut each: impl FnMut(&[u8]),
    ) -> Result<(), UnknownLink> {
        let Some((kept, len)) = frame.ip()? else { return Ok(()) };
        let Crossing { networks, mtu, mender, scissors, hosts } = self;
        let mended = mender.mend(kept, len).and_then(|mended| Packet::parse(mended.bytes).ok());
        let Some(packet) = mended.filter(|packet| packet.version() == Version::V4) else { return Ok(()) };
        let Some(addresses) = addresses(*networks, hosts, &packet) else { return Ok(()) };
        // What cannot be cut was no packet of a host's.
        let _ = scissors.cut(&packet, *mtu, |piece| {
            let mut piece = piece.to_vec();
            readdress(&mut piece, addresses);
            each(&piece);
        });
        Ok(())
    }
}

/// Source and destination of a packet in these networks; nothing when they are full.
fn addresses(
    networks: [Ipv4Addr; 2],
    hosts: &mut BTreeMap<[u8; 4], u16>,
    packet: &Packet<'_>,
) -> Option<[u8; 8]> {
    let mut all = [0; 8];
    for ((at, network), out) in [SRC_AT, DST_AT].into_iter().zip(networks).zip(all.chunks_exact_mut(4)) {
        let host: [u8; 4] = packet.bytes().get(at..at + 4)?.try_into().ok()?;
        let number = match hosts.get(&host) {
            Some(number) => *number,
            None => {
                let number = u16::try_from(hosts.len() + 1).ok().filter(|_| hosts.len() < HOSTS)?;
                hosts.insert(host, number);
                number
            }
        };
        let [a, b, ..] = network.octets();
        let [c, d] = number.to_be_bytes();
        out.copy_from_slice(&[a, b, c, d]);
    }
    Some(all)
}

/// Gives a whole IPv4 packet other addresses.
fn readdress(packet: &mut [u8], addresses: [u8; 8]) {
    let Ok(parsed) = Packet::parse(packet) else { return };
    let (header_len, protocol, later) = (parsed.header_len(), parsed.protocol(), parsed.is_later_fragment());
    let Some(place) = packet.get_mut(SRC_AT..END) else { return };
    let mut before = [0; 8];
    before.copy_from_slice(place);
    place.copy_from_slice(&addresses);
    if let Some(ttl) = packet.get_mut(TTL_AT) {
        *ttl = TTL;
    }
    let sum = packet.get(..header_len).map_or(0, ip::v4_header_checksum);
    put(packet, CHECKSUM_AT, sum);
    let at = match protocol {
        _ if later => return,
        Protocol::TCP => header_len + tcp::CHECKSUM.start,
        Protocol::UDP => header_len + UDP_CHECKSUM_AT,
        _ => return,
    };
    let Some(old) = packet.get(at..at + 2).and_then(|it| it.first_chunk()).copied() else { return };
    // A datagram may have none.
    if protocol == Protocol::UDP && old == [0, 0] {
        return;
    }
    let sum = adjusted(old, before, addresses);
    put(packet, at, if protocol == Protocol::UDP && sum == 0 { 0xffff } else { sum });
}

/// The checksum once `before` has become `after` (RFC 1624 equation 3).
fn adjusted(old: [u8; 2], before: [u8; 8], after: [u8; 8]) -> u16 {
    let without = Sum::ZERO.add_bytes(&old.map(|byte| !byte)).add_bytes(&before.map(|byte| !byte));
    without.add_bytes(&after).finish()
}

fn put(packet: &mut [u8], at: usize, value: u16) {
    if let Some(field) = packet.get_mut(at..at + 2) {
        field.copy_from_slice(&value.to_be_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::LinkType;
    use strait_clock::Time;
    use strait_sim::{FlowShape, is_intact};
    use strait_wire::tcp::TcpFlags;

    const NETWORKS: [Ipv4Addr; 2] = [Ipv4Addr::new(10, 98, 0, 0), Ipv4Addr::new(10, 99, 0, 0)];

    fn crossed(crossing: &mut Crossing, packet: &[u8]) -> Vec<Vec<u8>> {
        let frame = CapturedFrame { at: Time::ZERO, link: LinkType::RAW, bytes: packet, len: packet.len() };
        let mut pieces = Vec::new();
        crossing.frame(&frame, |piece| pieces.push(piece.to_vec())).unwrap();
        pieces
    }

    #[test]
    fn each_host_has_one_address_and_packets_stay_whole() {
        let mut crossing = Crossing::new(NETWORKS, 1420);
        let hosts: [std::net::SocketAddr; 2] =
            ["192.0.2.7:500", "198.51.100.9:700"].map(|it| it.parse().unwrap());
        let forth = FlowShape::new(hosts[0], hosts[1]);
        let back = FlowShape::new(hosts[1], hosts[0]);
        for (shape, src, dst) in [(forth, "10.98.0.1", "10.99.0.2"), (back, "10.98.0.2", "10.99.0.1")] {
            for packet in [shape.udp(b"payload"), shape.tcp(7, TcpFlags::PSH, b"odd"), shape.udp(b"")] {
                let pieces = crossed(&mut crossing, &packet);
                let [piece] = &pieces[..] else { panic!("{pieces:?}") };
                let parsed = Packet::parse(piece).unwrap();
                assert_eq!(
                    (parsed.src().to_string(), parsed.dst().to_string()),
                    (src.to_owned(), dst.to_owned())
                );
                assert!(is_intact(piece), "{piece:02x?}");
                assert_eq!(piece.len(), packet.len());
            }
        }
    }

    #[test]
    fn a_wrong_checksum_stays_wrong_and_none_stays_none() {
        let mut crossing = Crossing::new(NETWORKS, 1420);
        let shape = FlowShape::new("192.0.2.7:500".parse().unwrap(), "198.51.100.9:700".parse().unwrap());
        let mut packet = shape.udp(b"payload");
        packet[26..28].copy_from_slice(&[0, 0]);
        assert_eq!(crossed(&mut crossing, &packet)[0][26..28], [0, 0]);
        packet[26..28].copy_from_slice(&[1, 2]);
        assert!(!is_intact(&crossed(&mut crossing, &packet)[0]));
    }

    #[test]
    fn long_packets_are_cut_and_other_protocols_left_out() {
        let mut crossing = Crossing::new(NETWORKS, 600);
        let shape = FlowShape::new("192.0.2.7:500".parse().unwrap(), "198.51.100.9:700".parse().unwrap());
        let pieces = crossed(&mut crossing, &shape.tcp(7, TcpFlags::PSH, &[3; 1000]));
        assert_eq!(pieces.len(), 2);
        assert!(pieces.iter().all(|piece| piece.len() <= 600 && is_intact(piece)));
        let v6 = FlowShape::new("[2001:db8::1]:1".parse().unwrap(), "[2001:db8::2]:2".parse().unwrap());
        assert!(crossed(&mut crossing, &v6.udp(b"six")).is_empty());
        assert!(crossed(&mut crossing, &[0x45, 0, 0]).is_empty());
    }
}
