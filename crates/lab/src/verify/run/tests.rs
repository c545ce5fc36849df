use super::*;
use crate::steps::Effort;
use crate::verify::content::Content;
use serde_json::json;

#[test]
fn one_rule_per_method_and_one_port_per_content() {
    let grid = VerifyGrid::new(Effort::Quick, Content::generated());
    let rules = rules(&grid);
    assert_eq!(rules.matches("[[compress]]").count(), 3);
    assert!(rules.contains("ports = [\"7116-7131\"]\ndomain = \"lab\"\ncodec = \"lz4\""), "{rules}");
    assert!(rules.contains("codec = \"auto\"") && !rules.contains("7100"), "{rules}");
}

#[test]
fn run_cost_is_split_by_purpose() {
    let near = json!({"codecs": [
        {"codec": "none", "sent_blocks": 9, "input_bytes": 9, "output_bytes": 9},
        {"codec": "lz4", "sent_blocks": 10, "input_bytes": 640_000, "output_bytes": 320_000},
    ], "threads": [{"name": "strait-out", "cpu_seconds": 2.0}], "peers": [{"sent": {"bytes": 1_000_000}}]});
    let far = json!({"threads": [{"name": "strait-in", "cpu_seconds": 1.0}]});
    let costs = [3.0, 1.5].map(|it| ProcessCost {
        processor: std::time::Duration::from_secs_f64(it),
        ..ProcessCost::default()
    });
    let look = StreamCounters::at(&near, &far, costs).unwrap().since(&StreamCounters::default());
    let passed = StreamCounters { hosts: 0.5, kernel: 0.25, busy: 6.0, all: 10.0, ..look };
    assert_eq!(passed.work(), Work { sender: 2e-6, receiver: 1e-6, hosts: 0.5e-6, rest: 1.75e-6 });
    let blocks = passed.blocks().unwrap();
    assert_eq!((blocks.before, blocks.after, blocks.beside), (64_000.0, 32_000.0, 36_000.0));
    assert!((passed.others() - 0.075).abs() < 1e-12);
    assert_eq!(StreamCounters { blocks: 0.0, ..passed }.blocks(), None);
}

#[test]
fn processors_by_the_columns_of_proc() {
    assert_eq!(processors("cpu  100 200 300 1000 100 30 20 50 7 7\ncpu0 1"), [0.5, 7.0, 18.0]);
    assert_eq!(processors("cpu 1 2"), [0.0; 3]);
}

#[test]
fn the_decision_is_that_of_the_busiest_flow_to_the_port() {
    let report = json!({"decisions": [
        {"class": "tcp 10.77.0.1:40000 -> 10.77.0.2:7116", "bytes_per_second": 5, "choice": "lz4"},
        {"class": "tcp 10.77.0.1:40001 -> 10.77.0.2:7116", "bytes_per_second": 9, "choice": "zstd-3"},
        {"class": "tcp 10.77.0.1:7116 -> 10.77.0.2:50000", "bytes_per_second": 99, "choice": "none"},
    ]});
    assert_eq!(decided(&report, 7116).unwrap()["choice"], "zstd-3");
    assert_eq!(decided(&report, 7117), None);
}
