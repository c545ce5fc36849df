//! `forward`: what peers may reach beyond this node.

use std::fmt;

use ipnet::IpNet;
use toml::de::DeValue;

use super::problem::Problem;
use super::reader::Section;
use super::value;

/// The word in the list that stands for other peers.
const PEERS: &str = "peers";
const WANTED: &str = "true, false or a list, as [\"10.1.0.0/16\"] or [\"peers\", \"10.1.0.0/16\"]";

/// What packets of a peer may reach besides this node's own addresses.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ForwardScope {
    /// Whether they may go to another peer's `allowed_ips`: a hub.
    pub peers: bool,
    /// Networks behind this node that peers may reach, and that may reach peers.
    pub networks: Vec<IpNet>,
}

impl fmt::Display for ForwardScope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let networks = self.networks.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        match (self.peers, networks.as_str()) {
            (true, "") => f.write_str("between peers (hub)"),
            (true, _) => write!(f, "between peers (hub), and to {networks}"),
            (false, "") => f.write_str("off"),
            (false, _) => write!(f, "to {networks}"),
        }
    }
}

pub(super) fn forward(section: &Section<'_>) -> ForwardScope {
    let Some(value) = section.value("forward") else { return ForwardScope::default() };
    match value.get_ref() {
        DeValue::Boolean(peers) => ForwardScope { peers: *peers, networks: Vec::new() },
        DeValue::Array(_) | DeValue::String(_) => list(section),
        _ => {
            section.wrong_type("forward", WANTED, value);
            ForwardScope::default()
        }
    }
}

/// The networks of the list, and whether it has the word for peers.
fn list(section: &Section<'_>) -> ForwardScope {
    let read = |given: &str| match given {
        PEERS => Ok::<_, Problem>(None),
        _ => value::network(given).map(Some),
    };
    let items = section.list("forward", WANTED, read);
    ForwardScope {
        peers: items.iter().any(|item| item.value.is_none()),
        networks: items.iter().filter_map(|item| item.value).collect(),
    }
}
