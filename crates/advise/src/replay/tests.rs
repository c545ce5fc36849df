use proptest::prelude::*;
use strait_sim::FlowShape;
use strait_wire::tcp::TcpFlags;

use super::*;
use crate::LinkType;
use crate::classes::ClassFigures;

fn replay(near: Option<&str>) -> TunnelReplay {
    let near = near.map(|net| net.parse().unwrap());
    let rate = Rate::from_bits(2_000_000).unwrap();
    TunnelReplay::new(ReplayLink { near, ..ReplayLink::of(rate) }, &MachineModel::assumed())
}

fn shape(src: [u8; 4], dst: [u8; 4]) -> FlowShape {
    FlowShape::new((src, 50_000).into(), (dst, 80).into())
}

fn send(replay: &mut TunnelReplay, packets: &[Vec<u8>]) {
    for bytes in packets {
        let at = strait_clock::Time::from_millis(5);
        replay.frame(&CapturedFrame { at, link: LinkType::RAW, bytes, len: bytes.len() }).unwrap();
    }
    replay.finish();
}

const HERE: [u8; 4] = [10, 0, 0, 1];
const THERE: [u8; 4] = [10, 9, 0, 1];

#[test]
fn what_crosses_again_in_another_flow_is_copied_from_the_byte_cache_alone() {
    let mut random = strait_clock::Random::new(19);
    let contents: Vec<Vec<u8>> =
        (0..400).map(|_| (0..1_000).map(|_| random.next_u64().to_le_bytes()[0]).collect()).collect();
    let mut replay = replay(None);
    let mut seen = [TunnelVariant::History, TunnelVariant::Cache].map(|way| (way, Vec::new()));
    for port in [50_000, 50_001, 50_002] {
        let flow = FlowShape::new((HERE, port).into(), (THERE, 80).into());
        let packets: Vec<Vec<u8>> = (0..)
            .zip(&contents)
            .map(|(number, content)| flow.tcp(number * 1_000, TcpFlags::ACK, content))
            .collect();
        send(&mut replay, &packets);
        for (way, sums) in &mut seen {
            sums.push(replay.wire(*way) + replay.returned(*way));
        }
    }
    let [(_, history), (_, cache)] = seen;
    let whole = history[0];
    assert!(cache[0] <= whole * 102 / 100, "what is new costs no more: {cache:?} {history:?}");
    assert!(history[2] > whole * 29 / 10, "{history:?}");
    // Some 12 kB of the first time were not acknowledged yet when the second begins.
    assert!(cache[1] - cache[0] <= whole / 15, "{cache:?} {history:?}");
    assert!(cache[2] - cache[1] <= whole / 45, "{cache:?} {history:?}");
}

#[test]
fn every_wire_byte_belongs_to_one_class() {
    let text = b"GET /index.html HTTP/1.1\r\nHost: www.example.org\r\n\r\n".repeat(20);
    let packets: Vec<Vec<u8>> = (0..600_u32)
        .map(|number| {
            let there = if number % 3 == 0 { THERE } else { [10, 9, 0, 2] };
            shape(HERE, there).tcp(number * 1_000, TcpFlags::ACK, &text[..text.len() - number as usize])
        })
        .collect();
    let mut replay = replay(None);
    send(&mut replay, &packets);
    let classes = &replay.classes;
    let sent: u64 = packets.iter().map(|packet| packet.len() as u64).sum();
    assert_eq!((classes.whole.packets, classes.whole.bytes), (600, sent));
    assert!(
        classes.whole.wire[TunnelVariant::Both.index()]
            < classes.whole.wire[TunnelVariant::Plain.index()] / 2
    );
    assert_eq!(classes.whole.methods.iter().sum::<u64>(), sent);
    for (table, count) in [(&classes.protocols, 1), (&classes.services, 1), (&classes.pairs, 2)] {
        let mut sum = ClassFigures::default();
        for (_, figures) in table.sorted() {
            sum.merge(figures);
        }
        assert_eq!(table.sorted().len(), count);
        assert_eq!(ClassFigures { turns: 0, ..sum }, classes.whole);
    }
    // One in sixteen after the first block of each, and never more than there was.
    let tried = classes.whole.together;
    assert!(tried.before >= 131_072 && tried.before <= sent, "{tried:?}");
    assert_eq!(classes.whole.alone.before, tried.before);
    for (alone, together) in classes.whole.alone.after.iter().zip(tried.after) {
        assert!(together < *alone, "{tried:?}");
    }
}

#[test]
fn only_what_crosses_is_sent_and_each_direction_has_its_own_link() {
    let (there, back) = (shape(HERE, THERE).udp(&[7; 1_400]), shape(THERE, HERE).udp(&[7; 1_400]));
    let (local, foreign) =
        (shape(HERE, [10, 0, 0, 2]).udp(&[7; 90]), shape(THERE, [10, 9, 0, 2]).udp(&[7; 90]));
    let mut replay = replay(Some("10.0.0.0/24"));
    send(&mut replay, &[there.clone(), back.clone(), local, foreign]);
    assert_eq!((replay.seen.read, replay.seen.not_crossing), (4, 2));
    assert_eq!(replay.classes.whole.bytes, (there.len() + back.len()) as u64);
    // A file has no hosts: it crosses.
    replay.begin(Some(0));
    send(&mut replay, &[shape(HERE, [10, 0, 0, 2]).udp(&[7; 90])]);
    assert_eq!(replay.seen.not_crossing, 2);
}

