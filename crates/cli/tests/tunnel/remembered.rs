//! What was found on a path is the first guess of the next start.

use std::fs;
use std::net::IpAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;
use strait_testbed::{Extra, FrameFate, LinkSpec, Networks, Relay, TwoHosts};

use crate::host::{ip, log};
use crate::link_rate_estimate::{flood, mbit};
use crate::pair::{Family, PATIENCE, Pair, allowed, eventually, fast};

const AUTO: Extra<'_> = Extra {
    node: "",
    peer: "",
    link: "",
    sections: "[link]\nup = \"auto\"\ndown = \"auto\"\noverhead = 14\n",
    networks: Networks::Hidden,
};
const DELAY: Duration = Duration::from_millis(25);

/// The file of a site.
fn file(pair: &Pair, which: usize) -> PathBuf {
    pair.daemon(which).log().with_file_name("state").join("strait0.paths")
}

/// Stops the first site's daemon, and starts it again when `meanwhile` is done.
fn restart(pair: &mut Pair, meanwhile: impl FnOnce(&Pair)) {
    assert!(pair.daemons[0].take().unwrap().stop().unwrap().success());
    meanwhile(pair);
    pair.start(0, AUTO);
    pair.wait_for_session();
}

/// Has so little sent that no limit can be met, until it is reported; what the first site then shows of the path.
fn little(pair: &Pair) -> Value {
    let (from, to) = (pair.socket(0, Family::V4), pair.socket(1, Family::V4));
    let target = to.local_addr().unwrap();
    let reports = |path: &Value| path["delivery_reports_received"].as_u64().unwrap_or(0);
    let before = reports(&pair.peer(0)["path"]);
    let begin = Instant::now();
    loop {
        // A report goes back for a hundred times its bytes, also where this loop has little of the processor.
        from.send_to(&[7; 400], target).unwrap();
        let peer = pair.peer(0);
        if reports(&peer["path"]) > before + 1 {
            return peer["path"].clone();
        }
        let evidence = || format!("{peer:#}\n{:#}\n{}\n{}", pair.peer(1), log(pair, 0), log(pair, 1));
        assert!(begin.elapsed() < PATIENCE, "it is never reported what arrived: {}", evidence());
        thread::sleep(Duration::from_millis(50));
    }
}

/// Sends more than the link takes until a limit was met, and for three seconds more.
fn much(pair: &Pair) {
    let end = Arc::new(AtomicBool::new(false));
    let flood = flood(pair, &end);
    eventually("a limit was met", || pair.peer(0)["path"]["estimated_rate_bits_per_second"].is_u64());
    thread::sleep(Duration::from_secs(3));
    end.store(true, Ordering::Relaxed);
    flood.join().unwrap();
}

/// The rate in the file.
fn kept(path: &Path) -> u64 {
    assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    let kept: Value = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
    kept["paths"][0]["rate_bits_per_second"].as_u64().unwrap_or_else(|| panic!("{kept:#}"))
}

#[test]
fn the_rate_of_a_path_outlives_the_daemon_and_counts_for_no_other_path() {
    if !allowed() {
        return;
    }
    let (hosts, _relay) =
        Relay::between(LinkSpec::thin(mbit("10Mbit")), |_, _| FrameFate::Delay(DELAY)).unwrap();
    let mut pair = Pair::up(hosts, AUTO);
    assert_eq!(little(&pair)["remembered"], Value::Null);
    much(&pair);

    let path = file(&pair, 0);
    let mut rate = 0;
    restart(&mut pair, |_| rate = kept(&path));
    // Where others use the processor, that is what limits it.
    assert!((10_000..100_000_000).contains(&rate), "{rate}");
    let shown = little(&pair);
    let remembered = &shown["remembered"];
    assert_eq!(remembered["rate_bits_per_second"], rate, "{shown:#}");
    assert!(remembered["min_rtt_seconds"].as_f64() > Some(0.045), "{shown:#}");
    assert!(remembered["age_seconds"].as_u64() < Some(600), "{shown:#}");
    // It is in force before a limit was met.
    assert_eq!(shown["estimated_rate_bits_per_second"], rate, "{shown:#}");
    assert!(shown["pacing_rate_bits_per_second"].as_f64() >= Some(rate as f64 * 0.8), "{shown:#}");
    assert!(log(&pair, 0).contains("the rate of this path is remembered"), "{}", log(&pair, 0));

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
    let shown = little(&pair);
    assert_eq!(
        (&shown["remembered"], &shown["estimated_rate_bits_per_second"]),
        (&Value::Null, &Value::Null)
    );
    restart(&mut pair, rename("other0", &card));
    assert_eq!(little(&pair)["remembered"]["rate_bits_per_second"], rate);

    // What cannot be read is said, and found again.
    restart(&mut pair, |_| fs::write(&path, "{\"version\": 1, \"paths\": 7}").unwrap());
    assert_eq!(little(&pair)["remembered"], Value::Null);
    assert!(log(&pair, 0).contains("is not used: it is not what Strait writes"), "{}", log(&pair, 0));
    much(&pair);
    restart(&mut pair, |_| assert!(kept(&path) > 0));
}

