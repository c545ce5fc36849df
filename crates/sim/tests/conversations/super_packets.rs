//! Hosts leave segmentation to the device: whole super-packets in, whole valid packets on the wire, super-packets
//! out again.

use strait_clock::Time;
use strait_ipsec::inbound::UdpOffload;
use strait_sim::{FlowShape, Halves, HalvesSettings, SimNetwork};
use strait_wire::tcp::{Segment, TcpFlags};
use strait_wire::{ip, udp};

use crate::stage::{A, B, Seed, joined, millis, seconds, v4, v6};

fn network(seed: u64, up: Option<&str>) -> SimNetwork {
    let mut network = joined(seed, |pair| {
        pair.a.up = up.map(|up| up.parse().unwrap()).into();
        pair.b.udp_offload = UdpOffload::Supported;
    });
    // The search for the path's size ends with its first probe.
    network.send(A, &v4(A, B, 9).udp(b"first"));
    network.run_for(seconds(2));
    network.node_mut(B).take_delivered();
    network
}

fn payload(len: usize) -> Vec<u8> {
    let mut random = strait_clock::Random::new(len as u64);
    (0..len).map(|_| u8::try_from(random.below(256)).unwrap()).collect()
}

#[test]
fn a_tcp_stream_arrives_byte_for_byte_in_few_writes() {
    for (seed, up) in [(1, None), (2, Some("20Mbit"))] {
        let _seed = Seed(seed);
        for shape in [v4(A, B, 80), v6(A, B, 80)] {
            let mut network = network(seed, up);
            let sent = payload(600_000);
            let writes = network.node(B).host().writes();
            for (chunk, at) in sent.chunks(60_000).zip((0..).step_by(60_000)) {
                let (packet, header) = shape.tcp_super((u32::MAX - 100_000).wrapping_add(at), chunk, 1300);
                network.send_offloaded(A, &packet, header);
                network.run_for(millis(30));
            }
            network.run_for(seconds(2));
            let delivered = network.node_mut(B).take_delivered();
            let mut got = Vec::new();
            for one in &delivered {
                let packet = ip::Packet::parse(&one.packet).unwrap();
                let segment = Segment::parse(packet.payload()).unwrap();
                let at = segment.seq().wrapping_sub(u32::MAX - 100_000);
                assert_eq!(at as usize, got.len(), "out of order");
                got.extend_from_slice(segment.payload());
            }
            assert!(got == sent, "{} of {} bytes", got.len(), sent.len());
            assert_eq!(network.node(B).host().damaged(), 0);
            let writes = network.node(B).host().writes() - writes;
            if up.is_none() {
                assert!(
                    writes * 20 < delivered.len() as u64,
                    "{writes} writes for {} segments",
                    delivered.len()
                );
            }
        }
    }
}

#[test]
fn udp_datagrams_keep_their_bounds() {
    let _seed = Seed(3);
    for shape in [v4(A, B, 80), v6(A, B, 80)] {
        let mut network = network(3, None);
        let sent = payload(40_000);
        let (packet, header) = shape.udp_super(&sent, 1200);
        network.send_offloaded(A, &packet, header);
        network.run_for(millis(100));
        let delivered = network.node_mut(B).take_delivered();
        let got: Vec<Vec<u8>> = delivered
            .iter()
            .map(|one| {
                let packet = ip::Packet::parse(&one.packet).unwrap();
                udp::Datagram::parse(packet.payload()).unwrap().payload().to_vec()
            })
            .collect();
        let expected: Vec<Vec<u8>> = sent.chunks(1200).map(<[u8]>::to_vec).collect();
        assert!(got == expected, "{} of {}", got.len(), expected.len());
        assert_eq!(network.node(B).host().damaged(), 0);
    }
}

#[test]
fn what_was_bundled_is_joined_only_where_the_bounds_are_not_lost() {
    let now = Time::from_millis(1000);
    let settings = HalvesSettings {
        up: "1Mbit".parse().ok(),
        udp_offload: UdpOffload::Supported,
        ..HalvesSettings::default()
    };
    for lens in [[60, 80, 80, 40], [80, 80, 40, 80], [40, 60, 80, 100], [1, 1, 1, 2], [70, 70, 70, 70]] {
        for shape in [v4(A, B, 80), v6(A, B, 80)] {
            let mut halves = Halves::new(settings.clone(), now);
            let datagrams = lens.map(|len| shape.udp(&payload(len)));
            let (mut seq, mut segments) = (1, Vec::new());
            for len in lens {
                segments.push(shape.tcp(seq, TcpFlags(0), &payload(len)));
                seq += u32::try_from(len).unwrap();
            }
            for packets in [datagrams.to_vec(), segments] {
                let mut sent = halves.send(&packets, now);
                sent.append(&mut halves.drain(now).0);
                let got: Vec<_> = sent.iter().flat_map(|one| halves.receive(one, now)).collect();
                // Identifications of packets that may not be fragmented mean nothing (RFC 6864 section 4.1).
                let upper = |packets: &[Vec<u8>]| -> Vec<Vec<u8>> {
                    packets.iter().map(|one| ip::Packet::parse(one).unwrap().payload().to_vec()).collect()
                };
                let came = got.iter().map(Vec::len).collect::<Vec<_>>();
                assert!(upper(&got) == upper(&packets), "{lens:?} came as {came:?}");
                assert!(got.iter().all(|one| strait_sim::is_intact(one)));
            }
        }
    }
}

#[test]
fn a_hub_passes_super_packets_on() {
    use crate::stage::C;
    let _seed = Seed(4);
    let mut network = crate::forwarding::spokes(4, strait_ipsec::inbound::Forwarding::Between);
    let sent = payload(50_000);
    let shape = FlowShape::new(A.inner_v4(5), B.inner_v4(6));
    // Fits any path, as the search may not be over.
    let (packet, header) = shape.tcp_super(1, &sent, 1160);
    network.send_offloaded(A, &packet, header);
    network.run_for(seconds(1));
    let delivered = network.node_mut(B).take_delivered();
    let got: Vec<u8> = delivered
        .iter()
        .flat_map(|one| {
            let packet = ip::Packet::parse(&one.packet).unwrap();
            Segment::parse(packet.payload()).unwrap().payload().to_vec()
        })
        .collect();
    assert!(got == sent, "{} of {} bytes", got.len(), sent.len());
    assert_eq!((network.node(B).host().damaged(), network.node(C).delivered().len()), (0, 0));
}
