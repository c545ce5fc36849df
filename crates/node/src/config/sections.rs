//! The sections of the file and their keys, in the order of the documentation.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use strait_crypto::{Suite, SuiteSet};
use strait_ipsec::IvMode;
use strait_keying::{Lifetime, PublicKey};
use strait_scheduler::Rate;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::checks::{self, FoundPeer};
use super::compress;
use super::problem::Problem;
use super::reader::{Findings, Placed, Section};
use super::value;
use super::{Config, ConfigError, Endpoint, KeyFileError, Link, Node, Peer, PeerPayloads, Session, Table};
use crate::tun;
use crate::udp::Listen;

const SECTIONS: &[&str] = &["node", "link", "session", "peer", "compress"];
const NODE: &[&str] = &[
    "private_key_file",
    "address",
    "listen",
    "mtu",
    "interface",
    "forward",
    "fwmark",
    "table",
    "iv",
    "suites",
    "metrics",
    "danger_export_keys",
];
const LINK: &[&str] = &["up", "down", "overhead"];
const SESSION: &[&str] = &["lifetime", "bytes", "packets"];
const PEER: &[&str] = &["name", "public_key", "endpoint", "allowed_ips", "keepalive", "mtu", "payloads"];

/// Inner MTU when the file says nothing: WireGuard's, and our overhead is no larger.
const DEFAULT_MTU: u16 = 1420;
/// The inner MTU never goes below what IPv6 demands of a link (RFC 8200 section 5).
const LEAST_MTU: u16 = 1280;
/// Largest inner packet that still fits one outer IP packet with everything around it.
const MOST_MTU: u16 = 65_000;
/// Every IPv4 host takes packets of this size (RFC 791 section 3.1).
const LEAST_PATH_MTU: u16 = 576;
/// No link layer adds more to a packet than this.
const MOST_OVERHEAD: u16 = 256;
/// Longest keepalive, as in WireGuard.
const MOST_KEEPALIVE: Duration = Duration::from_secs(65_535);
/// Longest name of a peer or a trust domain.
const NAME_MAX: usize = 64;

/// Reads a private key file to learn the public key.
pub(super) type OwnKey<'k> = &'k dyn Fn(&Path) -> Result<PublicKey, KeyFileError>;

pub(super) fn read(text: &str, origin: &Path, own_key: OwnKey<'_>) -> Result<Config, ConfigError> {
    let findings = Findings::new(text);
    let (root, errors) = DeTable::parse_recoverable(text);
    for error in &errors {
        let span = error.span().unwrap_or(0..0);
        findings.note(span, Problem::Syntax { message: error.message().to_owned() });
    }
    // What follows a broken line is guesswork, and complaints about it would be noise.
    let config = if errors.is_empty() { document(&findings, &root, origin, own_key) } else { None };
    let found = findings.finish();
    match config {
        Some(config) if found.is_empty() => Ok(config),
        _ => Err(ConfigError::Invalid { path: origin.to_owned(), found }),
    }
}

fn document(
    findings: &Findings<'_>,
    root: &Spanned<DeTable<'_>>,
    origin: &Path,
    own_key: OwnKey<'_>,
) -> Option<Config> {
    let root = Section::new(findings, "the file", root.get_ref(), 0..0, SECTIONS);
    let node = one(&root, findings, "node", "[node]", NODE);
    if node.is_none() && root.value("node").is_none() {
        findings.note(0..0, Problem::Missing { key: "[node]", section: "the file", example: "[node]" });
    }
    let link = one(&root, findings, "link", "[link]", LINK).map(|section| link_section(&section));
    let session =
        one(&root, findings, "session", "[session]", SESSION).map(|section| session_section(&section));
    let peers = many(&root, findings, "peer", "[[peer]]", PEER);
    let peers: Vec<FoundPeer> = peers.iter().map(peer_section).collect();
    checks::peers(findings, &peers);
    let rules = many(&root, findings, "compress", "[[compress]]", compress::KEYS);
    let (rules, domains) = compress::rules(&rules);
    let (node, key) = node_section(&node?, origin, own_key);
    checks::own_key(findings, &peers, key);
    Some(Config {
        node: node?,
        link: link.unwrap_or_default(),
        session: session.unwrap_or_default(),
        peers: peers.into_iter().filter_map(FoundPeer::into_peer).collect(),
        rules,
        domains,
    })
}

/// The one table `[name]`.
fn one<'a>(
    root: &Section<'a>,
    findings: &'a Findings<'a>,
    key: &'static str,
    name: &'static str,
    known: &'static [&'static str],
) -> Option<Section<'a>> {
    let value = root.value(key)?;
    let Some(table) = value.get_ref().as_table() else {
        root.wrong_type(key, "a single section in brackets", value);
        return None;
    };
    Some(Section::new(findings, name, table, value.span(), known))
}

