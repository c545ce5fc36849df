//! What a killed daemon leaves on the host: rules and unreachable routes, which keep packets from leaving in the clear.
//!
//! The next start takes them over before anything else, so that nothing leaves between the two; `strait down` removes them.

use std::collections::BTreeSet;
use std::io;
use std::path::Path;

use ipnet::IpNet;
use netlink_packet_route::RouteNetlinkMessage as Message;

use super::lockdown::LockdownTable;
use super::plan::{Lookup, Plan, PolicyRule, Route, RouteFamily, RouteTarget};
use super::undo::{self, Leftovers};
use super::{Network, NetworkError, dns, report, request};
use crate::netlink::Netlink;
use crate::runtime::{self, RuntimeError};

/// Where the unreachable routes of `table` lead that a tunnel made.
pub(super) fn closed_in(netlink: &mut Netlink, table: u32) -> io::Result<BTreeSet<IpNet>> {
    let mut found = BTreeSet::new();
    for family in [request::INET, request::INET6] {
        let routes = in_table(netlink, table, family)?;
        found.extend(routes.iter().filter_map(|route| request::closed_by_us(route, table)));
    }
    Ok(found)
}

fn in_table(
    netlink: &mut Netlink,
    table: u32,
    family: netlink_packet_route::AddressFamily,
) -> io::Result<Vec<Message>> {
    match netlink.dump(request::routes_in(table, family)) {
        // A table that has never had a route is not there.
        Err(error) if error.raw_os_error() == Some(libc::ENOENT) => Ok(Vec::new()),
        other => other,
    }
}

/// Whether a route of `table` leads anywhere but to the interface `own`.
pub(super) fn is_used_by_others(netlink: &mut Netlink, table: u32, own: Option<u32>) -> io::Result<bool> {
    for family in [request::INET, request::INET6] {
        let routes = in_table(netlink, table, family)?;
        let others = routes.iter().filter(|route| request::closed_by_us(route, table).is_none());
        let mut others = others.filter_map(request::table_and_interface);
        if others.any(|(found, index)| found == table && (index != own || own.is_none())) {
            return Ok(true);
        }
    }
    Ok(false)
}

impl Network {
    /// What of this tunnel outlives the daemon, as it is now.
    pub(super) fn outliving(&self) -> Leftovers {
        let has_table = self.lockdown.as_ref().is_some_and(LockdownTable::is_made);
        let lockdown = has_table || self.rules.iter().any(|rule| rule.lookup == Lookup::Dhcp);
        let resolvconf = self.resolvconf.clone();
        Leftovers {
            resolvconf,
            ..Leftovers::of(&Plan { rules: self.rules.clone(), lockdown, ..Plan::default() })
        }
    }

    /// Takes over what an earlier run left of what `plan` wants; gives what it does not want, which is to be removed when
    /// everything else is made.
    pub(super) fn adopt(&mut self, plan: &Plan, left: &Leftovers) -> Result<Stale, NetworkError> {
        let marks = plan.rules.iter().map(|rule| rule.mark).chain(left.tables.iter().copied());
        let mut stale = Stale { left: left.clone(), ..Stale::default() };
        for table in marks.collect::<BTreeSet<u32>>() {
            let used = is_used_by_others(&mut self.netlink, table, Some(self.index));
            let wanted = plan.rules.iter().any(|rule| rule.mark == table);
            match used.map_err(NetworkError::Netlink)? {
                true if wanted => return Err(NetworkError::TableTaken { table }),
                true => {}
                false => self.adopt_table(table, plan, &mut stale)?,
            }
        }
        self.stays_closed |= !self.routes.is_empty();
        Ok(stale)
    }

    fn adopt_table(&mut self, table: u32, plan: &Plan, stale: &mut Stale) -> Result<(), NetworkError> {
        for destination in closed_in(&mut self.netlink, table).map_err(NetworkError::Netlink)? {
            let route = Route { destination, table, target: RouteTarget::Unreachable, source: None };
            match plan.routes.contains(&route) {
                true => {
                    self.routes.insert(route);
                }
                false => stale.routes.push(route),
            }
        }
        for family in [request::INET, request::INET6] {
            let found = self.netlink.dump(request::all_rules(family)).map_err(NetworkError::Netlink)?;
            for message in &found {
                let wanted = plan.rules.iter().find(|rule| request::is_rule(message, **rule));
                match wanted {
                    Some(rule) => {
                        self.rules.insert(*rule);
                    }
                    None => stale.rules.extend(request::is_ours(message, table)),
                }
            }
        }
        Ok(())
    }

