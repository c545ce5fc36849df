//! The table, its sentences, and the same as JSON.

use super::*;
use strait_testbed::CarriedBytes;

fn moved(millis: u64, bytes: u64) -> Moved {
    let there = CarriedBytes { packets: bytes / 1000, bytes };
    let back = CarriedBytes { packets: 10, bytes: 1000 };
    Moved { took: Duration::from_millis(millis), wire: LinkTraffic { there, back } }
}

fn measured(way: DemoVariant, moved: Vec<Moved>) -> Measured {
    Measured { way, setup: 7_100, moved, chosen: Vec::new(), lost: Some(7), tunnels: Vec::new() }
}

fn summary(check: impl FnOnce(&Summary<'_>)) {
    let file = |name: &str, size: usize| SampleFile { name: name.to_owned(), bytes: vec![0; size].into() };
    let files = [file("a.log", 1_800_000), file("b.bin", 200_000)];
    let ways = [
        measured(DemoVariant::Plain, vec![moved(10_000, 1_899_000), moved(1_200, 211_000)]),
        measured(DemoVariant::Tunnel, vec![moved(10_500, 1_959_000), moved(1_250, 219_000)]),
        measured(DemoVariant::Compressed, vec![moved(2_500, 399_000), moved(1_250, 219_000)]),
    ];
    let rtt = Duration::from_millis(600);
    let path = DemoPath::new("1.5Mbit".parse().unwrap(), Some(rtt), "1%".parse().ok()).unwrap();
    check(&Summary { path, files: &files, measured: &ways });
}

#[test]
fn the_table_and_what_it_comes_to() {
    summary(|summary| {
        let expected = "\
                            plain           tunnel           compressed                     less on   times as\n\
            file       size  seconds     wire  seconds     wire     seconds    wire   goodput  the wire  the tunnel  chosen\n";
        let text = summary.table();
        let collapse = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
        let lines: Vec<String> = text.lines().map(collapse).collect();
        assert_eq!(lines[0], collapse(expected.lines().next().unwrap()));
        assert_eq!(lines[2], "a.log 1.80 MB 10.00 1.90 MB 10.50 1.96 MB 2.50 400 kB 720 kB/s 4.75 4.20");
        assert_eq!(lines[4], "total 2.00 MB 11.20 2.11 MB 11.75 2.18 MB 3.75 620 kB 533 kB/s 3.41 3.13");
        assert!(
            summary.sentences().contains("2.99 times the plain link's goodput (533 kB/s against 179 kB/s)")
        );
        assert!(summary.sentences().contains("plain link: the path lost 7 of 2130 packets"));
    });
}

#[test]
fn the_tunnels_count_is_set_beside_the_links() {
    let cost = ProcessCost { processor: Duration::from_millis(420), resident: 1, resident_peak: 16_000_000 };
    let sent = TrafficReport { datagrams: 1_000, wire_bytes: 1_250_000, ..TrafficReport::default() };
    // 1,250,000 bytes in 1,000 datagrams with 14 bytes of Ethernet each, and 7,100 of the control channel.
    let own_count = with_ethernet([sent, TrafficReport::default()].into_iter()) + 7_100;
    assert_eq!(own_count, 1_271_100);
    let measured = measured(DemoVariant::Compressed, vec![moved(2_500, 1_262_000)]);
    let expected = "  site-a counts 1.27 MB on the wire, the link's interfaces 1.27 MB; \
                    0.42 s of a processor, 16.0 MB of memory";
    assert_eq!(sentence("site-a", own_count, cost, &measured), expected);
}

#[test]
fn json_has_every_number() {
    summary(|summary| {
        let value: Value = serde_json::from_str(&summary.json()).unwrap();
        assert_eq!(value["files"][0]["ways"]["compressed"]["wire_bytes"], 400_000);
        assert_eq!(value["total"]["plain"]["wire_bytes"], 2_112_000);
        assert_eq!(value["total"]["tunnel"]["setup_wire_bytes"], 7_100);
        assert_eq!(value["total"]["plain"]["lost_packets"], 7);
        assert_eq!(value["link_bits_per_second"], 1_500_000);
        assert_eq!((&value["rtt_seconds"], &value["loss"]), (&json!(0.6), &json!(0.01)));
    });
}
