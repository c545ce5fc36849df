//! Captures at their recorded times, both directions counted: a tunnel never takes more wire bytes than `WireGuard`'s data packets
//! alone, without its handshakes and keepalives.

#![allow(clippy::unwrap_used)]

use std::fs::File;

use strait_advise::{CaptureReader, MachineModel, Mender, ReplayLink, Scissors, TunnelReplay, TunnelVariant};
use strait_scheduler::Rate;
use strait_wire::ip::Packet;

/// Polls, measurements, names, speech.
const CAPTURES: [&str; 11] = [
    "ics-modicon-http-modbus.pcap",
    "ics-mixed.pcap",
    "iec104.pcap",
    "synchrophasor-tcp.pcap",
    "mqtt.pcap",
    "collectd.pcap",
    "dns.pcap",
    "snmp.pcap",
    "snmpwalk.pcap",
    "syslog.pcap",
    "voip-sip-rtp-t38.pcap",
];
const MTU: usize = 1_420;
/// IPv4, UDP, the header and the tag around a packet that is padded to a multiple of 16.
const AROUND: usize = 20 + 8 + 16 + 16;

#[test]
fn sparse_traffic_at_its_recorded_times_costs_no_more_than_wireguard() {
    let Some(folder) = strait_testdata::find_or_skip("captures") else { return };
    println!(
        "wire bytes forth + back, each packet alone, aggregated and compressed; WireGuard's data packets"
    );
    for name in CAPTURES {
        let link = ReplayLink { mtu: MTU, ..ReplayLink::of(Rate::from_bits(1_540_000).unwrap()) };
        let mut replay = TunnelReplay::new(link, &MachineModel::assumed());
        replay.begin(None);
        let (mut mender, mut scissors, mut guarded) = (Mender::default(), Scissors::default(), 0);
        let mut reader = CaptureReader::open(File::open(folder.join(name)).unwrap()).unwrap();
        while let Some(frame) = reader.frame().unwrap() {
            replay.frame(&frame).unwrap();
            let Some(mended) = frame.ip().unwrap().and_then(|(kept, len)| mender.mend(kept, len)) else {
                continue;
            };
            let Ok(packet) = Packet::parse(mended.bytes) else { continue };
            let pad = |piece: &[u8]| guarded += (AROUND + piece.len().next_multiple_of(16)) as u64;
            let _ = scissors.cut(&packet, MTU, pad);
        }
        replay.finish();
        let [plain, both] =
            [TunnelVariant::Plain, TunnelVariant::Both].map(|way| (replay.wire(way), replay.returned(way)));
        let shares = [plain, both].map(|(forth, back)| (forth + back) as f64 / guarded as f64);
        println!(
            "{name:30} {:>8} + {:<6} {:>8} + {:<6} {guarded:>8} {:.3} {:.3}",
            plain.0, plain.1, both.0, both.1, shares[0], shares[1]
        );
        assert!(guarded > 0 && shares.iter().all(|share| *share <= 1.0), "{name}: {shares:?}");
    }
}
