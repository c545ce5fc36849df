//! What a start will touch on this host, for people to know before.

use std::collections::BTreeSet;
use std::io;

use super::default_path::{DefaultPath, default_path, is_full};
use super::plan::{Plan, RouteFamily, has_switch_each};
use super::{DnsProgram, DnsSettings, HiddenNetwork, TakenRoute, behind, hidden, link, taken, weak_host};
use crate::config::{Config, RouteTable};
use crate::netlink::Netlink;

/// What a start will touch on this host.
#[derive(Debug)]
pub struct Forecast {
    /// The kernel's switches for forwarding that will be on, as sysctl(8) names them.
    pub switches: Vec<String>,
    /// Whether IPv6 forwarding will be on for all interfaces, as this kernel (before 6.17) has one switch for all.
    pub ipv6_on_all: bool,
    /// Where packets of each family go that no longer prefix of `allowed_ips` has, unless no family is in the tunnel or closed.
    pub defaults: Vec<(RouteFamily, DefaultPath)>,
    /// Whether it is a full tunnel whose rules another program makes, and so decides what leaves in the clear.
    pub rules_of_others: bool,
    /// Which name servers are set for which names, and by what, if anything does.
    pub dns: (DnsSettings, Option<DnsProgram>),
    /// Networks of other interfaces that are not reached then.
    pub hidden: BTreeSet<HiddenNetwork>,
    /// Networks of peers to which other routes lead then.
    pub taken: BTreeSet<TakenRoute>,
    /// The mark of what comes to the node's UDP port, where there is a full tunnel.
    pub answers: Option<u32>,
    /// Why packets in the clear to the tunnel's addresses cannot be refused, if they cannot.
    pub unguarded: Option<io::Error>,
}

/// What a start with `config` will touch on this host, as it is now.
#[must_use]
pub fn forecast(config: &Config) -> Forecast {
    let plan = Plan::of(config);
    // Where nothing can be asked, the tunnel's own switches are told.
    let (behind, hidden, taken) = Netlink::open().map_or_else(
        |_| Default::default(),
        |mut netlink| {
            // No interface has the number 0 (Linux `dev_new_index`).
            let own = link::index(&mut netlink, &config.node.interface).unwrap_or(0);
            let behind = behind::interfaces(&mut netlink, 0, &plan.networks).unwrap_or_default();
            let taken = taken::taken(&mut netlink, own, &plan.routes).unwrap_or_default();
            let made = plan.routes.iter().filter(|route| !taken.contains_key(route)).copied().collect();
            let hidden = hidden::hidden(&mut netlink, own, &made).unwrap_or_default();
            (behind, hidden, taken.into_values().collect())
        },
    );
    let settings = plan.settings(&config.node.interface, &behind);
    let switches: BTreeSet<String> = settings
        .iter()
        .filter(|setting| setting.value == "1" && setting.needed)
        .filter_map(|setting| setting.path.strip_prefix("/proc/sys").ok()?.to_str().map(sysctl_name))
        .collect();
    let forwards_ipv6 = plan.hub.contains(&RouteFamily::V6)
        || plan.networks.iter().any(|network| RouteFamily::of(network) == RouteFamily::V6);
    Forecast {
        switches: switches.into_iter().collect(),
        ipv6_on_all: forwards_ipv6 && !has_switch_each(),
        defaults: defaults(config),
        rules_of_others: config.node.table != RouteTable::Auto && is_full(config),
        dns: (DnsSettings::of(config), DnsProgram::find()),
        hidden,
        taken,
        answers: plan.rules.first().map(|rule| rule.mark),
        unguarded: weak_host::is_possible().err(),
    }
}

fn defaults(config: &Config) -> Vec<(RouteFamily, DefaultPath)> {
    let all = RouteFamily::ALL.map(|family| (family, default_path(config, family)));
    let usual = all.iter().all(|(_, path)| *path == DefaultPath::Outside);
    if usual { Vec::new() } else { all.into() }
}

/// sysctl(8) writes dots for slashes, and slashes for the dots in names.
fn sysctl_name(path: &str) -> String {
    path.chars()
        .map(|letter| match letter {
            '/' => '.',
            '.' => '/',
            other => other,
        })
        .collect()
}
