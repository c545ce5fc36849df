//! `[[peer]]`: whom a node talks to.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use ipnet::IpNet;
use strait_keying::{CarrierMode, PublicKey, RepairMode, Start};
use strait_scheduler::metering::Cap;

use super::beside::Beside;
use super::checks::FoundPeer;
use super::manual::{self, Manual, ManualProblem};
use super::problem::Problem;
use super::reader::{Placed, Section};
use super::sections::{span, words};
use super::sessionless::{self, SessionlessSection};
use super::{kerberos, metering, value};
use crate::services::UNLISTED;

pub(super) const KEYS: &[&str] = &[
    "name",
    "public_key",
    "endpoint",
    "allowed_ips",
    "keepalive",
    "mtu",
    "payloads",
    "repair",
    "carrier",
    "keying",
    "one_way",
    "epoch",
    "pin",
    "card",
    "kerberos",
    "broker",
    "via",
    "cap",
    "manual",
];

/// What [`PeerSection::kerberos`] is.
const SERVICE: &str = "a service's name in quotes, as \"strait@server.example.org\"";

/// Every IPv4 host takes packets of this size (RFC 791 section 3.1).
const LEAST_PATH_MTU: u16 = 576;
/// Longest keepalive, as in WireGuard.
const MOST_KEEPALIVE: Duration = Duration::from_secs(65_535);

/// `[[peer]]`.
#[derive(Clone, Debug, PartialEq)]
pub struct PeerSection {
    /// What people call it; its public key when the file gives no name.
    pub name: String,
    /// Where the keys for it come from.
    pub keys: PeerKeys,
    /// Where it is reached, if that is known.
    pub endpoint: Option<Endpoint>,
    /// Inner addresses that are its own, without host bits.
    pub allowed_ips: Vec<IpNet>,
    /// Longest silence towards it.
    pub keepalive: Option<Duration>,
    /// Largest outer packet on the path to it.
    pub mtu: Option<u16>,
    /// The name that its login service has with Kerberos, if logins there take a ticket.
    pub kerberos: Option<String>,
    /// Whether it is a broker, which holds objects for others.
    pub broker: bool,
    /// The name of the broker that `send` uses while the peer is away.
    pub via: Option<String>,
    /// What keys that need no session are like, if it has those.
    pub sessionless: Option<Box<SessionlessSection>>,
    /// Wire bytes that may cross to and from it in a period, if that is bounded.
    pub cap: Option<Cap>,
    /// When its session begins.
    pub start: Start,
    /// Where in the file it is described.
    pub line: usize,
}

/// Where the keys for a peer come from.
#[derive(Clone, Debug, PartialEq)]
pub enum PeerKeys {
    /// Those of the node that has this public key: agreed in sessions, or without.
    Session {
        /// Who it is.
        public_key: PublicKey,
        /// What it understands.
        payloads: PeerPayloads,
        /// Whether losses are repaired.
        repair: RepairMode,
        /// What carries ESP.
        carrier: CarrierMode,
    },
    /// They are in the file.
    Manual(Box<Manual>),
}

/// What a peer understands inside ESP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PeerPayloads {
    /// Bundles and blocks.
    Strait,
    /// Raw packets and IPComp.
    Standard,
}

/// Where a peer is reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Endpoint {
    /// At an address and port.
    Address(SocketAddr),
    /// At whatever address this name has, `host:port`.
    Name(String),
    /// At an address, directly behind IP.
    Host(IpAddr),
}

impl Endpoint {
    /// The address, if it is known before a name is looked up.
    #[must_use]
    pub const fn ip(&self) -> Option<IpAddr> {
        match self {
            Endpoint::Address(address) => Some(address.ip()),
            Endpoint::Host(address) => Some(*address),
            Endpoint::Name(_) => None,
        }
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Endpoint::Address(address) => address.fmt(f),
            Endpoint::Name(name) => f.write_str(name),
            Endpoint::Host(address) => address.fmt(f),
        }
    }
}

impl PeerSection {
    /// Who the peer is, if it proves that by a key pair.
    #[must_use]
    pub const fn public_key(&self) -> Option<&PublicKey> {
        match &self.keys {
            PeerKeys::Session { public_key, .. } => Some(public_key),
            PeerKeys::Manual(_) => None,
        }
    }

    /// Whether ESP is to go directly behind IP, with keys of sessions.
    #[must_use]
    pub const fn wants_direct(&self) -> bool {
        matches!(self.keys, PeerKeys::Session { carrier: CarrierMode::Ip, .. })
    }

    /// What protects the traffic with it, if its keys are in the file.
    #[must_use]
    pub const fn manual(&self) -> Option<&Manual> {
        match &self.keys {
            PeerKeys::Session { .. } => None,
            PeerKeys::Manual(manual) => Some(manual),
        }
    }
}

/// What every kind of peer has.
struct Common {
    name: Option<Placed<String>>,
    prefixes: Vec<Placed<IpNet>>,
    keepalive: Option<Duration>,
    mtu: Option<u16>,
    kerberos: Option<String>,
    broker: bool,
    via: Option<Placed<String>>,
    cap: Option<Cap>,
}

/// A peer, of a node with a tunnel or without.
pub(super) fn read(section: &Section<'_>, beside: &Beside<'_>, tunnel: bool) -> FoundPeer {
    let common = Common {
        name: section.parsed("name", "a name in quotes", name_of_peer),
        prefixes: section.list("allowed_ips", "a list of networks, as [\"10.77.0.2/32\"]", value::network),
        keepalive: span(section, "keepalive", Duration::from_secs(1), MOST_KEEPALIVE, ["1s", "65535s"]),
        mtu: section.short("mtu", LEAST_PATH_MTU..=u16::MAX),
        kerberos: section.parsed("kerberos", SERVICE, kerberos::service_of_host).map(|service| service.value),
        broker: section.boolean("broker").unwrap_or(false),
        via: section.parsed("via", "the name of a broker in quotes", |name| words("via", name)),
        cap: metering::cap_of_peer(section),
    };
    match section.value("manual") {
        Some(_) => manual(section, common, beside),
        None => session(section, common, tunnel),
    }
}

