use super::*;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;
use strait_ipsec::{LeakPolicy, Mix, Padding};
use strait_keying::{PrivateKey, RepairMode, Start};
use strait_scheduler::LinkRate;
use strait_scheduler::calendar::Period;
use strait_scheduler::metering::Cap;

/// Public keys for tests.
const KEY_A: &str = "wXKeEeD2sUcsfgwA2rO7tClR0yGv6Ro0Hk4mVF2RQhI=";
const KEY_B: &str = "QfJ2Cwk5m1TCsqM7cT2qFJ0c3H3Wc0o1o9hGfJ8YzUE=";
const NODE: &str = "[node]\nprivate_key_file = \"a.key\"\naddress = [\"10.77.0.1/24\"]\n";

fn parse(text: &str) -> Result<Config, ConfigError> {
    Config::parse(text, Path::new("dir/site.toml"))
}

/// The errors of a file that begins with a good `[node]` of three lines.
fn errors(rest: &str) -> String {
    parse(&format!("{NODE}{rest}")).unwrap_err().to_string()
}

fn peer(key: &str, rest: &str) -> String {
    format!("[[peer]]\npublic_key = \"{key}\"\nallowed_ips = [\"10.77.0.2/32\"]\n{rest}")
}

const EVERYTHING: &str = r#"
[node]
private_key_file = "site-a.key"
address = ["10.77.0.1/24", "fd77::1/64"]
listen = "192.0.2.1:51820"
mtu = 1300
mss = "off"
block = 16384
interface = "st-a"
forward = ["peers", "10.1.0.0/16"]
fwmark = 0x5354
table = 7
lockdown = true
allow_outside = ["192.168.1.0/24", "fd01::/64"]
dns = ["10.1.0.53", "fd01::53"]
dns_search = "corp.example"
iv = "explicit"
suites = ["aes-256-gcm"]
metrics = "127.0.0.1:9477"
web = "[::1]:9478"
keep_sent = "2GiB"
danger_export_keys = "/tmp/keys"
[link]
up = "1.5Mbit"
down = "6 Mbit/s"
overhead = 14
price = "8/GB"
window = 32
hold = "20ms"
interactive = "50%"
bulk = "5%"
aqm = "off"
acks = "all"
[session]
lifetime = "90m"
bytes = "1GiB"
packets = 100_000
[[peer]]
name = "site-b"
public_key = "{KEY_A}"
endpoint = "vpn.example.net:51820"
allowed_ips = ["10.2.0.0/16", "10.2.0.0/16", "fd78::/64"]
keepalive = "25s"
mtu = 1500
payloads = "standard"
[[compress]]
from = "10.1.0.0/16"
to = "10.2.0.0/16"
protocol = "tcp"
ports = [514, "8000-8100"]
domain = "logs"
codec = "lz4"
padding = "constant"
mix = "flow"
pause = true
[[compress]]
from = "::/0"
to = "::/0"
domain = "rest"
[[compress]]
from = "10.1.0.0/16"
to = "10.3.0.0/16"
domain = "logs"
"#;

