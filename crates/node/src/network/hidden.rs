//! Networks of peers that this host is in by another interface as well: the tunnel's route goes first, so that hosts of that
//! network are not reached, its router and name server among them.

use std::collections::BTreeSet;
use std::fmt;
use std::io;

use ipnet::IpNet;

use super::lockdown::LOOPBACK;
use super::plan::{Route, RouteTarget};
use super::{Network, link, request};
use crate::netlink::Netlink;

/// A network of a peer, or a part of one, that another interface of this host has an address in.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct HiddenNetwork {
    /// As `allowed_ips` has it.
    pub network: IpNet,
    /// The other interface.
    pub interface: String,
}

impl fmt::Display for HiddenNetwork {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let HiddenNetwork { network, interface } = self;
        write!(
            f,
            "{network} in `allowed_ips` is also the network of {interface} here, whose hosts are not reached: what goes there goes \
             to the peer; take it out, or write the hosts behind the peer only"
        )
    }
}

/// Finds what `routes` into the tunnel hide of the networks of other interfaces than `own`.
pub(super) fn hidden(
    netlink: &mut Netlink,
    own: u32,
    routes: &BTreeSet<Route>,
) -> io::Result<BTreeSet<HiddenNetwork>> {
    let all = netlink.dump(request::all_addresses())?;
    let others = all.iter().filter_map(request::interface_and_address);
    let mut found = BTreeSet::new();
    for (index, address) in others.filter(|(index, _)| ![own, LOOPBACK].contains(index)) {
        let into_tunnel = routes.iter().filter(|route| route.target == RouteTarget::Tunnel);
        for route in into_tunnel.filter(|route| hides(&route.destination, &address.trunc())) {
            // The interface may be gone since.
            if let Ok(interface) = link::name(netlink, index) {
                found.insert(HiddenNetwork { network: route.destination, interface });
            }
        }
    }
    Ok(found)
}

/// Says whether a route hides a part of `lan`. Of longer networks the interface's own route goes first, and a route to a single host is meant.
fn hides(destination: &IpNet, lan: &IpNet) -> bool {
    lan.contains(destination) && destination.prefix_len() < destination.max_prefix_len()
}

impl Network {
    /// Looks which networks of other interfaces are hidden; the log has what was not before.
    pub(super) fn look_for_hidden(&mut self) {
        let own = self.routes.iter().filter(|route| !self.taken.contains_key(route)).copied().collect();
        let found = hidden(&mut self.netlink, self.index, &own).unwrap_or_default();
        for new in found.difference(&self.hidden) {
            tracing::warn!(interface = self.interface, "{new}");
        }
        self.hidden = found;
    }
}
