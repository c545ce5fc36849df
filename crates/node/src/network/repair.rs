//! What another program took away from the tunnel is put back.

use std::collections::BTreeSet;
use std::io;
use std::time::Duration;

use ipnet::IpNet;
use netlink_packet_core::{NLM_F_CREATE, NLM_F_REPLACE};
use netlink_packet_route::RouteNetlinkMessage as Message;

use super::link::{self, LinkState};
use super::plan::{Lookup, PolicyRule, Route, RouteTarget};
use super::{Network, NetworkError, Plan, behind, dns, leftovers, request};

/// The time between looks at tables that others can remove without an event.
const UNSEEN: Duration = Duration::from_secs(10);

/// Tries of a repair while another program renames the interface again and again.
const RENAMED: usize = 8;

/// What was done about what another program changed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Repair {
    /// The interface was set down: nothing passes, and routes are put back when it is up again.
    pub went_down: bool,
    /// It is up again.
    pub came_up: bool,
    /// Its name from now on, if that is another one.
    pub renamed: Option<String>,
    /// What was missing and is there again, such as "route to 10.2.0.0/16".
    pub put_back: Vec<String>,
}

impl Network {
    /// Looks at everything that was made, and makes again what is missing of `plan`.
    ///
    /// # Errors
    /// [`NetworkError`]; what came before the failure is put back.
    pub fn repair(&mut self, plan: &Plan) -> Result<Repair, NetworkError> {
        let mut repaired = self.repair_once(plan);
        for _ in 1..RENAMED {
            // Settings are files with the interface's name, which another program may change amid this, and change back.
            let is_gone = |source: &io::Error| source.kind() == io::ErrorKind::NotFound;
            if !matches!(&repaired, Err(NetworkError::Setting { source, .. }) if is_gone(source)) {
                break;
            }
            repaired = self.repair_once(plan);
        }
        repaired
    }

    fn repair_once(&mut self, plan: &Plan) -> Result<Repair, NetworkError> {
        let LinkState { name, is_up } = self.look_at_link()?;
        let mut repair = Repair {
            went_down: self.is_up && !is_up,
            came_up: !self.is_up && is_up,
            renamed: self.follow_name(name),
            put_back: Vec::new(),
        };
        self.is_up = is_up;
        // What keeps packets from leaving in the clear first.
        if self.lock_down(plan)? {
            repair.put_back.push("lockdown table".to_owned());
        }
        self.put_back_closed(&mut repair)?;
        self.put_back_rules(&mut repair)?;
        if is_up {
            self.put_back_addresses(&mut repair)?;
            self.put_back_routes(&mut repair)?;
            self.make_routes(plan)?;
        }
        self.behind = behind::interfaces(&mut self.netlink, self.index, &self.networks)?;
        for setting in plan.settings(&self.name, &self.behind) {
            self.set(setting)?;
        }
        self.restore(plan);
        if self.guard() {
            repair.put_back.push("packet filter table".to_owned());
        }
        self.look_for_hidden();
        self.try_dns_again();
        Ok(repair)
    }

    /// The time after which to look again, if something changes without an event.
    #[must_use]
    pub fn look_again(&self) -> Option<Duration> {
        let flushed = self.weak_host.as_ref().is_some_and(super::WeakHostTable::can_be_flushed)
            || self.lockdown.as_ref().is_some_and(super::LockdownTable::can_be_flushed);
        match flushed {
            true => Some(UNSEEN),
            false => self.dns_trouble.is_some().then_some(dns::RETRY),
        }
    }

    /// Returns what is wrong now with what was made, as people read it, and what mends it.
    #[must_use]
    pub fn warnings(&self) -> Vec<String> {
        let (interface, name) = (&self.interface, &self.name);
        if self.is_gone {
            return vec![format!(
                "another program removed the interface {name}, or moved it to another network namespace; restart this node"
            )];
        }
        let renamed = (name != interface).then(|| {
            format!("another program renamed the interface {interface} to {name}; `ip link set {name} name {interface}` mends that")
        });
        let down = (!self.is_up).then(|| {
            format!("another program set the interface {name} down; `ip link set {name} up` mends that")
        });
        let hidden = self.hidden.iter().map(ToString::to_string);
        let taken = self.taken.values().map(ToString::to_string);
        renamed.into_iter().chain(down).chain(hidden).chain(taken).chain(self.dns_trouble.clone()).collect()
    }

