use super::*;
use strait_node::report::{
    AttackerReport, CarrierReport, CodecReport, CompressionLoadReport, ControlReport, DropReport,
    HistoryReport, LeakReport, ManualReport, MeteredReport, OffloadReport, PathReport, ProtocolReport,
    QueueReport, RememberedReport, RepairReport, ServiceReport, ThreadReport,
};

/// A report with every part filled in.
pub(crate) fn report() -> DaemonReport {
    DaemonReport {
        // Without times, which the golden text would have in the zone of the machine that runs it.
        metered: vec![MeteredReport {
            peer: None,
            cap_bytes: Some(20_000_000_000),
            every: Some("month".to_owned()),
            used_bytes: Some(15_000_000_000),
            forecast_bytes: Some(22_000_000_000),
            period_start: None,
            period_end: None,
            step: Some("warn".to_owned()),
            admission: "without-bulk".to_owned(),
            bulk_between: Some("01:00-06:00".to_owned()),
            changes_at: None,
        }],
        node: NodeReport {
            interface: "strait0".to_owned(),
            public_key: Some("QUJD".to_owned()),
            listen: "0.0.0.0:51820".to_owned(),
            addresses: vec!["10.77.0.1/24".to_owned(), "fd77::1/64".to_owned()],
            mtu: 1420,
            up_bits_per_second: Some(1_500_000),
            down_bits_per_second: None,
            price_per_gigabyte: None,
            up_auto: false,
            down_auto: true,
            forward: false,
            forward_networks: Vec::new(),
            configuration: "/etc/strait/a.toml".to_owned(),
            uptime_seconds: 3725.2,
            pid: 42,
            version: "0.1.0".to_owned(),
            warnings: Vec::new(),
            unlisted_nodes: 0,
            memory_limit_bytes: 256 << 20,
            memory_kept_bytes: 0,
            log: None,
            lost_log_lines: 0,
            folders: Vec::new(),
        },
        peers: vec![peer()],
        directory: None,
        decisions: None,
        rules: vec![rule()],
        services: vec![service()],
        codecs: vec![codec("zstd-3", 340), codec("lz4", 0)],
        drops: vec![drop("replayed", 3), drop("forged", 0)],
        sessionless: None,
        control: ControlReport { wire_bytes: 7_100, ..ControlReport::default() },
        offload: OffloadReport::default(),
        threads: vec![thread()],
        engines: Vec::new(),
        suites: Vec::new(),
    }
}

fn thread() -> ThreadReport {
    let compression = CompressionLoadReport { busy_ratio: 0.12, queue_delay_seconds: 0.0, queued_blocks: 2 };
    ThreadReport { name: "outward".to_owned(), cpu_seconds: 1.25, compression: Some(compression) }
}

fn peer() -> PeerReport {
    PeerReport {
        name: "site-b".to_owned(),
        keys: "session".to_owned(),
        public_key: Some("REVG".to_owned()),
        carrier: Some(carrier()),
        manual: None,
        sessionless: None,
        endpoint: Some("198.18.0.2:51820".to_owned()),
        endpoint_age_seconds: None,
        outer_interface: Some("eth0".to_owned()),
        state: "up".to_owned(),
        trouble: None,
        kept_bytes: 0,
        allowed_ips: vec!["10.77.0.2/32".to_owned()],
        association: Some(association()),
        last_handshake_age_seconds: Some(61.9),
        handshake_failures: 0,
        link_rate_bits_per_second: Some(1_492_500),
        path: Some(PathReport {
            estimated_rate_bits_per_second: Some(1_492_500),
            pacing_rate_bits_per_second: Some(1_447_700),
            limited_by: Some("link".to_owned()),
            rtt_seconds: Some(0.0584),
            min_rtt_seconds: Some(0.05012),
            loss_ratio: 0.0125,
            ecn_cleared: true,
            delivery_reports_sent: 12,
            delivery_reports_sent_wire_bytes: 1_440,
            delivery_reports_received: 340,
            delivery_reports_rejected: 1,
            remembered: Some(remembered()),
        }),
        repair: Some(repair()),
        history: Some(HistoryReport::default()),
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
        header_compression_saved_bytes: 150_000,
        queue: queue(),
        inner_mtu: 1420,
    }
}

fn association() -> AssociationReport {
    AssociationReport {
        suite: "aes-128-gcm".to_owned(),
        iv: "implicit".to_owned(),
        payloads: "strait".to_owned(),
        role: "initiator".to_owned(),
        inbound_spi: "0x04000001".to_owned(),
        outbound_spi: "0x0c0000ff".to_owned(),
        age_seconds: 60.0,
        next_rekey_seconds: 3540.0,
        inbound_packets: 1,
        inbound_bytes: 2,
        outbound_packets: 3,
        outbound_bytes: 4,
        last_received_age_seconds: None,
        last_sent_age_seconds: Some(0.5),
    }
}