#[test]
fn every_key_is_parsed() {
    let text = EVERYTHING.replace("{KEY_A}", KEY_A);
    let config = parse(&text).unwrap();
    let NodeSection { private_key_file, address, listen, mtu, block, interface, .. } = &config.node;
    assert_eq!(private_key_file.as_deref(), Some(Path::new("dir/site-a.key")));
    assert_eq!(address.len(), 2);
    assert_eq!(address[0].to_string(), "10.77.0.1/24", "host bits are the node's own address");
    assert_eq!(*listen, Listen::Address("192.0.2.1:51820".parse().unwrap()));
    assert_eq!((*mtu, *block, interface.as_str()), (1300, 16_384, "st-a"));
    assert_eq!((config.node.mss, parse(NODE).unwrap().node.mss), (Mss::Off, Mss::Auto));
    let NodeSection { forward, fwmark, table, iv, suites, metrics, danger_export_keys, .. } = &config.node;
    assert_eq!(
        (forward.to_string().as_str(), *fwmark, *table, *iv),
        ("between peers (hub), and to 10.1.0.0/16", Some(0x5354), RouteTable::Number(7), IvMode::Explicit)
    );
    let outside: Vec<_> = config.node.allow_outside.iter().map(ToString::to_string).collect();
    assert_eq!((config.node.lockdown, outside.join(" ").as_str()), (true, "192.168.1.0/24 fd01::/64"));
    assert_eq!(config.node.dns, ["10.1.0.53", "fd01::53"].map(|server| server.parse::<IpAddr>().unwrap()));
    assert_eq!(config.node.dns_search, ["corp.example"]);
    assert_eq!(suites.iter().map(|suite| suite.name()).collect::<Vec<_>>(), ["aes-256-gcm"]);
    assert_eq!(*metrics, Some("127.0.0.1:9477".parse().unwrap()));
    assert_eq!((config.node.web, config.link.price), ("[::1]:9478".parse().ok(), "8/GB".parse().ok()));
    assert_eq!(config.node.keep_sent, Some(2 << 30));
    assert_eq!(danger_export_keys.as_deref(), Some(Path::new("/tmp/keys")));
    assert_eq!(config.link.up, "1.5Mbit".parse().unwrap());
    assert_eq!((config.link.down, config.link.overhead), ("6Mbit".parse().unwrap(), 14));
    let Queueing { window, hold: wait, shares, lossless, thin_acks } = config.link.queueing;
    assert_eq!((window, wait.as_millis(), lossless, thin_acks), (32, 20, true, false));
    assert_eq!((shares.interactive().hundredths(), shares.bulk().hundredths()), (5_000, 500));
    let lifetime = config.session.lifetime;
    assert_eq!((lifetime.soft.as_secs(), lifetime.bytes, lifetime.packets), (5400, 1 << 30, 100_000));
    let peer = &config.peers[0];
    assert_eq!((peer.name.as_str(), peer.line, peer.mtu), ("site-b", 38, Some(1500)));
    assert_eq!(peer.endpoint, Some(Endpoint::Name("vpn.example.net:51820".into())));
    let allowed: Vec<_> = peer.allowed_ips.iter().map(ToString::to_string).collect();
    assert_eq!(allowed, ["10.2.0.0/16", "fd78::/64"], "truncated and named once");
    assert_eq!(peer.keepalive, Some(Duration::from_secs(25)));
    assert!(matches!(peer.keys, PeerKeys::Session { payloads: PeerPayloads::Standard, .. }));
    assert_eq!(config.domains, ["logs", "rest"]);
    let rules = config.rules.rules();
    assert_eq!(rules.iter().map(|rule| rule.domain.0).collect::<Vec<_>>(), [0, 1, 0]);
    assert_eq!(rules[0].ports, [514..=514, 8000..=8100]);
    assert_eq!(
        rules.iter().map(|rule| rule.allowed.to_string()).collect::<Vec<_>>(),
        ["lz4", "auto", "auto"]
    );
    let policy = LeakPolicy { padding: Padding::Constant, mix: Mix::Flow, pause: true };
    assert_eq!([rules[0].policy, rules[1].policy], [policy, LeakPolicy::NONE]);
}

#[test]
fn minimal_configuration_is_accepted() {
    let config = parse(NODE).unwrap();
    assert_eq!((config.node.mtu, config.node.block, config.node.listen), (1420, 65_536, Listen::Port(0)));
    assert_eq!((config.node.interface.as_str(), config.node.table), ("strait0", RouteTable::Auto));
    assert_eq!((config.node.suites, config.node.iv), (SuiteSet::UNCUT, IvMode::Implicit));
    assert_eq!((config.link, config.session), (LinkSection::default(), Session::default()));
    assert_eq!((config.peers.len(), config.rules.rules().len(), config.node.fwmark), (0, 0, None));
    assert!(
        parse("[node]\nprivate_key_file = \"a\"\naddress = \"10.0.0.1\"\n").is_ok(),
        "one is a list of one"
    );
}

#[test]
fn the_template_can_be_read_and_so_can_what_it_suggests() {
    let text = template(Path::new("a \"quoted\" \\ name.key"));
    let config = parse(&text).unwrap();
    let key = Path::new("dir/a \"quoted\" \\ name.key");
    assert_eq!(config.node.private_key_file.as_deref(), Some(key));
    assert!(config.peers.is_empty());
    // Suggested lines have `= ` or a bracket right after the mark; all else is prose.
    let suggested = |line: &str| {
        let line = line.strip_prefix("# ")?;
        let word = line.split(' ').next()?;
        (line.starts_with('[') || (line.contains(" = ") && !word.contains('.'))).then(|| line.to_owned())
    };
    let all: Vec<String> =
        text.lines().map(|line| suggested(line).unwrap_or_else(|| line.to_owned())).collect();
    let config = parse(&all.join("\n")).unwrap();
    assert_eq!((config.peers.len(), config.rules.rules().len()), (3, 1));
    assert_eq!(config.session, Session::default(), "what is suggested is what holds anyway");
}

