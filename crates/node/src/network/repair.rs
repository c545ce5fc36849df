//! What another program took away from the tunnel is put back.

use std::collections::BTreeSet;

use ipnet::IpNet;
use netlink_packet_core::{NLM_F_CREATE, NLM_F_REPLACE};
use netlink_packet_route::RouteNetlinkMessage as Message;

use super::plan::{Lookup, PolicyRule, Route, RouteTarget};
use super::{Network, NetworkError, Plan, behind, leftovers, link, request};

/// What was done about what another program changed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Repair {
    /// The interface was set down: nothing passes, and routes are put back when it is up again.
    pub went_down: bool,
    /// It is up again.
    pub came_up: bool,
    /// What was missing and is there again, such as "route to 10.2.0.0/16".
    pub put_back: Vec<String>,
}

impl Network {
    /// Looks at everything that was made, and makes again what is missing of `plan`.
    ///
    /// # Errors
    /// [`NetworkError`]; what came before the failure is put back.
    pub fn repair(&mut self, plan: &Plan) -> Result<Repair, NetworkError> {
        let is_up = link::is_up(&mut self.netlink, self.index).map_err(NetworkError::Netlink)?;
        let mut repair =
            Repair { went_down: self.is_up && !is_up, came_up: !self.is_up && is_up, put_back: Vec::new() };
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
        }
        self.behind = behind::interfaces(&mut self.netlink, self.index, &self.networks)?;
        for setting in plan.settings(&self.interface, &self.behind) {
            self.set(setting)?;
        }
        self.restore(plan);
        if self.guard() {
            repair.put_back.push("packet filter table".to_owned());
        }
        Ok(repair)
    }

    /// Whether tables of the packet filter can be removed by others without an event.
    #[must_use]
    pub fn must_look(&self) -> bool {
        self.weak_host.as_ref().is_some_and(super::WeakHostTable::can_be_flushed)
            || self.lockdown.as_ref().is_some_and(super::LockdownTable::can_be_flushed)
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
