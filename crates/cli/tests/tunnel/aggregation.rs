//! What `show` and `why` say of the queue, of aggregation and of the threads that compress.

use std::sync::Arc;

use serde_json::Value;
use strait_scheduler::Rate;
use strait_testbed::{Extra, LinkSpec, Transfer, TwoHosts, paced, sample};

use crate::pair::{PATIENCE, Pair, allowed};

const RULE: &str = "[[compress]]\nfrom = \"10.77.0.0/24\"\nto = \"10.77.0.0/24\"\ndomain = \"test\"\n";

/// A pair on a thin link with more lines of `[link]`; what the first site's `show` said last of its queue while text went to the other,
/// and of its threads when they were busiest.
fn beside_a_transfer(link: &str) -> (Pair, Value, Value) {
    let rate: Rate = "2Mbit".parse().unwrap();
    let link = format!("{}{link}", paced(rate, rate));
    let extra = Extra { node: "engines = 2", link: &link, sections: RULE, ..Extra::default() };
    let pair = Pair::up(TwoHosts::direct(LinkSpec::thin(rate)).unwrap(), extra);
    let content: Arc<[u8]> = sample::generate(5)[0].bytes[..900_000].into();
    let (from, to) = (&pair.hosts.a, &pair.hosts.b);
    let address = pair.sites[1].inside().into();
    let transfer = Transfer { from, to, address, name: "test", content: &content, patience: PATIENCE };
    let (mut queue, mut threads) = (Value::Null, Value::Null);
    let mut look = |_| {
        let report = pair.daemon(0).show().unwrap();
        queue = report["peers"][0]["queue"].clone();
        if busy(&report["threads"]) >= busy(&threads) {
            threads = report["threads"].clone();
        }
    };
    transfer.run(&mut look).unwrap_or_else(|error| panic!("{error}\n{}", pair.logs()));
    (pair, queue, threads)
}

/// Those that compress.
fn compressing(threads: &Value) -> impl Iterator<Item = &Value> {
    threads.as_array().into_iter().flatten().map(|it| &it["compression"]).filter(|it| !it.is_null())
}

/// How busy they are, all together.
fn busy(threads: &Value) -> f64 {
    compressing(threads).map(|it| it["busy_ratio"].as_f64().unwrap()).sum()
}

#[test]
fn queue_aggregation_and_compression_load_are_shown() {
    if !allowed() {
        return;
    }
    let (pair, queue, threads) = beside_a_transfer("");
    assert!(queue["window_packets"].as_u64().unwrap() > 1, "{queue:#}");
    assert!(queue["packets_per_aggregate"].as_f64().unwrap() > 1.5, "{queue:#}");
    let delays = ["mean_delay_seconds", "max_delay_seconds"].map(|name| queue[name].as_f64().unwrap());
    assert!(0.0 < delays[0] && delays[0] <= delays[1], "{queue:#}");
    assert_eq!(compressing(&threads).count(), 2, "{threads:#}");
    assert!(busy(&threads) > 0.0, "{threads:#}");
    for (command, words) in [
        (&["show"][..], &["packets per aggregate, window", "busy compressing"][..]),
        (&["why"], &["queue to site-b", "packets per aggregate, window"]),
    ] {
        let shown = pair.daemon(0).command(command).output().unwrap();
        let shown = String::from_utf8(shown.stdout).unwrap();
        assert!(words.iter().all(|words| shown.contains(words)), "{words:?} are not all in\n{shown}");
    }
}

#[test]
fn window_of_one_turns_aggregation_off() {
    if !allowed() {
        return;
    }
    let (pair, queue, _) = beside_a_transfer("window = 1");
    assert_eq!(
        (queue["window_packets"].as_u64(), queue["packets_per_aggregate"].as_f64()),
        (Some(1), Some(1.0)),
        "{queue:#}"
    );
    assert_eq!(pair.peer(0)["sent"]["bundles"].as_u64().unwrap_or(0), 0);
    let shown = pair.daemon(0).command(&["show"]).output().unwrap();
    let shown = String::from_utf8(shown.stdout).unwrap();
    assert!(shown.contains("off (window 1)"), "{shown}");
}

/// What the second site's queue shows after a download to it, whose acknowledgements go back over a link thinner by far.
fn after_a_download(acks: &str) -> Value {
    let [down, up]: [Rate; 2] = ["10Mbit", "64kbit"].map(|rate| rate.parse().unwrap());
    let link = format!("{}{acks}", paced(up, down));
    let hosts = TwoHosts::direct(LinkSpec { back: Some(up), ..LinkSpec::thin(down) }).unwrap();
    let mut pair = Pair::idle(hosts);
    pair.start(0, Extra { link: &paced(down, up), ..Extra::default() });
    pair.start(1, Extra { link: &link, ..Extra::default() });
    pair.wait_for_session();
    pair.tcp(1, crate::pair::Family::V4, 2_000_000);
    pair.peer(1)["queue"].clone()
}

#[test]
fn acknowledgements_on_a_thin_way_back_are_thinned_and_shown_unless_all_are_wanted() {
    if !allowed() {
        return;
    }
    let thin = after_a_download("");
    assert!(thin["thinned_acks"].as_u64().unwrap() > 0, "{thin:#}");
    let all = after_a_download("acks = \"all\"\n");
    assert_eq!(all["thinned_acks"], 0, "{all:#}");
}