#[test]
fn unknown_keys_are_named_with_their_place_and_the_nearest() {
    assert_eq!(
        errors("adress = [\"10.77.0.1/24\"]\n"),
        "dir/site.toml:4:1: unknown key `adress` in [node]; did you mean `address`?\n    \
         4 | adress = [\"10.77.0.1/24\"]\n      | ^^^^^^"
    );
    assert_eq!(
        errors("[link]\nup = \"1Mbit\"\n  dwon = \"1Mbit\" # ü\n"),
        "dir/site.toml:6:3: unknown key `dwon` in [link]; did you mean `down`?\n    \
         6 |   dwon = \"1Mbit\" # ü\n      |   ^^^^"
    );
    assert_eq!(
        errors("[peer]\npublic_key = \"x\"\n"),
        "dir/site.toml:4:1: `peer` must be a section in double brackets, one for each, not a table\n    \
         4 | [peer]\n      | ^^^^^^"
    );
    assert_eq!(
        errors("[peers]\n"),
        "dir/site.toml:4:2: unknown key `peers` in the file; did you mean `peer`?\n    4 | [peers]\n      |  ^^^^^"
    );
    let zebra = errors("[link]\nzebra = 1\n");
    assert!(
        zebra.starts_with("dir/site.toml:5:1: unknown key `zebra` in [link]; known are up, down, overhead, price, window, hold, interactive, bulk, aqm, acks, cap, cap_reset_day, cap_overhead, cap_warn, cap_bulk_window, cap_stop_bulk, cap_interactive_only, bulk_between, on_cap, quiet\n"),
        "{zebra}"
    );
}

#[test]
fn all_mistakes_are_found_at_once() {
    let text = format!("{NODE}mtu = 100\nlisten = true\n{}keepalive = \"0s\"\n", peer("short", ""));
    assert_eq!(
        parse(&text).unwrap_err().to_string(),
        "dir/site.toml:4:7: `mtu` must be between 1280 and 65000, not 100\n    \
         4 | mtu = 100\n      |       ^^^\n\
         dir/site.toml:5:10: `listen` must be a port, or an address with a port in quotes, not true or false\n    \
         5 | listen = true\n      |          ^^^^\n\
         dir/site.toml:7:14: the public key has 5 characters; a public key has 44\n    \
         7 | public_key = \"short\"\n      |              ^^^^^^^\n\
         dir/site.toml:9:13: `keepalive` must be between 1s and 65535s, not 0s\n    \
         9 | keepalive = \"0s\"\n      |             ^^^^\n\
         4 errors in dir/site.toml"
    );
}

#[test]
fn two_of_what_must_be_unique_are_named_with_both_lines() {
    let name = "name = \"b\"\nendpoint = \"192.0.2.1:7\"\n";
    let text = peer(KEY_A, name) + &peer(KEY_A, name);
    let found = errors(&text);
    for line in [
        "dir/site.toml:10:14: the peer in line 5 has the same public key; each node must have its own",
        "dir/site.toml:11:16: 10.77.0.2/32 is already in `allowed_ips` of the peer in line 6; give each network to one peer (a smaller network within a larger one is allowed)",
        "dir/site.toml:12:8: the name `b` is already used by the peer in line 7",
        "dir/site.toml:13:12: the endpoint 192.0.2.1:7 is already used by the peer in line 8",
        "4 errors in dir/site.toml",
    ] {
        assert!(found.lines().any(|one| one == line), "{line}\n in \n{found}");
    }
    let within = format!("{}{}", peer(KEY_A, ""), peer(KEY_B, "").replace("10.77.0.2/32", "10.77.0.0/16"));
    assert!(parse(&format!("{NODE}{within}")).is_ok(), "a longer prefix decides");
}

#[test]
fn quiet_wins_over_what_sends_unasked_and_says_what_that_costs() {
    let link = "[link]\nup = \"auto\"\ndown = \"1Mbit\"\nquiet = true\n";
    let config =
        parse(&format!("{NODE}{link}{}", peer(KEY_A, "name = \"b\"\nkeepalive = \"25s\"\n"))).unwrap();
    assert_eq!((config.link.up, config.link.down), (LinkRate::Unpaced, "1Mbit".parse().unwrap()));
    let peer = &config.peers[0];
    assert_eq!((peer.keepalive, peer.start), (None, Start::OnTraffic));
    assert!(matches!(peer.keys, PeerKeys::Session { repair: RepairMode::Off, .. }), "{:?}", peer.keys);
    let losses = config.quiet_losses();
    for said in [
        "`up = \"auto\"` has no effect",
        "b: `keepalive` has",
        "b: losses on the path",
        "b: the path MTU",
        "a peer that is gone",
    ] {
        assert!(losses.iter().any(|loss| loss.starts_with(said)), "{said} in {losses:?}");
    }
    assert_eq!(losses.len(), 5);
    let loud = parse(&format!("{NODE}{}", link.replace("true", "false"))).unwrap();
    assert!(loud.quiet_losses().is_empty() && loud.link.up == LinkRate::Auto);
}

