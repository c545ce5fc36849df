//! Reads `[peer.manual]`: the ends, the carrier, and what the whole amounts to.

use std::cell::RefCell;
use std::net::IpAddr;
use std::ops::Range;
use std::path::PathBuf;

use strait_ipsec::{Fragments, SequenceNumbers};
use strait_wire::Spi;

use super::key::{LegacyAlgorithms, Sealing};
use super::problem::ManualProblem;
use super::{Hosts, Manual, ManualCarrier, ManualEsp, ManualMode, ManualProtection, inside, protocols};
use crate::config::beside::Beside;
use crate::config::problem::Problem;
use crate::config::reader::{Placed, Section};
use crate::config::{Endpoint, value};

const KEYS: &[&str] = &[
    "mode",
    "carrier",
    "local",
    "esn",
    "ipcomp",
    "cpi_in",
    "cpi_out",
    "aggfrag",
    "outer_fragmentation",
    "counter_file",
    "danger_plain",
    "danger_roaming",
    "danger_legacy",
    "esp",
    "ah",
];

/// A peer's manual keys as far as they could be read, with the places of what no other peer may have.
#[derive(Default)]
pub(in crate::config) struct FoundManual {
    pub(in crate::config) manual: Option<Manual>,
    pub(in crate::config) endpoint: Option<Placed<Endpoint>>,
    /// The SPIs that it is received with.
    pub(in crate::config) spis: Vec<Placed<Spi>>,
    pub(in crate::config) counter_file: Option<Placed<PathBuf>>,
    /// Keys that go with a counter.
    pub(in crate::config) sealing: Vec<Placed<Sealing>>,
    /// Where packets come from that have no SPI.
    pub(in crate::config) alone: Option<Placed<IpAddr>>,
    /// Where it begins.
    pub(in crate::config) place: Range<usize>,
    /// Whether UDP carries the packets.
    pub(in crate::config) is_udp: bool,
    /// Whether it has networks of its own.
    pub(in crate::config) is_tunnel: bool,
}

/// What carries the packets.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Over {
    Udp,
    Ip,
}

/// The section, with what it and its parts are read with.
pub(super) struct SectionReader<'a> {
    peer: &'a Section<'a>,
    pub(super) section: Section<'a>,
    pub(super) esp: Option<Section<'a>>,
    pub(super) ah: Option<Section<'a>>,
    pub(super) beside: &'a Beside<'a>,
    pub(super) over: Over,
    pub(super) transport: bool,
    pub(super) legacy: LegacyAlgorithms,
    pub(super) spis: RefCell<Vec<Placed<Spi>>>,
    pub(super) sealing: RefCell<Vec<Placed<Sealing>>>,
}

/// Reads the manual keys of `peer`.
pub(in crate::config) fn read<'a>(peer: &'a Section<'a>, beside: &'a Beside<'a>) -> FoundManual {
    let Some(section) = peer.one("manual", "[peer.manual]", KEYS) else { return FoundManual::default() };
    let over = section.choice_or("carrier", &["udp", "ip"], &[Over::Udp, Over::Ip]);
    let transport = section.choice_or("mode", &["tunnel", "transport"], &[false, true]);
    // All else hangs on these two, and complaints about a guess would be noise.
    let (Some(over), Some(transport)) = (over, transport) else { return FoundManual::default() };
    let reader = SectionReader {
        peer,
        esp: section.one("esp", "[peer.manual.esp]", protocols::ESP),
        ah: section.one("ah", "[peer.manual.ah]", protocols::AH),
        legacy: legacy(&section, strait_crypto::HAS_LEGACY),
        section,
        beside,
        over,
        transport,
        spis: RefCell::default(),
        sealing: RefCell::default(),
    };
    reader.read()
}

/// Whether algorithms that no longer protect anything are allowed; this build may lack them.
fn legacy(section: &Section<'_>, is_built: bool) -> LegacyAlgorithms {
    match (section.value("danger_legacy"), section.boolean("danger_legacy")) {
        (Some(value), Some(true)) if !is_built => {
            section.note(value.span(), ManualProblem::LegacyNotBuilt);
            LegacyAlgorithms::NotBuilt
        }
        (_, Some(true)) => LegacyAlgorithms::Allowed,
        _ => LegacyAlgorithms::Refused,
    }
}

