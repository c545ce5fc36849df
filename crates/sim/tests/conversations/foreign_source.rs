//! A peer may send from its own addresses only.

use strait_ipsec::Reason;
use strait_sim::{FlowShape, NodeId};

use crate::stage::{A, B, C, Seed, joined, millis};

#[test]
fn packets_from_addresses_that_are_not_the_peers_are_dropped() {
    let _seed = Seed(1);
    // Or A refuses to send for a host of B's.
    let mut network = joined(1, |pair| pair.a.behind = vec![B.inner_v4(8).ip()]);
    let stranger = "203.0.113.5:7".parse().unwrap();
    for (count, src) in
        [C.inner_v4(7), B.inner_v4(8), stranger, NodeId(99).inner_v6(7)].into_iter().enumerate()
    {
        let dst = if src.is_ipv4() { B.inner_v4(9) } else { B.inner_v6(9) };
        network.send(A, &FlowShape::new(src, dst).udp(b"I am another host"));
        network.run_for(millis(100));
        assert!(network.node(B).delivered().is_empty(), "{src}");
        assert_eq!(network.node(B).drops(Reason::ForeignSource), count as u64 + 1);
    }
    network.send(A, &FlowShape::new(A.inner_v4(7), stranger).udp(b"whose is this?"));
    assert_eq!(network.node(A).drops(Reason::NoPeer), 1);
}