/// A peer with which keys are agreed.
fn session(section: &Section<'_>, common: Common, tunnel: bool) -> FoundPeer {
    section.require("public_key", "public_key = \"AAAA...=\" as `strait pubkey` prints it");
    if tunnel {
        section.require("allowed_ips", "allowed_ips = [\"10.77.0.2/32\"]");
    }
    let key = section.parsed("public_key", "a public key in quotes", str::parse::<PublicKey>);
    let endpoint = section.parsed("endpoint", "a host with a port in quotes", str::parse::<Endpoint>);
    let kinds = [PeerPayloads::Strait, PeerPayloads::Standard];
    let payloads =
        section.choice("payloads", &["strait", "standard"], &kinds).unwrap_or(PeerPayloads::Strait);
    let repair = section.choice("repair", &["auto", "off"], &[RepairMode::Auto, RepairMode::Off]);
    let carrier = carrier(section, payloads);
    let peer = key.as_ref().map(|key| {
        let repair = repair.unwrap_or_default();
        let keys = PeerKeys::Session { public_key: key.value, payloads, repair, carrier };
        let name = common.name.as_ref().map_or_else(|| key.value.to_string(), |name| name.value.clone());
        let sessionless = sessionless::read(section, key.value);
        PeerSection { sessionless, ..common.peer(name, keys, endpoint.as_ref(), section) }
    });
    let Common { name, prefixes, via, .. } = common;
    FoundPeer { peer, key, name, endpoint, prefixes, via, manual: None }
}

/// What carries ESP of sessions with a peer; directly behind IP, probes have to tell whether it passes.
fn carrier(section: &Section<'_>, payloads: PeerPayloads) -> CarrierMode {
    let known = [CarrierMode::Udp, CarrierMode::Ip];
    let carrier = section.choice_or("carrier", &["udp", "ip"], &known).unwrap_or_default();
    let sessionless =
        section.value("keying").is_some_and(|value| value.get_ref().as_str() == Some("sessionless"));
    if carrier == CarrierMode::Ip
        && (sessionless || payloads == PeerPayloads::Standard)
        && let Some(value) = section.value("carrier")
    {
        section.note(value.span(), Problem::CarrierNeedsProbes);
    }
    carrier
}

/// A peer whose keys are in the file.
fn manual(section: &Section<'_>, mut common: Common, beside: &Beside<'_>) -> FoundPeer {
    section.require("name", "name = \"gateway\"");
    let mut found = manual::read(section, beside);
    if let Some(value) = section.value("public_key") {
        section.note(value.span(), ManualProblem::TwoKindsOfKeys);
    }
    if found.is_tunnel {
        section.require("allowed_ips", "allowed_ips = [\"10.77.0.2/32\"]");
    } else if let Some(hosts) = found.manual.as_ref().and_then(Manual::hosts) {
        common.prefixes = vec![remote(section, &common.prefixes, hosts.remote)];
    }
    let keys = found.manual.take().map(|manual| PeerKeys::Manual(Box::new(manual)));
    let peer = keys
        .zip(common.name.as_ref())
        .map(|(keys, name)| common.peer(name.value.clone(), keys, found.endpoint.as_ref(), section));
    for key in sessionless::KEYS {
        if let Some(value) = section.value(key) {
            section.note(value.span(), ManualProblem::TwoKindsOfKeys);
        }
    }
    // Keys in the file have no streams.
    for key in ["broker", "via"] {
        if let Some(value) = section.value(key) {
            section.note(value.span(), ManualProblem::Streams { key });
        }
    }
    let Common { name, prefixes, .. } = common;
    FoundPeer { peer, key: None, name, endpoint: None, prefixes, via: None, manual: Some(found) }
}

/// The one address of a peer in transport mode, whatever was written, so that no other peer can have it.
fn remote(section: &Section<'_>, written: &[Placed<IpNet>], remote: IpAddr) -> Placed<IpNet> {
    let value = IpNet::from(remote);
    for Placed { span, .. } in written.iter().filter(|prefix| prefix.value != value) {
        section.note(span.clone(), ManualProblem::TransportNetworks { remote });
    }
    let span = written.first().map_or(section.span(), |prefix| prefix.span.clone());
    Placed { value, span }
}

impl Common {
    fn peer(
        &self,
        name: String,
        keys: PeerKeys,
        endpoint: Option<&Placed<Endpoint>>,
        section: &Section<'_>,
    ) -> PeerSection {
        let mut allowed_ips: Vec<_> = self.prefixes.iter().map(|prefix| prefix.value).collect();
        allowed_ips.sort_unstable();
        allowed_ips.dedup();
        PeerSection {
            name,
            keys,
            endpoint: endpoint.map(|endpoint| endpoint.value.clone()),
            allowed_ips,
            keepalive: self.keepalive,
            mtu: self.mtu,
            kerberos: self.kerberos.clone(),
            broker: self.broker,
            via: self.via.as_ref().map(|via| via.value.clone()),
            sessionless: None,
            cap: self.cap,
            start: Start::Eager,
            line: section.line(),
        }
    }
}

/// A name that is not what nodes are called that the file does not list.
fn name_of_peer(text: &str) -> Result<String, Problem> {
    let name = words("name", text)?;
    if name == UNLISTED { Err(Problem::ReservedName { name }) } else { Ok(name) }
}
