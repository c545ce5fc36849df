//! What history makes of packets that leave alone: captures at their recorded times, speech, keystrokes and their echoes, through a
//! tunnel both of whose directions are counted, with everything that it sends.

#![allow(clippy::unwrap_used)]

use core::time::Duration;
use std::fs::File;

use strait_advise::{
    CaptureReader, CapturedFrame, LinkType, MachineModel, ReplayLink, TunnelReplay, TunnelVariant,
};
use strait_clock::{Random, Time};
use strait_crypto::Suite;
use strait_ipsec::HistoryScope;
use strait_scheduler::Rate;
use strait_sim::{FlowShape, TcpFields};
use strait_testdata::thorough::all_or;
use strait_wire::ip::Packet;
use strait_wire::tcp::TcpFlags;

/// A capture, the port of what is looked at, and outer IP bytes a byte of inner packets with the default suite at most, in thousandths: what
/// was measured, and some 1 % for other choices of codecs.
const CAPTURES: [(&str, &[&str], Option<u16>, u64); 6] = [
    ("Modbus", &["ics-modicon-http-modbus.pcap"], Some(502), 1_450),
    ("IEC 104", &["iec104.pcap"], Some(2404), 1_445),
    ("DNS", &["dns.pcap"], None, 885),
    ("C37.118", &["synchrophasor-tcp.pcap"], None, 210),
    ("MQTT", &["mqtt.pcap"], None, 133),
    ("SNMP", &["snmpwalk.pcap", "snmp.pcap"], None, 1_080),
];

fn replay(suite: Suite, history: HistoryScope) -> TunnelReplay {
    let link =
        ReplayLink { mtu: 1_420, suite, history, ..ReplayLink::of(Rate::from_bits(1_500_000).unwrap()) };
    let mut replay = TunnelReplay::new(link, &MachineModel::assumed());
    replay.begin(None);
    replay
}

/// Thousandths of a wire byte a byte of packets.
fn each(replay: &TunnelReplay, way: TunnelVariant) -> u64 {
    (replay.wire(way) + replay.returned(way)) * 1_000 / replay.bytes()
}

fn capture(
    files: &[&str],
    port: Option<u16>,
    (suite, history): (Suite, HistoryScope),
) -> Option<TunnelReplay> {
    let mut replay = replay(suite, history);
    for file in files {
        let path = strait_testdata::find_or_skip(&format!("captures/{file}"))?;
        replay.begin(None);
        let mut reader = CaptureReader::open(File::open(path).unwrap()).unwrap();
        while let Some(frame) = reader.frame().unwrap() {
            let flow = frame.ip().unwrap().and_then(|(kept, _)| Some(Packet::parse(kept).ok()?.flow()));
            if flow.is_some_and(|flow| port.is_none_or(|port| [flow.src_port, flow.dst_port].contains(&port)))
            {
                replay.frame(&frame).unwrap();
            }
        }
    }
    replay.finish();
    Some(replay)
}

#[test]
fn captures_at_recorded_times_take_no_more_than_was_measured() {
    println!(
        "wire bytes a byte of packets, both directions, in thousandths, by mode; bytes of reports and receipts"
    );
    let judged = (Suite::Aes128Gcm, HistoryScope::Flow);
    let mut all = vec![judged];
    if all_or("two of three settings, whose figures are printed and not judged") {
        all.push((Suite::Aes128Gcm12, HistoryScope::Flow));
        all.push((Suite::Aes128Gcm12, HistoryScope::Service));
    }
    for (name, files, port, most) in CAPTURES {
        for &settings in &all {
            let Some(replay) = capture(files, port, settings) else { return };
            let (suite, history) = settings;
            let modes = TunnelVariant::ALL.map(|way| format!("{} {}", way.name(), each(&replay, way)));
            println!(
                "{name:8} {:15} {history:?} {}, back {} of {}",
                suite.name(),
                modes.join(", "),
                replay.returned(TunnelVariant::History),
                replay.bytes()
            );
            if settings == judged {
                assert!(each(&replay, TunnelVariant::History) <= most, "{name}");
            }
        }
    }
}

fn send(replay: &mut TunnelReplay, at: Time, bytes: &[u8]) {
    replay.frame(&CapturedFrame { at, link: LinkType::RAW, bytes, len: bytes.len() }).unwrap();
}

