//! Who begins does not matter, nor that both do.

use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use strait_testbed::{Extra, TwoHosts};

use crate::pair::{Family, Pair, allowed, eventually, fast};

/// The SPIs that a site receives and sends with.
fn spis(pair: &Pair, which: usize) -> (String, String) {
    let association = pair.peer(which)["association"].clone();
    let spi = |key: &str| association[key].to_string();
    (spi("inbound_spi"), spi("outbound_spi"))
}

/// Whether what one sends with is what the other receives with, both ways.
fn agree(pair: &Pair) -> bool {
    let (a, b) = (spis(pair, 0), spis(pair, 1));
    a.0 != "null" && (a.0, a.1) == (b.1, b.0)
}

#[test]
fn both_begin_at_once_and_settle_on_one_pair_of_associations() {
    if !allowed() {
        return;
    }
    for _ in 0..3 {
        let mut pair = Pair::idle(TwoHosts::direct(fast()).unwrap());
        let (site, peer) = (pair.sites[1].clone(), pair.sites[0].clone());
        let (started, daemon) = mpsc::channel();
        let (hold, held) = mpsc::channel::<()>();
        let other = thread::spawn(move || {
            let config = site.configure("strait", &[&peer], Extra::default()).unwrap();
            started.send(site.start(&config, "run").unwrap()).unwrap();
            // A daemon ends with the thread that started it.
            let _ = held.recv();
        });
        pair.start(0, Extra::default());
        pair.daemons[1] = Some(daemon.recv().unwrap());
        pair.wait_for_session();
        settle(&pair);
        drop(pair);
        drop(hold);
        other.join().unwrap();
    }
}

/// Both come to use the same pair of associations, and stay with it.
fn settle(pair: &Pair) {
    eventually("both use the same pair", || agree(pair));
    let settled = spis(pair, 0);
    pair.tcp(1, Family::V4, 50_000);
    pair.tcp(0, Family::V4, 50_000);
    thread::sleep(Duration::from_secs(1));
    assert_eq!(spis(pair, 0), settled, "{}", pair.logs());
    assert!(agree(pair));
}

#[test]
fn only_one_knows_where_the_other_is() {
    if !allowed() {
        return;
    }
    let mut pair = Pair::idle(TwoHosts::direct(fast()).unwrap());
    let text = pair.sites[1].configuration(&[&pair.sites[0]], Extra::default());
    let text = text.replace(&format!("endpoint = \"{}\"\n", pair.sites[0].outside), "");
    let config = pair.sites[1].folder().join("strait.toml");
    std::fs::write(&config, text).unwrap();
    pair.daemons[1] = Some(pair.sites[1].start(&config, "run").unwrap());
    pair.start(0, Extra::default());
    pair.wait_for_session();
    pair.tcp(0, Family::V4, 50_000);
}