    fn look_at_link(&mut self) -> Result<LinkState, NetworkError> {
        let state = link::state(&mut self.netlink, self.index);
        self.is_gone = state.as_ref().is_err_and(|error| error.raw_os_error() == Some(libc::ENODEV));
        match state {
            Err(_) if self.is_gone => Err(NetworkError::Gone { interface: self.name.clone() }),
            other => other.map_err(NetworkError::Netlink),
        }
    }

    /// The interface has this name; gives it if it is another one than before.
    fn follow_name(&mut self, name: String) -> Option<String> {
        if name == self.name {
            return None;
        }
        self.settings.iter_mut().for_each(|setting| setting.follow(&self.name, &name));
        self.name.clone_from(&name);
        self.write_down();
        Some(name)
    }

    fn put_back_addresses(&mut self, repair: &mut Repair) -> Result<(), NetworkError> {
        let all = self.netlink.dump(request::all_addresses()).map_err(NetworkError::Netlink)?;
        let found: BTreeSet<IpNet> = all
            .iter()
            .filter_map(request::interface_and_address)
            .filter(|(index, _)| *index == self.index)
            .map(|(_, address)| address)
            .collect();
        for address in self.addresses.difference(&found).copied().collect::<Vec<_>>() {
            self.add_address(address)?;
            repair.put_back.push(format!("address {address}"));
        }
        Ok(())
    }

    fn put_back_routes(&mut self, repair: &mut Repair) -> Result<(), NetworkError> {
        if self.routes.iter().all(|route| route.target != RouteTarget::Tunnel) {
            return Ok(());
        }
        let all = self.netlink.dump(request::routes_by(self.index)).map_err(NetworkError::Netlink)?;
        let found: BTreeSet<(IpNet, u32)> = all
            .iter()
            .filter_map(|message| {
                let (table, index) = request::table_and_interface(message)?;
                let Message::NewRoute(route) = message else { return None };
                (index == Some(self.index)).then_some((request::destination(route)?, table))
            })
            .collect();
        let missing = |route: &&Route| {
            route.target == RouteTarget::Tunnel && !found.contains(&(route.destination, route.table))
        };
        for route in self.routes.iter().filter(missing).copied().collect::<Vec<_>>() {
            let message = Message::NewRoute(request::route(self.index, route));
            // Another program may have put a route of its own in the place.
            let made = self.netlink.change(message, NLM_F_CREATE | NLM_F_REPLACE);
            let destination = route.destination;
            made.map_err(|source| NetworkError::Route { destination, source })?;
            repair.put_back.push(format!("route to {destination}"));
        }
        Ok(())
    }

    /// The routes that are there without the interface.
    fn put_back_closed(&mut self, repair: &mut Repair) -> Result<(), NetworkError> {
        let closed = self.routes.iter().filter(|route| route.target == RouteTarget::Unreachable);
        let closed: Vec<Route> = closed.copied().collect();
        let tables: BTreeSet<u32> = closed.iter().map(|route| route.table).collect();
        let mut found = BTreeSet::new();
        for table in tables {
            let routes = leftovers::closed_in(&mut self.netlink, table).map_err(NetworkError::Netlink)?;
            found.extend(routes.into_iter().map(|destination| (destination, table)));
        }
        for route in closed.into_iter().filter(|route| !found.contains(&(route.destination, route.table))) {
            self.add_route(route)?;
            repair.put_back.push(format!("unreachable route to {}", route.destination));
        }
        Ok(())
    }

    fn put_back_rules(&mut self, repair: &mut Repair) -> Result<(), NetworkError> {
        if self.rules.is_empty() {
            return Ok(());
        }
        let mut found = Vec::new();
        for family in [request::INET, request::INET6] {
            let rules = self.netlink.dump(request::all_rules(family)).map_err(NetworkError::Netlink)?;
            found.extend(rules);
        }
        let is_there = |rule: &PolicyRule| found.iter().any(|message| request::is_rule(message, *rule));
        for rule in self.rules.iter().filter(|rule| !is_there(rule)).copied().collect::<Vec<_>>() {
            self.add_rule(rule)?;
            let what = match rule.lookup {
                Lookup::Outside(net) => format!("policy rule for {net}"),
                _ => format!("policy rule for mark {:#x}", rule.mark),
            };
            repair.put_back.push(what);
        }
        Ok(())
    }
}
