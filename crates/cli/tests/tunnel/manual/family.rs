//! Modes, carriers and protocols.

use std::io::Read;
use std::process::{Child, Stdio};

use strait_testbed::{LinkEnd, LinkSpec, TwoHosts};
use strait_testdata::skip::{Need, skip};

use super::case::{CBC, Case, Esp, GCM, PLAIN};
use crate::pair::{Family, Pair, allowed, echoes, eventually, fast, has};

/// Bytes of each transfer.
const BYTES: usize = 200_000;

/// Counts what crosses a link as it should not: TCP, echoes, and errors about protocols without a handler.
struct Witness(Child);

impl Witness {
    fn start(end: &LinkEnd) -> Witness {
        let filter = "tcp or icmp or (icmp6 and (ip6[40] < 133 or ip6[40] > 137))";
        let mut tcpdump = end.host.command("tcpdump");
        tcpdump.args(["-n", "-i", &end.interface, "--immediate-mode", "-w", "/dev/null", filter]);
        let mut tcpdump = tcpdump.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let (said, mut heard) = (tcpdump.stderr.as_mut().unwrap(), Vec::new());
        while !heard.ends_with(b"snapshot length 262144 bytes\n") {
            let mut byte = [0];
            assert_eq!(said.read(&mut byte).unwrap(), 1, "{}", String::from_utf8_lossy(&heard));
            heard.push(byte[0]);
        }
        Witness(tcpdump)
    }

    /// How many packets that were.
    fn seen(mut self) -> u64 {
        let pid = self.0.id().to_string();
        assert!(std::process::Command::new("kill").args(["-INT", &pid]).status().unwrap().success());
        let mut said = String::new();
        self.0.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        self.0.wait().unwrap();
        let line = said.lines().find(|line| line.contains("captured")).unwrap_or_else(|| panic!("{said}"));
        line.split(' ').next().unwrap().parse().unwrap()
    }
}

