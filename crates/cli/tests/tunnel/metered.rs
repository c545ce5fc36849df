//! A cap on bytes: what crosses is what the interfaces count, steps are taken and told, and a restart forgets nothing.

use std::net::UdpSocket;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use rustix::net::sockopt::set_ip_tos;
use serde_json::Value;
use strait_testbed::{Extra, LinkSpec, TwoHosts};

use crate::pair::{Family, PATIENCE, Pair, allowed, eventually, fast};
use crate::saved::interface_bytes;

/// CS1 and EF in the place of the former type of service.
const BULK: u8 = 8 << 2;
const INTERACTIVE: u8 = 46 << 2;
/// The cap, in bytes, and bytes of a packet's payload.
const CAP: u64 = 3_000_000;
const PAYLOAD: usize = 1_000;

/// A socket whose packets are of this class.
fn socket(pair: &Pair, tos: u8) -> UdpSocket {
    let socket = pair.socket(0, Family::V4);
    set_ip_tos(&socket, tos).unwrap();
    socket
}

/// Sends packets that do not shrink.
fn send(from: &UdpSocket, to: &UdpSocket, packets: u64) {
    let target = to.local_addr().unwrap();
    let mut state = 0x9E37_79B9_7F4A_7C15_u64;
    for _ in 0..packets {
        let mut payload = [0; PAYLOAD];
        for part in payload.chunks_mut(8) {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            part.copy_from_slice(&state.to_ne_bytes()[..part.len()]);
        }
        from.send_to(&payload, target).unwrap();
        thread::sleep(Duration::from_micros(300));
    }
}

fn metered(pair: &Pair) -> Value {
    pair.daemon(0).show().unwrap()["metered"][0].clone()
}

/// Whether packets of a class arrive.
fn arrives(pair: &Pair, tos: u8) -> bool {
    let (from, to) = (socket(pair, tos), pair.socket(1, Family::V4));
    to.set_read_timeout(Some(Duration::from_secs(1))).unwrap();
    send(&from, &to, 3);
    to.recv(&mut [0; 2_000]).is_ok()
}

/// A command that appends what it is told to a file: both.
fn teller(pair: &Pair) -> [PathBuf; 2] {
    let [script, told] = ["told.sh", "told"].map(|name| pair.dir.path().join(name));
    let said = "$1 $STRAIT_CAP_STEP $STRAIT_CAP_BYTES ${STRAIT_CAP_PEER:-link} $STRAIT_CAP_USED_BYTES";
    std::fs::write(&script, format!("#!/bin/sh\necho \"{said}\" >> {}\n", told.display())).unwrap();
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).unwrap();
    [script, told]
}

/// Sends until a step is reached, no more a second than a hundredth of the cap.
fn reach(pair: &Pair, step: &str) {
    let (from, to) = (socket(pair, 0), pair.socket(1, Family::V4));
    eventually(step, || {
        if metered(pair)["step"] == step {
            return true;
        }
        send(&from, &to, 100);
        thread::sleep(Duration::from_millis(1_200));
        false
    });
}

/// Goes through all steps.
fn use_up(pair: &Pair) {
    reach(pair, "warn");
    assert_eq!(metered(pair)["admission"], "all");
    reach(pair, "stop-bulk");
    assert_eq!(metered(pair)["admission"], "without-bulk");
    assert!(!arrives(pair, BULK) && arrives(pair, 0));
    let before = pair.drops(0, "metered");
    assert!(before >= 3, "{before}");
    reach(pair, "interactive-only");
    assert!(!arrives(pair, 0) && arrives(pair, INTERACTIVE));
}

#[test]
fn a_cap_stops_class_by_class_tells_a_command_and_outlasts_a_restart() {
    if !allowed() {
        return;
    }
    let mut pair = Pair::idle(TwoHosts::direct(LinkSpec { rate: None, ..fast() }).unwrap());
    let [script, told] = teller(&pair);
    let link = |cap: &str| {
        let steps = "cap_warn = \"30%\"\ncap_stop_bulk = \"60%\"\ncap_interactive_only = \"90%\"\n";
        format!("[link]\ncap = \"{cap}/month\"\n{steps}on_cap = [\"{}\", \"says\"]\n", script.display())
    };
    let sections = link("3MB");
    let extra = Extra { sections: &sections, ..Extra::default() };
    pair.start(0, extra);
    pair.start(1, Extra::default());
    pair.wait_for_session();
    use_up(&pair);
    let used = |pair: &Pair| metered(pair)["used_bytes"].as_u64().unwrap();
    let (before, counted) = (used(&pair), interface_bytes(&pair));
    assert!(before.abs_diff(counted) * 200 <= counted, "{before} used, {counted} by the interface");
    assert!((CAP * 9 / 10..CAP).contains(&before), "{before}");
    let lines = || std::fs::read_to_string(&told).unwrap_or_default();
    eventually("three steps are told", || lines().lines().count() == 3);
    for (line, step) in lines().lines().zip(["warn", "stop-bulk", "interactive-only"]) {
        assert!(line.starts_with(&format!("says {step} {CAP} link ")), "{line}");
    }
    pair.stop(0);
    pair.start(0, extra);
    pair.daemon(0).wait_for_session("site-b", PATIENCE).unwrap();
    eventually("the step is known after a restart", || metered(&pair)["step"] == "interactive-only");
    assert!(used(&pair) >= before * 99 / 100 && !arrives(&pair, 0));
    assert_eq!(lines().lines().count(), 3, "a step is told once");
    let reload = |sections: &str| {
        pair.sites[0].configure("strait", &[&pair.sites[1]], Extra { sections, ..extra }).unwrap();
        assert!(pair.daemon(0).reload().unwrap().contains("link changed"));
    };
    // More was bought.
    reload(&link("30MB"));
    eventually("everything leaves again", || metered(&pair)["admission"] == "all");
    assert!(arrives(&pair, 0) && arrives(&pair, BULK));
    // The cap is taken back.
    reload("");
    assert_eq!(pair.daemon(0).show().unwrap()["metered"], Value::Array(Vec::new()));
}
