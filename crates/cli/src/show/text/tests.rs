use super::*;
use strait_node::report::{
    CodecReport, CompressingReport, ControlReport, DropReport, EngineReport, ManualReport, PathReport,
    ProtocolReport, QueueReport,
};

/// A report with every part filled in.
pub(crate) fn report() -> Report {
    Report {
        node: NodeReport {
            interface: "strait0".to_owned(),
            public_key: Some("QUJD".to_owned()),
            listen: "0.0.0.0:51820".to_owned(),
            addresses: vec!["10.77.0.1/24".to_owned(), "fd77::1/64".to_owned()],
            mtu: 1420,
            up_bits_per_second: Some(1_500_000),
            down_bits_per_second: None,
            up_auto: false,
            down_auto: true,
            forward: false,
            configuration: "/etc/strait/a.toml".to_owned(),
            uptime_seconds: 3725.2,
            pid: 42,
            version: "0.1.0".to_owned(),
        },
        peers: vec![peer()],
        decisions: None,
        rules: vec![rule()],
        codecs: vec![codec("zstd-3", 340), codec("lz4", 0)],
        drops: vec![drop("replayed", 3), drop("forged", 0)],
        control: ControlReport { wire_bytes: 7_100, lost_messages: 0 },
        engines: vec![EngineReport {
            name: "outward".to_owned(),
            cpu_seconds: 1.25,
            compressing: Some(CompressingReport { busy: 0.12, waits_seconds: 0.0, jobs: 2 }),
        }],
        suites: Vec::new(),
    }
}

fn peer() -> PeerReport {
    PeerReport {
        name: "site-b".to_owned(),
        keys: "session".to_owned(),
        public_key: Some("REVG".to_owned()),
        manual: None,
        endpoint: Some("198.18.0.2:51820".to_owned()),
        state: "up".to_owned(),
        allowed_ips: vec!["10.77.0.2/32".to_owned()],
        association: Some(AssociationReport {
            suite: "aes-128-gcm".to_owned(),
            iv: "implicit".to_owned(),
            payloads: "strait".to_owned(),
            role: "initiator".to_owned(),
            inbound_spi: "0x04000001".to_owned(),
            outbound_spi: "0x0c0000ff".to_owned(),
            age_seconds: 60.0,
            next_rekey_seconds: 3540.0,
            in_packets: 1,
            in_bytes: 2,
            out_packets: 3,
            out_bytes: 4,
            last_received_seconds: None,
            last_sent_seconds: Some(0.5),
        }),
        last_handshake_seconds: Some(61.9),
        failures: 0,
        rate_bits_per_second: Some(1_492_500),
        path: Some(PathReport {
            estimated_bits_per_second: Some(1_492_500),
            sent_at_bits_per_second: Some(1_447_700),
            limited_by: Some("link".to_owned()),
            round_trip_seconds: Some(0.0584),
            least_round_trip_seconds: Some(0.05012),
            loss: 0.0125,
            reports_sent: 12,
            reports_received: 340,
            reports_refused: 1,
        }),
        sent: TrafficReport {
            packets: 3_000,
            bytes: 4_000_000,
            datagrams: 1_000,
            wire_bytes: 1_250_000,
            ratio: Some(3.2),
        },
        received: TrafficReport::default(),
        bundles: 7,
        blocks: 340,
        headers_saved_bytes: 150_000,
        queue: queue(),
        inner_mtu: 1420,
    }
}

fn queue() -> QueueReport {
    QueueReport {
        bytes: 2_048,
        delay_seconds: Some(0.008_2),
        worst_delay_seconds: Some(0.021),
        window: 256,
        units: 1_200,
        packets_per_unit: Some(2.5),
        marked: 0,
        late: 14,
        overflow: 0,
    }
}

fn rule() -> RuleReport {
    RuleReport {
        from: "10.77.0.1/32".to_owned(),
        to: "10.77.0.2/32".to_owned(),
        protocol: Some("tcp".to_owned()),
        ports: vec!["514".to_owned(), "8000-8100".to_owned()],
        domain: "logs".to_owned(),
        codec: "zstd-3".to_owned(),
        packets: 3_000,
        bytes: 4_000_000,
        before: 3_900_000,
        after: 1_100_000,
        ratio: Some(3.545),
    }
}

fn codec(name: &str, tried: u64) -> CodecReport {
    CodecReport {
        codec: name.to_owned(),
        tried,
        blocks: tried,
        packets: 3_000,
        before: 3_900_000,
        after: 1_100_000,
        ratio: Some(3.545),
        expanded: 0,
    }
}

fn drop(reason: &str, packets: u64) -> DropReport {
    DropReport { reason: reason.to_owned(), packets }
}

