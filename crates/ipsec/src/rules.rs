//! What may be payload-compressed: nothing without a rule that names source, destination and a
//! trust domain.

use core::ops::RangeInclusive;

use ipnet::IpNet;
use strait_compress::Method;
use strait_wire::Protocol;
use strait_wire::flow::Flow;

/// A trust domain: blocks never mix two of them. Numbered by the order of first mention in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Domain(pub u16);

/// Ports that a rule covers, both ends included.
pub type PortRange = RangeInclusive<u16>;

/// One `[[compress]]` table of the configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// Source addresses.
    pub from: IpNet,
    /// Destination addresses.
    pub to: IpNet,
    /// Upper-layer protocol; any when not given.
    pub protocol: Option<Protocol>,
    /// Source or destination port, as a service is named by one of them; any when empty.
    pub ports: Vec<PortRange>,
    /// Whose data it is.
    pub domain: Domain,
    /// How to compress.
    pub method: Method,
}

impl Rule {
    fn covers(&self, flow: &Flow) -> bool {
        let port = |port: u16| self.ports.iter().any(|range| range.contains(&port));
        self.protocol.is_none_or(|protocol| protocol == flow.protocol)
            && self.from.contains(&flow.src)
            && self.to.contains(&flow.dst)
            && (self.ports.is_empty() || port(flow.src_port) || port(flow.dst_port))
    }
}

/// The rules of a node in the order of its file; the first that covers a flow decides.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RuleSet(Vec<Rule>);

impl RuleSet {
    /// Rules in order.
    #[must_use]
    pub const fn new(rules: Vec<Rule>) -> RuleSet {
        RuleSet(rules)
    }

    /// The rules in order.
    #[must_use]
    pub fn rules(&self) -> &[Rule] {
        &self.0
    }

    /// The first rule that covers `flow`, with its place in the order.
    #[must_use]
    pub fn find(&self, flow: &Flow) -> Option<(usize, &Rule)> {
        self.0.iter().enumerate().find(|(_, rule)| rule.covers(flow))
    }
}
