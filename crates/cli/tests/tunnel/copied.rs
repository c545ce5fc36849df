//! A machine that was restored from a snapshot, or cloned, as the kernel tells it: nothing more leaves under the keys of before.

use std::collections::BTreeSet;
use std::fs;
use std::time::Duration;

use strait_scheduler::Rate;
use strait_testbed::{Extra, FrameDirection, LinkSpec, TwoHosts, tell_copied};

use crate::files::noise;
use crate::frame::{HEADERS, is_esp};
use crate::manual::case::{CBC, Case, PLAIN};
use crate::pair::{Family, Pair, allowed, eventually, fast, has};
use crate::sessionless::{Captured, KEYING, ping, sessionless, tapped};

/// SIGCONT and SIGSTOP.
const CONTINUE: i32 = 18;
const STOP: i32 = 19;

/// The SPIs of ESP that the first site sent, from a number of frames on.
fn spis(captured: &Captured, from: usize) -> BTreeSet<Vec<u8>> {
    let captured = captured.lock().unwrap();
    let there = captured.iter().skip(from).filter(|(direction, _)| *direction == FrameDirection::There);
    there.filter(|(_, frame)| is_esp(frame)).map(|(_, frame)| frame[HEADERS..HEADERS + 4].to_vec()).collect()
}

fn copies(pair: &Pair) -> u64 {
    pair.daemon(0).show().unwrap()["control"]["machine_copies"].as_u64().unwrap()
}

#[test]
fn what_waits_when_the_machine_wakes_as_a_copy_leaves_under_new_keys_only() {
    if !allowed() {
        return;
    }
    let (pair, _relay, captured) = tapped(|_, _| true);
    let pair = pair.and_up(Extra::default());
    for _ in 0..3 {
        pair.tcp(1, Family::V4, 50_000);
        let (sender, receiver) = (pair.socket(0, Family::V4), pair.socket(1, Family::V4));
        let before = copies(&pair);
        // As a machine that is not running: the event and packets are there when it goes on.
        pair.daemon(0).signal(STOP).unwrap();
        // Until what had left by then is captured.
        std::thread::sleep(Duration::from_millis(200));
        let (old, told) = (spis(&captured, 0), captured.lock().unwrap().len());
        assert!(!old.is_empty());
        tell_copied(&pair.hosts.a).unwrap();
        for number in 0..20_u8 {
            sender.send_to(&[number], receiver.local_addr().unwrap()).unwrap();
        }
        pair.daemon(0).signal(CONTINUE).unwrap();
        let mut heard = [0; 10];
        assert_eq!(receiver.recv(&mut heard).unwrap(), 1, "{}", pair.logs());
        assert_eq!(copies(&pair), before + 1, "{}", pair.logs());
        let new = spis(&captured, told);
        assert!(!new.is_empty() && new.is_disjoint(&old), "{new:?} and before {old:?}\n{}", pair.logs());
    }
    pair.tcp(0, Family::V6, 50_000);
    assert!(fs::read_to_string(pair.daemon(0).log()).unwrap().contains("restored from a snapshot"));
}

#[test]
fn without_sessions_a_copy_has_another_packet_key() {
    if !allowed() {
        return;
    }
    let (mut pair, _relay, captured) = tapped(|_, _| true);
    pair.start(0, KEYING);
    pair.start(1, KEYING);
    pair.tcp(1, Family::V4, 50_000);
    assert_eq!(ping(&pair, 2), 2, "{}", pair.logs());
    let key = sessionless(&pair, 0)["outbound_spi"].clone();
    let old = spis(&captured, 0);
    tell_copied(&pair.hosts.a).unwrap();
    eventually("another key is in use", || {
        assert_eq!(ping(&pair, 1), 1, "{}", pair.logs());
        sessionless(&pair, 0)["outbound_spi"] != key && copies(&pair) == 1
    });
    let told = captured.lock().unwrap().len();
    pair.tcp(1, Family::V4, 50_000);
    let new = spis(&captured, told);
    assert!(!new.is_empty() && new.is_disjoint(&old), "{new:?} and before {old:?}\n{}", pair.logs());
}