impl SectionReader<'_> {
    fn read(self) -> FoundManual {
        let endpoint = self.endpoint();
        let hosts = self.hosts(endpoint.as_ref());
        self.other_peers_keys();
        self.whole();
        let (ah, esp) = (self.ah(hosts), self.esp());
        let (inside, sequence, fragments) = (inside::read(&self), self.sequence(), self.fragments());
        let roams = self.roams();
        let counter_file = self.counter_file(esp.as_ref().and_then(Option::as_ref));
        let manual = || {
            let mode = if self.transport { ManualMode::Transport(hosts?) } else { ManualMode::Tunnel };
            let carrier = if self.over == Over::Ip { ManualCarrier::Ip(hosts?) } else { ManualCarrier::Udp };
            let counter_file = counter_file.as_ref().map(|file| file.value.clone());
            Some(Manual {
                mode,
                carrier,
                sequence,
                inside: inside?,
                fragments,
                roams,
                ah: ah?,
                esp: esp?,
                counter_file,
            })
        };
        let manual = manual();
        let place = self.section.span();
        let remote = hosts.filter(|_| self.is_alone()).map(|hosts| hosts.remote);
        FoundManual {
            manual,
            endpoint,
            counter_file,
            alone: remote.map(|value| Placed { value, span: place.clone() }),
            place,
            is_udp: self.over == Over::Udp,
            is_tunnel: !self.transport,
            spis: self.spis.into_inner(),
            sealing: self.sealing.into_inner(),
        }
    }

    /// Whether there is neither ESP nor AH.
    fn is_alone(&self) -> bool {
        self.esp.is_none() && self.ah.is_none()
    }

    /// An address, with a port where UDP carries the packets.
    fn endpoint(&self) -> Option<Placed<Endpoint>> {
        let peer = self.peer;
        if self.over == Over::Ip {
            peer.require("endpoint", "endpoint = \"192.0.2.2\"");
            let wanted = "an address in quotes, as \"192.0.2.2\"";
            return peer.parsed("endpoint", wanted, |text| value::host(text).map(Endpoint::Host));
        }
        if self.transport {
            peer.require("endpoint", "endpoint = \"192.0.2.2:4500\"");
        }
        peer.parsed("endpoint", "an address with a port in quotes", |text| match text.parse()? {
            Endpoint::Name(name) => Err(Problem::from(ManualProblem::NamedEndpoint { name })),
            endpoint => Ok(endpoint),
        })
    }

    /// The two ends outside, where they have to be agreed.
    fn hosts(&self, endpoint: Option<&Placed<Endpoint>>) -> Option<Hosts> {
        if self.over == Over::Udp && !self.transport {
            self.unused("local", "it is only for carrier = \"ip\" and transport mode");
            return None;
        }
        self.section.require("local", "local = \"192.0.2.1\", the local outer address");
        let local = self.section.parsed("local", "an address in quotes, as \"192.0.2.1\"", value::host)?;
        let remote = endpoint?.value.ip()?;
        if local.value.is_ipv4() != remote.is_ipv4() {
            self.section.note(local.span, ManualProblem::MixedFamilies { local: local.value, remote });
            return None;
        }
        Some(Hosts { local: local.value, remote })
    }

    /// What is said of peers of other kinds only.
    fn other_peers_keys(&self) {
        unused(self.peer, "payloads", "[peer.manual] sets the payloads");
        unused(self.peer, "carrier", "[peer.manual] has a carrier of its own");
        unused(self.peer, "repair", "losses are repaired between nodes with session keys only");
        if self.over == Over::Ip {
            unused(self.peer, "keepalive", "keepalives need UDP, not `carrier = \"ip\"`");
        }
    }

    /// What the protocols, taken together, lack.
    fn whole(&self) {
        if !self.is_alone() {
            return;
        }
        let allowed = self.section.boolean("danger_plain").unwrap_or(false);
        let problem = match (self.over, self.section.value("ipcomp")) {
            (Over::Udp, _) => ManualProblem::NothingOverUdp,
            (Over::Ip, None) => ManualProblem::NoProtocol,
            (Over::Ip, Some(_)) if !allowed => ManualProblem::Plain,
            (Over::Ip, Some(_)) => {
                self.unused("esn", "IPComp alone has no sequence numbers");
                return self.unused("counter_file", "IPComp alone has no sequence numbers");
            }
        };
        self.section.note(self.section.span(), problem);
    }

    fn sequence(&self) -> SequenceNumbers {
        let esn = self.section.boolean("esn").unwrap_or(false);
        if esn { SequenceNumbers::Bits64 } else { SequenceNumbers::Bits32 }
    }

    fn fragments(&self) -> Fragments {
        if self.over == Over::Udp {
            self.unused("outer_fragmentation", "UDP datagrams are never fragmented");
        }
        if self.section.boolean("outer_fragmentation").unwrap_or(false) {
            Fragments::Outer
        } else {
            Fragments::Never
        }
    }

    /// Whether the peer may move. Its packets prove nothing new after a restart, so its address has to be known if not.
    fn roams(&self) -> bool {
        let roams = self.section.boolean("danger_roaming").unwrap_or(false);
        if roams && self.over == Over::Ip {
            self.unused("danger_roaming", "directly over IP, a peer stays at its endpoint");
        } else if self.over == Over::Udp && !roams && !self.transport && self.peer.value("endpoint").is_none()
        {
            self.section.note(self.section.span(), ManualProblem::NoEndpoint);
        }
        roams
    }

    fn counter_file(&self, esp: Option<&ManualEsp>) -> Option<Placed<PathBuf>> {
        let seals = matches!(esp, Some(ManualEsp { protection: ManualProtection::Aead(_), .. }));
        if seals && self.section.value("counter_file").is_none() {
            self.section.note(self.section.span(), ManualProblem::NoCounterFile);
        }
        let path = |text: &str| Ok::<PathBuf, Problem>(self.beside.path(text));
        self.section.parsed("counter_file", "the name of a file in quotes", path)
    }

    /// Notes a problem of the value of `key`.
    pub(super) fn note_at(&self, key: &str, problem: ManualProblem) {
        let span = self.section.value(key).map_or(self.section.span(), |value| value.span());
        self.section.note(span, problem);
    }

    /// Notes `key`, if it is there, as something that changes nothing.
    pub(super) fn unused(&self, key: &'static str, why: &'static str) {
        unused(&self.section, key, why);
    }
}

