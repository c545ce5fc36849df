//! The rate of a link that is not configured: estimated, and followed when the link changes.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use serde_json::Value;
use strait_scheduler::Rate;
use strait_testbed::outside::has_scapy;
use strait_testbed::{Extra, FrameFate, LinkSpec, Relay, sample};

use crate::capture::Capture;
use crate::outside::open;
use crate::pair::{Family, Pair, allowed, eventually};

/// Each way; together a round trip of 50 ms.
const DELAY: Duration = Duration::from_millis(25);
/// A change is followed within three seconds, which a simulation proves. Hosts share processors with other tests: the relay and the
/// source of the flood may stand still for a while, which looks like another link. So this says only that it is followed, and
/// what is printed says how soon.
const FOLLOWED: Duration = Duration::from_secs(60);
/// How often it is looked.
const LOOK: Duration = Duration::from_millis(50);

pub(crate) fn mbit(text: &str) -> Rate {
    text.parse().unwrap()
}

/// What is offered: more than the link takes.
const OFFERED: Duration = Duration::from_micros(800);
const DATAGRAM: usize = 1300;

/// 13 Mbit/s of random bytes from the first site to the second, until it is told to end.
pub(crate) fn flood(pair: &Pair, end: &Arc<AtomicBool>) -> JoinHandle<()> {
    let (from, to) = (pair.socket(0, Family::V4), pair.socket(1, Family::V4));
    let target = to.local_addr().unwrap();
    let (noise, end) = (Arc::clone(&sample::generate(7)[5].bytes), Arc::clone(end));
    thread::spawn(move || {
        let begin = Instant::now();
        for (at, count) in (0..noise.len() - DATAGRAM).step_by(DATAGRAM).cycle().zip(0_u32..) {
            if end.load(Ordering::Relaxed) {
                return drop(to);
            }
            let _ = from.send_to(&noise[at..at + DATAGRAM], target);
            thread::sleep((OFFERED * count).saturating_sub(begin.elapsed()));
        }
    })
}

/// How long it takes until the first site knows within 15 % that the link has `rate`, and for a second no longer thinks otherwise.
fn followed(pair: &Pair, rate: Rate) -> Option<Duration> {
    let (begin, mut since) = (Instant::now(), None);
    while begin.elapsed() < FOLLOWED {
        let found = pair.peer(0)["path"]["estimated_rate_bits_per_second"].as_u64().unwrap_or(0);
        let near = (found as f64 / rate.bits() as f64 - 1.0).abs() <= 0.15;
        since = if near { since.or(Some(begin.elapsed())) } else { None };
        if since.is_some_and(|since| begin.elapsed() > since + Duration::from_secs(1)) {
            return since;
        }
        thread::sleep(LOOK);
    }
    None
}

#[test]
fn a_link_that_changes_is_followed() {
    if !allowed() {
        return;
    }
    let (hosts, _relay) =
        Relay::between(LinkSpec::thin(mbit("10Mbit")), |_, _| FrameFate::Delay(DELAY)).unwrap();
    let link = "[link]\nup = \"auto\"\ndown = \"auto\"\noverhead = 14\n";
    let mut pair = Pair::up(hosts, Extra { sections: link, ..Extra::default() });
    let end = Arc::new(AtomicBool::new(false));
    let flood = flood(&pair, &end);
    let found = followed(&pair, mbit("10Mbit"));
    println!("10 Mbit/s: found after {found:?}");
    assert!(found.is_some(), "{:#}", pair.peer(0));
    for rate in ["1.5Mbit", "10Mbit"].map(mbit) {
        pair.hosts.link.set_rate(Some(rate)).unwrap();
        let followed = followed(&pair, rate);
        println!("{rate}: followed after {followed:?}");
        assert!(followed.is_some(), "{rate}: {:#}", pair.peer(0));
        let shown = pair.peer(0);
        assert_eq!(shown["link_rate_bits_per_second"], shown["path"]["estimated_rate_bits_per_second"]);
        eventually("it is the link that limits", || pair.peer(0)["path"]["limited_by"] == "link");
    }
    let path = &pair.peer(0)["path"];
    println!("{path:#}");
    let least = path["min_rtt_seconds"].as_f64().unwrap();
    assert!(least >= 0.048, "{path:#}");
    assert!(
        path["delivery_reports_received"].as_u64() > Some(10) && path["delivery_reports_rejected"] == 0,
        "{path:#}"
    );
    assert!(pair.peer(1)["path"]["delivery_reports_sent"].as_u64() > Some(10));
    end.store(true, Ordering::Relaxed);
    flood.join().unwrap();
}

#[test]
fn what_arrives_is_told_as_rfc_9347_has_it() {
    if !allowed() || !has_scapy() {
        return;
    }
    let (hosts, _relay) =
        Relay::between(LinkSpec::thin(mbit("4Mbit")), |_, _| FrameFate::Delay(DELAY)).unwrap();
    let pair = Pair::idle(hosts);
    let capture = Capture::start(&pair.hosts, &pair.dir.path().join("link.pcap"));
    let extra = Extra {
        node: "danger_export_keys = \"esp-keys\"",
        sections: "[link]\nup = \"4Mbit\"\ndown = \"auto\"\noverhead = 14\n",
        ..Extra::default()
    };
    let pair = pair.and_up(extra);
    // Data one way and acknowledgements the other, some two seconds long.
    pair.tcp(1, Family::V4, 1_000_000);
    let opened = open(&pair, &capture.stop());
    let told = |direction: &str| -> Vec<&Value> {
        let reports = opened.iter().filter(|one| one.kind == "report" && one.direction == direction);
        reports.map(|one| &one.line["report"]).collect()
    };
    let (there, back) = (told("out"), told("in"));
    // Data comes at 4 Mbit/s, of which a fiftieth pays for eighty a second; acknowledgements pay for a few in all.
    println!("{} reports there, {} back", there.len(), back.len());
    assert!(there.len() >= 2 && back.len() > 20, "{} {}", there.len(), back.len());
    assert!(there.len().max(back.len()) < 400, "{} {}", there.len(), back.len());
    let rides = |direction: &str| {
        let reports = opened.iter().filter(|one| one.kind == "report" && one.direction == direction);
        reports.filter(|one| !one.packets.is_empty()).count()
    };
    assert!(rides("in") > 5, "{} ride with acknowledgements", rides("in"));
    let number = |report: &Value, field: &str| report[field].as_u64().unwrap();
    for reports in [&there, &back] {
        for two in reports.windows(2) {
            for field in ["datagrams", "bytes", "highest", "received_at"] {
                assert!(number(two[0], field) <= number(two[1], field), "{two:?}");
            }
            assert!(number(two[1], "datagrams") <= number(two[1], "highest"), "{two:?}");
        }
        let last = reports.last().unwrap();
        // Both ends know the round trip by now, and echo each other's clocks.
        assert!((45_000..4_000_000).contains(&number(last, "rtt")), "{last:#}");
        assert!(number(last, "transmit_delay") > 1_000, "{last:#}");
    }
    let clocks: Vec<u64> = there.iter().map(|report| number(report, "tval")).collect();
    let echoed = back.iter().filter(|report| clocks.contains(&number(report, "techo"))).count();
    assert!(echoed * 2 > back.len(), "{echoed} of {}", back.len());
}