#[test]
fn a_peer_has_a_cap_of_its_own_and_the_steps_of_the_link() {
    let link = "[link]\ncap = \"20GB/month\"\ncap_reset_day = 15\ncap_stop_bulk = \"90%\"\nbulk_between = \"01:00-06:00\"\n";
    let config = parse(&format!("{NODE}{link}{}", peer(KEY_A, "cap = \"1GB/month\"\n"))).unwrap();
    let metered = &config.link.metered;
    let first_day = Period::Month { first_day: 15 };
    assert_eq!(metered.terms.cap, Some(Cap { bytes: 20_000_000_000, every: first_day }));
    assert_eq!(metered.terms.steps, [Some(80), None, Some(90), None]);
    let of_peer = metered.of_peer(config.peers[0].cap);
    assert_eq!(of_peer.cap, Some(Cap { bytes: 1_000_000_000, every: first_day }));
    assert_eq!(
        (of_peer.steps, of_peer.bulk_between),
        (metered.terms.steps, None),
        "the link's window holds for all"
    );
}

/// What follows `[node]`, and the first line of what is said of it.
const MISTAKES: &[(&str, &str)] = &[
    ("fwmark = 0", "4:10: `fwmark` must be between 1 and 4294967295, not 0"),
    ("fwmark = -1", "4:10: `fwmark` must be between 1 and 4294967295, not -1"),
    ("listen = 65536", "4:10: `listen` must be between 0 and 65535, not 65536"),
    (
        "listen = \"51820\"",
        "4:10: `51820` is not an address with a port; write for example 51820 or \"192.0.2.1:51820\"",
    ),
    ("iv = \"implicid\"", "4:6: `iv` cannot be `implicid`; did you mean `implicit`?"),
    ("table = \"main\"", "4:9: `table` cannot be `main`; known are auto, off"),
    (
        "suites = [\"aes\"]",
        "4:11: unknown suite `aes`: write one of aes-128-gcm, aes-256-gcm, chacha20-poly1305 or aes-128-gcm-12",
    ),
    ("suites = []", "4:10: `suites` must have 1 to 4 printable characters"),
    (
        "forward = 1",
        "4:11: `forward` must be true, false or a list, as [\"10.1.0.0/16\"] or [\"peers\", \"10.1.0.0/16\"], not \
         a whole number",
    ),
    (
        "forward = [\"peer\"]",
        "4:12: `peer` is not an IP network; write for example \"10.77.0.1/24\" or \"fd77::1/64\"",
    ),
    (
        "interface = \"a/b\"",
        "4:13: `a/b` cannot name an interface: 1 to 15 characters without `/`, `:`, `%` and spaces",
    ),
    (
        "private_key = \"c2VjcmV0\"",
        "4:1: the configuration cannot contain the private key; write it to a file and name that file with `private_key_file`",
    ),
    (
        "[link]\nup = \"0\"",
        "5:6: '0' is not a link rate; write a number and bit, kbit, Mbit or Gbit, between 500 bit/s and 10000 Gbit/s, for example \"1.5Mbit\"",
    ),
    ("[link]\nup = 5", "5:6: `up` must be a rate in quotes, as \"1.5Mbit\", or \"auto\", not a whole number"),
    ("[link]\nwindow = 0", "5:10: `window` must be between 1 and 2048, not 0"),
    ("[link]\nwindow = \"wide\"", "5:10: `window` cannot be `wide`; known are auto"),
    ("[link]\nhold = \"2s\"", "5:8: `hold` must be between 0s and 1s, not 2s"),
    (
        "[link]\nbulk = \"all\"",
        "5:8: 'all' is not a share of the link; write more than \"0%\" and less than \"100%\", for example \"25%\"",
    ),
    (
        "[link]\ninteractive = \"60%\"\nbulk = \"40%\"",
        "6:8: `interactive` and `bulk` together must be less than 100 % of the link",
    ),
    (
        "[link]\ninteractive = \"99%\"",
        "5:15: `interactive` and `bulk` together must be less than 100 % of the link",
    ),
    ("[link]\nacks = \"some\"", "5:8: `acks` cannot be `some`; known are thin, all"),
    ("[link]\naqm = \"never\"", "5:7: `aqm` cannot be `never`; known are codel, off"),
    (
        "[link]\ncap = \"20GB\"",
        "5:7: a cap is a size and a period, such as 20GB/month, 5GB/week or 500MB/day (kB, MB, GB, TB are powers of 1,000)",
    ),
    (
        "[link]\ncap = \"20Gbit/month\"",
        "5:7: a cap is a size and a period, such as 20GB/month, 5GB/week or 500MB/day (kB, MB, GB, TB are powers of 1,000)",
    ),
    (
        "[link]\ncap = 20",
        "5:7: `cap` must be a size and a period in quotes, as \"20GB/month\", not a whole number",
    ),
    ("[link]\ncap_reset_day = 29", "5:17: `cap_reset_day` must be between 1 and 28, not 29"),
    (
        "[link]\ncap_warn = \"101%\"",
        "5:12: `101%` is no part of a cap; write for example \"80%\", from 1 % to 100 %, or \"off\"",
    ),
    (
        "[link]\ncap_bulk_window = \"60%\"",
        "5:19: `cap_bulk_window` needs a window, for example bulk_between = \"01:00-06:00\"",
    ),
    (
        "[link]\nbulk_between = \"1-6\"",
        "5:16: a window has two different times of day, such as 01:00-06:00 or 22:30-05:00",
    ),
    (
        "[link]\non_cap = [\"\"]",
        "5:11: a command or an argument of it is empty; write for example [\"/usr/local/bin/notify\", \"link\"]",
    ),
    ("[link]\noverhead = 257", "5:12: `overhead` must be between 0 and 256, not 257"),
    ("[session]\nlifetime = \"59s\"", "5:12: `lifetime` must be between 1m and 30d, not 59s"),
    (
        "[session]\nlifetime = \"soon\"",
        "5:12: `soon` is not a time span; write for example \"25s\", \"90m\" or \"1h30m\"",
    ),
    ("[session]\nbytes = \"1kB\"", "5:9: `bytes` must be between 1048576 and 68719476736, not 1kB"),
    ("[session]\npackets = 1", "5:11: `packets` must be between 1024 and 4294967296, not 1"),
    (
        "[[peer]]",
        "4:1: [[peer]] needs `public_key`, for example public_key = \"AAAA...=\" as `strait pubkey` prints it",
    ),
    (
        "[[compress]]\nfrom = \"10.0.0.0/8\"\nto = \"::/0\"\ndomain = \"d\"",
        "6:6: `from` 10.0.0.0/8 and `to` ::/0 are of different address families; no packet can match",
    ),
    (
        "[[compress]]\nfrom = \"::/0\"\nto = \"::/0\"\ndomain = \"d\"\ncodec = \"zstf-3\"",
        "8:9: unknown compression `zstf-3`: write none, deflate, lz4, zstd or lzs, with a level as in deflate-6, zstd-3 or zstd-fast-1; or auto, for whatever takes the least time; did you mean `zstd`?",
    ),
    (
        "[[compress]]\nfrom = \"::/0\"\nto = \"::/0\"\ndomain = \"d\"\ncodec = \"zstd-30\"",
        "8:9: `zstd-30` is no level of zstd: write zstd-1 to zstd-19, zstd-fast-1 to zstd-fast-5, or zstd for zstd-3; or auto, for whatever takes the least time",
    ),
    (
        "[[compress]]\nfrom = \"::/0\"\nto = \"::/0\"\ndomain = \"d\"\npadding = \"padmé\"",
        "8:11: `padding` cannot be `padmé`; did you mean `padme`?",
    ),
    (
        "[[compress]]\nfrom = \"::/0\"\nto = \"::/0\"\ndomain = \"\"",
        "7:10: `domain` must have 1 to 64 printable characters",
    ),
    (
        "[[compress]]\nfrom = \"::/0\"\nto = \"::/0\"",
        "4:1: [[compress]] needs `domain`, for example domain = \"logs\"; blocks never mix two trust domains",
    ),
    (
        "[[compress]]\nfrom = \"::/0\"\nto = \"::/0\"\ndomain = \"d\"\nprotocol = \"icmp\"\nports = [7]",
        "9:9: `ports` need `protocol` \"tcp\" or \"udp\"; `icmp` has none",
    ),
    (
        "[[compress]]\nfrom = \"::/0\"\nto = \"::/0\"\ndomain = \"d\"\nports = [\"9-7\"]",
        "8:10: `9-7` is not a port or a range of ports; write 514 or \"8000-8100\"",
    ),
    ("mtu = 1400\nmtu = 1500", "5:1: duplicate key"),
    ("mtu = ", "4:7: string values must be quoted, expected literal string"),
];

