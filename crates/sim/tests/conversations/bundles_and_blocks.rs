//! What shares a datagram, what is compressed, and what never is.

use std::collections::BTreeSet;

use strait_clock::Time;
use strait_compress::Codec;
use strait_ipsec::{Domain, LeakPolicy, Mix, Rule};
use strait_sim::{Conversation, ConversationTally, Filler, Halves, HalvesSettings, SimDatagram};
use strait_wire::{Ecn, Tos, ip};

use crate::stage::{self, A, B, PATIENT, Seed, joined, millis, seconds, v4};

/// Compress what goes to or from `port`, as the data of `domain`.
fn rule(port: u16, domain: u16, method: &str) -> Rule {
    Rule { domain: Domain(domain), ..stage::rule(port, method) }
}

/// A burst of packets over a thin link under these rules; gives inner and wire bytes.
fn burst(
    rules: Vec<Rule>,
    filler: Filler,
    len: usize,
    check: impl FnOnce(&strait_sim::SimNetwork),
) -> (u64, u64) {
    let mut network = joined(1, |pair| {
        pair.a.up = "1Mbit".parse().unwrap();
        pair.a.queueing = PATIENT;
        pair.a.rules = rules;
    });
    // The search for the path's size ends with its first probe.
    network.send(A, &v4(A, B, 9).udp(b"first"));
    network.run_for(seconds(2));
    network.node_mut(B).take_delivered();
    let before = network.link(A, B).counters().bytes;
    let mut talk = Conversation::new(v4(A, B, 80), filler);
    let packets: Vec<_> = (0..200).map(|_| talk.next_packet(len)).collect();
    network.send_all(A, &packets);
    network.run_for(seconds(5));
    talk.note(&network.node_mut(B).take_delivered());
    assert_eq!(talk.tally(), ConversationTally { sent: 200, arrived: 200, ..ConversationTally::default() });
    assert_eq!(network.node(B).host().damaged(), 0);
    check(&network);
    (packets.iter().map(|packet| packet.len() as u64).sum(), network.link(A, B).counters().bytes - before)
}

#[test]
fn small_packets_that_wait_share_datagrams() {
    let _seed = Seed(1);
    let (inner, wire) = burst(Vec::new(), Filler::Random, 60, |network| {
        let counters = network.node(A).peer_counters(B);
        assert!(counters.out_bundles.get() >= 10);
        // 63 bytes each with their headers coded, of which 20 or so fit a datagram of 1,280 or more.
        assert!(counters.out_datagrams.get() <= 18, "{}", counters.out_datagrams.get());
    });
    assert!(wire < inner * 4 / 5, "{inner} bytes took {wire}");
}

#[test]
fn nothing_is_compressed_without_a_rule() {
    let _seed = Seed(1);
    let (inner, wire) = burst(vec![rule(443, 0, "zstd-3")], Filler::Text, 400, |network| {
        for codec in &network.node(A).counters().codecs {
            assert_eq!((codec.tried.get(), codec.blocks.get()), (0, 0));
        }
        assert_eq!(network.node(A).peer_counters(B).out_blocks.get(), 0);
    });
    // Only headers become fewer bytes, 28 a packet.
    assert!(wire > inner - 200 * 28, "{inner} bytes took {wire}");
}

#[test]
fn with_a_rule_text_shrinks_with_every_codec() {
    let _seed = Seed(1);
    for (method, codec, least) in [
        ("zstd-3", Codec::Zstd, 8),
        ("deflate-6", Codec::Deflate, 8),
        ("lz4", Codec::Lz4, 4),
        ("lzs-1", Codec::Lzs, 3),
        ("lzs-2", Codec::Lzs, 4),
    ] {
        let (inner, wire) = burst(vec![rule(80, 0, method)], Filler::Text, 400, |network| {
            let counters = &network.node(A).counters().codecs[usize::from(codec.id())];
            assert!(counters.blocks.get() > 0);
            assert!(counters.after.get() < counters.before.get());
            let expanded = &network.node(B).counters().codecs[usize::from(codec.id())].expanded;
            assert_eq!(expanded.get(), counters.blocks.get());
        });
        assert!(wire * least < inner, "{method}: {inner} bytes took {wire}");
    }
}

