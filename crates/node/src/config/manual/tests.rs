mod mistakes;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use super::*;
use crate::config::{Config, ConfigError, Endpoint, PeerKeys};
use strait_ipsec::{EspKeys, IvMode, Payloads, PeerId};

const NODE: &str = "[node]\naddress = \"10.88.0.1/24\"\nlisten = 4500\n";
/// Suites' keys: 16 bytes and 4 of salt.
const IN: &str = "0x000102030405060708090a0b0c0d0e0f10111213";
const OUT: &str = "0x202122232425262728292a2b2c2d2e2f30313233";

fn parse(text: &str) -> Result<Config, ConfigError> {
    Config::parse(text, Path::new("dir/site.toml"))
}

/// A peer that is right: ESP in UDP, tunnel mode; five lines before `[peer.manual]`.
fn gcm() -> String {
    format!(
        "{NODE}[[peer]]\nname = \"gateway\"\nendpoint = \"192.0.2.2:4500\"\nallowed_ips = [\"10.88.0.2/32\"]\n\
         [peer.manual]\ncounter_file = \"gateway.counter\"\n[peer.manual.esp]\nspi_in = 0x04000001\n\
         spi_out = 0x3000\nsuite = \"aes-128-gcm\"\nkey_in = \"{IN}\"\nkey_out = \"{OUT}\"\n"
    )
}

/// The same directly behind IP.
fn bare() -> String {
    gcm()
        .replace("192.0.2.2:4500", "192.0.2.2")
        .replace("[peer.manual]\n", "[peer.manual]\ncarrier = \"ip\"\nlocal = \"192.0.2.1\"\n")
}

fn manual(text: &str) -> Manual {
    let config = parse(text).unwrap_or_else(|error| panic!("{error}\n in\n{text}"));
    match config.peers[0].keys.clone() {
        PeerKeys::Manual(manual) => *manual,
        PeerKeys::Session { .. } => panic!("no manual keys in\n{text}"),
    }
}

#[test]
fn esp_in_udp() {
    let config = parse(&gcm()).unwrap();
    assert_eq!(config.node.private_key_file, None, "manual keys need no key file");
    let peer = &config.peers[0];
    assert_eq!(peer.endpoint, Some(Endpoint::Address("192.0.2.2:4500".parse().unwrap())));
    let manual = manual(&gcm());
    assert_eq!((manual.mode, manual.carrier, manual.hosts()), (ManualMode::Tunnel, ManualCarrier::Udp, None));
    assert_eq!(manual.sequence, SequenceNumbers::Bits32);
    assert_eq!(manual.counter_file.as_deref(), Some(Path::new("dir/gateway.counter")));
    let inbound = manual.inbound(PeerId(3));
    assert_eq!((inbound.peer, inbound.spi()), (PeerId(3), Spi(0x0400_0001)));
    let outbound = manual.outbound(PeerId(3), 7);
    assert_eq!(outbound.spi(), Spi(0x3000));
    let Some(EspKeys::Aead { key, iv: IvMode::Explicit }) = outbound.esp.map(|esp| esp.keys) else {
        panic!("another kind of keys")
    };
    assert_eq!((key.expose()[0], key.expose().len()), (0x20, 20));
    assert!(!format!("{config:?}").contains("2021222"), "keys never print");
}

#[test]
fn every_key_of_manual_peers_is_parsed() {
    let text = format!(
        "{NODE}[[peer]]\nname = \"all\"\nendpoint = \"2001:db8::2\"\nallowed_ips = [\"10.88.0.2/32\"]\nmtu = 1400\n\
         [peer.manual]\nmode = \"tunnel\"\ncarrier = \"ip\"\nlocal = \"2001:db8::1\"\nesn = true\n\
         ipcomp = \"lzs\"\ncpi_in = 3\ncpi_out = 0x0c02\nouter_fragmentation = true\ncounter_file = \"/var/all\"\n\
         danger_legacy = true\n\
         [peer.manual.esp]\nspi_in = 256\nspi_out = 257\ncipher = \"3des-cbc\"\nintegrity = \"hmac-sha-1-96\"\n\
         key_in = \"AAECAwQFBgcICQoLDA0ODxAREhMUFRYX\"\nkey_out = \"AQECAwQFBgcICQoLDA0ODxAREhMUFRYX\"\n\
         integrity_key_in = \"0x{a}\"\nintegrity_key_out = \"0x{b}\"\n\
         [peer.manual.ah]\nspi_in = 256\nspi_out = 0xffffffff\nintegrity = \"hmac-sha-256-128\"\n\
         key_in = \"0x{c}\"\nkey_out = \"0x{c}\"\n",
        a = "0a".repeat(20),
        b = "0b".repeat(20),
        c = "0c".repeat(32),
    );
    let manual = manual(&text);
    let hosts = Hosts { local: "2001:db8::1".parse().unwrap(), remote: "2001:db8::2".parse().unwrap() };
    assert_eq!((manual.carrier, manual.hosts()), (ManualCarrier::Ip(hosts), Some(hosts)));
    let inside =
        ManualPayloads::Ipcomp { algorithm: Compression::Lzs, inbound: Cpi::LZS, outbound: Cpi(0x0c02) };
    assert_eq!((manual.inside, manual.fragments), (inside, Fragments::Outer));
    assert_eq!(manual.sequence, SequenceNumbers::Bits64);
    let (inbound, outbound) = (manual.inbound(PeerId(1)), manual.outbound(PeerId(1), 5));
    let carrier = |from, to| strait_ipsec::Carrier::Ip { from, to };
    assert_eq!(outbound.carrier, carrier(hosts.local, hosts.remote));
    assert_eq!(inbound.carrier, carrier(hosts.remote, hosts.local));
    assert!(matches!(inbound.payloads, Payloads::Standard(Some(spec)) if spec.cpi == Cpi::LZS));
    assert!(matches!(outbound.payloads, Payloads::Standard(Some(spec)) if spec.cpi == Cpi(0x0c02)));
    assert_eq!((inbound.spi(), outbound.spi()), (Spi(256), Spi(u32::MAX)));
    assert_eq!(outbound.ah.unwrap().align, Align::Eight, "as Linux has it");
    assert!(matches!(outbound.esp.unwrap().keys, EspKeys::Separate { seed: 5, integrity: Some(_), .. }));
}

