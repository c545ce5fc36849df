use super::server::MEDIA_TYPE;
use super::*;
use crate::local::{Answer, PendingRequest, Request};
use crate::report::{
    AssociationReport, CarrierReport, CompressionLoadReport, ControlReport, DecisionReport, DropReport,
    EstimateReport, FolderReport, HistoryReport, LeakReport, ManualReport, MeteredReport, OffloadReport,
    PathReport, ProtocolReport, QueueReport, RememberedReport, RepairReport, ServiceReport, StagesReport,
    SuiteReport, ThreadReport, TrafficReport,
};
use std::collections::BTreeSet;
use std::io::{Read, Write as _};
use tokio::sync::mpsc;

fn service() -> ServiceReport {
    ServiceReport {
        service: "https (tcp 443)".to_owned(),
        packets: 3_000,
        bytes: 3_900_000,
        wire_bytes: 1_300_000,
        ratio: Some(3.0),
    }
}

fn rule(ports: &[&str]) -> RuleReport {
    RuleReport {
        from: "10.1.0.0/16".to_owned(),
        to: "10.2.0.0/16".to_owned(),
        protocol: Some("tcp".to_owned()),
        ports: ports.iter().map(|port| (*port).to_owned()).collect(),
        domain: "logs".to_owned(),
        codec: "zstd-3".to_owned(),
        matched_packets: 4,
        matched_bytes: 4000,
        input_bytes: 3000,
        output_bytes: 1000,
        ratio: Some(3.0),
        leak: LeakReport {
            padding: "padme".to_owned(),
            mix: "flow".to_owned(),
            cache: false,
            pause: true,
            pauses: 1,
            paused_packets: 100,
            blocks: 2,
            same_flow: AttackerReport {
                bound_bits_per_block: Some(6.25),
                bound_bits_per_1000_packets: Some(3125.0),
                measured_yield: Some(0.5),
                measured_yield_upper: Some(0.75),
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

fn carrier() -> CarrierReport {
    CarrierReport {
        configured: "ip".to_owned(),
        sending: "udp".to_owned(),
        reason: Some("being tried".to_owned()),
        sent_datagrams: 3,
        received_datagrams: 4,
    }
}

pub(crate) fn peer() -> PeerReport {
    PeerReport {
        name: "site \"b\"\\\n".to_owned(),
        keys: "session".to_owned(),
        public_key: Some("key".to_owned()),
        carrier: Some(carrier()),
        manual: None,
        sessionless: None,
        endpoint: None,
        endpoint_age_seconds: Some(60),
        outer_interface: None,
        state: "up".to_owned(),
        kept_bytes: 0,
        allowed_ips: vec!["10.2.0.0/16".to_owned()],
        association: Some(AssociationReport {
            suite: "aes-128-gcm".to_owned(),
            iv: "implicit".to_owned(),
            payloads: "strait".to_owned(),
            role: "initiator".to_owned(),
            inbound_spi: "0x04000001".to_owned(),
            outbound_spi: "0x04000002".to_owned(),
            age_seconds: 1.5,
            next_rekey_seconds: 3600.0,
            inbound_packets: 1,
            inbound_bytes: 2,
            outbound_packets: 3,
            outbound_bytes: 4,
            last_received_age_seconds: None,
            last_sent_age_seconds: Some(0.25),
        }),
        last_handshake_age_seconds: None,
        handshake_failures: 2,
        trouble: None,
        link_rate_bits_per_second: Some(1_500_000),
        path: Some(PathReport {
            estimated_rate_bits_per_second: Some(1_500_000),
            rtt_seconds: Some(0.05),
            loss_ratio: 0.25,
            delivery_reports_sent: 8,
            delivery_reports_sent_wire_bytes: 960,
            delivery_reports_received: 9,
            remembered: Some(RememberedReport::default()),
            ..PathReport::default()
        }),
        repair: Some(RepairReport {
            missing_datagrams: 21,
            repaired_datagrams: 20,
            ..RepairReport::default()
        }),
        history: Some(HistoryReport { coded_packets: 31, bytes_before: 32, ..HistoryReport::default() }),
        sent: TrafficReport { packets: 1, bytes: 2, datagrams: 3, wire_bytes: 4, ratio: Some(0.5) },
        received: TrafficReport::default(),
        bundles: 5,
        blocks: 6,
        header_compression_saved_bytes: 8,
        queue: queue(),
        inner_mtu: 1280,
    }
}

const fn queue() -> QueueReport {
    QueueReport {
        bytes: 7,
        mean_delay_seconds: Some(0.008),
        max_delay_seconds: Some(0.021),
        window_packets: 256,
        aggregates: 10,
        packets_per_aggregate: Some(2.5),
        ecn_marked_packets: 11,
        aqm_dropped_packets: 12,
        overflow_dropped_packets: 13,
        thinned_acks: 14,
        resent_segments: 15,
    }
}

fn node() -> NodeReport {
    NodeReport {
        interface: "strait0".to_owned(),
        public_key: Some("own".to_owned()),
        listen: "[::]:51820".to_owned(),
        addresses: Vec::new(),
        mtu: 1420,
        up_bits_per_second: None,
        price_per_gigabyte: None,
        up_auto: true,
        down_auto: false,
        down_bits_per_second: None,
        forward: false,
        forward_networks: Vec::new(),
        configuration: "a.toml".to_owned(),
        uptime_seconds: 12.5,
        pid: 1,
        version: "0.1.0".to_owned(),
        warnings: vec!["danger".to_owned()],
        unlisted_nodes: 3,
        memory_limit_bytes: 256 << 20,
        memory_kept_bytes: 9 << 20,
        log: None,
        lost_log_lines: 2,
        folders: vec![FolderReport {
            name: "inbox".to_owned(),
            read: vec!["b".to_owned()],
            write: vec!["b".to_owned()],
            delete: Vec::new(),
        }],
    }
}

pub(crate) fn report() -> DaemonReport {
    DaemonReport {
        metered: vec![MeteredReport {
            peer: Some("site-b".to_owned()),
            cap_bytes: Some(1_000),
            every: Some("month".to_owned()),
            used_bytes: Some(900),
            forecast_bytes: Some(1_100),
            period_start: Some(0),
            period_end: Some(2_678_400),
            step: Some("warn".to_owned()),
            admission: "without-bulk".to_owned(),
            bulk_between: None,
            changes_at: None,
        }],
        node: node(),
        peers: vec![peer()],
        directory: None,
        decisions: None,
        rules: vec![rule(&["514"]), rule(&["515"])],
        services: vec![service()],
        codecs: vec![CodecReport {
            codec: "zstd".to_owned(),
            tried_blocks: 3,
            sent_blocks: 2,
            sent_packets: 4,
            input_bytes: 3000,
            output_bytes: 1000,
            ratio: Some(3.0),
            decompressed_blocks: 1,
        }],
        drops: vec![DropReport { reason: "forged".to_owned(), packets: 9 }],
        sessionless: None,
        control: ControlReport { wire_bytes: 6400, ..ControlReport::default() },
        offload: OffloadReport { refused_trains: 3, refused_joined: 4 },
        threads: vec![ThreadReport { name: "strait-in".to_owned(), cpu_seconds: 0.125, compression: None }],
        engines: Vec::new(),
        suites: vec![SuiteReport { suite: "aes-128-gcm".to_owned(), nanoseconds_per_packet: 700 }],
    }
}

#[test]
fn every_number_has_its_line() {
    let text = text(&report());
    for line in [
        "strait_info{interface=\"strait0\",version=\"0.1.0\",public_key=\"own\"} 1",
        "strait_uptime_seconds 12.5",
        "strait_dropped_packets_total{reason=\"forged\"} 9",
        "strait_peer_up{peer=\"site \\\"b\\\"\\\\\\n\"} 1",
        "strait_peer_sent_wire_bytes_total{peer=\"site \\\"b\\\"\\\\\\n\"} 4",
        "strait_rule_output_bytes_total{rule=\"2\",from=\"10.1.0.0/16\",to=\"10.2.0.0/16\",domain=\"logs\",codec=\"zstd-3\"} 1000",
        "strait_codec_tried_blocks_total{codec=\"zstd\"} 3",
        "strait_thread_cpu_seconds_total{thread=\"strait-in\"} 0.125",
        "strait_offload_refusals_total{way=\"trains\"} 3",
        "strait_offload_refusals_total{way=\"joined\"} 4",
    ] {
        assert!(text.lines().any(|one| one == line), "{line}\nis not in\n{text}");
    }
    assert!(!text.contains("strait_peer_last_handshake_age_seconds{"), "what never happened has no age");
}

#[test]
fn the_text_keeps_the_rules_of_its_form() {
    let text = text(&report());
    let mut series = BTreeSet::new();
    let mut families = BTreeSet::new();
    for line in text.lines() {
        if let Some(family) = line.strip_prefix("# TYPE ") {
            let (name, kind) = family.split_once(' ').unwrap();
            assert!(families.insert(name.to_owned()), "{name} is declared twice");
            assert_eq!(name.ends_with("_total"), kind == "counter", "{name} is a {kind}");
            continue;
        }
        if line.starts_with("# HELP ") {
            continue;
        }
        let (name, value) = line.rsplit_once(' ').unwrap();
        assert!(value.parse::<f64>().is_ok(), "{line}");
        assert!(families.contains(name.split('{').next().unwrap()), "{name} comes after its type");
        assert!(series.insert(name.to_owned()), "{name} comes twice");
    }
}

#[test]
fn a_report_survives_its_way_to_the_client() {
    let json = serde_json::to_string(&report()).unwrap();
    assert_eq!(serde_json::from_str::<DaemonReport>(&json).unwrap(), report());
    assert!(json.contains("\"last_handshake_age_seconds\":null"), "a key is always there");
}

#[test]
fn it_is_served_where_prometheus_looks() {
    let metrics = Metrics::bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let address = metrics.listener.local_addr().unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let client = std::thread::spawn(move || {
        let ask = |path: &str| {
            let mut stream = std::net::TcpStream::connect(address).unwrap();
            write!(stream, "GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").unwrap();
            let mut answer = String::new();
            stream.read_to_string(&mut answer).unwrap();
            answer
        };
        (ask("/metrics"), ask("/"))
    });
    runtime.block_on(async {
        let (asks, mut asked) = mpsc::channel(1);
        metrics.serve(asks).unwrap();
        let PendingRequest { request, answer, .. } = asked.recv().await.unwrap();
        assert_eq!(request, Request::Show);
        answer.send(Answer::Report { report: Box::new(report()) }).unwrap();
        // The other question is answered without the control loop.
        while !client.is_finished() {
            tokio::task::yield_now().await;
        }
    });
    let (metrics, other) = client.join().unwrap();
    assert!(metrics.starts_with("HTTP/1.1 200 OK\r\n") && metrics.contains(MEDIA_TYPE), "{metrics}");
    assert!(metrics.contains("\nstrait_uptime_seconds 12.5\n"));
    assert!(other.starts_with("HTTP/1.1 404"), "{other}");
}

#[test]
fn a_port_in_use_is_named() {
    let taken = Metrics::bind("127.0.0.1:0".parse().unwrap()).unwrap().listener;
    let address = taken.local_addr().unwrap();
    let error = Metrics::bind(address).unwrap_err().to_string();
    assert!(
        error.starts_with(&format!("cannot serve metrics at {address}: Address already in use")),
        "{error}"
    );
}

mod clients;
mod dashboard;
mod reference;