#[test]
fn without_a_tunnel_no_addresses_are_needed() {
    let text = |tunnel| {
        format!(
            "[node]\nprivate_key_file = \"k\"\ntunnel = {tunnel}\n[[peer]]\npublic_key = \"{}\"\n",
            PrivateKey::generate(&[1; 32]).public()
        )
    };
    let without = parse(&text(false)).unwrap();
    assert!(
        !without.node.tunnel && without.node.address.is_empty() && without.peers[0].allowed_ips.is_empty()
    );
    let with = parse(&text(true)).unwrap_err().to_string();
    assert!(with.contains("needs `address`") && with.contains("needs `allowed_ips`"), "{with}");
}

#[test]
fn mistakes_in_values() {
    for (rest, expected) in MISTAKES {
        let found = errors(rest);
        let first = found.lines().next().unwrap().strip_prefix("dir/site.toml:").unwrap();
        assert_eq!(first, *expected, "{rest}");
    }
}

#[test]
fn a_secret_in_the_file_is_not_repeated() {
    let found = errors("private_key = \"c2VjcmV0\"\nPrivateKey = \"c2VjcmV0\"\n");
    assert!(!found.contains("c2VjcmV0"), "{found}");
}

#[test]
fn an_empty_file_lacks_a_node() {
    assert_eq!(
        parse("").unwrap_err().to_string(),
        "dir/site.toml:1:1: the file needs `[node]`, for example [node]"
    );
    let found = parse("[node]\n").unwrap_err().to_string();
    assert!(
        found.contains("[node] needs `private_key_file`, for example private_key_file = \"strait.key\""),
        "{found}"
    );
    assert!(found.contains("[node] needs `address`"), "{found}");
}

struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("strait-config-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    fn write(&self, name: &str, text: impl AsRef<[u8]>, mode: u32) -> PathBuf {
        let path = self.0.join(name);
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn own_key() -> PrivateKey {
    PrivateKey::generate(&[7; 32])
}

#[test]
fn the_key_file_is_checked() {
    let folder = Folder::new("key");
    let file = folder.write("site.toml", NODE, 0o644);
    let key = folder.0.join("a.key").display().to_string();
    let load = || Config::load(&file).unwrap_err().to_string().lines().next().unwrap().to_owned();
    let at = format!("{}:2:20: ", file.display());
    assert_eq!(load(), format!("{at}there is no key file {key}; make one with `strait keygen --out {key}`"));
    folder.write("a.key", own_key().expose().as_bytes(), 0o640);
    assert_eq!(
        load(),
        format!("{at}the key file {key} is readable by others (mode 640); run `chmod 600 {key}`")
    );
    folder.write("a.key", "short\n", 0o600);
    assert_eq!(
        load(),
        format!(
            "{at}the key file {key} holds no private key: it has 5 characters; a private key has 44; make one with `strait keygen`"
        )
    );
    folder.write("a.key", [0xff; 5000], 0o600);
    assert!(load().contains("holds no private key"));
    folder.write("a.key", own_key().expose().as_bytes(), 0o600);
    let config = Config::load(&file).unwrap();
    assert_eq!(config.private_key().unwrap().unwrap().public(), own_key().public());
}

#[test]
fn the_token_file_is_checked_like_a_key() {
    let folder = Folder::new("token");
    folder.write("a.key", own_key().expose().as_bytes(), 0o600);
    let file = folder.write("site.toml", format!("{NODE}token_file = \"t.key\"\n"), 0o644);
    let load = || Config::load(&file).unwrap_err().to_string().lines().next().unwrap().to_owned();
    assert!(load().contains("there is no key file"), "{}", load());
    let token = PrivateKey::generate(&[8; 32]);
    folder.write("t.key", token.expose().as_bytes(), 0o644);
    assert!(load().contains("is readable by others (mode 644)"), "{}", load());
    folder.write("t.key", "short\n", 0o600);
    assert!(load().contains("it has 5 characters; a private key has 44"), "{}", load());
    folder.write("t.key", token.expose().as_bytes(), 0o600);
    let config = Config::load(&file).unwrap();
    assert!(config.token().unwrap().is_some() && !format!("{config:?}").contains(token.expose().as_str()));
    assert!(parse(NODE).unwrap().token().unwrap().is_none());
}

#[test]
fn a_key_file_that_is_a_pipe_or_of_a_third_user_is_refused_and_not_waited_for() {
    let folder = Folder::new("foreign-key");
    let file = folder.write("site.toml", NODE, 0o644);
    let key = folder.0.join("a.key");
    let load = || Config::load(&file).map(drop).map_err(|error| error.to_string());
    assert!(std::process::Command::new("mkfifo").args(["-m", "600"]).arg(&key).status().unwrap().success());
    let said = load().unwrap_err();
    assert!(said.contains("is not a regular file"), "{said}");
    std::fs::remove_file(&key).unwrap();
    folder.write("secret", own_key().expose().as_bytes(), 0o600);
    std::os::unix::fs::symlink("secret", &key).unwrap();
    load().unwrap();
    let chown = |path: &Path| std::os::unix::fs::chown(path, Some(65_534), None);
    let is_root = crate::privileges::is_root();
    if !is_root && !strait_testdata::skip::skip(strait_testdata::skip::Need::Root, "may not give a file away")
    {
        return;
    }
    chown(&folder.0.join("secret")).unwrap();
    let said = load().unwrap_err();
    assert!(said.contains("belongs to user 65534") && said.contains("chown"), "{said}");
    // A user who writes the configuration may name any key, and their own too.
    chown(&file).unwrap();
    load().unwrap();
}

#[test]
fn metrics_for_other_hosts_and_other_insecure_settings_are_allowed_by_name_and_said() {
    let open = |address: &str, more: &str| {
        let node = NODE.replace("[node]", &format!("[node]\nmetrics = \"{address}\"\n{more}"));
        Config::parse(&node, Path::new("x.toml")).map(|config| config.warnings(Path::new("x.toml")))
    };
    for own in ["127.0.0.1:9477", "127.8.8.8:1", "[::1]:9477", "[::ffff:127.0.0.1]:9477"] {
        assert_eq!(open(own, "").unwrap(), [""; 0], "{own}");
    }
    for other in ["0.0.0.0:9477", "192.0.2.1:9477", "[::]:9477", "10.77.0.1:9477", "[::ffff:192.0.2.1]:9477"]
    {
        let said = open(other, "").unwrap_err().to_string();
        assert!(said.contains("allow it with `danger_open_metrics = true`"), "{said}");
        let said = open(other, "danger_open_metrics = true\n").unwrap();
        assert!(matches!(&said[..], [one] if one.contains("without a password")), "{said:?}");
    }
    let folder = Folder::new("writable");
    folder.write("a.key", own_key().expose().as_bytes(), 0o600);
    let node = format!("{NODE}danger_export_keys = \"keys\"\n");
    for (mode, warnings) in [(0o600, 1), (0o664, 1), (0o666, 2), (0o602, 2)] {
        let file = folder.write("site.toml", &node, mode);
        let said = Config::load(&file).unwrap().warnings(&file);
        assert_eq!(said.len(), warnings, "{said:?}");
    }
}

#[test]
fn a_command_that_runs_as_root_on_what_peers_send_is_said_with_a_remedy() {
    let said = |lines: &str| {
        let folder = format!("{NODE}[[folder]]\nname = \"inbox\"\npath = \"/srv/in\"\n{lines}");
        Config::parse(&folder, Path::new("x.toml")).unwrap().warnings(Path::new("x.toml"))
    };
    let (root, command) = ("owner = \"root\"\n", "on_receive = [\"/bin/true\"]\n");
    for fine in ["", root, command, &format!("owner = \"backup\"\n{command}")] {
        assert_eq!(said(fine), [""; 0], "{fine}");
    }
    let said = said(&format!("{root}{command}"));
    let remedy = "`chown -R USER /srv/in` and `owner = \"USER\"`";
    assert!(matches!(&said[..], [one] if one.contains("\"inbox\"") && one.contains(remedy)), "{said:?}");
}

#[test]
fn the_page_is_for_this_host_or_asks_for_a_token() {
    let page = |address: &str, more: &str| {
        let node = NODE.replace("[node]", &format!("[node]\nweb = \"{address}\"\n{more}"));
        Config::parse(&node, Path::new("x.toml")).map(|config| config.warnings(Path::new("x.toml")))
    };
    for own in ["127.0.0.1:9478", "[::1]:9478", "[::ffff:127.0.0.1]:9478"] {
        assert_eq!(page(own, "").unwrap(), [""; 0], "{own}");
        assert_eq!(page(own, "web_token_file = \"t\"\n").unwrap(), [""; 0], "{own}");
    }
    for other in ["0.0.0.0:9478", "192.0.2.1:9478", "[::]:9478", "10.77.0.1:9478"] {
        let said = page(other, "").unwrap_err().to_string();
        assert!(said.contains("loopback address such as") && said.contains("`web_token_file = "), "{said}");
        let said = page(other, "web_token_file = \"t\"\n").unwrap();
        assert!(matches!(&said[..], [one] if one.contains("without encryption")), "{said:?}");
    }
    for (given, words) in [("9478", "127.0.0.1:9478"), ("localhost:9478", "127.0.0.1:9478")] {
        let said = page(given, "").unwrap_err().to_string();
        assert!(said.contains(words), "{said}");
    }
    let said = parse(&NODE.replace("[node]", "[node]\nweb_token_file = \"t\"")).unwrap_err().to_string();
    assert!(said.contains("needs `web`"), "{said}");
    let said = errors("[link]\nprice = \"cheap\"\n");
    assert!(said.contains("`cheap` is not a price: write a number and /GB, such as 8/GB"), "{said}");
    assert!(errors("[link]\nprice = 8\n").contains("a price in quotes"));
}

#[test]
fn the_token_of_the_page_is_a_secret_of_16_characters_at_least() {
    let folder = Folder::new("web-token");
    folder.write("a.key", own_key().expose().as_bytes(), 0o600);
    let node = NODE.replace("[node]", "[node]\nweb = \"0.0.0.0:9478\"\nweb_token_file = \"web.token\"");
    let file = folder.write("site.toml", node, 0o644);
    let load = || Config::load(&file).map(|_| ()).map_err(|error| error.to_string());
    assert!(load().unwrap_err().contains("web.token; make one with `strait keygen --out"), "{:?}", load());
    for (text, mode, words) in [
        ("sixteen-letters!\n", 0o644, "chmod 600"),
        ("fifteen-letters\n", 0o600, "16 to 256"),
        ("two words are no token\n", 0o600, "16 to 256"),
        ("", 0o600, "16 to 256"),
    ] {
        folder.write("web.token", text, mode);
        assert!(load().unwrap_err().contains(words), "{text}: {:?}", load());
    }
    folder.write("web.token", "sixteen-letters!\n", 0o600);
    load().unwrap();
    // As `strait keygen` makes it.
    folder.write("web.token", own_key().expose().as_bytes(), 0o600);
    assert!(Config::load(&file).unwrap().web_token().unwrap().is_some());
}

#[test]
fn a_node_is_not_its_own_peer() {
    let folder = Folder::new("own");
    folder.write("a.key", own_key().expose().as_bytes(), 0o600);
    let public = own_key().public();
    let file = folder.write("site.toml", format!("{NODE}{}", peer(&public.to_string(), "")), 0o644);
    let found = Config::load(&file).unwrap_err().to_string();
    let expected = format!("5:14: this is the public key of this node ({public});");
    assert!(found.contains(&expected), "{found}");
    let secret = own_key().expose();
    let file = folder.write("site.toml", format!("{NODE}{}", peer(&secret, "")), 0o644);
    let found = Config::load(&file).unwrap_err().to_string();
    assert!(
        found.contains("5:14: this is the private key of this node") && !found.contains(&*secret),
        "{found}"
    );
}

#[test]
fn networks_have_no_bits_of_a_host() {
    for (given, network, host) in [
        ("10.99.0.2/24", "10.99.0.0/24", "10.99.0.2/32"),
        ("2001:db8::1/64", "2001:db8::/64", "2001:db8::1/128"),
    ] {
        let said = format!(
            "`{given}` is an address and a network in one; write \"{network}\" for the network, \"{host}\" for"
        );
        for section in ["[[peer]]\nallowed_ips = X", "[node]\nallow_outside = X", "[[compress]]\nfrom = X"] {
            let value = if section.starts_with("[[compress") {
                format!("\"{given}\"")
            } else {
                format!("[\"{given}\"]")
            };
            let found = parse(&section.replace('X', &value)).unwrap_err().to_string();
            assert!(found.contains(&said), "{section}: {found}");
        }
    }
}

#[test]
fn files_that_are_no_configuration() {
    let folder = Folder::new("files");
    let load = |path: &Path| Config::load(path).unwrap_err().to_string();
    let missing = load(&folder.0.join("none.toml"));
    assert!(
        missing.ends_with("No such file or directory (os error 2); write one with `strait init`"),
        "{missing}"
    );
    let binary = load(&folder.write("binary", b"# \xff", 0o600));
    assert!(binary.ends_with("binary is not a configuration: byte 2 is not UTF-8 text"), "{binary}");
    let long = load(&folder.write("long", vec![b'#'; (32 << 20) + 1], 0o600));
    assert!(long.ends_with("it has more than 33554432 bytes"), "{long}");
    assert!(load(&folder.0).contains("cannot read the configuration"), "a folder");
}

mod properties {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn nothing_panics(text in "\\PC*|([\\[\\]a-z_=\"0-9.,/:#\n -]{0,80})") {
            let _ = parse(&text).map_err(|error| error.to_string());
        }

        #[test]
        fn no_cut_of_a_good_file_panics(at in 0_usize..4000, change in any::<char>()) {
            let good = template(Path::new("k")).replace("# ", "");
            let cut: String = good.chars().take(at).chain([change]).chain(good.chars().skip(at + 1)).collect();
            let _ = parse(&cut).map_err(|error| error.to_string());
        }

        #[test]
        fn a_mistyped_key_is_recognised(at in 0_usize..7, letter in "[a-z]") {
            let mut key = "address".to_owned();
            key.replace_range(at..=at, &letter);
            prop_assume!(key != "address");
            let found = errors(&format!("{key} = 1\n"));
            prop_assert!(found.contains("did you mean `address`?"), "{}", found);
        }
    }
}

mod carrier;
mod folder;
mod reference;