#[test]
fn transport_mode_is_between_two_hosts() {
    let text = bare()
        .replace("address = \"10.88.0.1/24\"\n", "")
        .replace("allowed_ips = [\"10.88.0.2/32\"]\n", "")
        .replace("carrier", "mode = \"transport\"\ncarrier");
    let config = parse(&text).unwrap();
    assert_eq!(config.peers[0].allowed_ips, ["192.0.2.2/32".parse().unwrap()]);
    assert!(config.node.address.is_empty(), "none is needed");
    let outbound = manual(&text).outbound(PeerId(1), 0);
    let (from, to) = ("192.0.2.1".parse().unwrap(), "192.0.2.2".parse().unwrap());
    assert_eq!(outbound.mode, strait_ipsec::Mode::Transport { from, to });
    let written = text.replace("[peer.manual]\n", "allowed_ips = \"192.0.2.2\"\n[peer.manual]\n");
    assert_eq!(parse(&written).unwrap().peers[0].allowed_ips, config.peers[0].allowed_ips);
    let udp = text.replace("carrier = \"ip\"\n", "").replace("\"192.0.2.2\"", "\"192.0.2.2:4500\"");
    assert!(matches!(
        manual(&udp),
        Manual { mode: ManualMode::Transport(_), carrier: ManualCarrier::Udp, .. }
    ));
}

#[test]
fn valid_variants_are_accepted() {
    let changes: [&dyn Fn(String) -> String; 6] = [
        &|text| {
            text.replace("endpoint = \"192.0.2.2\"", "endpoint = \"[2001:db8::2]\"")
                .replace("192.0.2.1", "2001:db8::1")
        },
        &|text| text.replace("[peer.manual.esp]", "aggfrag = true\n[peer.manual.esp]"),
        &|text| {
            text.replace("suite = \"aes-128-gcm\"", "cipher = \"null\"\nintegrity = \"hmac-sha-256-128\"")
                .replace("key_in = \"0x", "integrity_key_in = \"0x000102030405060708090a0b")
                .replace("key_out = \"0x", "integrity_key_out = \"0x000102030405060708090a0b")
        },
        // Nothing counts on numbers that no suite uses.
        &|text| {
            text.replace("counter_file = \"gateway.counter\"\n", "")
                .replace(
                    "suite = \"aes-128-gcm\"",
                    "cipher = \"aes-128-cbc\"\nintegrity = \"hmac-sha-512-256\"\n\
                integrity_key_in_file = \"none\"\nintegrity_key_out_file = \"none\"",
                )
                .replace(
                    "integrity_key_in_file = \"none\"",
                    &format!("integrity_key_in = \"0x{}\"", "01".repeat(64)),
                )
                .replace(
                    "integrity_key_out_file = \"none\"",
                    &format!("integrity_key_out = \"0x{}\"", "01".repeat(64)),
                )
                .replace("10111213", "")
                .replace("30313233", "")
        },
        // IPComp alone.
        &|text| {
            let whole = text
                .split("[peer.manual.esp]")
                .next()
                .unwrap()
                .replace("counter_file = \"gateway.counter\"\n", "");
            whole + "ipcomp = \"deflate\"\ndanger_plain = true\n"
        },
        // Without an endpoint the other side calls, if that is allowed.
        &|_| {
            gcm()
                .replace("endpoint = \"192.0.2.2:4500\"\n", "")
                .replace("[peer.manual]\n", "[peer.manual]\ndanger_roaming = true\n")
        },
    ];
    for (at, change) in changes.iter().enumerate() {
        let text = change(bare());
        assert!(parse(&text).is_ok(), "{at}: {}\n in\n{text}", parse(&text).unwrap_err());
    }
}