/// Notes `key` of `section`, if it is there, as something that changes nothing.
pub(super) fn unused(section: &Section<'_>, key: &'static str, why: &'static str) {
    if let Some(value) = section.value(key) {
        section.note(value.span(), ManualProblem::NoUse { key, why });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::reader::Findings;
    use toml::de::DeTable;

    #[test]
    fn a_build_without_historic_algorithms_says_how_to_get_them() {
        for (text, is_built, expected, mistakes) in [
            ("danger_legacy = true", false, LegacyAlgorithms::NotBuilt, 1),
            ("danger_legacy = true", true, LegacyAlgorithms::Allowed, 0),
            ("danger_legacy = false", false, LegacyAlgorithms::Refused, 0),
            ("", false, LegacyAlgorithms::Refused, 0),
        ] {
            let (findings, table) = (Findings::new(text), DeTable::parse(text).unwrap());
            let section = Section::new(&findings, "[peer.manual]", table.get_ref(), table.span(), KEYS);
            assert_eq!(legacy(&section, is_built), expected);
            let found = findings.finish();
            assert_eq!(found.len(), mistakes, "{text}");
            for mistake in found {
                let said = mistake.problem.to_string();
                assert_eq!((mistake.line, mistake.column), (1, 17));
                assert!(said.contains("--features danger-legacy"), "{said}");
            }
        }
    }
}
