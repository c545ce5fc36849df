//! Other routes to networks of peers, such as the one to the LAN that this host is in: they stay, and the tunnel's own take their place
//! when they go.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io;

use ipnet::IpNet;

use super::plan::{Route, RouteTarget};
use super::{Network, NetworkError, Plan, link, request};
use crate::netlink::Netlink;

/// A network of a peer to which another route than the tunnel's leads.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TakenRoute {
    /// As `allowed_ips` has it.
    pub network: IpNet,
    /// The interface of the other route, if it has a single one.
    pub interface: Option<String>,
}

impl fmt::Display for TakenRoute {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} in `allowed_ips` has another route on this host", self.network)?;
        if let Some(interface) = &self.interface {
            write!(f, ", by {interface}")?;
        }
        f.write_str(
            ", which stays: what goes there leaves by that, in the clear, and not to the peer; remove that route (`ip route` shows it), \
             so that the tunnel's takes its place, or take the network out of `allowed_ips`",
        )
    }
}

/// Finds the other routes that go before `routes` into the tunnel, whose interface is `own`.
pub(super) fn taken(
    netlink: &mut Netlink,
    own: u32,
    routes: &BTreeSet<Route>,
) -> io::Result<BTreeMap<Route, TakenRoute>> {
    let into_tunnel = routes.iter().filter(|route| route.target == RouteTarget::Tunnel);
    let wanted: BTreeMap<(IpNet, u32), Route> =
        into_tunnel.map(|route| ((route.destination, route.table), *route)).collect();
    let mut first = BTreeMap::new();
    if !wanted.is_empty() {
        // The kernel names routes to one network in the order in which it takes them.
        for message in &netlink.dump(request::all_routes())? {
            let Some((network, table, interface)) = request::not_behind_ours(message) else { continue };
            if let Some(route) = wanted.get(&(network, table)) {
                first.entry(*route).or_insert(interface);
            }
        }
    }
    let others = first.into_iter().filter(|(_, interface)| *interface != Some(own));
    let named = others.map(|(route, interface)| {
        // The interface may be gone since.
        let interface = interface.and_then(|index| link::name(netlink, index).ok());
        (route, TakenRoute { network: route.destination, interface })
    });
    Ok(named.collect())
}

impl Network {
    /// Makes the routes of `plan` that are not there. One into the tunnel waits while another is in its place; the log has what is new.
    ///
    /// # Errors
    /// [`NetworkError`]; what came before the failure stays made.
    pub(super) fn make_routes(&mut self, plan: &Plan) -> Result<(), NetworkError> {
        let mut waiting = Vec::new();
        for route in plan.routes.difference(&self.routes.clone()) {
            match self.add_route(*route) {
                Err(NetworkError::RouteTaken { .. }) if route.target == RouteTarget::Tunnel => {
                    waiting.push(*route)
                }
                made => made?,
            }
        }
        // Apart from the other connection, where the rest of a dump that fails would be in the way.
        let found = Netlink::open().and_then(|mut netlink| taken(&mut netlink, self.index, &plan.routes));
        let found = found.unwrap_or_else(|error| {
            tracing::debug!(%error, "cannot tell which other routes there are");
            let unnamed =
                |route: &Route| (*route, TakenRoute { network: route.destination, interface: None });
            waiting.iter().map(unnamed).collect()
        });
        // A route that is there and not another's leads into this tunnel, as on a device that outlives its daemon.
        self.routes.extend(waiting.iter().filter(|route| !found.contains_key(route)));
        for (_, new) in found.iter().filter(|(route, new)| self.taken.get(route) != Some(new)) {
            tracing::warn!(interface = self.interface, "{new}");
        }
        let over =
            self.taken.keys().filter(|route| plan.routes.contains(route) && !found.contains_key(route));
        for network in over.map(|route| route.destination) {
            tracing::info!(interface = self.interface, %network, "the other route is gone: the tunnel's has its place");
        }
        self.taken = found;
        Ok(())
    }
}
