//! What may be payload-compressed: nothing without a rule that names source, destination and a
//! trust domain.

use core::ops::RangeInclusive;

use ipnet::IpNet;
use strait_compress::Allowed;
use strait_compress::history::HistoryScope;
use strait_wire::Protocol;
use strait_wire::flow::Flow;

use crate::{DomainCache, LeakPolicy, RuleCounters};

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
    /// The trust domain of the data.
    pub domain: Domain,
    /// The methods that may compress it.
    pub allowed: Allowed,
    /// What is done so that the lengths of blocks tell less.
    pub policy: LeakPolicy,
    /// What shares the history of packets that leave alone; nothing where each is to stand by itself.
    pub history: Option<HistoryScope>,
    /// The byte cache of its trust domain, if it has one.
    pub cache: Option<DomainCache>,
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

/// The rules of a node in the order of its file, with what each has done; the first that covers a
/// flow decides.
#[derive(Debug, Default)]
pub struct RuleSet {
    rules: Vec<Rule>,
    counters: Vec<RuleCounters>,
}

impl RuleSet {
    /// Rules in order, which have done nothing.
    #[must_use]
    pub fn new(rules: Vec<Rule>) -> RuleSet {
        let counters = rules.iter().map(|_| RuleCounters::default()).collect();
        RuleSet { rules, counters }
    }

    /// The rules in order.
    #[must_use]
    pub fn rules(&self) -> &[Rule] {
        &self.rules
    }

    /// What the rule in place `index` has done.
    #[must_use]
    pub fn counters(&self, index: usize) -> Option<&RuleCounters> {
        self.counters.get(index)
    }

    /// The first rule that covers `flow`, with its place in the order.
    #[must_use]
    pub fn find(&self, flow: &Flow) -> Option<(usize, &Rule)> {
        self.rules.iter().enumerate().find(|(_, rule)| rule.covers(flow))
    }
}

impl Clone for RuleSet {
    /// The same rules, which have done nothing.
    fn clone(&self) -> RuleSet {
        RuleSet::new(self.rules.clone())
    }
}

impl PartialEq for RuleSet {
    /// The same rules, whatever they have done.
    fn eq(&self, other: &RuleSet) -> bool {
        self.rules == other.rules
    }
}

impl Eq for RuleSet {}
