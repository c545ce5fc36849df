//! The system around the tunnel device: addresses, routes, policy routing, forwarding.
//!
//! Everything is made by netlink and the kernel's settings files, without any program; what was made is
//! removed when [`Network`] is dropped, and what a killed daemon left behind is found at the next start.

mod link;
mod plan;
mod request;
mod setting;

use std::collections::BTreeSet;
use std::io;
use std::path::PathBuf;

use ipnet::IpNet;
use netlink_packet_core::{NLM_F_CREATE, NLM_F_EXCL, NLM_F_REPLACE};
use netlink_packet_route::RouteNetlinkMessage as Message;

pub use plan::{DEFAULT_MARK, Lookup, Plan, PolicyRule, Route, RouteFamily};

use crate::netlink::Netlink;
use setting::Setting;

/// Why the system could not be set up.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NetworkError {
    /// No connection to the kernel's routing tables.
    #[error("cannot talk to the kernel's routing tables: {0}")]
    Netlink(#[source] io::Error),
    /// The interface does not take its settings.
    #[error("cannot {step} interface {interface}: {source}{}", privilege(source))]
    Link {
        /// What was tried.
        step: &'static str,
        /// Of which interface.
        interface: String,
        /// What the system said.
        source: io::Error,
    },
    /// An address cannot be given to the interface.
    #[error("cannot add address {address} to the interface: {source}{}", privilege(source))]
    Address {
        /// Which.
        address: IpNet,
        /// What the system said.
        source: io::Error,
    },
    /// Another route to this network exists.
    #[error(
        "a route to {destination} exists; remove it (`ip route` shows it), take the network out of \
         `allowed_ips`, or manage routes yourself with `table = \"off\"`"
    )]
    RouteTaken {
        /// Where to.
        destination: IpNet,
    },
    /// A route cannot be made.
    #[error("cannot route {destination} into the tunnel: {source}{}", privilege(source))]
    Route {
        /// Where to.
        destination: IpNet,
        /// What the system said.
        source: io::Error,
    },
    /// The table for the full tunnel is used by another interface.
    #[error(
        "routing table {table} is used by another interface; choose another `fwmark` (it is also the number of \
         the table)"
    )]
    TableTaken {
        /// Its number.
        table: u32,
    },
    /// A policy rule cannot be made.
    #[error("cannot add a policy rule for mark {mark:#x}: {source}{}", privilege(source))]
    Rule {
        /// The mark it looks at.
        mark: u32,
        /// What the system said.
        source: io::Error,
    },
    /// A kernel setting cannot be changed.
    #[error("cannot write {value} to {}: {source}{}", path.display(), privilege(source))]
    Setting {
        /// Its file.
        path: PathBuf,
        /// What was to be written.
        value: &'static str,
        /// What the system said.
        source: io::Error,
    },
}

fn privilege(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::PermissionDenied => "; run as root or with CAP_NET_ADMIN",
        _ => "",
    }
}

/// What was made around one tunnel device; dropped, it is removed again, the last first.
#[derive(Debug)]
pub struct Network {
    netlink: Netlink,
    interface: String,
    index: u32,
    addresses: BTreeSet<IpNet>,
    routes: BTreeSet<Route>,
    rules: BTreeSet<PolicyRule>,
    settings: Vec<Setting>,
}

impl Network {
    /// Gives the tunnel device `interface` its settings and addresses, brings it up, and makes routes and rules.
    ///
    /// # Errors
    /// [`NetworkError`]; what was made until then is removed.
    pub fn set_up(interface: &str, plan: &Plan) -> Result<Network, NetworkError> {
        let mut netlink = Netlink::open().map_err(NetworkError::Netlink)?;
        let index = link::index(&mut netlink, interface)?;
        let mut network = Network {
            netlink,
            interface: interface.to_owned(),
            index,
            addresses: BTreeSet::new(),
            routes: BTreeSet::new(),
            rules: BTreeSet::new(),
            settings: Vec::new(),
        };
        link::prepare(&mut network.netlink, interface, index, plan.mtu)?;
        for address in &plan.addresses {
            network.add_address(*address)?;
        }
        link::up(&mut network.netlink, interface, index)?;
        network.remove_leftovers(plan)?;
        network.change(plan)?;
        Ok(network)
    }

    /// Makes addresses, routes, rules and settings what `plan` says, touching nothing that stays.
    ///
    /// # Errors
    /// [`NetworkError`]; what came before the failure stays changed.
    pub fn change(&mut self, plan: &Plan) -> Result<(), NetworkError> {
        // New before old where both can be, so that nothing that stays reachable is cut off between.
        for address in plan.addresses.difference(&self.addresses.clone()) {
            self.add_address(*address)?;
        }
        for setting in plan.settings(&self.interface) {
            self.set(setting)?;
        }
        for route in plan.routes.difference(&self.routes.clone()) {
            self.add_route(*route)?;
        }
        for rule in plan.rules.difference(&self.rules.clone()) {
            self.add_rule(*rule)?;
        }
        self.remove(plan);
        Ok(())
    }

