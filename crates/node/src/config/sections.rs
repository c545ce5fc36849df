//! The sections of the file and their keys, in the order of the documentation.

use std::net::SocketAddr;
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::time::Duration;

use strait_crypto::{Suite, SuiteSet};
use strait_ipsec::IvMode;
use strait_keying::{Lifetime, PublicKey};
use strait_scheduler::LinkRate;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::beside::{Beside, Files};
use super::checks::{self, FoundPeer};
use super::forward::forward;
use super::problem::Problem;
use super::queueing::queueing;
use super::reader::{Findings, Section};
use super::{Config, ConfigError, KeyFileError, LinkSection, Mss, NodeSection, Price, RouteTable, Session};
use super::{broker, compress, directory, folder, kerberos, login, metering, outside, peer, value};
use crate::memory;
use crate::tun;
use crate::udp::Listen;

const SECTIONS: &[&str] =
    &["node", "link", "session", "peer", "compress", "folder", "login", "kerberos", "broker", "directory"];
const NODE: &[&str] = &[
    "private_key_file",
    "token_file",
    "address",
    "listen",
    "mtu",
    "mss",
    "block",
    "engines",
    "interface",
    "tunnel",
    "peers",
    "forward",
    "fwmark",
    "table",
    "lockdown",
    "allow_outside",
    "dns",
    "dns_search",
    "iv",
    "suites",
    "metrics",
    "web",
    "web_token_file",
    "user",
    "group",
    "keep_sent",
    "memory",
    "cache_dir",
    "danger_open_metrics",
    "danger_export_keys",
];
const LINK: &[&str] = &[
    "up",
    "down",
    "overhead",
    "price",
    "window",
    "hold",
    "interactive",
    "bulk",
    "aqm",
    "acks",
    "cap",
    "cap_reset_day",
    "cap_overhead",
    "cap_warn",
    "cap_bulk_window",
    "cap_stop_bulk",
    "cap_interactive_only",
    "bulk_between",
    "on_cap",
    "quiet",
];
const SESSION: &[&str] = &["lifetime", "bytes", "packets"];

/// Inner MTU when the file says nothing: WireGuard's, and our overhead is no larger.
pub(crate) const DEFAULT_MTU: u16 = 1420;
/// The inner MTU never goes below what IPv6 demands of a link (RFC 8200 section 5).
const LEAST_MTU: u16 = 1280;
/// Largest inner packet that still fits one outer IP packet with everything around it.
const MOST_MTU: u16 = 65_000;
/// Least cap on blocks: a packet of a 1,500-byte path, and what goes along.
const LEAST_BLOCK: u32 = 2_048;
/// Most bytes of a block, and the cap where the file says nothing: one offloaded super-packet.
const MOST_BLOCK: u32 = 65_536;
/// Most engines: more than one thread can gather packets for.
pub(crate) const ENGINES_MAX: usize = 64;
/// No link layer adds more to a packet than this.
const MOST_OVERHEAD: u16 = 256;
/// Longest name of a peer or a trust domain.
const NAME_MAX: usize = 64;

pub(super) fn read(text: &str, origin: &Path, files: &dyn Files) -> Result<Config, ConfigError> {
    let findings = Findings::new(text);
    let (root, errors) = DeTable::parse_recoverable(text);
    for error in &errors {
        let span = error.span().unwrap_or(0..0);
        findings.note(span, Problem::Syntax { message: error.message().to_owned() });
    }
    // What follows a broken line is guesswork, and complaints about it would be noise.
    let beside = Beside::new(origin, files);
    let config = if errors.is_empty() { document(&findings, &root, &beside) } else { None };
    let found = findings.finish();
    match config {
        Some(config) if found.is_empty() => Ok(config),
        _ => Err(ConfigError::Invalid { path: origin.to_owned(), found }),
    }
}

