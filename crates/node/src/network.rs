//! The system around the tunnel device: addresses, routes, policy routing, forwarding, the packet filter.
//!
//! Everything is made by netlink and the kernel's settings files, without any program; what was made is removed when
//! [`Network`] is dropped, what another program removes is put back, and what a killed daemon left behind is found at
//! the next start.
//!
//! ```text
//! plan       what it should look like, from the configuration alone
//! default_path   whether packets that no route of the tunnel is for leave in the clear
//! behind     which interfaces lead to the networks that are named
//! link, request, setting, weak_host, answers   the parts, as the kernel wants them
//! dns        the tunnel's name servers, through systemd-resolved or resolvconf
//! filter_table   a table of the packet filter that only this process changes
//! hidden     networks of peers that this host is in, too
//! taken      other routes to networks of peers
//! lockdown   nothing beside the tunnel leaves, whatever routes say
//! leftovers  what a killed daemon leaves on the host is taken over, or removed
//! undo       what outlives a killed daemon, written down
//! events     what the kernel says has changed
//! repair     what another program removed is put back
//! outer      by which interface datagrams leave to a peer
//! ```

mod answers;
mod behind;
mod default_path;
mod dns;
mod error;
mod events;
mod filter_table;
mod forecast;
mod hidden;
mod leftovers;
mod link;
mod lockdown;
mod outer;
mod plan;
mod repair;
mod request;
mod setting;
mod taken;
mod undo;
mod weak_host;

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::PathBuf;
use std::time::Instant;

use ipnet::IpNet;
use netlink_packet_core::{NLM_F_CREATE, NLM_F_EXCL, NLM_F_REPLACE};
use netlink_packet_route::RouteNetlinkMessage as Message;

pub use default_path::{DefaultPath, closed_families};
pub use dns::{DnsProgram, DnsSettings};
pub use error::NetworkError;
pub use events::{NetworkChange, NetworkEvents};
pub use forecast::{Forecast, forecast};
pub use hidden::HiddenNetwork;
pub use leftovers::{left_behind, put_back};
pub use outer::{HostAddresses, OuterRoute, OuterRoutes, RouteSource};
pub use plan::{DEFAULT_MARK, Lookup, Plan, PolicyRule, Route, RouteFamily, RouteTarget};
pub use repair::Repair;
pub use taken::TakenRoute;
pub(crate) use undo::file as undo_file;

use crate::netlink::Netlink;
use lockdown::LockdownTable;
use plan::Behind;
use setting::Setting;
use undo::{Leftovers, UndoFile};
use weak_host::WeakHostTable;

/// What was made around one tunnel device; dropped, it is removed again, the last first, but for what
/// [`Network::stay_closed`] keeps.
#[derive(Debug)]
pub struct Network {
    netlink: Netlink,
    /// The interface as the configuration calls it.
    interface: String,
    /// Its name now, which another program may change, and its number.
    name: String,
    index: u32,
    addresses: BTreeSet<IpNet>,
    routes: BTreeSet<Route>,
    rules: BTreeSet<PolicyRule>,
    settings: Vec<Setting>,
    /// Networks behind this node, and the interfaces that lead to them.
    networks: BTreeSet<IpNet>,
    behind: BTreeSet<Behind>,
    undo: UndoFile,
    /// What there may be of it on the host that outlives the daemon.
    left: Leftovers,
    stays_closed: bool,
    /// What resolvconf calls the interface, if it was told of it.
    resolvconf: Option<String>,
    /// Nothing while there is no lockdown.
    lockdown: Option<LockdownTable>,
    /// Nothing where the kernel has no packet filter.
    weak_host: Option<WeakHostTable>,
    /// The node's UDP port, once it is known here.
    port: Option<u16>,
    /// Networks of other interfaces that are not reached.
    hidden: BTreeSet<HiddenNetwork>,
    /// Routes into the tunnel that other routes go before.
    taken: BTreeMap<Route, TakenRoute>,
    /// The name servers that the host is to have, and why it could not be told.
    dns: DnsSettings,
    dns_trouble: Option<String>,
    dns_tried: Instant,
    /// The interface was up, or gone, when this was last looked at.
    is_up: bool,
    is_gone: bool,
}

