//! Sequence numbers across starts and crashes.

use std::fs;
use std::thread;
use std::time::Duration;

use strait_testbed::TwoHosts;

use super::case::{Case, PLAIN};
use crate::pair::{Pair, allowed, fast, has};

fn last_number(pair: &Pair, which: usize) -> u64 {
    pair.peer(which)["manual"]["last_sequence_number"].as_u64().unwrap()
}

/// The last number once nothing is sent any more: the host has packets of its own, such as late acknowledgements.
fn settled_number(pair: &Pair, which: usize) -> u64 {
    let mut last = last_number(pair, which);
    crate::pair::eventually("nothing is sent any more", || {
        thread::sleep(Duration::from_millis(300));
        let now = last_number(pair, which);
        std::mem::replace(&mut last, now) == now
    });
    last
}

fn stop(pair: &mut Pair, which: usize) {
    assert!(pair.daemons[which].take().unwrap().stop().unwrap().success());
}

#[test]
fn the_peer_takes_packets_after_an_orderly_start_and_after_a_crash() {
    if !allowed() || !has("ping") {
        return;
    }
    for case in [PLAIN, Case { bare: true, manual: "esn = true\n", ..PLAIN }] {
        let mut pair = case.up(TwoHosts::direct(fast()).unwrap());
        case.exchange(&pair, 50_000);
        let before = settled_number(&pair, 0);
        assert!(before > 30, "{}", case.evidence(&pair));
        stop(&mut pair, 0);
        case.start(&mut pair, 0);
        assert_eq!(last_number(&pair, 0), before, "an orderly end costs no number");
        case.exchange(&pair, 50_000);
        let before = last_number(&pair, 0);
        pair.kill(0);
        case.start(&mut pair, 0);
        let after = last_number(&pair, 0);
        assert!(after >= before + 1_000_000, "{before}, {after}: all that was reserved counts as used");
        case.exchange(&pair, 50_000);
        assert_eq!(pair.drops(1, "replayed") + pair.drops(1, "too-old"), 0, "{}", case.evidence(&pair));
    }
}

#[test]
fn a_counter_has_one_user_and_its_own_keys() {
    if !allowed() {
        return;
    }
    let pair = PLAIN.up(TwoHosts::direct(fast()).unwrap());
    let site = &pair.sites[0];
    let second = PLAIN.configuration(&pair, 0).replace("[node]", "[node]\ninterface = \"st-other\"");
    let second = second.replace("listen = 4500", "listen = 4501").replace("10.77.0.1/24", "10.79.0.1/24");
    let refused = |text: &str| {
        let path = site.folder().join("second.toml");
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
        let mut command = pair.hosts.a.command(crate::pair::program());
        command
            .arg("up")
            .arg(&path)
            .arg("--foreground")
            .env("STRAIT_RUNTIME_DIR", site.folder().join("other"));
        let output = command.output().unwrap();
        assert_eq!(output.status.code(), Some(1));
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let said = refused(&second);
    assert!(said.contains("is in use by another daemon"), "{said}");
    drop(pair.daemons);
    let pair_free = refused(&second.replace("key_out = \"0x22", "key_out = \"0x99"));
    assert!(pair_free.contains("it belongs to other keys") && pair_free.contains("new keys"), "{pair_free}");
    let counter = site.folder().join("manual.counter");
    let mut bytes = fs::read(&counter).unwrap();
    bytes[33] ^= 1;
    bytes[4096 + 33] ^= 1;
    fs::write(&counter, bytes).unwrap();
    let said = refused(&second);
    assert!(said.contains("it is damaged") && said.contains("make new keys for both ends"), "{said}");
}

#[test]
fn without_a_file_the_peer_sees_old_numbers_again() {
    if !allowed() || !has("ping") {
        return;
    }
    // Only where nothing but replay protection hangs on them; this is what the file is for.
    let case = Case { esp: Some(super::case::CBC), ..PLAIN };
    let mut pair = Pair::idle(TwoHosts::direct(fast()).unwrap());
    let forgetful = |pair: &mut Pair, which: usize| {
        let path = case.write(pair, which);
        let text = fs::read_to_string(&path).unwrap().replace("counter_file = \"manual.counter\"\n", "");
        fs::write(&path, text).unwrap();
        pair.daemons[which] = Some(pair.sites[which].start(&path, "run").unwrap());
    };
    forgetful(&mut pair, 0);
    forgetful(&mut pair, 1);
    case.exchange(&pair, 50_000);
    let before = settled_number(&pair, 0);
    assert!(before > 30, "{}", case.evidence(&pair));
    stop(&mut pair, 0);
    forgetful(&mut pair, 0);
    let (from, to) = (pair.socket(0, crate::pair::Family::V4), pair.socket(1, crate::pair::Family::V4));
    from.send_to(b"again", to.local_addr().unwrap()).unwrap();
    crate::pair::eventually("the packet is refused", || pair.drops(1, "replayed") > 0);
    // The host may have sent a late packet of its own beside this one.
    let again = last_number(&pair, 0);
    assert!((1..before / 2).contains(&again), "{again} after {before}: the numbers begin at 1 again");
}
