//! A configuration that is read again: peers come and go without effect on the others.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use strait_testbed::{Extra, TwoHosts};

use crate::pair::{Family, Pair, allowed, eventually, fast};

/// Another peer, who never speaks.
const SECOND: &str = "[[peer]]\nname = \"site-c\"\npublic_key = \"11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=\"\n\
    allowed_ips = [\"10.78.0.0/24\"]\n";

#[test]
fn peers_come_and_go_without_a_lost_packet() {
    if !allowed() {
        return;
    }
    let pair = Pair::up(TwoHosts::direct(fast()).unwrap(), Extra::default());
    let (sender, receiver) = (pair.socket(0, Family::V4), pair.socket(1, Family::V4));
    let target = receiver.local_addr().unwrap();
    let done = AtomicBool::new(false);
    let (sent, received) = std::thread::scope(|scope| {
        let sending = scope.spawn(|| {
            let mut sent = 0_u32;
            while !done.load(Ordering::Relaxed) {
                sender.send_to(&sent.to_be_bytes(), target).unwrap();
                sent += 1;
                std::thread::sleep(Duration::from_millis(2));
            }
            sent
        });
        let receiving = scope.spawn(|| {
            receiver.set_read_timeout(Some(Duration::from_millis(500))).unwrap();
            let mut received = 0_u32;
            while receiver.recv(&mut [0; 10]).is_ok() || !done.load(Ordering::Relaxed) {
                received += 1;
            }
            received
        });
        for sections in [SECOND, "", SECOND, ""] {
            for (site, peer) in [(0, 1), (1, 0)] {
                let (site, peer, daemon) = (&pair.sites[site], &pair.sites[peer], pair.daemon(site));
                site.configure("strait", &[peer], Extra { sections, ..Extra::default() }).unwrap();
                daemon.reload().unwrap();
                let expected = if sections.is_empty() { 1 } else { 2 };
                eventually("the peers are those of the file", || {
                    daemon.show().unwrap()["peers"].as_array().unwrap().len() == expected
                });
            }
        }
        done.store(true, Ordering::Relaxed);
        (sending.join().unwrap(), receiving.join().unwrap())
    });
    assert_eq!(sent, received, "{}", pair.logs());
}

#[test]
fn a_wrong_file_changes_nothing_and_says_why() {
    if !allowed() {
        return;
    }
    let pair = Pair::up(TwoHosts::direct(fast()).unwrap(), Extra::default());
    let extra = Extra { node: "mtuu = 1400", ..Extra::default() };
    pair.sites[0].configure("strait", &[&pair.sites[1]], extra).unwrap();
    let error = pair.daemon(0).reload().unwrap_err().to_string();
    assert!(error.contains("mtuu") && error.contains("`mtu`"), "{error}");
    pair.tcp(1, Family::V4, 50_000);
}

#[test]
fn a_reload_says_what_changed_there_and_in_the_log() {
    const RULE: &str = "[[compress]]\nfrom = \"10.77.0.0/24\"\nto = \"10.77.0.0/24\"\ndomain = \"logs\"\n";
    if !allowed() {
        return;
    }
    let pair = Pair::up(TwoHosts::direct(fast()).unwrap(), Extra::default());
    let (site, daemon) = (&pair.sites[0], pair.daemon(0));
    let policy = format!("{RULE}padding = \"buckets\"\nmix = \"flow\"\n");
    let link = format!("{RULE}[link]\nup = \"90Mbit\"\n");
    let all = format!("{link}{SECOND}");
    for (node, sections, said) in [
        ("", "", "no changes"),
        ("", RULE, "compression rules changed"),
        ("", &policy, "compression rules changed"),
        ("", RULE, "compression rules changed"),
        ("", &link, "link changed"),
        ("", &all, "added site-c"),
        ("", "", "removed site-c; compression rules changed; link changed"),
        ("block = 4096", "", "restart needed for block"),
    ] {
        site.configure("strait", &[&pair.sites[1]], Extra { node, sections, ..Extra::default() }).unwrap();
        let printed = daemon.reload().unwrap();
        assert!(printed.contains(&format!(": {said}\n")), "{said}: {printed}");
        let logged = format!("configuration reloaded: {said}");
        eventually("the log says the same", || daemon.last_words().contains(&logged));
    }
}

#[test]
fn another_link_is_used_and_the_peer_is_told() {
    if !allowed() {
        return;
    }
    let rate = |pair: &Pair| pair.peer(0)["link_rate_bits_per_second"].as_u64();
    let pair = Pair::up(TwoHosts::direct(fast()).unwrap(), Extra::default());
    assert_eq!(rate(&pair), None);
    for (down, expected) in
        [("down = \"3Mbit\"", Some(3_000_000)), ("down = \"7Mbit\"", Some(7_000_000)), ("", None)]
    {
        let sections = format!("[link]\n{down}\n");
        let extra = Extra { sections: &sections, ..Extra::default() };
        pair.sites[1].configure("strait", &[&pair.sites[0]], extra).unwrap();
        pair.daemon(1).reload().unwrap();
        eventually("the first site is paced by what the second takes", || rate(&pair) == expected);
        pair.tcp(1, Family::V4, 50_000);
    }
}