#[test]
fn random_data_is_hardly_tried() {
    let _seed = Seed(1);
    // Long enough to look at before it is tried, and short enough that only trying tells.
    for (len, most) in [(900, 0), (200, 40)] {
        burst(vec![rule(80, 0, "zstd-3")], Filler::Random, len, |network| {
            let tried = network.node(A).counters().codecs[usize::from(Codec::Zstd.id())].tried.get();
            assert!(tried <= most, "{tried} of 200 packets of {len} bytes");
        });
    }
}

#[test]
fn what_a_rule_did_is_counted_for_it() {
    let _seed = Seed(1);
    burst(vec![rule(443, 0, "lz4"), rule(80, 1, "zstd-3")], Filler::Text, 400, |network| {
        let [other, mine] = [0, 1].map(|at| network.node(A).rules().counters(at).unwrap());
        assert_eq!((other.packets.get(), mine.packets.get()), (0, 200));
        assert_eq!(mine.bytes.get(), 200 * 428);
        assert!(mine.before.get() > 8 * mine.after.get());
    });
}

/// Sends interleaved packets of several ports over a thin link and gives, for each unit that was sealed
/// as one, what was in it.
fn units(rules: Vec<Rule>, talks: &mut [Conversation], len: usize) -> Vec<Vec<Vec<u8>>> {
    let now = Time::from_millis(1000);
    let (up, queueing) = ("1Mbit".parse().ok(), PATIENT);
    let settings = HalvesSettings { up, queueing, rules, ..HalvesSettings::default() };
    let mut halves = Halves::new(settings, now);
    let mut packets = Vec::new();
    for round in 0..50 {
        for (at, talk) in talks.iter_mut().enumerate() {
            // Runs of different lengths, so that groups of several form.
            for _ in 0..=(round + at) % 4 {
                packets.push(talk.next_packet(len));
            }
        }
    }
    let mut sent = halves.send(&packets, now);
    sent.append(&mut halves.drain(now).0);
    let units: Vec<_> = sent.iter().map(|datagram| halves.receive(datagram, now)).collect();
    let mut arrived: Vec<_> = units.iter().flatten().cloned().collect();
    let mut all = packets;
    arrived.sort();
    all.sort();
    assert!(arrived == all, "{} of {} packets arrived", arrived.len(), all.len());
    units.into_iter().filter(|unit| !unit.is_empty()).collect()
}

fn ports(unit: &[Vec<u8>]) -> BTreeSet<u16> {
    unit.iter().map(|packet| ip::Packet::parse(packet).unwrap().flow().dst_port).collect()
}

#[test]
fn trust_domains_never_share_a_block() {
    let rules = vec![rule(80, 0, "zstd-3"), rule(81, 1, "zstd-3"), rule(82, 0, "zstd-3")];
    let mut talks = [80, 81, 82, 83].map(|port| Conversation::new(v4(A, B, port), Filler::Text));
    let units = units(rules, &mut talks, 300);
    let together: BTreeSet<_> = units.iter().map(|unit| ports(unit)).collect();
    assert!(units.iter().any(|unit| unit.len() > 2), "nothing was bundled");
    // Ports 80 and 82 are of one domain; 81 is another's, and 83 has none.
    for ports in &together {
        let domains: BTreeSet<_> = ports
            .iter()
            .map(|port| match port {
                80 | 82 => 0,
                81 => 1,
                _ => 2,
            })
            .collect();
        assert_eq!(domains.len(), 1, "{ports:?} in one unit");
    }
    assert!(together.len() >= 3);
}