/// Every table `[[name]]`.
fn many<'a>(
    root: &Section<'a>,
    findings: &'a Findings<'a>,
    key: &'static str,
    name: &'static str,
    known: &'static [&'static str],
) -> Vec<Section<'a>> {
    let Some(value) = root.value(key) else { return Vec::new() };
    let Some(items) = value.get_ref().as_array() else {
        root.wrong_type(key, "a section in double brackets, one for each", value);
        return Vec::new();
    };
    let section = |item: &'a Spanned<DeValue<'a>>| match item.get_ref().as_table() {
        Some(table) => Some(Section::new(findings, name, table, item.span(), known)),
        None => {
            root.wrong_type(key, "a section in double brackets, one for each", item);
            None
        }
    };
    items.iter().filter_map(section).collect()
}

fn node_section(
    section: &Section<'_>,
    origin: &Path,
    own_key: OwnKey<'_>,
) -> (Option<Node>, Option<PublicKey>) {
    section.require("private_key_file", "private_key_file = \"strait.key\"");
    section.require("address", "address = [\"10.77.0.1/24\"]");
    let folder = origin.parent().unwrap_or(Path::new(""));
    let path = |text: &str| Ok::<PathBuf, Problem>(folder.join(text));
    let file = section.parsed("private_key_file", "the name of a file in quotes", path);
    let key = file.as_ref().and_then(|file| match own_key(&file.value) {
        Ok(key) => Some(key),
        Err(KeyFileError::Skipped) => None,
        Err(error) => {
            section.note(file.span.clone(), error);
            None
        }
    });
    let address = section.list("address", "a list of networks, as [\"10.77.0.1/24\"]", value::network);
    let interface = |name: &str| tun::check_name(name).map(|()| name.to_owned());
    let interface = section.parsed("interface", "a name in quotes", interface).map(|name| name.value);
    let export = section.parsed("danger_export_keys", "the name of a file in quotes", path);
    let node = file.map(|file| Node {
        private_key_file: file.value,
        address: address.into_iter().map(|address| address.value).collect(),
        listen: listen(section).unwrap_or(Listen::Port(0)),
        mtu: section.short("mtu", LEAST_MTU..=MOST_MTU).unwrap_or(DEFAULT_MTU),
        interface: interface.unwrap_or_else(|| "strait0".to_owned()),
        forward: section.boolean("forward").unwrap_or(false),
        fwmark: section.integer("fwmark", 1..=u32::MAX.into()).and_then(|mark| u32::try_from(mark).ok()),
        table: table(section).unwrap_or(Table::Auto),
        iv: section
            .choice("iv", &["implicit", "explicit"], &[IvMode::Implicit, IvMode::Explicit])
            .unwrap_or(IvMode::Implicit),
        suites: suites(section),
        metrics: metrics(section),
        danger_export_keys: export.map(|file| file.value),
    });
    (node, key)
}

const LISTEN_EXAMPLE: &str = "51820 or \"192.0.2.1:51820\"";

/// A port, or an address with a port.
fn listen(section: &Section<'_>) -> Option<Listen> {
    let value = section.value("listen")?;
    match value.get_ref() {
        DeValue::Integer(_) => section.short("listen", 0..=u16::MAX).map(Listen::Port),
        DeValue::String(text) => match text.parse() {
            Ok(address) => Some(Listen::Address(address)),
            Err(_) => {
                let (given, example) = (text.to_string(), LISTEN_EXAMPLE);
                section.note(value.span(), Problem::SocketAddress { given, example });
                None
            }
        },
        _ => {
            section.wrong_type("listen", "a port, or an address with a port in quotes", value);
            None
        }
    }
}

fn table(section: &Section<'_>) -> Option<Table> {
    match section.value("table")?.get_ref() {
        DeValue::Integer(_) => section
            .integer("table", 1..=u32::MAX.into())
            .and_then(|number| u32::try_from(number).ok())
            .map(Table::Number),
        _ => section.choice("table", &["auto", "off"], &[Table::Auto, Table::Off]),
    }
}

fn suites(section: &Section<'_>) -> SuiteSet {
    let listed = section.list("suites", "a list of suites, as [\"aes-128-gcm\"]", str::parse::<Suite>);
    let set = listed.iter().fold(SuiteSet::EMPTY, |set, suite| set.with(suite.value));
    match section.value("suites") {
        None => SuiteSet::ALL,
        Some(value) => {
            if section.items("suites").is_empty() {
                section.note(value.span(), Problem::Words { key: "suites", most: 3 });
            }
            set
        }
    }
}