/// RTP (RFC 3550) with two frames of G.729, 20 ms, in each packet.
fn speech(ssrc: u32, number: u16, random: &mut Random) -> Vec<u8> {
    let mut rtp = vec![0x80, 18];
    rtp.extend(number.to_be_bytes());
    rtp.extend((u32::from(number) * 160).to_be_bytes());
    rtp.extend(ssrc.to_be_bytes());
    rtp.extend((0..20).map(|_| random.next_u64() as u8));
    rtp
}

#[test]
fn speech_takes_34_kbit_a_second_each_way() {
    let ends = [([10, 0, 0, 1], 16_384).into(), ([10, 9, 0, 1], 16_390).into()];
    for suite in [Suite::Aes128Gcm, Suite::Aes128Gcm12] {
        let (mut replay, mut random) = (replay(suite, HistoryScope::Flow), Random::new(1));
        for number in 0..3_000_u16 {
            let at = Time::from_millis(1_000 + 20 * u64::from(number));
            let forth = FlowShape::new(ends[0], ends[1]).udp(&speech(1, number, &mut random));
            send(&mut replay, at, &forth);
            let back = FlowShape::new(ends[1], ends[0]).udp(&speech(2, number, &mut random));
            send(&mut replay, at + Duration::from_millis(7), &back);
        }
        replay.finish();
        for way in [TunnelVariant::Plain, TunnelVariant::Contexts, TunnelVariant::History] {
            let bits = (replay.wire(way) + replay.returned(way)) * 8 / 60 / 2;
            println!("{}, {}: {bits} bit/s each way", suite.name(), way.name());
            let judged = way != TunnelVariant::Plain && suite == Suite::Aes128Gcm;
            assert!(!judged || bits <= 34_000, "{bits}");
        }
    }
}

/// Timestamps as Linux has them: two fillers in front (RFC 7323 section 3.2).
fn timestamps(value: u32, echo: u32) -> Vec<u8> {
    [&[1, 1, 8, 10][..], &value.to_be_bytes(), &echo.to_be_bytes()].concat()
}

#[test]
fn keystrokes_and_echoes_of_ssh_take_100_bytes_each() {
    for suite in [Suite::Aes128Gcm, Suite::Aes128Gcm12] {
        let (mut replay, mut random) = (replay(suite, HistoryScope::Flow), Random::new(1));
        let [forth, back] = [([10, 0, 0, 1], 50_000), ([10, 9, 0, 1], 22)].map(std::net::SocketAddr::from);
        let mut seq = [1_u32, 1];
        let mut packets = 0;
        for key in 0..1_000_u64 {
            let mut bytes = || (0..36).map(|_| random.next_u64() as u8).collect::<Vec<u8>>();
            let at = Time::from_millis(1_000 + 210 * key);
            let clock = (at.as_nanos() / 1_000_000) as u32;
            let tcp = |from, to, [seq, ack]: [u32; 2], flags, delay: u32, payload: &[u8]| {
                let options = timestamps(clock + delay, clock + delay - delay.min(52));
                let fields = TcpFields { seq, ack, flags, window: 501, options: &options };
                FlowShape::new(from, to).tcp_with(&fields, payload)
            };
            let push = TcpFlags::PSH;
            send(&mut replay, at, &tcp(forth, back, seq, push, 0, &bytes()));
            seq[0] += 36;
            let echo = at + Duration::from_millis(52);
            send(&mut replay, echo, &tcp(back, forth, [seq[1], seq[0]], push, 52, &bytes()));
            seq[1] += 36;
            let ack = at + Duration::from_millis(104);
            send(&mut replay, ack, &tcp(forth, back, seq, TcpFlags::ACK, 104, &[]));
            packets += 2;
        }
        replay.finish();
        for way in [TunnelVariant::Plain, TunnelVariant::Contexts, TunnelVariant::History] {
            let all = replay.wire(way) + replay.returned(way);
            let each = all / (packets * 3 / 2);
            println!("{}, {}: {each} bytes a packet, acknowledgements among them", suite.name(), way.name());
            assert!(way == TunnelVariant::Plain || each <= 100, "{each}");
        }
    }
}
