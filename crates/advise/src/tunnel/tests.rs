use core::time::Duration;

use strait_sim::FlowShape;

use super::*;

/// Everything that was sent.
#[derive(Debug, Default)]
struct Sent {
    units: Vec<MeteredUnit>,
    packets: Vec<(u32, usize)>,
}

impl Ledger<u32> for Sent {
    fn sent(&mut self, unit: &MeteredUnit, bytes: &[u8], notes: &[(u32, usize)]) {
        assert_eq!(notes.len(), unit.packets as usize);
        assert_eq!(notes.iter().map(|(_, len)| len).sum::<usize>(), bytes.len());
        self.packets.extend(notes);
        self.units.push(*unit);
    }
}

/// Sends packets at their times, in milliseconds, over 1 Mbit/s.
fn send(way: TunnelVariant, packets: &[(u64, Vec<u8>)]) -> (Sent, u64) {
    let rate = Rate::from_bits(1_000_000).unwrap();
    let (suite, policy, round_trip) = (Suite::Aes128Gcm, LeakPolicy::NONE, Duration::from_millis(50));
    let cache = CacheCapacity::new(CacheCapacity::MIN).unwrap();
    let history = strait_ipsec::HistoryScope::Flow;
    let spec =
        Spec { way, policy, suite, history, rate, round_trip, mtu: 1_500, wait: Duration::ZERO, cache };
    let mut tunnel = ReplayTunnel::new(spec, &MachineModel::assumed());
    let mut sent = Sent::default();
    for (note, (millis, packet)) in (0..).zip(packets) {
        tunnel.offer(Side::Near, packet, note, Time::from_millis(*millis), &mut sent);
    }
    tunnel.finish(&mut sent);
    let expected: Vec<(u32, usize)> = (0..).zip(packets.iter().map(|(_, packet)| packet.len())).collect();
    assert_eq!(sent.packets, expected, "{way:?}");
    let delivered = tunnel.ends[1].writes();
    assert!(delivered > 0 && delivered <= packets.len() as u64, "{way:?}: {delivered}");
    let wire = sent.units.iter().map(|unit| unit.wire).sum();
    let unasked: u64 = tunnel.ends.iter().map(|end| end.meter.unasked()).sum();
    assert_eq!(wire + unasked, tunnel.wire(), "{way:?}: what units have together is what the sender counts");
    (sent, wire)
}

fn shape(port: u16) -> FlowShape {
    FlowShape::new(([10, 0, 1, 1], port).into(), ([10, 0, 2, 1], 514).into())
}

/// Log lines, a packet each.
fn lines(count: u64, every: Duration) -> Vec<(u64, Vec<u8>)> {
    let line = |number: u64| {
        let text = format!(
            "<34>Nov 21 17:10:{:02} gateway sshd[{number}]: Failed password for root from 10.9.8.7",
            number % 60
        );
        (every.as_millis() as u64 * number, shape(514).udp(text.as_bytes()))
    };
    (0..count).map(line).collect()
}

/// What ESP, UDP and IPv4 make of one packet (RFC 4303, RFC 3948).
fn alone(len: usize) -> u64 {
    let padded = (len + 2).next_multiple_of(4);
    (20 + 8 + 8 + padded + 16) as u64
}

#[test]
fn plain_is_each_packet_with_its_own_headers() {
    let packets: Vec<(u64, Vec<u8>)> =
        [0, 1, 5, 90, 700, 1_400, 1_472].map(|len| (0, shape(1).udp(&vec![7; len]))).to_vec();
    let (sent, wire) = send(TunnelVariant::Plain, &packets);
    assert_eq!(sent.units.len(), packets.len());
    assert_eq!(wire, packets.iter().map(|(_, packet)| alone(packet.len())).sum::<u64>());
}

#[test]
fn idle_link_without_hold_time_sends_at_once() {
    let packets = lines(100, Duration::from_millis(100));
    let (plain, wire) = send(TunnelVariant::Plain, &packets);
    let (bundles, with) = send(TunnelVariant::Bundles, &packets);
    assert_eq!((plain.units.len(), wire), (100, with));
    assert_eq!(bundles.units, plain.units);
}

#[test]
fn what_waits_is_bundled_and_compressed() {
    let packets = lines(5_000, Duration::ZERO);
    let [plain, bundles, compression, both, ..] = TunnelVariant::ALL.map(|way| send(way, &packets));
    assert_eq!(plain.0.units.len(), 5_000);
    assert_eq!(compression.0.units.len(), 5_000, "each alone");
    assert!(bundles.1 < plain.1 * 9 / 10, "{} {}", bundles.1, plain.1);
    assert!(compression.1 <= plain.1 && both.1 < bundles.1 / 3, "{} {}", compression.1, both.1);
    assert!(both.0.units.iter().filter(|unit| unit.method.is_some()).count() * 2 > both.0.units.len());
    assert!([plain, bundles].iter().all(|(sent, _)| sent.units.iter().all(|unit| unit.method.is_none())));
}

#[test]
fn noise_is_sent_as_it_is() {
    let mut random = strait_clock::Random::new(1);
    let mut noise = || (0..1_400).map(|_| random.next_u64().to_le_bytes()[0]).collect::<Vec<u8>>();
    let packets: Vec<(u64, Vec<u8>)> = (0..500).map(|_| (0, shape(443).udp(&noise()))).collect();
    let [plain, _, _, both, ..] = TunnelVariant::ALL.map(|way| send(way, &packets));
    assert_eq!(both.1, plain.1);
}

#[test]
fn queues_of_the_longest_packets_and_of_the_shortest_drop_nothing() {
    for packets in [vec![(0, shape(1).udp(&[7; 1_472])); 1_000], vec![(0, shape(1).udp(&[])); 20_000]] {
        for way in TunnelVariant::ALL {
            send(way, &packets);
        }
    }
}