fn metrics(section: &Section<'_>) -> Option<SocketAddr> {
    let parse = |given: &str| {
        let example = "\"127.0.0.1:9477\"";
        let address: Option<SocketAddr> = given.parse().ok();
        address.ok_or_else(|| Problem::SocketAddress { given: given.to_owned(), example })
    };
    section.parsed("metrics", "an address with a port in quotes", parse).map(|address| address.value)
}

fn link_section(section: &Section<'_>) -> Link {
    let rate = |key| section.parsed(key, "a rate in quotes, as \"1.5Mbit\"", str::parse::<Rate>);
    Link {
        up: rate("up").map(|rate| rate.value),
        down: rate("down").map(|rate| rate.value),
        overhead: section.short("overhead", 0..=MOST_OVERHEAD).unwrap_or(0),
    }
}

fn session_section(section: &Section<'_>) -> Session {
    let default = Lifetime::default();
    let span = span(section, "lifetime", Lifetime::SHORTEST, Lifetime::LONGEST, ["1m", "30d"]);
    let bytes = section.parsed("bytes", "a size in quotes, as \"64GiB\"", |text| {
        let bytes = value::size(text).map_err(Problem::from)?;
        let range = LEAST_LIFETIME_BYTES..=default.bytes;
        let (least, most) = (*range.start(), *range.end());
        let wrong = || Problem::Range { key: "bytes", given: text.to_owned(), least, most };
        range.contains(&bytes).then_some(bytes).ok_or_else(wrong)
    });
    let packets = section.integer("packets", LEAST_LIFETIME_PACKETS..=default.packets);
    Session {
        lifetime: Lifetime {
            soft: span.unwrap_or(default.soft),
            bytes: bytes.map_or(default.bytes, |bytes| bytes.value),
            packets: packets.unwrap_or(default.packets),
        },
    }
}

/// Keys for less than a megabyte would be used up while the next are being made.
const LEAST_LIFETIME_BYTES: u64 = 1 << 20;
/// As many packets as fill that megabyte.
const LEAST_LIFETIME_PACKETS: u64 = 1 << 10;

/// A time span between `least` and `most`, which are written so for people.
fn span(
    section: &Section<'_>,
    key: &'static str,
    least: Duration,
    most: Duration,
    written: [&'static str; 2],
) -> Option<Duration> {
    let parse = |given: &str| {
        let span = value::duration(given).map_err(Problem::from)?;
        let [shortest, longest] = written;
        let wrong = || Problem::Span { key, given: given.to_owned(), least: shortest, most: longest };
        (least..=most).contains(&span).then_some(span).ok_or_else(wrong)
    };
    section.parsed(key, "a time span in quotes, as \"25s\" or \"1h\"", parse).map(|span| span.value)
}

fn peer_section(section: &Section<'_>) -> FoundPeer {
    section.require("public_key", "public_key = \"AAAA...=\" as `strait pubkey` prints it");
    section.require("allowed_ips", "allowed_ips = [\"10.77.0.2/32\"]");
    let key = section.parsed("public_key", "a public key in quotes", str::parse::<PublicKey>);
    let name = section.parsed("name", "a name in quotes", |text| words("name", text));
    let endpoint = section.parsed("endpoint", "a host with a port in quotes", str::parse::<Endpoint>);
    let prefixes = section.list("allowed_ips", "a list of networks, as [\"10.77.0.2/32\"]", value::network);
    let prefixes: Vec<_> =
        prefixes.into_iter().map(|Placed { value, span }| Placed { value: value.trunc(), span }).collect();
    let keepalive = span(section, "keepalive", Duration::from_secs(1), MOST_KEEPALIVE, ["1s", "65535s"]);
    let kinds = [PeerPayloads::Strait, PeerPayloads::Standard];
    let payloads =
        section.choice("payloads", &["strait", "standard"], &kinds).unwrap_or(PeerPayloads::Strait);
    let mtu = section.short("mtu", LEAST_PATH_MTU..=u16::MAX);
    let mut allowed_ips: Vec<_> = prefixes.iter().map(|prefix| prefix.value).collect();
    allowed_ips.sort_unstable();
    allowed_ips.dedup();
    let peer = key.as_ref().map(|key| Peer {
        name: name.as_ref().map_or_else(|| key.value.to_string(), |name| name.value.clone()),
        public_key: key.value,
        endpoint: endpoint.as_ref().map(|endpoint| endpoint.value.clone()),
        allowed_ips,
        keepalive,
        mtu,
        payloads,
        line: section.line(),
    });
    FoundPeer { peer, key, name, endpoint, prefixes }
}

pub(super) fn words(key: &'static str, text: &str) -> Result<String, Problem> {
    let fits = (1..=NAME_MAX).contains(&text.chars().count()) && !text.chars().any(char::is_control);
    if fits { Ok(text.to_owned()) } else { Err(Problem::Words { key, most: NAME_MAX }) }
}
