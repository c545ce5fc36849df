//! A configuration that is read again.

use std::fs;

use strait_testbed::TwoHosts;

use super::case::{CBC, Case, PLAIN};
use crate::pair::{Family, Pair, allowed, fast, has, settled};

fn rewrite(pair: &Pair, case: &Case, which: usize, change: impl Fn(String) -> String) {
    let path = case.write(pair, which);
    fs::write(&path, change(case.configuration(pair, which))).unwrap();
}

#[test]
fn peers_with_manual_keys_come_change_and_go() {
    if !allowed() || !has("ping") {
        return;
    }
    let case = Case { bare: true, ..PLAIN };
    let pair = case.up(TwoHosts::direct(fast()).unwrap());
    case.exchange(&pair, 20_000);
    let number = || pair.peer(0)["manual"]["last_sequence_number"].as_u64().unwrap();
    let before = settled("nothing is sent any more", number);
    // Nothing that concerns the associations: they go on.
    rewrite(&pair, &case, 0, |text| text.replace("/128\"]", "/128\", \"10.99.0.0/16\"]"));
    pair.daemon(0).reload().unwrap();
    assert_eq!(number(), before);
    case.exchange(&pair, 20_000);
    // Made anew with the same keys: numbers go on behind all that were reserved.
    let before = number();
    rewrite(&pair, &case, 0, |text| text.replace("[peer.manual]", "mtu = 1400\n[peer.manual]"));
    pair.daemon(0).reload().unwrap();
    assert!(number() > before + 1_000_000, "{}", number());
    case.exchange(&pair, 20_000);
    // Other keys at both ends.
    let other = Case { esp: Some(CBC), ..case };
    for which in [0, 1] {
        let text =
            |text: String| text.replace("manual.counter", "other.counter").replace("0x040010", "0x040030");
        rewrite(&pair, &other, which, text);
        pair.daemon(which).reload().unwrap();
    }
    other.exchange(&pair, 20_000);
    assert_eq!(pair.peer(0)["manual"]["protocols"][0]["algorithms"][0], "aes-128-cbc");
    // No peer is left.
    rewrite(&pair, &case, 0, |text| {
        let key = "private_key_file = \"site-a.key\"\n[[peer]]";
        text.split("[[peer]]").next().unwrap().to_owned() + key.strip_suffix("[[peer]]").unwrap()
    });
    pair.daemon(0).reload().unwrap();
    assert_eq!(pair.daemon(0).show().unwrap()["peers"].as_array().unwrap().len(), 0);
}

#[test]
fn a_session_and_manual_keys_side_by_side() {
    if !allowed() || !has("ping") {
        return;
    }
    // The same two hosts: by session between the usual addresses, with manual keys between two more.
    let case = Case { bare: true, ..PLAIN };
    let mut pair = Pair::idle(TwoHosts::direct(fast()).unwrap());
    for which in [0, 1] {
        let (site, peer) = (&pair.sites[which], &pair.sites[1 - which]);
        let text = site.configuration(&[peer], strait_testbed::Extra::default());
        let text = text.replace("/64\"]", &format!("/64\", \"10.88.0.{}/24\"]", which + 1));
        let manual = case.configuration(&pair, which);
        let manual = &manual[manual.find("[[peer]]").unwrap()..];
        let allowed = format!("allowed_ips = [\"10.88.0.{}/32\"]", 2 - which);
        let lines = manual.lines().map(|line| if line.starts_with("allowed_ips") { &allowed } else { line });
        let manual = lines.collect::<Vec<_>>().join("\n").replace("name = \"site-", "name = \"manual-");
        let path = site.folder().join("both.toml");
        fs::write(&path, format!("{text}{manual}\n")).unwrap();
        fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
        let daemon = site.start(&path, "run").unwrap();
        pair.daemons[which] = Some(daemon);
    }
    pair.wait_for_session();
    pair.tcp(1, Family::V4, 50_000);
    for to in [0, 1] {
        case.tcp(&pair, to, format!("10.88.0.{}", to + 1).parse().unwrap(), 50_000);
    }
    let peers = pair.daemon(0).show().unwrap()["peers"].clone();
    assert_eq!((&peers[0]["keys"], &peers[1]["keys"]), (&"session".into(), &"manual".into()));
    assert!(peers[1]["manual"]["inbound_packets"].as_u64().unwrap() > 10, "{peers:#}");
}

#[test]
fn what_only_a_start_can_open_is_refused() {
    if !allowed() {
        return;
    }
    let pair = PLAIN.up(TwoHosts::direct(fast()).unwrap());
    let bare = Case { bare: true, ..PLAIN };
    bare.write(&pair, 0);
    let said = pair.daemon(0).reload().unwrap_err().to_string();
    assert!(said.contains("nothing was changed") && said.contains("`strait up`"), "{said}");
    PLAIN.exchange(&pair, 20_000);
}
