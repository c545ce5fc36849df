//! Which interfaces lead to the networks behind this node.

use std::collections::BTreeSet;

use ipnet::IpNet;

use super::plan::{Behind, MAIN_TABLE, RouteFamily};
use super::{NetworkError, link, request};
use crate::netlink::Netlink;

/// The interfaces that the main table sends packets for `networks` to, but for the tunnel's own, `own`.
pub(super) fn interfaces(
    netlink: &mut Netlink,
    own: u32,
    networks: &BTreeSet<IpNet>,
) -> Result<BTreeSet<Behind>, NetworkError> {
    if networks.is_empty() {
        return Ok(BTreeSet::new());
    }
    let routes = netlink.dump(request::all_routes()).map_err(NetworkError::Netlink)?;
    let routes: Vec<(IpNet, u32)> = routes
        .iter()
        .filter(|message| request::table_and_interface(message).is_some_and(|(table, _)| table == MAIN_TABLE))
        .flat_map(request::destination_and_interfaces)
        .filter(|(_, index)| *index != own)
        .collect();
    let mut found = BTreeSet::new();
    for network in networks {
        for index in leading_to(network, &routes) {
            let name = link::name(netlink, index).map_err(NetworkError::Netlink)?;
            found.insert(Behind { family: RouteFamily::of(network), interface: name });
        }
    }
    Ok(found)
}

/// The interfaces of the routes to parts of the network; where it has none, of the longest route around it. Of an exit,
/// which names everything, the default route's only.
fn leading_to(network: &IpNet, routes: &[(IpNet, u32)]) -> BTreeSet<u32> {
    let parts: BTreeSet<u32> =
        routes.iter().filter(|(route, _)| is_part(route, network)).map(|(_, index)| *index).collect();
    if !parts.is_empty() {
        return parts;
    }
    let around = routes.iter().filter(|(destination, _)| destination.contains(network));
    let longest = around.clone().map(|(destination, _)| destination.prefix_len()).max();
    around.filter(|(route, _)| Some(route.prefix_len()) == longest).map(|(_, index)| *index).collect()
}

/// Whether a route to `destination` is one to a part of `network`.
fn is_part(destination: &IpNet, network: &IpNet) -> bool {
    match network.prefix_len() {
        0 => destination == network,
        _ => network.contains(destination),
    }
}

/// Whether a route to `destination` may be the one that leads to `network`.
pub(super) fn leads_to(destination: &IpNet, network: &IpNet) -> bool {
    is_part(destination, network) || destination.contains(network)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_interfaces_that_lead_to_a_network_are_its() {
        let routes =
            [("0.0.0.0/0", 1), ("10.1.0.0/24", 2), ("10.1.1.0/24", 3), ("10.0.0.0/8", 4), ("::/0", 5)];
        let routes = routes.map(|(net, index)| (net.parse().unwrap(), index));
        for (network, expected) in [
            ("10.1.0.0/16", &[2, 3][..]),
            ("10.1.1.0/24", &[3]),
            ("10.1.1.7/32", &[3]),
            ("10.2.0.0/16", &[4]),
            ("192.168.0.0/16", &[1]),
            ("0.0.0.0/0", &[1]),
            ("::/0", &[5]),
            ("fd00::/8", &[5]),
        ] {
            let found = leading_to(&network.parse().unwrap(), &routes);
            assert_eq!(found, expected.iter().copied().collect(), "{network}");
        }
        assert_eq!(leading_to(&"10.1.0.0/16".parse().unwrap(), &[]), BTreeSet::new());
    }
}