#[test]
fn a_peer_that_comes_back_to_a_network_is_sent_to_as_it_was_there() {
    if !allowed() {
        return;
    }
    let (hosts, _relay) =
        Relay::between(LinkSpec::thin(mbit("10Mbit")), |_, _| FrameFate::Delay(DELAY)).unwrap();
    let pair = Pair::up(hosts, AUTO);
    let link = &pair.hosts.link;
    let [near, far]: [IpAddr; 2] = ["198.19.7.1", "198.19.7.2"].map(|address| address.parse().unwrap());
    let home = pair.hosts.address_of_b().0;
    much(&pair);
    let rate = || pair.peer(0)["path"]["estimated_rate_bits_per_second"].as_u64();
    // What was found is noted every ten seconds.
    thread::sleep(Duration::from_secs(11));
    assert!(rate().is_some());
    let is_at = |address: IpAddr| {
        eventually("the peer is there", || {
            pair.socket(1, Family::V4).send_to(b"here", (pair.inside(0, Family::V4), 9)).unwrap();
            pair.peer(0)["endpoint"].as_str().is_some_and(|shown| shown.starts_with(&address.to_string()))
        });
    };
    link.a.add_address(near, 24).unwrap();
    link.b.add_address(far, 24).unwrap();
    link.b.remove_address(home, 24).unwrap();
    ip(&pair.hosts.b, &["route", "add", "198.18.0.0/24", "dev", &link.b.interface, "src", &far.to_string()]);
    is_at(far);
    assert_eq!(little(&pair)["remembered"], Value::Null);
    assert_eq!(rate(), None, "another network is another path");
    ip(&pair.hosts.b, &["route", "del", "198.18.0.0/24"]);
    link.b.add_address(home, 24).unwrap();
    // A node answers from where it was spoken to, as long as it can.
    link.b.remove_address(far, 24).unwrap();
    is_at(home);
    assert!(little(&pair)["remembered"]["rate_bits_per_second"].is_u64());
    assert!(rate().is_some());
}

#[test]
fn a_node_without_endpoints_finds_a_silent_peer_after_a_kill() {
    if !allowed() {
        return;
    }
    let mut pair = Pair::idle(TwoHosts::direct(fast()).unwrap());
    let [a, b] = pair.sites.clone();
    let text = b.configuration(&[&a], Extra::default());
    let config = b.folder().join("strait.toml");
    fs::write(&config, text.replace(&format!("endpoint = \"{}\"\n", a.outside), "")).unwrap();
    pair.daemons[1] = Some(b.start(&config, "run").unwrap());
    pair.start(0, Extra::default());
    pair.wait_for_session();
    assert_eq!(pair.peer(1)["association"]["role"], "responder");
    let (file, place) = (file(&pair, 1), a.outside.to_string());
    eventually("it is on disk where site-a is", || {
        let kept = fs::read(&file).ok().and_then(|bytes| serde_json::from_slice::<Value>(&bytes).ok());
        kept.is_some_and(|kept| kept["places"][0]["endpoint"] == place)
    });
    pair.kill(1);
    pair.daemons[1] = Some(b.start(&config, "run").unwrap());
    // Site-a does not know that it was forgotten, and has nothing to say.
    eventually("site-b has begun a session", || pair.peer(1)["association"]["role"] == "initiator");
    pair.tcp(0, Family::V4, 50_000);
    assert_eq!(pair.peer(1)["endpoint_age_seconds"], Value::Null);
    // What is only remembered is shown as that.
    pair.kill(0);
    pair.kill(1);
    pair.daemons[1] = Some(b.start(&config, "run").unwrap());
    let shown = pair.peer(1);
    assert_eq!(shown["endpoint"], place, "{shown:#}");
    assert!(shown["endpoint_age_seconds"].as_u64().is_some_and(|age| age < 600), "{shown:#}");
    pair.start(0, Extra::default());
    pair.wait_for_session();
    assert_eq!(pair.peer(1)["endpoint_age_seconds"], Value::Null);
}
