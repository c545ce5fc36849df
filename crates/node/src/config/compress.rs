//! `[[compress]]`: what may be compressed, and whose data it is.

use strait_compress::history::HistoryScope;
use strait_compress::history::cache::{CacheCapacity, domain_tag};
use strait_compress::{Allowed, BadAllowed, BadMethod, Codec};
use strait_ipsec::{Domain, DomainCache, DomainTag, LeakPolicy, Mix, Padding, PortRange, Rule, RuleSet};
use strait_wire::Protocol;
use strait_wire::history::CACHES_MAX;
use toml::Spanned;
use toml::de::DeValue;

use super::problem::{Problem, nearest};
use super::reader::Section;
use super::sections::words;
use super::value;

pub(super) const KEYS: &[&str] =
    &["from", "to", "protocol", "ports", "domain", "codec", "padding", "mix", "pause", "history", "cache"];

/// Domains and rules are numbered with 16 bits.
const MOST_RULES: usize = 1 << 16;

/// The rules, and the domains by their number, which is the order of first mention.
pub(super) fn rules(sections: &[Section<'_>]) -> (RuleSet, Vec<String>) {
    let mut domains: Vec<String> = Vec::new();
    let mut rules = Vec::new();
    for section in sections.iter().take(MOST_RULES) {
        section.require("domain", "domain = \"logs\"; blocks never mix two trust domains");
        let name = section.parsed("domain", "a name in quotes", |text| words("domain", text));
        let domain = name.map_or(0, |name| {
            let known = domains.iter().position(|domain| *domain == name.value);
            known.unwrap_or_else(|| {
                domains.push(name.value);
                domains.len() - 1
            })
        });
        let tag = domains.get(domain).map_or(0, |name| domain_tag(name));
        let domain = Domain(u16::try_from(domain).unwrap_or(u16::MAX));
        rules.extend(rule(section, (domain, DomainTag(tag))));
    }
    check_caches(sections, &rules);
    (RuleSet::new(rules), domains)
}

fn rule(section: &Section<'_>, (domain, tag): (Domain, DomainTag)) -> Option<Rule> {
    section.require("from", "from = \"10.1.0.0/16\"");
    section.require("to", "to = \"10.2.0.0/16\"");
    let network = |key| section.parsed(key, "a network in quotes, as \"10.1.0.0/16\"", value::network);
    let (from, to) = (network("from"), network("to"));
    let protocol = protocol(section);
    let ports = ports(section);
    if let (Some(protocol), Some(value)) = (protocol, section.value("ports"))
        && !matches!(protocol, Protocol::TCP | Protocol::UDP)
    {
        section.note(value.span(), Problem::NoPorts { protocol: protocol.to_string() });
    }
    let allowed = section.parsed("codec", "\"auto\", or a codec in quotes, as \"zstd-3\"", allowed);
    let (from, to) = (from?, to?);
    if from.value.addr().is_ipv4() != to.value.addr().is_ipv4() {
        section.note(to.span, Problem::MixedFamilies { from: from.value, to: to.value });
    }
    Some(Rule {
        from: from.value,
        to: to.value,
        protocol,
        ports,
        domain,
        allowed: allowed.map_or(Allowed::Any, |allowed| allowed.value),
        policy: policy(section),
        history: section.choice_or("history", HISTORIES, &SCOPES).unwrap_or(SCOPES[0]),
        cache: cache(section).map(|capacity| DomainCache { domain: tag, capacity }),
    })
}

/// How much of what was sent is kept, to copy from.
fn cache(section: &Section<'_>) -> Option<CacheCapacity> {
    let read = |text: &str| {
        let bytes = value::size(text).map_err(Problem::from)?;
        CacheCapacity::new(bytes).ok_or(Problem::CacheSize { given: bytes })
    };
    section.parsed("cache", "a size in quotes, as \"256MiB\"", read).map(|capacity| capacity.value)
}

/// A domain has one cache, of one size, and a node has few of them.
fn check_caches(sections: &[Section<'_>], rules: &[Rule]) {
    let mut known: Vec<DomainCache> = Vec::new();
    for (section, rule) in sections.iter().zip(rules) {
        let (Some(cache), Some(value)) = (rule.cache, section.value("cache")) else { continue };
        let at = value.span();
        match known.iter().find(|other| other.domain == cache.domain) {
            Some(other) if other.capacity != cache.capacity => section.note(at, Problem::CacheSizes),
            Some(_) => {}
            None if known.len() == CACHES_MAX => {
                section.note(at, Problem::TooManyCaches { most: CACHES_MAX })
            }
            None => known.push(cache),
        }
    }
}

const PADDINGS: &[&str] = &["none", "padme", "buckets", "constant"];
const MIXES: &[&str] = &["domain", "flow"];

const HISTORIES: &[&str] = &["flow", "service", "none"];
const SCOPES: [Option<HistoryScope>; 3] = [Some(HistoryScope::Flow), Some(HistoryScope::Service), None];

/// What is done so that lengths tell less.
fn policy(section: &Section<'_>) -> LeakPolicy {
    LeakPolicy {
        padding: section.choice_or("padding", PADDINGS, &Padding::ALL).unwrap_or_default(),
        mix: section.choice_or("mix", MIXES, &Mix::ALL).unwrap_or_default(),
        pause: section.boolean("pause").unwrap_or_default(),
    }
}

fn allowed(given: &str) -> Result<Allowed, Problem> {
    given.parse().map_err(|error| {
        let nearest = match &error {
            BadAllowed(BadMethod::Unknown { given }) => {
                let name = given.trim_end_matches(|c: char| !c.is_alphabetic());
                nearest(name, &Codec::ALL.map(Codec::name))
            }
            BadAllowed(BadMethod::Level { .. }) => None,
        };
        Problem::Codec { error, nearest }
    })
}

const PROTOCOLS: &[&str] = &["tcp", "udp", "icmp", "icmpv6"];

/// A protocol's name or number.
fn protocol(section: &Section<'_>) -> Option<Protocol> {
    match section.value("protocol")?.get_ref() {
        DeValue::Integer(_) => {
            let number = section.integer("protocol", 0..=u8::MAX.into())?;
            u8::try_from(number).ok().map(Protocol)
        }
        _ => {
            let numbers = [Protocol::TCP, Protocol::UDP, Protocol::ICMP, Protocol::ICMPV6];
            section.choice("protocol", PROTOCOLS, &numbers)
        }
    }
}

/// Port numbers and ranges of them.
fn ports(section: &Section<'_>) -> Vec<PortRange> {
    let read = |item: &Spanned<DeValue<'_>>| {
        let text = match item.get_ref() {
            DeValue::String(text) => text.to_string(),
            DeValue::Integer(number) => number.to_string(),
            _ => {
                section.wrong_type("ports", "a list of ports, as [514, \"8000-8100\"]", item);
                return None;
            }
        };
        value::ports(&text).map_err(|problem| section.note(item.span(), problem)).ok()
    };
    section.items("ports").into_iter().filter_map(read).collect()
}
