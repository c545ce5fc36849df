//! What others make of the tunnel's packets: scapy's ESP, python's zlib and tshark, given the exported keys.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;
use strait_testbed::outside::{self, PYTHON, has_scapy};
use strait_testbed::{Extra, PORT, TwoHosts};

use crate::capture::Capture;
use crate::pair::{Family, Pair, allowed, eventually, fast, has};

/// The name of the exported keys, in the folder of each site.
const KEYS: &str = "esp-keys";

/// A script of `tests/outside` with its arguments.
fn script(name: &str) -> Vec<String> {
    ["-B".to_owned(), outside::file(name).to_str().unwrap().to_owned()].into()
}

fn text(output: &Output) -> String {
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {said}", output.status);
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// The file with a site's exported keys.
fn keys(pair: &Pair, which: usize) -> PathBuf {
    pair.sites[which].folder().join(KEYS)
}

/// One ESP packet as scapy opened it.
#[derive(Debug)]
pub(crate) struct Opened {
    pub(crate) kind: String,
    pub(crate) direction: String,
    pub(crate) packets: Vec<Vec<u8>>,
    /// All that the script says of it.
    pub(crate) line: Value,
}

/// Every ESP packet of a capture, opened by scapy with the keys of the first site.
pub(crate) fn open(pair: &Pair, capture: &Path) -> Vec<Opened> {
    let mut command = Command::new(PYTHON);
    command.args(script("open.py")).arg(keys(pair, 0)).arg(capture).arg(PORT.to_string());
    let lines = text(&command.output().unwrap());
    let opened = |line: &str| {
        let line: Value = serde_json::from_str(line).unwrap();
        let word = |key: &str| line[key].as_str().unwrap().to_owned();
        let packets = line["packets"].as_array().unwrap();
        let packets = packets.iter().map(|packet| unhex(packet.as_str().unwrap())).collect();
        Opened { kind: word("kind"), direction: word("direction"), packets, line }
    };
    lines.lines().map(opened).collect()
}

fn unhex(text: &str) -> Vec<u8> {
    (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap()).collect()
}

pub(crate) fn contains(packet: &[u8], words: &str) -> bool {
    packet.windows(words.len()).any(|window| window == words.as_bytes())
}

/// How many packets in one direction have `words` in them.
fn count(opened: &[Opened], direction: &str, words: &str) -> usize {
    let there = opened.iter().filter(|it| it.direction == direction);
    there.flat_map(|it| &it.packets).filter(|packet| contains(packet, words)).count()
}

/// Messages and their echoes, one after the other; each with its number and enough text to be worth compressing.
fn converse(pair: &Pair, family: Family, rounds: usize) {
    let (a, b) = (pair.socket(0, family), pair.socket(1, family));
    let mut buffer = [0; 2000];
    for round in 0..rounds {
        for (from, to, word) in [(&a, &b, "question"), (&b, &a, "answer")] {
            let message = message(word, family, round);
            from.send_to(message.as_bytes(), to.local_addr().unwrap()).unwrap();
            let length = to.recv(&mut buffer).unwrap_or_else(|error| panic!("{error}\n{}", pair.logs()));
            assert_eq!(&buffer[..length], message.as_bytes());
        }
    }
}

fn message(word: &str, family: Family, round: usize) -> String {
    let line = format!("{word} {round} over {family:?}; ");
    line.clone() + &"the same words again and again, ".repeat(20)
}

/// A pair that exports its keys, and a capture of everything on its link.
fn watched(node: &str, peer: &str, sections: &str) -> (Pair, Capture) {
    let (pair, capture) = watched_from_the_start(node, peer, sections);
    pair.wait_for_session();
    (pair, capture)
}

/// The same, with or without a session so far.
fn watched_from_the_start(node: &str, peer: &str, sections: &str) -> (Pair, Capture) {
    let node = format!("danger_export_keys = \"{KEYS}\"\n{node}");
    let mut pair = Pair::idle(TwoHosts::direct(fast()).unwrap());
    let capture = Capture::start(&pair.hosts, &pair.dir.path().join("link.pcap"));
    let extra = Extra { node: &node, peer, sections, ..Extra::default() };
    pair.start(0, extra);
    pair.start(1, extra);
    (pair, capture)
}

const ROUNDS: usize = 12;

#[test]
fn scapy_opens_what_the_tunnel_sent() {
    if !allowed() || !has_scapy() {
        return;
    }
    for (iv, suite) in [
        ("implicit", "aes-128-gcm"),
        ("implicit", "aes-256-gcm"),
        ("implicit", "chacha20-poly1305"),
        ("implicit", "aes-128-gcm-12"),
        ("explicit", "aes-256-gcm"),
        ("explicit", "chacha20-poly1305"),
    ] {
        let (pair, capture) = watched(&format!("iv = \"{iv}\"\nsuites = [\"{suite}\"]"), "", "");
        each_word_is_opened_once(&pair, capture, &format!("{iv} {suite}"));
    }
}

/// Sends messages, and looks for each in what scapy opens of the capture.
fn each_word_is_opened_once(pair: &Pair, capture: Capture, what: &str) {
    converse(pair, Family::V4, ROUNDS);
    converse(pair, Family::V6, ROUNDS);
    let opened = open(pair, &capture.stop());
    for family in [Family::V4, Family::V6] {
        for round in 0..ROUNDS {
            for (direction, word) in [("out", "question"), ("in", "answer")] {
                let found = count(&opened, direction, &format!("{word} {round} over {family:?}"));
                assert_eq!(found, 1, "{what}: {word} {round} over {family:?}");
            }
        }
    }
}

#[test]
fn scapy_opens_what_was_sent_without_a_session() {
    if !allowed() || !has_scapy() {
        return;
    }
    for (suite, path) in [("aes-256-gcm", ""), ("chacha20-poly1305", ""), ("aes-128-gcm", "one_way = true\n")]
    {
        let peer = format!("keying = \"sessionless\"\n{path}");
        let (pair, capture) = watched_from_the_start(&format!("suites = [\"{suite}\"]"), &peer, "");
        each_word_is_opened_once(&pair, capture, &format!("{suite} {path}"));
    }
}

#[test]
fn exported_keys_are_for_their_owner_and_loud() {
    if !allowed() {
        return;
    }
    use std::os::unix::fs::PermissionsExt;
    let (pair, _capture) = watched("", "", "");
    let mode = std::fs::metadata(keys(&pair, 0)).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    assert!(std::fs::read_to_string(pair.daemon(0).log()).unwrap().contains("DANGER"));
}

#[test]
fn scapy_takes_over_a_place_and_is_understood() {
    if !allowed() || !has_scapy() {
        return;
    }
    for iv in ["implicit", "explicit"] {
        let (mut pair, capture) = watched(&format!("iv = \"{iv}\""), "", "");
        converse(&pair, Family::V4, 3);
        let capture = capture.stop();
        let receiver = pair.socket(1, Family::V4);
        let forged = pair.drops(1, "forged");
        pair.kill(0);

        let (local, remote) = (pair.sites[0].outside, pair.sites[1].outside);
        let mut command = pair.hosts.a.command(PYTHON);
        command.args(script("peer.py")).arg(keys(&pair, 0)).arg(&capture);
        for (address, port) in [(local.ip(), local.port()), (remote.ip(), remote.port())] {
            command.arg(address.to_string()).arg(port.to_string());
        }
        command.args([pair.inside(0, Family::V4), pair.inside(1, Family::V4)].map(|it| it.to_string()));
        command.arg(receiver.local_addr().unwrap().port().to_string());
        let scapy = std::thread::spawn(move || command.output().unwrap());

        receiver.set_read_timeout(Some(crate::pair::PATIENCE)).unwrap();
        let mut buffer = [0; 100];
        let mut heard = BTreeSet::new();
        for _ in 0..5 {
            let (length, from) = receiver.recv_from(&mut buffer).unwrap_or_else(|error| {
                panic!("{iv}: {error} after {heard:?}\n{}", pair.logs());
            });
            heard.insert(String::from_utf8_lossy(&buffer[..length]).into_owned());
            receiver.send_to(format!("{iv} received").as_bytes(), from).unwrap();
        }
        assert_eq!(heard, (0..5).map(|number| format!("from scapy {number}")).collect());
        eventually("bent ICVs are counted", || pair.drops(1, "forged") >= forged + 5);
        assert_eq!(text(&scapy.join().unwrap()).trim(), format!("{iv} received"));
    }
}

/// Plain ESP and IPComp, and text compressed by `codec` in both directions.
fn standard(codec: &str) -> (Pair, Capture) {
    let rule = |from, to| {
        format!("[[compress]]\nfrom = \"{from}\"\nto = \"{to}\"\ndomain = \"test\"\ncodec = \"{codec}\"\n")
    };
    let sections = rule("10.77.0.0/24", "10.77.0.0/24") + &rule("fd77::/64", "fd77::/64");
    watched("iv = \"explicit\"\nsuites = [\"aes-256-gcm\"]", "payloads = \"standard\"", &sections)
}

#[test]
fn zlib_expands_what_ipcomp_carries() {
    if !allowed() || !has_scapy() {
        return;
    }
    let (pair, capture) = standard("deflate-6");
    converse(&pair, Family::V4, ROUNDS);
    converse(&pair, Family::V6, ROUNDS);
    let opened = open(&pair, &capture.stop());
    let compressed: Vec<_> = opened.into_iter().filter(|it| it.kind == "ipcomp").collect();
    for family in [Family::V4, Family::V6] {
        for (direction, word) in [("out", "question"), ("in", "answer")] {
            let found = count(&compressed, direction, &format!("over {family:?}; the same words again"));
            assert_eq!(found, ROUNDS, "{word}s over {family:?} in IPComp");
        }
    }
}

/// What tshark makes of a capture: the stack of protocols of each frame, and the innermost data.
fn dissect(pair: &Pair, capture: &Path) -> Vec<(String, String)> {
    // Of the ports that the system gives to inner sockets, some are those of a protocol (34962 is PROFINET's).
    let mut options: Vec<String> = ["-d", "udp.port==32768-60999,data", "-d"].map(str::to_owned).into();
    options.extend(
        [&format!("udp.port=={PORT},udpencap"), "-o", "esp.enable_encryption_decode:TRUE"].map(str::to_owned),
    );
    for line in std::fs::read_to_string(keys(pair, 0)).unwrap().lines() {
        let key: Value = serde_json::from_str(line).unwrap();
        options.extend(["-o".to_owned(), format!("uat:esp_sa:{}", key["tshark"].as_str().unwrap())]);
    }
    let frames = outside::dissect(capture, &options, &["frame.protocols", "data.data"]).unwrap();
    let fields = |frame: Vec<String>| {
        let [protocols, data] = <[String; 2]>::try_from(frame).unwrap();
        (protocols, String::from_utf8_lossy(&unhex(&data.replace(',', ""))).into_owned())
    };
    frames.into_iter().map(fields).collect()
}

#[test]
fn tshark_dissects_down_to_the_inner_packets() {
    if !allowed() || !has("tshark") {
        return;
    }
    for (codec, v4, v6) in [
        ("none", "esp:ip:udp:data", "esp:ipv6:udp:data"),
        ("deflate-6", "esp:ipcomp:data:ip:udp:data", "esp:ipcomp:data:ipv6:udp:data"),
    ] {
        let (pair, capture) = standard(codec);
        converse(&pair, Family::V4, ROUNDS);
        converse(&pair, Family::V6, ROUNDS);
        let frames = dissect(&pair, &capture.stop());
        for (family, stack) in [(Family::V4, v4), (Family::V6, v6)] {
            for round in 0..ROUNDS {
                for word in ["question", "answer"] {
                    let message = message(word, family, round);
                    let holds = |(protocols, data): &&(String, String)| {
                        protocols.ends_with(stack) && data.contains(&message)
                    };
                    let stacks: Vec<_> = frames.iter().map(|(protocols, _)| protocols).collect();
                    let found = frames.iter().filter(holds).count();
                    assert_eq!(
                        found, 1,
                        "{codec}: {word} {round} over {family:?} under {stack} in {stacks:#?}"
                    );
                }
            }
        }
    }
}