/// The first of what is said of a file, and how many other things are.
fn complaint(text: &str) -> (String, usize) {
    let ConfigError::Invalid { found, .. } = parse(text).unwrap_err() else { panic!("another error") };
    let first = &found[0];
    (format!("{}:{}: {}", first.line, first.column, first.problem), found.len() - 1)
}

/// Replaces, and makes sure that there was something to replace.
fn with(text: &str, from: &str, to: &str) -> String {
    assert!(text.contains(from), "{from} is not in\n{text}");
    text.replace(from, to)
}

#[test]
fn sessions_and_manual_keys_in_one_file() {
    let key = "wXKeEeD2sUcsfgwA2rO7tClR0yGv6Ro0Hk4mVF2RQhI=";
    let session = format!("[[peer]]\npublic_key = \"{key}\"\nallowed_ips = \"10.88.0.9\"\n");
    let said = complaint(&(gcm() + &session)).0;
    assert_eq!(said, "1:1: [node] needs `private_key_file`, for example private_key_file = \"strait.key\"");
    let config = parse(&with(&(gcm() + &session), "[node]", "[node]\nprivate_key_file = \"a.key\"")).unwrap();
    assert_eq!((config.peers[0].public_key(), config.peers[1].manual()), (None, None));
    let said = complaint(&with(&gcm(), "address = \"10.88.0.1/24\"\n", "")).0;
    assert!(said.starts_with("1:1: [node] needs `address`"), "{said}");
}

struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("strait-manual-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    fn write(&self, name: &str, text: &str, mode: u32) -> PathBuf {
        let path = self.0.join(name);
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn a_configuration_with_keys_is_its_owners_only() {
    let folder = Folder::new("open");
    let path = folder.write("site.toml", &gcm(), 0o640);
    let said = Config::load(&path).unwrap_err().to_string();
    let expected = format!(
        "{0}:14:10: the configuration contains a key and is readable by others (mode 640); run `chmod 600 {0}`, or put the keys into files of their own",
        path.display()
    );
    assert_eq!(said, expected, "once, and without the line, which holds a key");
    folder.write("site.toml", &gcm(), 0o600);
    assert!(Config::load(&path).is_ok());
}

#[test]
fn keys_in_files() {
    let folder = Folder::new("files");
    let text = with(&gcm(), &format!("key_in = \"{IN}\""), "key_in_file = \"in.key\"");
    let text = with(&text, &format!("key_out = \"{OUT}\""), "key_out_file = \"out.key\"");
    let path = folder.write("site.toml", &text, 0o644);
    let said = || Config::load(&path).unwrap_err().to_string();
    folder.write("out.key", OUT, 0o600);
    assert!(said().contains("there is no key file") && said().contains("in.key"), "{}", said());
    folder.write("in.key", IN, 0o644);
    assert!(said().contains("chmod 600"), "{}", said());
    folder.write("in.key", &IN[..40], 0o600);
    assert!(said().contains("`key_in_file` has 19 bytes; aes-128-gcm takes 20"), "{}", said());
    folder.write("in.key", &format!("{IN}\n"), 0o600);
    let config = Config::load(&path).unwrap();
    let Some(ManualProtection::Aead(keys)) =
        config.peers[0].manual().map(|it| it.esp.clone().unwrap().protection)
    else {
        panic!("another kind of keys")
    };
    assert_eq!(keys.inbound.expose()[..3], [0, 1, 2]);
}

#[test]
fn no_message_repeats_a_key() {
    let secret = "deadbeefdeadbeefdeadbeefdeadbeefdeadbeef";
    let text = with(&gcm(), IN, &format!("0x{secret}"));
    for broken in [
        with(&text, "\"0xdead", "\"0xzzzz"),
        with(&text, &format!("\"0x{secret}\""), &format!("0x{secret}")),
        with(&text, &format!("\"0x{secret}\""), &format!("\"0x{secret}")),
        with(&text, &format!("\"0x{secret}\""), &format!("\"\"\"\n0x{secret}")),
        with(&text, "key_in =", "key_in_ ="),
        with(&text, "key_in =", "key-in ="),
        with(&text, "key_in =", "keyin ="),
        with(&text, "key_in = \"0x", "key_in \"0x"),
        with(&text, "spi_in = 0x04000001\n", ""),
        with(&text, "[peer.manual.esp]\n", "[peer.manual.esp\n"),
        with(
            &text,
            &format!("key_in = \"0x{secret}\""),
            &format!("x = {{ key_in = \"0x{secret}\", y = 1 }}"),
        ),
        with(&text, &format!("key_in = \"0x{secret}\""), &format!("key_in = [\"0x{secret}\"]")),
    ] {
        let said = parse(&broken).unwrap_err().to_string();
        assert!(!said.contains("beefdead"), "{said}");
    }
}