fn document(findings: &Findings<'_>, root: &Spanned<DeTable<'_>>, beside: &Beside<'_>) -> Option<Config> {
    let root = Section::new(findings, "the file", root.get_ref(), 0..0, SECTIONS);
    let node = root.one("node", "[node]", NODE);
    if node.is_none() && root.value("node").is_none() {
        findings.note(0..0, Problem::Missing { key: "[node]", section: "the file", example: "[node]" });
    }
    let mut link = root.one("link", "[link]", LINK).map(|section| link_section(&section)).unwrap_or_default();
    let session = root.one("session", "[session]", SESSION).map(|section| session_section(&section));
    let peers = root.many("peer", "[[peer]]", peer::KEYS);
    let holder = root.one("broker", "[broker]", broker::KEYS);
    let tunnel = node.as_ref().and_then(|node| node.boolean("tunnel")).unwrap_or(holder.is_none());
    let mut peers: Vec<FoundPeer> = peers.iter().map(|section| peer::read(section, beside, tunnel)).collect();
    checks::peers(findings, &peers);
    let rules = root.many("compress", "[[compress]]", compress::KEYS);
    let (rules, domains) = compress::rules(&rules);
    let shared = root.many("folder", "[[folder]]", folder::KEYS);
    let folders = folder::folders(&shared, beside, &peers);
    let logins = login::logins(&root.many("login", "[[login]]", login::KEYS), &peers);
    let kerberos = root.one("kerberos", "[kerberos]", kerberos::KEYS);
    let kerberos = kerberos.map(|section| kerberos::read(&section, beside)).unwrap_or_default();
    let holds = holder.map(|section| broker::broker(&section, beside, &peers));
    let section = node?;
    if holds.is_some() {
        checks::without_tunnel(&section);
    }
    let (node, key) = node_section(&section, beside, tunnel);
    let follows = root.one("directory", "[directory]", directory::KEYS);
    checks::directory(&section, follows.as_ref());
    let follows = follows.and_then(|section| {
        let read = directory::directory(&section)?;
        checks::daily_keys(&section, &read, &peers);
        Some(read)
    });
    checks::own_key(findings, &peers, key);
    checks::needs(&section, &node, &peers);
    let quiet_losses = match link.metered.quiet {
        true => metering::hush(&mut link, &mut peers, follows.is_some()),
        false => Vec::new(),
    };
    Some(Config {
        node,
        link,
        quiet_losses,
        session: session.unwrap_or_default(),
        peers: peers.into_iter().filter_map(FoundPeer::into_peer).collect(),
        rules,
        domains,
        folders,
        logins,
        kerberos,
        broker: holds.flatten(),
        directory: follows,
        access: beside.files.access(),
    })
}

fn node_section(
    section: &Section<'_>,
    beside: &Beside<'_>,
    tunnel: bool,
) -> (NodeSection, Option<PublicKey>) {
    let path = |text: &str| Ok::<PathBuf, Problem>(beside.path(text));
    let file = section.parsed("private_key_file", "the name of a file in quotes", path);
    let key = file.as_ref().and_then(|file| match beside.files.own_key(&file.value) {
        Ok(key) => Some(key),
        Err(KeyFileError::Skipped) => None,
        Err(error) => {
            section.note(file.span.clone(), error);
            None
        }
    });
    let token = section.parsed("token_file", "the name of a file in quotes", path);
    if let Some(file) = &token
        && let Err(error) = beside.files.token(&file.value)
        && !matches!(error, KeyFileError::Skipped)
    {
        section.note(file.span.clone(), error);
    }
    let address = section.list("address", "a list of networks, as [\"10.77.0.1/24\"]", value::address);
    let interface = |name: &str| tun::check_name(name).map(|()| name.to_owned());
    let interface = section.parsed("interface", "a name in quotes", interface).map(|name| name.value);
    let export = section.parsed("danger_export_keys", "the name of a file in quotes", path);
    let node = NodeSection {
        private_key_file: file.map(|file| file.value),
        token_file: token.map(|file| file.value),
        address: address.into_iter().map(|address| address.value).collect(),
        listen: listen(section).unwrap_or(Listen::Port(0)),
        mtu: section.short("mtu", LEAST_MTU..=MOST_MTU).unwrap_or(DEFAULT_MTU),
        mss: section.choice("mss", &["auto", "off"], &[Mss::Auto, Mss::Off]).unwrap_or(Mss::Auto),
        block: block(section),
        engines: engines(section),
        interface: interface.unwrap_or_else(|| "strait0".to_owned()),
        tunnel,
        forward: forward(section),
        fwmark: section.integer("fwmark", 1..=u32::MAX.into()).and_then(|mark| u32::try_from(mark).ok()),
        table: table(section).unwrap_or(RouteTable::Auto),
        lockdown: section.boolean("lockdown").unwrap_or(false),
        allow_outside: outside::networks(section),
        dns: outside::servers(section),
        dns_search: outside::search(section),
        iv: section
            .choice("iv", &["implicit", "explicit"], &[IvMode::Implicit, IvMode::Explicit])
            .unwrap_or(IvMode::Implicit),
        suites: suites(section),
        metrics: metrics(section),
        web: web(section),
        web_token_file: web_token_file(section, beside),
        user: section.parsed("user", "a name in quotes", |name| words("user", name)).map(|name| name.value),
        group: section
            .parsed("group", "a name in quotes", |name| words("group", name))
            .map(|name| name.value),
        keep_sent: keep_sent(section),
        memory: kept_memory(section),
        cache_dir: section
            .parsed("cache_dir", "the name of a folder in quotes", path)
            .map(|folder| folder.value),
        danger_export_keys: export.map(|file| file.value),
    };
    (node, key)
}