    fn add_address(&mut self, address: IpNet) -> Result<(), NetworkError> {
        let message = Message::NewAddress(request::address(self.index, address));
        let result = self.netlink.change(message, NLM_F_CREATE | NLM_F_REPLACE);
        result.map_err(|source| NetworkError::Address { address, source })?;
        self.addresses.insert(address);
        Ok(())
    }

    fn add_route(&mut self, route: Route) -> Result<(), NetworkError> {
        let destination = route.destination;
        let message = Message::NewRoute(request::route(self.index, route));
        match self.netlink.change(message, NLM_F_CREATE | NLM_F_EXCL) {
            Ok(()) => {
                self.routes.insert(route);
                Ok(())
            }
            Err(source) if source.kind() == io::ErrorKind::AlreadyExists => {
                Err(NetworkError::RouteTaken { destination })
            }
            Err(source) => Err(NetworkError::Route { destination, source }),
        }
    }

    fn add_rule(&mut self, rule: PolicyRule) -> Result<(), NetworkError> {
        let message = Message::NewRule(request::rule(rule));
        let result = self.netlink.change(message, NLM_F_CREATE | NLM_F_EXCL);
        result.map_err(|source| NetworkError::Rule { mark: rule.mark, source })?;
        self.rules.insert(rule);
        Ok(())
    }

    fn set(&mut self, wanted: plan::SysctlSetting) -> Result<(), NetworkError> {
        if self.settings.iter().any(|setting| setting.path() == wanted.path) {
            return Ok(());
        }
        match Setting::change(&wanted) {
            Ok(setting) => self.settings.extend(setting),
            Err(source) if wanted.needed => {
                return Err(NetworkError::Setting { path: wanted.path, value: wanted.value, source });
            }
            Err(error) => tracing::debug!(path = %wanted.path.display(), %error, "setting not changed"),
        }
        Ok(())
    }

    /// Removes what `plan` does not have, the last made first.
    fn remove(&mut self, plan: &Plan) {
        let kept = plan.settings(&self.interface);
        for rule in self.rules.difference(&plan.rules).copied().collect::<Vec<_>>() {
            let gone = self.netlink.change(Message::DelRule(request::rule(rule)), 0);
            report("policy rule", gone);
            self.rules.remove(&rule);
        }
        for route in self.routes.difference(&plan.routes).copied().collect::<Vec<_>>() {
            let gone = self.netlink.change(Message::DelRoute(request::route(self.index, route)), 0);
            report("route", gone);
            self.routes.remove(&route);
        }
        while let Some(at) =
            self.settings.iter().rposition(|one| kept.iter().all(|kept| kept.path != one.path()))
        {
            report("setting", self.settings.remove(at).restore());
        }
        for address in self.addresses.difference(&plan.addresses).copied().collect::<Vec<_>>() {
            let gone = self.netlink.change(Message::DelAddress(request::address(self.index, address)), 0);
            report("address", gone);
            self.addresses.remove(&address);
        }
    }

    /// Removes the rules that a killed daemon left, unless another interface uses their table.
    fn remove_leftovers(&mut self, plan: &Plan) -> Result<(), NetworkError> {
        let tables: BTreeSet<u32> = plan.rules.iter().map(|rule| rule.mark).collect();
        for table in tables {
            let routes = self.netlink.dump(request::all_routes()).map_err(NetworkError::Netlink)?;
            let others = routes.iter().filter_map(request::table_and_interface);
            if others.into_iter().any(|(used, index)| used == table && index != Some(self.index)) {
                return Err(NetworkError::TableTaken { table });
            }
            for family in [request::INET, request::INET6] {
                let rules = self.netlink.dump(request::all_rules(family)).map_err(NetworkError::Netlink)?;
                for rule in rules.into_iter().filter_map(|rule| request::is_ours(rule, table)) {
                    tracing::info!(table, "removing a policy rule of an earlier run");
                    report("policy rule", self.netlink.change(Message::DelRule(rule), 0));
                }
            }
        }
        Ok(())
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        self.remove(&Plan::default());
    }
}

/// A thing that is gone already was removed by another program, or with the interface.
fn report(what: &'static str, result: io::Result<()>) {
    match result {
        Err(error) if !is_gone(&error) => tracing::warn!(%error, "could not remove a {what}"),
        _ => {}
    }
}

fn is_gone(error: &io::Error) -> bool {
    let gone = [libc::ENOENT, libc::ESRCH, libc::ENODEV, libc::EADDRNOTAVAIL];
    error.raw_os_error().is_some_and(|code| gone.contains(&code))
}

#[cfg(test)]
mod tests;
