//! What is counted of each service and class.

use strait_ipsec::{Rule, ServiceClass};
use strait_scheduler::Tin;
use strait_sim::{Conversation, Filler, LinkSettings};
use strait_wire::{Protocol, Service, Tos};

use crate::stage::{self, A, B, Seed, joined, millis, seconds, v4};

fn rule() -> Rule {
    Rule { history: None, ports: Vec::new(), ..stage::rule(0, "zstd-3") }
}

#[test]
fn services_have_all_packets_and_their_part_of_the_wire() {
    let _seed = Seed(11);
    for (rate, compressed) in [(None::<&str>, false), (Some("2Mbit"), false), (Some("2Mbit"), true)] {
        let mut network = joined(11, |pair| {
            if let Some(rate) = rate {
                pair.a.up = rate.parse().unwrap();
            }
            pair.a.rules = if compressed { vec![rule()] } else { Vec::new() };
            pair.forth = LinkSettings { delay: millis(20), ..LinkSettings::default() };
            pair.back = pair.forth;
        });
        let large = if compressed { Filler::Text } else { Filler::Random };
        let fillers = [(443, large, 1_000), (502, Filler::Text, 60)];
        let mut talks = fillers.map(|(port, filler, _)| Conversation::new(v4(A, B, port), filler));
        // Expedited forwarding (RFC 3246): interactive.
        talks[1].set_tos(Tos(46 << 2));
        for _ in 0..1_000 {
            for (talk, (_, _, len)) in talks.iter_mut().zip(fillers) {
                network.send(A, &talk.next_packet(len));
            }
            network.run_for(millis(5));
        }
        network.run_for(seconds(5));
        let (peer, all) = (network.node(A).peer_counters(B), network.node(A).counters());
        let counted = |port| {
            let is = ServiceClass::One(Service { protocol: Protocol::UDP, port });
            let found = all.services.all().find(|(class, _)| *class == is).unwrap().1;
            [&found.packets, &found.bytes, &found.wire].map(strait_ipsec::Tally::get)
        };
        let [large, small] = [counted(443), counted(502)];
        assert_eq!([large[0], small[0]], [1_000, 1_000], "{rate:?} {compressed}");
        let [packets, bytes, wire] = [0, 1, 2].map(|what| large[what] + small[what]);
        assert_eq!((packets, bytes), (peer.out_packets.get(), peer.out_bytes.get()));
        let out = peer.out_wire.get();
        assert!(wire <= out && out - wire <= out / 20, "{wire} of {out} with {rate:?} {compressed}");
        assert!(compressed || large[2] > large[1], "random bytes only get headers");
        let classes = Tin::ALL.map(|tin| {
            let counted = all.services.class(tin);
            [&counted.packets, &counted.bytes, &counted.wire].map(strait_ipsec::Tally::get)
        });
        assert_eq!(classes, [small, large, [0; 3]], "each service has a class of its own here");
    }
}
