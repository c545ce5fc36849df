//! The network's side of a node: whatever arrives, also from a peer that has the keys, the host is given whole IP
//! packets from the peer's addresses alone.

use strait_clock::Time;
use strait_ipsec::inbound::UdpOffload;
use strait_sim::{Halves, HalvesSettings, NodeId, SimDatagram};
use strait_wire::{Protocol, Tos, ip};

/// Most records of one input: enough for blocks in parts, too few to be slow.
const RECORDS: usize = 64;
/// What ESP's next header selects, and some that select nothing.
const NEXT: [Protocol; 8] = [
    Protocol::IPIP,
    Protocol::IPV6,
    Protocol::AGGFRAG,
    Protocol::AGGFRAG,
    Protocol::AGGFRAG,
    Protocol::IPCOMP,
    Protocol::NO_NEXT,
    Protocol::UDP,
];

/// A byte of settings, then records: kind, outer traffic class, length of two bytes, that many bytes. Kinds below 8
/// are sealed under the right key with that next header; others arrive as they are, cut by `kind` bytes.
pub fn check(data: &[u8]) {
    let Some((settings, mut rest)) = data.split_first() else { return };
    let udp_offload = if settings & 1 == 0 { UdpOffload::Unsupported } else { UdpOffload::Supported };
    let mut now = Time::from_millis(1000);
    let mut halves = Halves::new(HalvesSettings { udp_offload, ..HalvesSettings::default() }, now);
    for _ in 0..RECORDS {
        let Some((&[kind, tos, high, low], after)) = rest.split_first_chunk() else { return };
        let len = usize::from(u16::from_be_bytes([high, low])).min(after.len());
        let (bytes, after) = after.split_at(len);
        rest = after;
        now += core::time::Duration::from_millis(u64::from(tos) * 40);
        let delivered = match NEXT.get(usize::from(kind)) {
            Some(next) => {
                let sealed = halves.seal(*next, bytes);
                halves.receive(&SimDatagram { tos: Tos(tos), ..sealed }, now)
            }
            None => {
                let segment = usize::from(kind);
                halves.receive_batch(NodeId(0).outer_v4(), Tos(tos), segment, &mut bytes.to_vec(), now)
            }
        };
        for packet in delivered {
            whole_and_the_peers(&packet);
        }
    }
}

fn whole_and_the_peers(bytes: &[u8]) {
    let packet = ip::Packet::parse(bytes).expect("the host was given what is no IP packet");
    assert_eq!(packet.bytes().len(), bytes.len(), "the host was given more than the packet");
    let (v4, v6) = (NodeId(0).inner_v4(0).ip(), NodeId(0).inner_v6(0).ip());
    let peers = match (packet.src(), v4, v6) {
        (std::net::IpAddr::V4(src), std::net::IpAddr::V4(net), _) => src.octets()[..3] == net.octets()[..3],
        (std::net::IpAddr::V6(src), _, std::net::IpAddr::V6(net)) => src.octets()[..8] == net.octets()[..8],
        _ => false,
    };
    assert!(peers, "{} is not the peer's", packet.src());
}