#[test]
fn long_packets_are_cut_and_nonsense_is_counted() {
    let mut replay = replay(None);
    let long = shape(HERE, THERE).tcp(1, TcpFlags::ACK, &[7; 4_000]);
    let nonsense = vec![0x45; 60];
    send(&mut replay, &[long, nonsense, vec![0x99; 60], Vec::new()]);
    assert_eq!((replay.seen.read, replay.seen.segmented, replay.seen.malformed), (4, 1, 3));
    assert_eq!((replay.classes.whole.packets, replay.classes.whole.bytes), (3, 4_000 + 3 * 40));
    let arp = [&[7; 12][..], &[8, 6], &[0; 28]].concat();
    let frame =
        CapturedFrame { at: strait_clock::Time::ZERO, link: LinkType::ETHERNET, bytes: &arp, len: arp.len() };
    replay.frame(&frame).unwrap();
    assert_eq!((replay.seen.not_ip, replay.seen.out_of_order), (1, 1));
    assert!(replay.frame(&CapturedFrame { link: LinkType(105), ..frame }).is_err());
    assert_eq!(replay.seen.read, 5);
}

#[test]
fn request_response_turns_are_counted() {
    let mut replay = replay(None);
    let question = shape(HERE, THERE).tcp(1, TcpFlags::ACK, b"question");
    let answer = shape(THERE, HERE).tcp(1, TcpFlags::ACK, b"answer");
    let acknowledgement = shape(HERE, THERE).tcp(1, TcpFlags::ACK, b"");
    let round = [question.clone(), question, answer.clone(), acknowledgement, answer];
    send(&mut replay, &[round.clone(), round.clone(), round].concat());
    assert_eq!(replay.classes.pairs.sorted()[0].1.turns, 5);
}

/// An IPv6 packet whose destination options alone are longer than the link takes.
#[test]
fn a_packet_whose_headers_fill_the_link_is_counted_as_malformed() {
    let shape = FlowShape::new("[fd00::1]:1".parse().unwrap(), "[fd00::2]:2".parse().unwrap());
    let inner = shape.udp(&[7; 700]);
    let (options_len, header) = (1_872_u16, 40);
    let mut packet = inner[..header].to_vec();
    // Destination options (RFC 8200 section 4.6) of 234 words, all of it padding (Pad1), then UDP.
    packet[6] = 60;
    let len = options_len + u16::try_from(inner.len() - header).unwrap();
    packet[4..6].copy_from_slice(&len.to_be_bytes());
    packet.extend_from_slice(&[17, 233]);
    packet.resize(header + usize::from(options_len), 0);
    packet.extend_from_slice(&inner[header..]);
    let mut replay = replay(None);
    send(&mut replay, &[packet, inner.clone()]);
    assert_eq!(replay.seen.malformed, 1);
    let whole = &replay.classes.whole;
    assert_eq!((whole.packets, whole.bytes), (1, inner.len() as u64));
    assert_eq!(whole.methods.iter().sum::<u64>(), whole.bytes);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(30))]

    #[test]
    fn every_packet_is_sent_whatever_its_content(
        packets in prop::collection::vec((any::<bool>(), prop::collection::vec(any::<u8>(), 40..3_000), any::<u16>()), 1..60),
        mtu in 576_usize..9_000,
        kbits in 1_u64..1_000_000,
    ) {
        let rate = Rate::from_bits(kbits * 1_000).unwrap();
        let mut replay = TunnelReplay::new(ReplayLink { mtu, ..ReplayLink::of(rate) }, &MachineModel::assumed());
        let mut kept = 0;
        for (v6, mut bytes, millis) in packets {
            bytes[0] = if v6 { 0x60 } else { 0x45 };
            let len = u16::try_from(bytes.len()).unwrap();
            let (at, len) = if v6 { (4, len - 40) } else { (2, len) };
            bytes[at..at + 2].copy_from_slice(&len.to_be_bytes());
            // Addresses that routers pass on.
            let (net, places) = if v6 { (0xfd, [8, 24]) } else { (10, [12, 16]) };
            places.into_iter().for_each(|at| bytes[at] = net);
            let at = Time::from_millis(millis.into());
            replay.frame(&CapturedFrame { at, link: LinkType::RAW, bytes: &bytes, len: bytes.len() }).unwrap();
            kept += bytes.len() as u64;
        }
        replay.finish();
        let whole = &replay.classes.whole;
        prop_assert_eq!(whole.methods.iter().sum::<u64>(), whole.bytes);
        prop_assert!(whole.wire.iter().all(|wire| (*wire > 0) == (whole.packets > 0)));
        prop_assert!(replay.seen.malformed > 0 || whole.bytes >= kept);
    }
}