fn carrier() -> CarrierReport {
    CarrierReport {
        configured: "ip".to_owned(),
        sending: "udp".to_owned(),
        reason: Some("tried, no answer: a NAT or firewall drops protocol 50".to_owned()),
        sent_datagrams: 3,
        received_datagrams: 4,
    }
}

const fn remembered() -> RememberedReport {
    RememberedReport {
        rate_bits_per_second: Some(1_400_000),
        min_rtt_seconds: Some(0.0501),
        loss_ratio: 0.005,
        age_seconds: 10_930,
    }
}

fn repair() -> RepairReport {
    RepairReport {
        state: "retransmission".to_owned(),
        loss_ratio: 0.0125,
        mean_burst_datagrams: 1.25,
        missing_datagrams: 124,
        repaired_datagrams: 119,
        recovered_datagrams: 0,
        empty_datagrams: 0,
        late_datagrams: 4,
        lost_datagrams: 1,
        duplicate_payloads: 2,
        held_payloads: 4_000,
        requests_sent: 118,
        repeated_payloads: 33,
        symbols_received: 0,
        symbols_sent: 0,
        symbols_per_payload: 0.0,
        wire_bytes: 60_000,
        received_wire_bytes: 170_000,
    }
}

fn queue() -> QueueReport {
    QueueReport {
        bytes: 2_048,
        mean_delay_seconds: Some(0.008_2),
        max_delay_seconds: Some(0.021),
        window_packets: 256,
        aggregates: 1_200,
        packets_per_aggregate: Some(2.5),
        ecn_marked_packets: 0,
        aqm_dropped_packets: 14,
        overflow_dropped_packets: 0,
        thinned_acks: 9,
        resent_segments: 1,
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
        matched_packets: 3_000,
        matched_bytes: 4_000_000,
        input_bytes: 3_900_000,
        output_bytes: 1_100_000,
        ratio: Some(3.545),
        leak: LeakReport {
            padding: "buckets".to_owned(),
            mix: "flow".to_owned(),
            cache: false,
            pause: true,
            pauses: 2,
            paused_packets: 700,
            blocks: 340,
            same_flow: AttackerReport {
                bound_bits_per_block: Some(2.584),
                bound_bits_per_1000_packets: Some(292.8),
                measured_yield: Some(0.31),
                measured_yield_upper: Some(0.86),
            },
            other_flow: AttackerReport {
                bound_bits_per_block: Some(0.0),
                bound_bits_per_1000_packets: Some(0.0),
                measured_yield: None,
                measured_yield_upper: None,
            },
        },
    }
}

fn service() -> ServiceReport {
    ServiceReport {
        service: "https (tcp 443)".to_owned(),
        packets: 3_000,
        bytes: 3_900_000,
        wire_bytes: 1_300_000,
        ratio: Some(3.0),
    }
}

fn codec(name: &str, tried: u64) -> CodecReport {
    CodecReport {
        codec: name.to_owned(),
        tried_blocks: tried,
        sent_blocks: tried,
        sent_packets: 3_000,
        input_bytes: 3_900_000,
        output_bytes: 1_100_000,
        ratio: Some(3.545),
        decompressed_blocks: 0,
    }
}

fn drop(reason: &str, packets: u64) -> DropReport {
    DropReport { reason: reason.to_owned(), packets }
}

#[test]
fn endpoint_of_an_earlier_run_has_its_age() {
    let peer = PeerReport { endpoint_age_seconds: Some(10_920), ..peer() };
    let text = one_peer(&peer);
    let line = "  endpoint         198.18.0.2:51820 by eth0, heard there 3 h 2 min ago, before this start\n";
    assert!(text.contains(line), "{text}");
}