impl Network {
    /// Gives the tunnel device `interface` its settings and addresses, brings it up, and makes routes and rules. The
    /// file `undo`, if one is named, has the settings that a killed daemon leaves.
    ///
    /// # Errors
    /// [`NetworkError`]; what was made until then is removed.
    pub fn set_up(interface: &str, plan: &Plan, undo: Option<PathBuf>) -> Result<Network, NetworkError> {
        let mut netlink = Netlink::open().map_err(NetworkError::Netlink)?;
        let (undo, left) = UndoFile::open(undo);
        let index = link::index(&mut netlink, interface)?;
        let table = WeakHostTable::open(interface, index)
            .inspect_err(|error| weak_host::warn(interface, !plan.rules.is_empty(), error));
        let mut network = Network {
            netlink,
            interface: interface.to_owned(),
            name: interface.to_owned(),
            index,
            addresses: BTreeSet::new(),
            routes: BTreeSet::new(),
            rules: BTreeSet::new(),
            settings: Vec::new(),
            networks: BTreeSet::new(),
            behind: BTreeSet::new(),
            undo,
            left: left.clone(),
            // A start that fails opens nothing that an earlier run left closed.
            stays_closed: !left.is_empty(),
            resolvconf: None,
            lockdown: None,
            weak_host: table.ok(),
            port: None,
            hidden: BTreeSet::new(),
            taken: BTreeMap::new(),
            dns: DnsSettings::default(),
            dns_trouble: None,
            dns_tried: Instant::now(),
            is_up: true,
            is_gone: false,
        };
        let stale = network.adopt(plan, &left)?;
        network.lock_down(plan)?;
        link::prepare(&mut network.netlink, interface, index, plan.mtu)?;
        for address in &plan.addresses {
            network.add_address(*address)?;
        }
        link::up(&mut network.netlink, interface, index)?;
        network.change(plan)?;
        network.remove_stale(stale);
        Ok(network)
    }

    /// Whether what keeps packets from leaving in the clear stays when this is dropped, as it does after a kill: so where the
    /// daemon fails, and not where a person ends it. At first it stays if an earlier run left it.
    pub fn stay_closed(&mut self, stays: bool) {
        self.stays_closed = stays;
    }

    /// Makes addresses, routes, rules and settings what `plan` says, touching nothing that stays.
    ///
    /// # Errors
    /// [`NetworkError`]; what came before the failure stays changed.
    pub fn change(&mut self, plan: &Plan) -> Result<(), NetworkError> {
        // Written down first, or a kill between the two leaves it behind unknown.
        self.left.extend(Leftovers::of(plan));
        self.write_down();
        self.lock_down(plan)?;
        // New before old where both can be, so that nothing that stays reachable is cut off between.
        for address in plan.addresses.difference(&self.addresses.clone()) {
            self.add_address(*address)?;
        }
        self.networks.clone_from(&plan.networks);
        self.behind = behind::interfaces(&mut self.netlink, self.index, &self.networks)?;
        for setting in plan.settings(&self.name, &self.behind) {
            self.set(setting)?;
        }
        self.make_routes(plan)?;
        for rule in plan.rules.difference(&self.rules.clone()) {
            self.add_rule(*rule)?;
        }
        self.remove(plan);
        if !plan.lockdown {
            self.open_up();
        }
        self.guard();
        self.look_for_hidden();
        self.left = self.outliving();
        self.write_down();
        Ok(())
    }

    fn write_down(&self) {
        self.undo.write(&self.settings, &self.left);
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
        let made = match self.settings.iter().find(|setting| setting.path() == wanted.path) {
            // An interface that was gone comes back with the system's values.
            Some(setting) => setting.ensure(),
            None => self.change_setting(&wanted),
        };
        match made {
            Err(source) if wanted.needed => {
                Err(NetworkError::Setting { path: wanted.path, value: wanted.value, source })
            }
            Err(error) => {
                tracing::debug!(path = %wanted.path.display(), %error, "setting not changed");
                Ok(())
            }
            Ok(()) => Ok(()),
        }
    }

    fn change_setting(&mut self, wanted: &plan::SysctlSetting) -> io::Result<()> {
        let Some(setting) = Setting::find(wanted)? else { return Ok(()) };
        // Written down first, or a kill between the two leaves it changed.
        self.settings.push(setting);
        self.write_down();
        let made = self.settings.last().map_or(Ok(()), Setting::ensure);
        if made.is_err() {
            self.settings.pop();
            self.write_down();
        }
        made
    }

    /// Removes what `plan` does not have, the last made first.
    fn remove(&mut self, plan: &Plan) {
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
        self.restore(plan);
        for address in self.addresses.difference(&plan.addresses).copied().collect::<Vec<_>>() {
            let gone = self.netlink.change(Message::DelAddress(request::address(self.index, address)), 0);
            report("address", gone);
            self.addresses.remove(&address);
        }
    }

    /// Puts back the settings that `plan` does not need, the last changed first.
    fn restore(&mut self, plan: &Plan) {
        let kept = plan.settings(&self.name, &self.behind);
        while let Some(at) =
            self.settings.iter().rposition(|one| kept.iter().all(|kept| kept.path != one.path()))
        {
            report("setting", self.settings.remove(at).restore());
            self.write_down();
        }
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        self.unset_dns();
        self.behind.clear();
        if self.stays_closed || std::thread::panicking() {
            let routes = self.routes.iter().filter(|route| route.target == RouteTarget::Unreachable);
            let closed =
                Plan { routes: routes.copied().collect(), rules: self.rules.clone(), ..Plan::default() };
            self.remove(&closed);
            return;
        }
        self.remove(&Plan::default());
        self.open_up();
        self.left = Leftovers::default();
        self.write_down();
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