#[test]
fn everything_a_person_asks_for() {
    let expected = "\
strait0
  public key     QUJD
  listens on     0.0.0.0:51820
  addresses      10.77.0.1/24, fd77::1/64
  MTU            1420
  link           up 1.5 Mbit/s, down is found out
  configuration  /etc/strait/a.toml
  runs for       1 h 2 min (process 42, version 0.1.0)

peer site-b: up
  public key      REVG
  endpoint        198.18.0.2:51820
  allowed IPs     10.77.0.2/32
  last handshake  1 min 1 s ago
  associations    in 0x04000001, out 0x0c0000ff: aes-128-gcm, implicit IV, strait payloads, as initiator
  next keys       in 59 min 0 s if in use then
  queue           2.05 kB waiting; waited 8 ms on average and 21 ms at worst; 2.5 packets leave together, found among 256; 14 packets dropped for waiting too long
  link found      1.492 Mbit/s, sent at 1.447 Mbit/s
  path            58.4 ms there and back (least 50.1 ms), 1.2 % lost, 340 reports in (1 refused), 12 out
  inner MTU       1420
  sent as         7 bundles, 340 compressed blocks; 150 kB saved by coded headers
            packets    bytes  datagrams  on the wire  ratio
  sent         3000  4.00 MB       1000      1.25 MB   3.20
  received        0      0 B          0          0 B      -

compression rules
  from          to            what               domain  codec   packets    bytes  compressed  to bytes  ratio
  10.77.0.1/32  10.77.0.2/32  tcp 514,8000-8100  logs    zstd-3     3000  4.00 MB     3.90 MB   1.10 MB   3.54

codecs
  codec   tried  shrank  packets    bytes  to bytes  ratio  expanded here
  zstd-3    340     340     3000  3.90 MB   1.10 MB   3.54              0

dropped
  reason    packets
  replayed        3

threads
  thread   processor seconds  compresses now    blocks in hand
  outward               1.25  12 % of its time               2

control channel: 7.10 kB on the wire
";
    let shown = render(&report());
    assert_eq!(shown, expected, "\n{shown}");
}

#[test]
fn a_peer_with_manual_keys() {
    let protocol =
        |protocol: &str, algorithms: &[&str], inbound_spi: &str, outbound_spi: &str| ProtocolReport {
            protocol: protocol.to_owned(),
            algorithms: algorithms.iter().map(|name| (*name).to_owned()).collect(),
            inbound_spi: inbound_spi.to_owned(),
            outbound_spi: outbound_spi.to_owned(),
        };
    let manual = ManualReport {
        mode: "tunnel".to_owned(),
        carrier: "ip".to_owned(),
        local: Some("192.0.2.1".to_owned()),
        sequence_bits: 32,
        protocols: vec![
            protocol("ah", &["hmac-sha-256-128"], "0x00001001", "0x00001002"),
            protocol("esp", &["aes-128-cbc", "hmac-sha-256-128"], "0x00002001", "0x00002002"),
            protocol("ipcomp", &["deflate"], "2", "2"),
        ],
        aggfrag: false,
        fragment: true,
        last_number: 77,
        in_packets: 0,
        in_bytes: 0,
        out_packets: 77,
        out_bytes: 9_000,
        last_received_seconds: None,
        last_sent_seconds: Some(1.0),
    };
    let shown = one_peer(&PeerReport {
        keys: "manual".to_owned(),
        public_key: None,
        endpoint: Some("192.0.2.2".to_owned()),
        association: None,
        manual: Some(manual),
        last_handshake_seconds: None,
        rate_bits_per_second: None,
        path: None,
        queue: QueueReport::default(),
        ..peer()
    });
    let expected = "\
peer site-b: up
  endpoint        192.0.2.2
  allowed IPs     10.77.0.2/32
  manual keys     ah hmac-sha-256-128 (in 0x00001001, out 0x00001002), \
esp aes-128-cbc + hmac-sha-256-128 (in 0x00002001, out 0x00002002), ipcomp deflate (in 2, out 2)
  protecting      whole packets (tunnel mode), directly behind IP from 192.0.2.1, in fragments where it is too large
  last packet     has number 77, of 32 bits
  inner MTU       1420
";
    assert!(shown.starts_with(expected), "\n{shown}");
}

#[test]
fn a_peer_that_never_answered() {
    let mut report = report();
    report.peers[0] = PeerReport {
        state: "connecting".to_owned(),
        endpoint: None,
        association: None,
        last_handshake_seconds: None,
        failures: 2,
        rate_bits_per_second: None,
        path: None,
        ..peer()
    };
    let shown = render(&report);
    for line in ["peer site-b: connecting", "not known yet", "never; 2 attempts failed since"] {
        assert!(shown.contains(line), "{line} is not in\n{shown}");
    }
    assert!(!shown.contains("associations") && !shown.contains("paced at"), "{shown}");
}

#[test]
fn numbers_no_daemon_should_say_do_no_harm() {
    let mut report = report();
    report.node.uptime_seconds = f64::NAN;
    report.peers[0].last_handshake_seconds = Some(-1.0);
    report.peers[0].rate_bits_per_second = Some(u64::MAX);
    assert!(render(&report).contains("0 ms ago"));
}