/// Bytes of copies of what was sent.
fn keep_sent(section: &Section<'_>) -> Option<u64> {
    let wanted = "a size in quotes, as \"2GiB\"";
    let size = section.parsed("keep_sent", wanted, |text| value::size(text).map_err(Problem::from))?;
    (size.value > 0).then_some(size.value)
}

/// Bytes of memory for what is kept of peers' data.
fn kept_memory(section: &Section<'_>) -> Option<u64> {
    let read = |text: &str| {
        let bytes = value::size(text).map_err(Problem::from)?;
        if bytes < memory::LEAST { Err(Problem::Memory { given: bytes }) } else { Ok(bytes) }
    };
    section.parsed("memory", "a size in quotes, as \"256MiB\"", read).map(|size| size.value)
}

/// The cap on blocks, in bytes.
fn block(section: &Section<'_>) -> u32 {
    let given = section.integer("block", LEAST_BLOCK.into()..=MOST_BLOCK.into());
    given.and_then(|bytes| u32::try_from(bytes).ok()).unwrap_or(MOST_BLOCK)
}

/// How many threads compress.
fn engines(section: &Section<'_>) -> Option<NonZero<usize>> {
    let given = section.integer("engines", 1..=ENGINES_MAX as u64)?;
    usize::try_from(given).ok().and_then(NonZero::new)
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

fn table(section: &Section<'_>) -> Option<RouteTable> {
    match section.value("table")?.get_ref() {
        DeValue::Integer(_) => section
            .integer("table", 1..=u32::MAX.into())
            .and_then(|number| u32::try_from(number).ok())
            .map(RouteTable::Number),
        _ => section.choice("table", &["auto", "off"], &[RouteTable::Auto, RouteTable::Off]),
    }
}

fn suites(section: &Section<'_>) -> SuiteSet {
    let listed = section.list("suites", "a list of suites, as [\"aes-128-gcm\"]", str::parse::<Suite>);
    let set = listed.iter().fold(SuiteSet::EMPTY, |set, suite| set.with(suite.value));
    match section.value("suites") {
        None => SuiteSet::UNCUT,
        Some(value) => {
            if section.items("suites").is_empty() {
                section.note(value.span(), Problem::Words { key: "suites", most: Suite::COUNT });
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
    let is_open = section.boolean("danger_open_metrics").unwrap_or(false);
    let address = section.parsed("metrics", "an address with a port in quotes", parse)?;
    if !is_open && !super::is_loopback(address.value) {
        section.note(address.span, Problem::OpenMetrics { address: address.value });
    }
    Some(address.value)
}

/// Where the page is served; for other hosts with a token only.
fn web(section: &Section<'_>) -> Option<SocketAddr> {
    let parse = |given: &str| {
        let example = "\"127.0.0.1:9478\"";
        let address: Option<SocketAddr> = given.parse().ok();
        address.ok_or_else(|| Problem::SocketAddress { given: given.to_owned(), example })
    };
    let address = section.parsed("web", "an address with a port in quotes", parse)?;
    if section.value("web_token_file").is_none() && !super::is_loopback(address.value) {
        section.note(address.span, Problem::OpenWeb { address: address.value });
    }
    Some(address.value)
}

fn web_token_file(section: &Section<'_>, beside: &Beside<'_>) -> Option<PathBuf> {
    let path = |text: &str| Ok::<PathBuf, Problem>(beside.path(text));
    let file = section.parsed("web_token_file", "the name of a file in quotes", path)?;
    if section.value("web").is_none() {
        let problem = Problem::Missing {
            key: "web",
            section: "[node] with `web_token_file`",
            example: "web = \"127.0.0.1:9478\"",
        };
        section.note(file.span.clone(), problem);
    }
    if let Err(error) = beside.files.web_token(&file.value)
        && !matches!(error, KeyFileError::Skipped)
    {
        section.note(file.span, error);
    }
    Some(file.value)
}

fn link_section(section: &Section<'_>) -> LinkSection {
    let rate = |key| {
        let rate =
            section.parsed(key, "a rate in quotes, as \"1.5Mbit\", or \"auto\"", str::parse::<LinkRate>);
        rate.map_or(LinkRate::Unpaced, |rate| rate.value)
    };
    LinkSection {
        up: rate("up"),
        down: rate("down"),
        overhead: section.short("overhead", 0..=MOST_OVERHEAD).unwrap_or(0),
        price: section
            .parsed("price", "a price in quotes, as \"8/GB\"", str::parse::<Price>)
            .map(|it| it.value),
        queueing: queueing(section),
        metered: metering::metered(section),
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
pub(super) fn span(
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

pub(super) fn words(key: &'static str, text: &str) -> Result<String, Problem> {
    let fits = (1..=NAME_MAX).contains(&text.chars().count()) && !text.chars().any(char::is_control);
    if fits { Ok(text.to_owned()) } else { Err(Problem::Words { key, most: NAME_MAX }) }
}