#[test]
fn everything_a_person_asks_for() {
    let expected = "\
strait0
  public key     QUJD
  listening on   0.0.0.0:51820
  addresses      10.77.0.1/24, fd77::1/64
  inner MTU      1420 bytes
  link           up 1.5 Mbit/s, down auto
  configuration  /etc/strait/a.toml
  uptime         1 h 2 min (PID 42, version 0.1.0)

peer site-b: up
  public key       REVG
  endpoint         198.18.0.2:51820 by eth0
  allowed IPs      10.77.0.2/32
  last handshake   1 min 1 s ago
  SA pair          SPI in 0x04000001, out 0x0c0000ff; aes-128-gcm, implicit IV, strait payloads, initiator
  next rekey       in 59 min 0 s, if in use
  carrier          UDP (tried, no answer: a NAT or firewall drops protocol 50)
  link rate        1.492 Mbit/s (estimated), pacing at 1.447 Mbit/s, limited by the link
  queue            2.05 kB, delay 8 ms (max 21 ms), 14 packets dropped by CoDel, 9 TCP acknowledgements replaced by newer ones, 1 TCP segment sent again after an outage
  aggregation      2.5 packets per aggregate, window 256 packets
  path             RTT 58.4 ms (min 50.1 ms), loss 1.2 %, clears ECN marks, delivery reports: 340 received (1 rejected), 12 sent (1.44 kB)
  repair           lost payloads are sent again
  missing          of 124 datagrams: 119 came by being sent again, 4 came late, 1 stayed lost; 2 payloads came twice
  repair cost      60.0 kB (4.8 %) sent: 33 payloads again, 118 requests; 170 kB (0.0 %) received
  remembered       1.4 Mbit/s, RTT 50.1 ms, loss 0.5 %, found 3 h 2 min ago
  inner MTU        1420 bytes
  sent as          7 bundles, 340 compressed blocks, 150 kB saved by header compression
            packets  inner bytes  datagrams  wire bytes  ratio
  sent         3000      4.00 MB       1000     1.25 MB   3.20
  received        0          0 B          0         0 B      -
  both         3000      4.00 MB       1000     1.25 MB   3.20

metered
           used            cap  share  forecast  period ends     may leave  until
  link  15.0 GB  20.0 GB/month   75 %   22.0 GB            -  all but bulk      -

compression rules
  from          to            protocol           domain  codec   matched packets  matched bytes    input   output  ratio
  10.77.0.1/32  10.77.0.2/32  tcp 514,8000-8100  logs    zstd-3             3000        4.00 MB  3.90 MB  1.10 MB   3.54

what lengths tell, in bits
  rule  domain  padding  mix   pauses  blocks  attacker    bound by block  by 1,000 packets     measured yield
  1     logs    buckets  flow       2     340  same flow              2.6             292.8  0.3 (at most 0.9)
                                               other flow             0.0               0.0       not measured

sent by service
  service          packets    bytes  on the wire  ratio
  https (tcp 443)     3000  3.90 MB      1.30 MB   3.00

codecs
  codec   tried blocks  sent blocks  sent packets    input   output  ratio  decompressed blocks
  zstd-3           340          340          3000  3.90 MB  1.10 MB   3.54                    0

dropped packets
  reason    packets
  replayed        3

threads
  thread   CPU time  busy compressing  queued blocks
  outward    1.25 s              12 %              2

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
        esn: false,
        protocols: vec![
            protocol("ah", &["hmac-sha-256-128"], "0x00001001", "0x00001002"),
            protocol("esp", &["aes-128-cbc", "hmac-sha-256-128"], "0x00002001", "0x00002002"),
            protocol("ipcomp", &["deflate"], "2", "2"),
        ],
        aggfrag: false,
        outer_fragmentation: true,
        last_sequence_number: 77,
        inbound_packets: 0,
        inbound_bytes: 0,
        outbound_packets: 77,
        outbound_bytes: 9_000,
        last_received_age_seconds: None,
        last_sent_age_seconds: Some(1.0),
    };
    let shown = one_peer(&PeerReport {
        keys: "manual".to_owned(),
        public_key: None,
        endpoint: Some("192.0.2.2".to_owned()),
        outer_interface: None,
        association: None,
        carrier: None,
        manual: Some(manual),
        last_handshake_age_seconds: None,
        link_rate_bits_per_second: None,
        path: None,
        repair: None,
        queue: QueueReport::default(),
        ..peer()
    });
    let expected = "\
peer site-b: up
  endpoint         192.0.2.2 (no route to it)
  allowed IPs      10.77.0.2/32
  manual keys      ah hmac-sha-256-128 (SPI in 0x00001001, out 0x00001002), \
esp aes-128-cbc + hmac-sha-256-128 (SPI in 0x00002001, out 0x00002002), ipcomp deflate (CPI in 2, out 2)
  mode             tunnel mode, directly over IP, local address 192.0.2.1, outer fragmentation
  sequence number  77 sent last (32-bit)
  inner MTU        1420 bytes
";
    assert!(shown.starts_with(expected), "\n{shown}");
}

