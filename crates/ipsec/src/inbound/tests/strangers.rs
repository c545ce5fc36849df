//! Control datagrams of strangers beside the packets of a tunnel.

use std::net::SocketAddr;

use strait_wire::vnet;

use super::*;
use crate::inbound::Batch;
use crate::sample::{NOW, Sender};

#[test]
fn a_flood_of_strangers_is_counted_and_leaves_esp_and_peers_alone() {
    let (mut receiver, mut sender) = (Receiver::new(STRAIT), Sender::new(STRAIT, 1500, None, Vec::new()));
    sender.send(&Shape::new(Version::V4, Protocol::UDP, vec![7; 100]).packet(), &vnet::Header::PLAIN);
    sender.drain();
    let from = |receiver: &mut Receiver, from: SocketAddr, bytes: &[u8]| {
        let (segment, mut bytes) = (bytes.len(), bytes.to_vec());
        let batch = Batch { from: from.into(), tos: Tos(0), segment, bytes: &mut bytes };
        receiver.half.datagrams(batch, NOW, &mut receiver.site);
    };
    for number in 0..10_000_u32 {
        from(&mut receiver, (std::net::Ipv4Addr::from_bits(number), 4000).into(), &[0xc3; 1200]);
    }
    let (refused, passed) = (receiver.drops(Reason::StrangerOverBudget), receiver.site.control.len() as u64);
    assert_eq!(refused + passed, 10_000);
    assert!(passed <= 200, "{passed}");
    receiver.half.handle(Order::Known([crate::Source::of(endpoint().ip())].into()));
    from(&mut receiver, endpoint(), &[0xc3; 1200]);
    assert_eq!(receiver.site.control.last(), Some(&endpoint()));
    receiver.take_all(&sender.wire);
    assert_eq!(receiver.site.packets.len(), 1);
}
