//! What was found on a path is the first guess of the next start.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::Value;
use strait_testbed::{Extra, FrameFate, LinkSpec, Networks, Relay};

use crate::host::{ip, log};
use crate::link_rate_estimate::{flood, followed, mbit};
use crate::pair::{Family, Pair, allowed, eventually};

const AUTO: Extra<'_> = Extra {
    node: "",
    peer: "",
    link: "",
    sections: "[link]\nup = \"auto\"\ndown = \"auto\"\noverhead = 14\n",
    networks: Networks::Hidden,
};
const DELAY: Duration = Duration::from_millis(25);

/// The file of the first site.
fn file(pair: &Pair) -> PathBuf {
    pair.daemon(0).log().with_file_name("state").join("strait0.paths")
}

/// Stops the first site's daemon, and starts it again when `meanwhile` is done.
fn restart(pair: &mut Pair, meanwhile: impl FnOnce(&Pair)) {
    assert!(pair.daemons[0].take().unwrap().stop().unwrap().success());
    meanwhile(pair);
    pair.start(0, AUTO);
    pair.wait_for_session();
}

/// The first estimate that the first site shows while a flood begins.
fn first_estimate(pair: &Pair) -> f64 {
    let end = Arc::new(AtomicBool::new(false));
    let flood = flood(pair, &end);
    let mut found = None;
    eventually("there is an estimate", || {
        found = pair.peer(0)["path"]["estimated_rate_bits_per_second"].as_f64();
        found.is_some()
    });
    end.store(true, Ordering::Relaxed);
    flood.join().unwrap();
    found.unwrap()
}

#[test]
fn the_rate_of_a_path_outlives_the_daemon_and_counts_for_no_other_path() {
    if !allowed() {
        return;
    }
    let (hosts, _relay) =
        Relay::between(LinkSpec::thin(mbit("10Mbit")), |_, _| FrameFate::Delay(DELAY)).unwrap();
    let mut pair = Pair::up(hosts, AUTO);
    let remembered = |pair: &Pair| pair.peer(0)["path"]["remembered"].clone();
    assert_eq!(remembered(&pair), Value::Null);
    let end = Arc::new(AtomicBool::new(false));
    let flooding = flood(&pair, &end);
    assert!(followed(&pair, mbit("10Mbit")).is_some(), "{:#}", pair.peer(0));
    end.store(true, Ordering::Relaxed);
    flooding.join().unwrap();

    let path = file(&pair);
    restart(&mut pair, |_| {
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        let kept: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
        let rate = kept["paths"][0]["rate_bits_per_second"].as_f64().unwrap();
        assert!((8e6..12e6).contains(&rate), "{kept:#}");
    });
    let shown = remembered(&pair);
    assert!((8e6..12e6).contains(&shown["rate_bits_per_second"].as_f64().unwrap()), "{shown:#}");
    assert!(
        shown["min_rtt_seconds"].as_f64().unwrap() > 0.045 && shown["age_seconds"].as_u64() < Some(600),
        "{shown:#}"
    );
    assert!(log(&pair, 0).contains("the rate of this path is remembered"), "{}", log(&pair, 0));
    let first = first_estimate(&pair);
    assert!((5e6..15e6).contains(&first), "{first} {:#}", pair.peer(0));

    // By another interface there is another path.
    let card = pair.hosts.link.a.interface.clone();
    let rename = |from: &str, to: &str| {
        let (from, to) = (from.to_owned(), to.to_owned());
        move |pair: &Pair| {
            ip(&pair.hosts.a, &["link", "set", &from, "down"]);
            ip(&pair.hosts.a, &["link", "set", &from, "name", &to]);
            ip(&pair.hosts.a, &["link", "set", &to, "up"]);
        }
    };
    restart(&mut pair, rename(&card, "other0"));
    pair.tcp(1, Family::V4, 50_000);
    assert_eq!(remembered(&pair), Value::Null);
    restart(&mut pair, rename("other0", &card));
    pair.tcp(1, Family::V4, 50_000);
    assert!(
        remembered(&pair)["rate_bits_per_second"].as_f64().is_some_and(|rate| (8e6..12e6).contains(&rate))
    );

    // What cannot be read is said, and found again.
    restart(&mut pair, |_| fs::write(&path, "{\"version\": 1, \"paths\": 7}").unwrap());
    pair.tcp(1, Family::V4, 500_000);
    assert_eq!(remembered(&pair), Value::Null);
    assert!(log(&pair, 0).contains("is not used: it is not what Strait writes"), "{}", log(&pair, 0));
    restart(&mut pair, |_| {
        let kept: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
        assert_eq!(kept["paths"].as_array().unwrap().len(), 1, "{kept:#}");
    });
}