#[test]
fn repair_symbols_are_told_where_there_are_some() {
    let mut report = report();
    report.peers[0].repair = Some(RepairReport {
        recovered_datagrams: 110,
        empty_datagrams: 9,
        repaired_datagrams: 0,
        state: "error-correction".to_owned(),
        duplicate_payloads: 0,
        symbols_sent: 900,
        symbols_per_payload: 0.0812,
        ..repair()
    });
    let shown = render(&report);
    for line in [
        "  repair           8.1 repair symbols for 100 payloads\n",
        "  missing          of 124 datagrams: 110 came back out of repair symbols, 9 carried no payload, 4 came late, 1 stayed lost\n",
        "  repair cost      60.0 kB (4.8 %) sent: 33 payloads again, 900 repair symbols, 118 requests; 170 kB (0.0 %) received\n",
    ] {
        assert!(shown.contains(line), "{shown}");
    }
}

#[test]
fn history_is_told_where_packets_left_alone() {
    let mut report = report();
    report.peers[0].history = Some(HistoryReport {
        coded_packets: 1_200,
        bytes_before: 90_000,
        bytes_after: 60_000,
        received_packets: 1_190,
        sent_blocks: 700,
        compared_bytes_alone: 60_000,
        compared_bytes_behind: 51_000,
        sent_copies: 90,
        copied_bytes: 2_200_000,
        held_bytes_there: 5_000_000,
        held_bytes_here: 1_000_000,
        receipts_sent: 40,
        receipts_sent_wire_bytes: 2_800,
        ..HistoryReport::default()
    });
    let shown = render(&report);
    let line = "  history          1200 packets alone, 33.3 % shorter for earlier ones: 30.0 kB saved; 700 blocks behind earlier ones, 15.0 % shorter for them (measured on one in 64); 90 blocks with copies of what was sent before: 2.20 MB not sent again; byte caches hold 5.00 MB there and 1.00 MB here, which all flows of their domains can be guessed by; 40 datagrams of receipts took 2.80 kB\n";
    assert!(shown.contains(line), "{shown}");
    report.peers[0].history = Some(HistoryReport::default());
    assert!(!render(&report).contains("history"));
}

#[test]
fn repair_is_not_told_where_it_does_nothing_and_nothing_was_missing() {
    let mut report = report();
    for state in ["not-agreed", "not-paced"] {
        report.peers[0].repair = Some(RepairReport { state: state.to_owned(), ..RepairReport::default() });
        let shown = render(&report);
        assert!(!shown.contains("repair") && !shown.contains("missing"), "{shown}");
    }
}

#[test]
fn a_peer_that_never_answered() {
    let mut report = report();
    report.peers[0] = PeerReport {
        state: "connecting".to_owned(),
        endpoint: None,
        association: None,
        last_handshake_age_seconds: None,
        handshake_failures: 2,
        link_rate_bits_per_second: None,
        path: None,
        repair: None,
        ..peer()
    };
    let shown = render(&report);
    for line in ["peer site-b: connecting (attempt 3)", "unknown", "never; 2 handshakes failed since"] {
        assert!(shown.contains(line), "{line} is not in\n{shown}");
    }
    assert!(!shown.contains("SA pair") && !shown.contains("link rate"), "{shown}");
}

#[test]
fn what_is_insecure_or_lost_has_a_line_and_no_line_otherwise() {
    let mut report = report();
    let quiet = render(&report);
    assert!(!quiet.contains("WARNING") && !quiet.contains("could not be written"), "{quiet}");
    report.node.warnings = vec!["the keys of all traffic are written to keys".to_owned()];
    report.node.lost_log_lines = 3;
    report.node.unlisted_nodes = 1;
    report.control.refused_connections = 1;
    let shown = render(&report);
    for line in [
        "  not listed     1 node, for logins with a ticket",
        "  log            3 lines could not be written",
        "  WARNING        the keys of all traffic are written to keys",
        "metrics: 1 connection refused",
    ] {
        assert!(shown.lines().any(|one| one == line), "{line} is not in\n{shown}");
    }
}

#[test]
fn figures_out_of_range_are_shown_without_panic() {
    let mut report = report();
    report.node.uptime_seconds = f64::NAN;
    report.peers[0].last_handshake_age_seconds = Some(-1.0);
    report.peers[0].link_rate_bits_per_second = Some(u64::MAX);
    assert!(render(&report).contains("0 ms ago"));
}

#[test]
fn link_without_a_limit_is_shown_as_not_paced() {
    let mut report = report();
    let path = report.peers[0].path.as_mut().unwrap();
    (path.estimated_rate_bits_per_second, path.pacing_rate_bits_per_second) = (None, None);
    path.limited_by = Some("application".to_owned());
    let shown = render(&report);
    assert!(shown.contains("  link rate        not paced, as no limit was met"), "{shown}");
}
