//! Where packets go that no route of the tunnel is for.

use ipnet::IpNet;

use super::plan::RouteFamily;
use crate::config::{Config, RouteTable};

/// Where packets go that no longer prefix of a peer's `allowed_ips` has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DefaultPath {
    /// Into the tunnel, and nowhere without it.
    Tunnel,
    /// Nowhere.
    Closed,
    /// Where the host's other routes lead.
    Outside,
}

/// Where packets of `family` go that no longer prefix of a peer's `allowed_ips` has. A tunnel for all of one family is meant
/// for everything, so the other family does not go past it.
pub(super) fn default_path(config: &Config, family: RouteFamily) -> DefaultPath {
    let node = &config.node;
    if node.table != RouteTable::Auto && !node.lockdown {
        return DefaultPath::Outside;
    }
    let outside = node
        .allow_outside
        .iter()
        .chain(node.lockdown.then_some(&node.forward.networks).into_iter().flatten());
    if is_whole(family, config.peers.iter().flat_map(|peer| &peer.allowed_ips)) {
        DefaultPath::Tunnel
    } else if is_whole(family, outside) {
        DefaultPath::Outside
    } else if node.lockdown || is_full(config) {
        DefaultPath::Closed
    } else {
        DefaultPath::Outside
    }
}

/// The families whose packets go nowhere, but for those that a longer prefix of `allowed_ips` has.
#[must_use]
pub fn closed_families(config: &Config) -> Vec<RouteFamily> {
    let is_closed = |family: &RouteFamily| default_path(config, *family) == DefaultPath::Closed;
    RouteFamily::ALL.into_iter().filter(is_closed).collect()
}

/// Whether all of a family goes into the tunnel.
pub(super) fn is_full(config: &Config) -> bool {
    let nets = || config.peers.iter().flat_map(|peer| &peer.allowed_ips);
    RouteFamily::ALL.into_iter().any(|family| is_whole(family, nets()))
}

/// Whether `nets` together are all addresses of `family`.
fn is_whole<'a>(family: RouteFamily, nets: impl Iterator<Item = &'a IpNet>) -> bool {
    let nets: Vec<IpNet> = nets.filter(|net| RouteFamily::of(net) == family).copied().collect();
    IpNet::aggregate(&nets) == [family.everything()]
}
