//! What is generated, against what ip-xfrm(8) is meant to be told.

use super::*;
use crate::agreement::Addresses;
use crate::case::{Case, Version};

fn agreement(case: Case) -> Agreement {
    let outside: [Addresses; 2] = [
        ("198.18.0.1".parse().unwrap(), "fd00:18::1".parse().unwrap()),
        ("198.18.0.2".parse().unwrap(), "fd00:18::2".parse().unwrap()),
    ];
    Agreement { case, number: 3, outside }
}

/// The lines of a configuration about what comes in, with `KEY` in place of every key.
fn inward(case: Case) -> Vec<String> {
    let is_inward = |line: &&str| line.contains(" spi 0x4000030 ") || line.contains(" dir in ");
    let without_key =
        |word: &str| if word.len() > 20 && word.starts_with("0x") { "KEY" } else { word }.to_owned();
    let line = |line: &str| line.split(' ').map(without_key).collect::<Vec<_>>().join(" ");
    configuration(&agreement(case)).lines().filter(is_inward).map(line).collect()
}

#[test]
fn a_tunnel_takes_packets_of_both_versions() {
    let case = Case { esn: true, udp: true, ..Case::EMPTY.esp(Esp::Combined(Suite::Aes128Gcm)) };
    let ends = "src 198.18.0.1 dst 198.18.0.2";
    let expected = [
        format!("xfrm policy add {ends} proto udp sport 4500 dport 4500 dir in priority 1"),
        format!(
            "xfrm state add {ends} proto esp spi 0x4000030 reqid 1 mode tunnel aead rfc4106(gcm(aes)) KEY 128 \
             encap espinudp 4500 4500 0.0.0.0 replay-window 32 flag af-unspec esn"
        ),
        format!(
            "xfrm policy add src 10.77.0.1 dst 10.77.0.2 dir in priority 9 \
             tmpl {ends} proto esp reqid 1 mode tunnel"
        ),
        format!(
            "xfrm policy add src fd77::1 dst fd77::2 dir in priority 9 tmpl {ends} proto esp reqid 1 mode tunnel"
        ),
    ];
    assert_eq!(inward(case), expected);
}

#[test]
fn protocols_stand_in_each_other() {
    let esp = Esp::Separate(Cipher::Null, Some(Integrity::HmacMd5_96));
    let case = Case { outer: Version::V6, ..Case::EMPTY.ipcomp().esp(esp).ah(Integrity::HmacSha256_128) };
    let ends = "src fd00:18::1 dst fd00:18::2";
    let templates = format!(
        "tmpl {ends} proto comp reqid 1 mode tunnel level use tmpl {ends} proto esp reqid 2 mode transport \
         tmpl {ends} proto ah reqid 3 mode transport"
    );
    let expected = [
        format!(
            "xfrm state add {ends} proto esp spi 0x4000030 reqid 2 mode transport auth-trunc hmac(md5) KEY 96 \
             enc ecb(cipher_null) \"\" replay-window 32 flag af-unspec"
        ),
        format!("xfrm policy add src 10.77.0.1 dst 10.77.0.2 dir in priority 9 {templates}"),
        format!("xfrm policy add src fd77::1 dst fd77::2 dir in priority 9 {templates}"),
    ];
    assert_eq!(inward(case), expected);
    let transport = inward(Case { mode: Mode::Transport, ..case });
    let templates = templates.replace("tunnel", "transport");
    assert_eq!(transport[1..], [format!("xfrm policy add {ends} dir in priority 9 {templates}")]);
}

#[test]
fn only_over_ipv4_a_kernel_is_told_how_to_pad() {
    let case = Case::EMPTY.ah(Integrity::HmacSha256_128);
    let padded = Case { ah: Some(Ah { integrity: Integrity::HmacSha256_128, padded: true }), ..case };
    let is_told = |case| configuration(&agreement(case)).contains("align4");
    assert!(is_told(case));
    assert!(!is_told(padded));
    assert!(!is_told(Case { outer: Version::V6, ..case }));
}

#[test]
fn both_directions_of_a_bundling_tunnel_are_one_command() {
    let text = configuration(&agreement(Case {
        mode: Mode::Aggfrag(400),
        ..Case::EMPTY.esp(Esp::Combined(Suite::Aes128Gcm))
    }));
    let command = text.lines().last().unwrap().strip_prefix("/usr/bin/python3 /run/guest/iptfs.py ").unwrap();
    let specs: Vec<serde_json::Value> =
        command.trim_matches('\'').split("' '").map(|spec| serde_json::from_str(spec).unwrap()).collect();
    let [inward, outward] = &specs[..] else { panic!("{command}") };
    assert_eq!((&inward["direction"], &inward["spi"]), (&json!("in"), &json!(0x0400_0030)));
    assert_eq!((&outward["direction"], &outward["spi"]), (&json!("out"), &json!(0x0400_0032)));
    assert_eq!(outward["options"], json!({"pkt_size": 400, "init_delay": BUNDLING}));
    assert_eq!(inward["selectors"], json!([["10.77.0.1", "10.77.0.2"], ["fd77::1", "fd77::2"]]));
}