#[test]
fn with_manual_keys_nothing_is_sent_until_there_are_others() {
    if !allowed() || !has("ping") {
        return;
    }
    let case = PLAIN;
    let pair = case.up(TwoHosts::direct(fast()).unwrap());
    case.exchange(&pair, 20_000);
    tell_copied(&pair.hosts.a).unwrap();
    eventually("it says that it stopped", || pair.peer(0)["state"] == "stopped");
    let [sent, received] =
        [0, 1].map(|which| pair.peer(which)["manual"]["outbound_packets"].as_u64().unwrap());
    let (here, there) = (pair.socket(0, Family::V4), pair.socket(1, Family::V4));
    here.send_to(b"from here", there.local_addr().unwrap()).unwrap();
    there.send_to(b"from there", here.local_addr().unwrap()).unwrap();
    assert_eq!(here.recv(&mut [0; 20]).unwrap(), 10, "it still receives");
    pair.daemon(0).reload().unwrap();
    assert_eq!(pair.peer(0)["state"], "stopped", "the same keys are no better");
    assert_eq!(pair.peer(0)["manual"]["outbound_packets"], sent);
    assert!(pair.peer(1)["manual"]["outbound_packets"].as_u64().unwrap() > received);
    let shown = String::from_utf8(pair.daemon(0).command(&["show"]).output().unwrap().stdout).unwrap();
    assert!(shown.contains("make new keys for both ends"), "{shown}");
    // Other keys at both ends.
    let other = Case { esp: Some(CBC), ..case };
    for which in [0, 1] {
        let text = other.configuration(&pair, which);
        let text = text.replace("manual.counter", "other.counter").replace("0x040010", "0x040030");
        fs::write(other.write(&pair, which), text).unwrap();
        pair.daemon(which).reload().unwrap();
    }
    other.exchange(&pair, 20_000);
    assert_eq!(pair.peer(0)["state"], "up");
}

#[test]
fn streams_are_cut_and_what_is_asked_again_arrives() {
    if !allowed() {
        return;
    }
    // 3 MB take 4 s.
    let link = LinkSpec::thin(Rate::from_bits(6_000_000).unwrap());
    let mut pair = Pair::idle(TwoHosts::direct(link).unwrap());
    let [here, inbox] = ["here", "inbox"].map(|name| pair.dir.path().join(name));
    for folder in [&here, &inbox] {
        fs::create_dir(folder).unwrap();
    }
    let content = noise(3_000_000, 16);
    fs::write(here.join("it"), &content).unwrap();
    let folder = format!(
        "[[folder]]\nname = \"inbox\"\npath = \"{}\"\nwrite = [\"site-a\"]\nowner = \"root\"\n",
        inbox.display()
    );
    pair.start(0, Extra::default());
    pair.start(1, Extra { sections: &folder, ..Extra::default() });
    pair.wait_for_session();
    let send = || {
        let mut command = pair.daemon(0).command(&["send", "it", "site-b"]);
        command.current_dir(&here).stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null());
        command.spawn().unwrap()
    };
    let crossed = || pair.hosts.link.traffic().unwrap().there.bytes;
    let before = crossed();
    let mut cut = send();
    eventually("the file moves", || crossed() > before + 500_000);
    tell_copied(&pair.hosts.a).unwrap();
    let mut status = None;
    eventually("the command ends", || {
        status = cut.try_wait().unwrap();
        status.is_some()
    });
    assert_eq!(status.unwrap().code(), Some(4), "{}", pair.logs());
    assert_eq!(send().wait().unwrap().code(), Some(0), "{}", pair.logs());
    assert!(fs::read(inbox.join("it")).unwrap() == content);
}