    /// Removes what an earlier run left and this one does not want.
    pub(super) fn remove_stale(&mut self, stale: Stale) {
        for rule in stale.rules {
            tracing::info!("removing a policy rule of an earlier run");
            report("policy rule", self.netlink.change(Message::DelRule(rule), 0));
        }
        for route in stale.routes {
            report("route", self.netlink.change(Message::DelRoute(request::route(0, route)), 0));
        }
        let kept = self.outliving();
        for net in stale.left.outside.difference(&kept.outside) {
            let gone = remove_rule(&mut self.netlink, RouteFamily::of(net), Lookup::Outside(*net));
            report("policy rule", gone);
        }
        if let Some(name) = stale.left.resolvconf {
            report("name server", dns::unset(&name));
        }
        if stale.left.lockdown && !kept.lockdown {
            report("policy rule", remove_rule(&mut self.netlink, RouteFamily::V4, Lookup::Dhcp));
            LockdownTable::remove(&self.interface);
        }
    }
}

/// What an earlier run left and this one does not want.
#[derive(Debug, Default)]
pub(super) struct Stale {
    rules: Vec<netlink_packet_route::rule::RuleMessage>,
    routes: Vec<Route>,
    left: Leftovers,
}

/// Removes a rule that is for all marks.
fn remove_rule(netlink: &mut Netlink, family: RouteFamily, lookup: Lookup) -> io::Result<()> {
    netlink.change(Message::DelRule(request::rule(PolicyRule { family, mark: 0, lookup })), 0)
}

/// Puts back the kernel settings that a killed daemon of `interface` left, and removes its rules, routes and tables; says
/// how many of all that.
///
/// # Errors
/// [`RuntimeError`] where there is no folder that could have them.
pub fn put_back(interface: &str) -> Result<usize, RuntimeError> {
    Ok(put_back_all(interface, &undo::file(interface)?))
}

pub(super) fn put_back_all(interface: &str, file: &Path) -> usize {
    let (settings, left) = undo::put_back_from(file);
    if left.is_empty() {
        return settings;
    }
    let removed = Netlink::open().map(|mut netlink| remove(&mut netlink, &left));
    let removed =
        removed.inspect_err(|error| tracing::warn!(%error, "cannot talk to the kernel's routing tables"));
    let filter = usize::from(left.lockdown && LockdownTable::remove(interface));
    let servers = left.resolvconf.map(|name| dns::unset(&name));
    let servers = usize::from(servers.is_some_and(|unset| unset.is_ok()));
    settings + removed.unwrap_or(0) + filter + servers
}

/// The interfaces of daemons that left something, or that run.
///
/// # Errors
/// As [`put_back`].
pub fn left_behind() -> Result<Vec<String>, RuntimeError> {
    Ok(runtime::with_suffix(&runtime::folder()?, undo::SUFFIX).unwrap_or_default())
}

/// Removes rules and unreachable routes, unless another tunnel has taken over their table.
fn remove(netlink: &mut Netlink, left: &Leftovers) -> usize {
    let mut count = 0;
    let mut gone = |result: io::Result<()>| {
        count += usize::from(result.is_ok());
        report("rule or route", result);
    };
    for net in &left.outside {
        gone(remove_rule(netlink, RouteFamily::of(net), Lookup::Outside(*net)));
    }
    if left.lockdown {
        gone(remove_rule(netlink, RouteFamily::V4, Lookup::Dhcp));
    }
    for table in &left.tables {
        if is_used_by_others(netlink, *table, None).unwrap_or(true) {
            continue;
        }
        for family in [request::INET, request::INET6] {
            let rules = netlink.dump(request::all_rules(family)).unwrap_or_default();
            for rule in rules.iter().filter_map(|rule| request::is_ours(rule, *table)) {
                gone(netlink.change(Message::DelRule(rule), 0));
            }
        }
        for destination in closed_in(netlink, *table).unwrap_or_default() {
            let route = Route { destination, table: *table, target: RouteTarget::Unreachable, source: None };
            gone(netlink.change(Message::DelRoute(request::route(0, route)), 0));
        }
    }
    count
}
