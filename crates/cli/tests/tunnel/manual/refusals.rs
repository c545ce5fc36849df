//! What is refused before anything is made.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use strait_testbed::TwoHosts;

use super::case::{Case, PLAIN};
use crate::pair::{Pair, allowed, fast, program};

/// Runs `strait up FILE --foreground` at the first site by way of other programs, which may be none.
fn up(pair: &Pair, by: &[&str], file: &Path) -> (Option<i32>, String) {
    let own = [program(), Path::new("up"), file, Path::new("--foreground")];
    let words: Vec<&str> = by.iter().copied().chain(own.map(|word| word.to_str().unwrap())).collect();
    let mut command = pair.hosts.a.command(words[0]);
    command.args(&words[1..]).env("STRAIT_RUNTIME_DIR", file.parent().unwrap().join("other"));
    let output = command.output().unwrap();
    (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
}

#[test]
fn mistakes_in_manual_keys() {
    if !allowed() {
        return;
    }
    let pair = Pair::idle(TwoHosts::direct(fast()).unwrap());
    let path = PLAIN.write(&pair, 0);
    let text = fs::read_to_string(&path).unwrap();
    for (from, to, words) in [
        ("key_in = \"0x11", "key_in = \"0x", &["`key_in`", "19 bytes", "40 hex digits"][..]),
        ("aes-128-gcm", "aes-128-ccm", &["aes-128-ccm", "chacha20-poly1305"]),
        ("0x04001000", "0x00001000", &["0x04000000", "0x0fffffff"]),
        ("counter_file = \"manual.counter\"\n", "", &["counter_file = "]),
        ("spi_in", "spi", &["unknown key `spi`", "`spi_in`"]),
        ("listen = 4500\n", "", &["`listen`"]),
    ] {
        let changed = text.replace(from, to);
        assert_ne!(changed, text);
        fs::write(&path, changed).unwrap();
        let (code, said) = up(&pair, &[], &path);
        assert_eq!(code, Some(1), "{said}");
        for word in words {
            assert!(said.contains(word), "{word} is not in:\n{said}");
        }
        assert!(!said.contains("13121514"), "a key in a message: {said}");
    }
    fs::write(&path, &text).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
    let (code, said) = up(&pair, &[], &path);
    assert!(code == Some(1) && said.contains("chmod 600"), "{said}");
    assert_eq!(pair.hosts.a.interfaces().unwrap().len(), 2, "more than the loopback and the link");
    assert!(!pair.sites[0].folder().join("manual.counter").exists(), "nothing was begun");
}

#[test]
fn packets_directly_behind_ip_take_a_capability() {
    if !allowed() {
        return;
    }
    let pair = Pair::idle(TwoHosts::direct(fast()).unwrap());
    let path = Case { bare: true, ..PLAIN }.write(&pair, 0);
    let (code, said) = up(&pair, &["setpriv", "--bounding-set=-net_raw", "--inh-caps=-net_raw"], &path);
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("CAP_NET_RAW") && said.contains("run as root"), "{said}");
    assert_eq!(pair.hosts.a.interfaces().unwrap().len(), 2);
}

#[test]
fn a_running_node_keeps_no_more_than_it_needs() {
    if !allowed() {
        return;
    }
    let case = Case { bare: true, ..PLAIN };
    let pair = case.up(TwoHosts::direct(fast()).unwrap());
    let status = fs::read_to_string(format!("/proc/{}/status", pair.daemon(0).pid())).unwrap();
    assert!(status.contains("CapEff:\t0000000000000000"), "{status}");
    case.exchange(&pair, 20_000);
}