impl Drop for Witness {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Moves traffic through a case, and makes sure that nothing was refused and nothing went around.
fn passes(case: Case) -> Option<Pair> {
    if !allowed() || !has("ping") || !has("tcpdump") {
        return None;
    }
    let hosts = TwoHosts::direct(fast()).unwrap();
    let witness = Witness::start(&hosts.link.b);
    let pair = case.up(hosts);
    case.exchange(&pair, BYTES);
    assert_eq!(witness.seen(), 0, "{case:?}: packets that are not protected");
    for which in [0, 1] {
        let shown = pair.peer(which);
        let sent = shown["sent"]["bytes"].as_u64().unwrap();
        assert!(sent > BYTES as u64, "{case:?}: {shown:#}");
        assert_eq!(shown["manual"]["inbound_packets"], shown["received"]["datagrams"], "{case:?}: {shown:#}");
        for reason in ["forged", "unprotected", "malformed-outer", "unknown-spi", "network-refused"] {
            assert_eq!(pair.drops(which, reason), 0, "{case:?}: {reason}\n{}", case.evidence(&pair));
        }
    }
    Some(pair)
}

#[test]
fn tunnel_mode_in_udp() {
    passes(PLAIN);
    passes(Case { v6: true, ..PLAIN });
}

#[test]
fn tunnel_mode_directly_behind_ip() {
    passes(Case { bare: true, ..PLAIN });
    passes(Case { bare: true, v6: true, ..PLAIN });
}

#[test]
fn transport_mode_in_udp() {
    passes(Case { transport: true, ..PLAIN });
    passes(Case { transport: true, v6: true, ..PLAIN });
}

#[test]
fn transport_mode_directly_behind_ip() {
    passes(Case { transport: true, bare: true, ..PLAIN });
    passes(Case { transport: true, bare: true, v6: true, ..PLAIN });
}

#[test]
fn other_algorithms() {
    passes(Case { esp: Some(Esp::Suite("chacha20-poly1305", 36)), manual: "esn = true\n", ..PLAIN });
    passes(Case { esp: Some(CBC), bare: true, ..PLAIN });
    passes(Case { esp: Some(CBC), v6: true, manual: "esn = true\n", ..PLAIN });
    let legacy = Esp::Separate { cipher: ("3des-cbc", 24), integrity: Some(("hmac-sha-1-96", 20)) };
    passes(Case { esp: Some(legacy), bare: true, manual: "danger_legacy = true\n", ..PLAIN });
    let null = Esp::Separate { cipher: ("null", 0), integrity: Some(("hmac-sha-512-256", 64)) };
    passes(Case { esp: Some(null), bare: true, transport: true, ..PLAIN });
}

#[test]
fn ah_alone_and_around_esp() {
    let alone = Case { esp: None, ah: Some("hmac-sha-256-128"), bare: true, ..PLAIN };
    passes(alone);
    passes(Case { transport: true, ..alone });
    passes(Case { transport: true, v6: true, manual: "esn = true\n", ..alone });
    passes(Case { esp: Some(GCM), ..alone });
    let cipher = Esp::Separate { cipher: ("aes-256-cbc", 32), integrity: None };
    passes(Case { esp: Some(cipher), v6: true, transport: true, ..alone });
}

/// Everything may be compressed.
const RULES: &str = "[[compress]]\nfrom = \"0.0.0.0/0\"\nto = \"0.0.0.0/0\"\ndomain = \"test\"\ncodec = \"deflate-6\"\n\
    [[compress]]\nfrom = \"::/0\"\nto = \"::/0\"\ndomain = \"test\"\ncodec = \"deflate-6\"\n";

/// How many payloads a site has compressed, and how many expanded.
fn compressed(pair: &Pair, which: usize, codec: &str) -> (u64, u64) {
    let shown = pair.daemon(which).show().unwrap();
    let codecs = shown["codecs"].as_array().unwrap().clone();
    let found = codecs.iter().find(|it| it["codec"] == codec).unwrap().clone();
    (found["sent_blocks"].as_u64().unwrap(), found["decompressed_blocks"].as_u64().unwrap())
}

#[test]
fn ipcomp_under_esp_and_alone() {
    for case in [
        Case { manual: "ipcomp = \"deflate\"\n", sections: RULES, ..PLAIN },
        Case {
            manual: "ipcomp = \"lzs\"\ncpi_in = 300\ncpi_out = 300\n",
            bare: true,
            sections: RULES,
            ..PLAIN
        },
        Case { manual: "ipcomp = \"deflate\"\n", bare: true, transport: true, sections: RULES, ..PLAIN },
        Case {
            manual: "ipcomp = \"deflate\"\n",
            esp: None,
            ah: Some("hmac-sha-256-128"),
            bare: true,
            v6: true,
            sections: RULES,
            ..PLAIN
        },
        Case {
            manual: "ipcomp = \"deflate\"\ndanger_plain = true\n",
            esp: None,
            bare: true,
            sections: RULES,
            ..PLAIN
        },
        Case {
            manual: "ipcomp = \"deflate\"\ndanger_plain = true\n",
            esp: None,
            bare: true,
            v6: true,
            sections: RULES,
            ..PLAIN
        },
    ] {
        let Some(pair) = passes(case) else { return };
        let codec = if case.manual.contains("lzs") { "lzs" } else { "deflate" };
        for which in [0, 1] {
            let (shrank, expanded) = compressed(&pair, which, codec);
            assert!(shrank > 10 && expanded > 10, "{case:?}: {shrank}, {expanded}\n{}", case.evidence(&pair));
        }
    }
}

/// Has the driver of an interface join packets of a stream (GRO), several at a time; false where it cannot.
fn join_packets(end: &LinkEnd) -> bool {
    let gro = end.host.command("ethtool").args(["-K", &end.interface, "gro", "on"]).status().unwrap();
    // In a thread of its own the driver finds more than one packet when it looks.
    let script = format!("mount -t sysfs sys /sys && echo 1 > /sys/class/net/{}/threaded", end.interface);
    let threaded = end.host.command("unshare").args(["--mount", "sh", "-c", &script]).status().unwrap();
    gro.success() && threaded.success()
}

#[test]
fn what_the_network_card_joined_is_taken_apart() {
    if !allowed() || !has("ethtool") || !has("ping") {
        return;
    }
    // Without a rule nothing is compressed, and IP in IP is all that drivers join of what is received here.
    for v6 in [false, true] {
        let case = Case {
            manual: "ipcomp = \"deflate\"\ndanger_plain = true\n",
            esp: None,
            bare: true,
            v6,
            ..PLAIN
        };
        let hosts = TwoHosts::direct(LinkSpec { rate: None, ..fast() }).unwrap();
        let joins = [&hosts.link.a, &hosts.link.b].into_iter().all(join_packets);
        if !joins && !skip(Need::Offload, "the system does not let its drivers join packets") {
            return;
        }
        let pair = case.up(hosts);
        case.exchange(&pair, 2_000_000);
    }
}

/// Slow enough for packets to wait for each other.
const SLOW: &str = "[link]\nup = \"2Mbit\"\n";

#[test]
fn aggfrag_payloads() {
    for case in [
        Case { manual: "aggfrag = true\n", sections: SLOW, ..PLAIN },
        Case { manual: "aggfrag = true\n", sections: SLOW, bare: true, v6: true, ..PLAIN },
    ] {
        let Some(pair) = passes(case) else { return };
        // The host's own MTU is 1420: larger echoes come as fragments, all of which are cut and joined.
        for address in case.protected(&pair, 1) {
            case.ping(&pair, 1, address, 3, &["-s", "4000"]);
        }
        let (from, to) = (pair.socket(0, Family::V4), pair.socket(1, Family::V4));
        for number in 0..100_u8 {
            from.send_to(&[number; 20], to.local_addr().unwrap()).unwrap();
        }
        for number in 0..100 {
            let mut buffer = [0; 30];
            assert_eq!((to.recv(&mut buffer).unwrap(), buffer[0]), (20, number), "{}", case.evidence(&pair));
        }
        // The busier the machine, the more of them share a datagram.
        let sent = |figure: &str| pair.peer(0)["sent"][figure].as_u64().unwrap();
        assert!(sent("packets") >= sent("datagrams") + 50, "{}", case.evidence(&pair));
    }
}

#[test]
fn outer_fragments_over_a_narrow_path() {
    if !allowed() || !has("ping") {
        return;
    }
    for v6 in [false, true] {
        let hosts = TwoHosts::routed(fast(), fast()).unwrap();
        hosts.router.as_ref().unwrap().link.ends().into_iter().for_each(|end| end.set_mtu(1280).unwrap());
        let case =
            Case { bare: true, v6, manual: "outer_fragmentation = true\n", peer: "mtu = 1280\n", ..PLAIN };
        let pair = case.up(hosts);
        for address in case.protected(&pair, 1) {
            case.ping(&pair, 1, address, 3, &["-M", "do", "-s", "1360"]);
            case.ping(&pair, 1, address, 3, &["-s", "9000"]);
        }
        case.exchange(&pair, BYTES);
        assert_eq!(pair.drops(0, "too-big"), 0, "no sender is asked for smaller packets");
    }
}

#[test]
fn without_fragments_senders_are_told_what_fits() {
    if !allowed() || !has("ping") {
        return;
    }
    let case = Case { bare: true, peer: "mtu = 1300\n", ..PLAIN };
    let pair = case.up(TwoHosts::direct(fast()).unwrap());
    let address = pair.sites[1].inside().to_string();
    let ping = |size: &str| echoes(&pair.hosts.a, 1, &["-M", "do", "-s", size, &address]).1;
    eventually("ping is told what fits", || ping("1380").contains("mtu"));
    // 1300 less 20 outside, 8 of ESP's header, 8 of IV, 16 of ICV, and 2 to 5 of trailer.
    let said = ping("1214");
    assert!(said.contains(" 0% packet loss"), "{said}\n{}", case.evidence(&pair));
}

#[test]
fn what_show_and_check_say() {
    if !allowed() {
        return;
    }
    let case = Case { esp: Some(CBC), ah: Some("hmac-sha-256-128"), bare: true, ..PLAIN };
    let pair = case.up(TwoHosts::direct(fast()).unwrap());
    let path = case.write(&pair, 0);
    let daemon = pair.daemon(0);
    for arguments in [&["show"][..], &["show", "--json"], &["check", path.to_str().unwrap()]] {
        let output = daemon.command(arguments).output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        for word in ["site-b", "tunnel", "ah", "esp", "aes-128-cbc", "0x04001000", "0x04002001"] {
            assert!(said.contains(word), "{word} is not in what {arguments:?} says: {said}");
        }
        assert!(!said.contains("11101312"), "no key is shown: {said}");
    }
    let shown = pair.peer(0);
    assert_eq!((&shown["keys"], &shown["public_key"]), (&"manual".into(), &serde_json::Value::Null));
}