#[test]
fn flows_of_one_domain_share_no_block_where_a_rule_keeps_them_apart() {
    for (mix, shares) in [(Mix::Domain, true), (Mix::Flow, false)] {
        let policy = LeakPolicy { mix, ..LeakPolicy::NONE };
        let rules = [80, 81].map(|port| Rule { policy, ..rule(port, 0, "zstd-3") }).to_vec();
        let mut talks = [80, 81].map(|port| Conversation::new(v4(A, B, port), Filler::Text));
        let units = units(rules, &mut talks, 300);
        assert!(units.iter().any(|unit| unit.len() > 2), "{mix:?}: nothing was bundled");
        assert_eq!(units.iter().any(|unit| ports(unit).len() > 1), shares, "{mix:?}");
    }
}

#[test]
fn classes_of_service_never_share_a_datagram() {
    let mut talks = [80, 81, 82].map(|port| Conversation::new(v4(A, B, port), Filler::Random));
    talks[0].set_tos(Tos(0xb8));
    talks[1].set_tos(Tos(0x20));
    for unit in units(Vec::new(), &mut talks, 50) {
        let classes: BTreeSet<_> =
            unit.iter().map(|packet| ip::Packet::parse(packet).unwrap().tos().dscp()).collect();
        assert_eq!(classes.len(), 1);
    }
}

#[test]
fn outer_ecn_capability_is_that_of_all_inner_packets() {
    let now = Time::from_millis(1000);
    for (marks, outer) in [
        ([Ecn::Ect0, Ecn::Ect0], Ecn::Ect0),
        ([Ecn::Ect0, Ecn::NotEct], Ecn::NotEct),
        ([Ecn::NotEct, Ecn::Ect0], Ecn::NotEct),
        ([Ecn::Ect1, Ecn::Ect1], Ecn::Ect1),
    ] {
        let mut halves =
            Halves::new(HalvesSettings { up: "64kbit".parse().ok(), ..HalvesSettings::default() }, now);
        let packets = marks.map(|ecn| {
            let mut talk = Conversation::new(v4(A, B, 80), Filler::Random);
            talk.set_tos(Tos(0xb8).with_ecn(ecn));
            talk.next_packet(50)
        });
        let sent: Vec<SimDatagram> = halves.send(&packets, now);
        let ours: Vec<_> = sent.iter().filter(|one| one.bytes.len() > 100).collect();
        assert_eq!(ours.len(), 1);
        assert_eq!(ours[0].tos, Tos(0xb8).with_ecn(outer), "{marks:?}");
        // A mark on the path is one on each ECN-capable packet.
        let marked = SimDatagram { tos: Tos(0xb8).with_ecn(Ecn::Ce), ..ours[0].clone() };
        let arrived = halves.receive(&marked, now);
        let expected: Vec<_> = marks.into_iter().filter(|ecn| *ecn != Ecn::NotEct).map(|_| Ecn::Ce).collect();
        let got: Vec<_> =
            arrived.iter().map(|packet| ip::Packet::parse(packet).unwrap().tos().ecn()).collect();
        assert_eq!(got, expected);
        assert!(arrived.iter().all(|packet| strait_sim::is_intact(packet)));
    }
}

#[test]
fn congestion_on_the_link_reaches_the_hosts_and_costs_no_packet() {
    let _seed = Seed(2);
    let mut network = joined(2, |pair| {
        pair.forth.rate = "1Mbit".parse().ok();
        pair.forth.mark_above = Some(5000);
    });
    let mut able = Conversation::new(v4(A, B, 80), Filler::Random);
    able.set_tos(Tos(0).with_ecn(Ecn::Ect0));
    let mut unable = Conversation::new(v4(A, B, 81), Filler::Random);
    for _ in 0..100 {
        network.send_all(A, &[able.next_packet(700), unable.next_packet(700)]);
        network.run_for(millis(8));
    }
    network.run_for(seconds(3));
    let delivered = network.node_mut(B).take_delivered();
    let marks = able.note(&delivered);
    let none = unable.note(&delivered);
    assert_eq!((able.tally().missing(), unable.tally().missing()), (0, 0));
    assert!(marks.iter().filter(|tos| tos.ecn() == Ecn::Ce).count() > 50);
    assert!(none.iter().all(|tos| tos.ecn() == Ecn::NotEct));
}
