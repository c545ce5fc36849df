//! Addresses, routes and rules as netlink writes them.

use std::collections::BTreeSet;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::IpNet;
use netlink_packet_route::address::{AddressAttribute, AddressHeaderFlags, AddressMessage};
use netlink_packet_route::route::{
    RouteAddress, RouteAttribute, RouteHeader, RouteMessage, RouteProtocol, RouteScope, RouteType, RouteVia,
};
use netlink_packet_route::rule::{RuleAction, RuleAttribute, RuleFlags, RuleMessage, RulePortRange};
use netlink_packet_route::{AddressFamily, IpProtocol, RouteNetlinkMessage as Message};

use crate::netlink::Netlink;

use super::plan::{Lookup, MAIN_TABLE, PolicyRule, Route, RouteFamily, RouteTarget};

pub(super) const INET: AddressFamily = AddressFamily::Inet;
pub(super) const INET6: AddressFamily = AddressFamily::Inet6;

/// Who made a route or rule: a number of the range that Linux leaves to programs (`rtnetlink.h`), "S" in ASCII.
const OURS: RouteProtocol = RouteProtocol::Other(0x53);
/// Rules are asked in order of priority; ours end before the main table's own (ip-rule(8)).
const PRIORITY_AFTER: u32 = 32_766;

/// The longest prefix (IPv6).
const LONGEST: u8 = 128;
/// Higher than that of any other route: it is taken when there is no other.
const LAST: u32 = u32::MAX;

/// The metric of an IPv6 route that is made without one, as ours into the tunnel are (Linux `IP6_RT_PRIO_USER`); of an IPv4 route it is 0.
const USUAL_INET6: u32 = 1024;

/// Longer prefixes first; of one length the main table's longer ones, the tunnel's, then what is allowed outside.
fn priority(lookup: Lookup) -> u32 {
    let (len, place) = match lookup {
        Lookup::MainBeyond(len) => (len, 0),
        Lookup::TunnelFrom(len) => (len, 1),
        Lookup::Outside(net) => (net.prefix_len(), 2),
        // Before all of them.
        Lookup::Dhcp => (LONGEST + 1, 2),
    };
    PRIORITY_AFTER - 3 * (u32::from(len) + 1) + place
}

const fn family(address: IpAddr) -> AddressFamily {
    match address {
        IpAddr::V4(_) => INET,
        IpAddr::V6(_) => INET6,
    }
}

pub(super) fn address(index: u32, address: IpNet) -> AddressMessage {
    let mut message = AddressMessage::default();
    message.header.family = family(address.addr());
    message.header.prefix_len = address.prefix_len();
    // No other host on a tunnel can have the address, so it is not probed (RFC 4862 section 5.4).
    message.header.flags = AddressHeaderFlags::Nodad;
    message.header.index = index;
    message.attributes =
        vec![AddressAttribute::Local(address.addr()), AddressAttribute::Address(address.addr())];
    message
}

pub(super) fn route(index: u32, route: Route) -> RouteMessage {
    let address = route.destination.addr();
    let mut message = RouteMessage::default();
    message.header.address_family = family(address);
    message.header.destination_prefix_length = route.destination.prefix_len();
    message.header.table = narrow(route.table);
    message.header.protocol = OURS;
    message.attributes =
        vec![RouteAttribute::Destination(in_route(address)), RouteAttribute::Table(route.table)];
    match route.target {
        RouteTarget::Tunnel => {
            message.header.scope = if address.is_ipv4() { RouteScope::Link } else { RouteScope::Universe };
            message.header.kind = RouteType::Unicast;
            message.attributes.push(RouteAttribute::Oif(index));
        }
        RouteTarget::Unreachable => {
            message.header.scope = RouteScope::Universe;
            message.header.kind = RouteType::Unreachable;
            message.attributes.push(RouteAttribute::Priority(LAST));
        }
    }
    message.attributes.extend(route.source.map(|source| RouteAttribute::PrefSource(in_route(source))));
    message
}

const fn in_route(address: IpAddr) -> RouteAddress {
    match address {
        IpAddr::V4(address) => RouteAddress::Inet(address),
        IpAddr::V6(address) => RouteAddress::Inet6(address),
    }
}

pub(super) fn rule(rule: PolicyRule) -> RuleMessage {
    let mut message = RuleMessage::default();
    message.header.family = match rule.family {
        RouteFamily::V4 => INET,
        RouteFamily::V6 => INET6,
    };
    message.header.action = RuleAction::ToTable;
    // What is no longer than this is passed over.
    let (table, passed_over) = match rule.lookup {
        Lookup::MainBeyond(len) => (MAIN_TABLE, Some(len)),
        Lookup::TunnelFrom(len) => (rule.mark, len.checked_sub(1)),
        Lookup::Outside(_) | Lookup::Dhcp => (MAIN_TABLE, None),
    };
    message.header.table = narrow(table);
    message.attributes = vec![
        RuleAttribute::Table(table),
        RuleAttribute::Priority(priority(rule.lookup)),
        RuleAttribute::Protocol(OURS),
    ];
    match rule.lookup {
        // The flag would turn the destination around as well, and the tunnel's own packets are looked up in the main table
        // anyway.
        Lookup::Outside(net) => {
            message.header.dst_len = net.prefix_len();
            // The kernel has no attribute for all addresses.
            let all = net.prefix_len() == 0;
            message.attributes.extend((!all).then(|| RuleAttribute::Destination(net.addr())));
        }
        Lookup::Dhcp => message.attributes.extend([
            RuleAttribute::IpProtocol(IpProtocol::Udp),
            RuleAttribute::SourcePortRange(RulePortRange { start: 68, end: 68 }),
            RuleAttribute::DestinationPortRange(RulePortRange { start: 67, end: 67 }),
        ]),
        Lookup::MainBeyond(_) | Lookup::TunnelFrom(_) => {
            message.header.flags = RuleFlags::Invert;
            message.attributes.push(RuleAttribute::FwMark(rule.mark));
        }
    }
    if let Some(len) = passed_over {
        message.attributes.push(RuleAttribute::SuppressPrefixLen(len.into()));
    }
    message
}

/// The old one-byte field, which the attribute overrides.
fn narrow(table: u32) -> u8 {
    u8::try_from(table).unwrap_or(RouteHeader::RT_TABLE_UNSPEC)
}

pub(super) fn all_routes() -> Message {
    Message::GetRoute(RouteMessage::default())
}

pub(super) fn all_rules(family: AddressFamily) -> Message {
    let mut message = RuleMessage::default();
    message.header.family = family;
    Message::GetRule(message)
}

pub(super) fn all_addresses() -> Message {
    Message::GetAddress(AddressMessage::default())
}

/// All routes by the interface `index`, where the kernel can tell; all there are otherwise.
pub(super) fn routes_by(index: u32) -> Message {
    let mut message = RouteMessage::default();
    message.attributes = vec![RouteAttribute::Oif(index)];
    Message::GetRoute(message)
}

/// Which route datagrams to `address` take that carry `mark`.
pub(super) fn route_to(address: IpAddr, mark: Option<u32>) -> Message {
    let mut message = RouteMessage::default();
    message.header.address_family = family(address);
    message.header.destination_prefix_length = IpNet::from(address).prefix_len();
    message.attributes = vec![RouteAttribute::Destination(in_route(address))];
    message.attributes.extend(mark.map(RouteAttribute::Mark));
    Message::GetRoute(message)
}

/// The interface and the address of a dumped address.
pub(super) fn interface_and_address(message: &Message) -> Option<(u32, IpNet)> {
    let Message::NewAddress(found) = message else { return None };
    let local = found.attributes.iter().find_map(|attribute| match attribute {
        AddressAttribute::Local(address) => Some(*address),
        _ => None,
    });
    let address = local.or_else(|| {
        found.attributes.iter().find_map(|attribute| match attribute {
            AddressAttribute::Address(address) => Some(*address),
            _ => None,
        })
    })?;
    Some((found.header.index, IpNet::new(address, found.header.prefix_len).ok()?))
}

/// The addresses of all interfaces but `own`.
pub(super) fn on_other_interfaces(netlink: &mut Netlink, own: u32) -> io::Result<BTreeSet<IpAddr>> {
    let all = netlink.dump(all_addresses())?;
    let others = all.iter().filter_map(interface_and_address).filter(|(index, _)| *index != own);
    Ok(others.map(|(_, address)| address.addr()).collect())
}

/// Where a route leads to.
pub(super) fn destination(route: &RouteMessage) -> Option<IpNet> {
    let address = route.attributes.iter().find_map(|attribute| match attribute {
        RouteAttribute::Destination(RouteAddress::Inet(address)) => Some(IpAddr::V4(*address)),
        RouteAttribute::Destination(RouteAddress::Inet6(address)) => Some(IpAddr::V6(*address)),
        _ => None,
    });
    // A default route has no destination.
    let everywhere = match route.header.address_family {
        INET => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
        INET6 => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
        _ => return None,
    };
    IpNet::new(address.unwrap_or(everywhere), route.header.destination_prefix_length).ok()
}

/// Where a dumped route leads to, with each interface that it leads to it by.
pub(super) fn destination_and_interfaces(message: &Message) -> Vec<(IpNet, u32)> {
    let Message::NewRoute(route) = message else { return Vec::new() };
    let Some(net) = destination(route).filter(|_| route.header.kind == RouteType::Unicast) else {
        return Vec::new();
    };
    let interfaces = route.attributes.iter().flat_map(|attribute| match attribute {
        RouteAttribute::Oif(index) => vec![*index],
        RouteAttribute::MultiPath(hops) => hops.iter().map(|hop| hop.interface_index).collect(),
        _ => Vec::new(),
    });
    interfaces.map(|index| (net, index)).collect()
}

/// Whether a dumped rule is `wanted`.
pub(super) fn is_rule(message: &Message, wanted: PolicyRule) -> bool {
    let Message::NewRule(found) = message else { return false };
    let wanted = rule(wanted);
    found.header.family == wanted.header.family
        && found.header.dst_len == wanted.header.dst_len
        && wanted.attributes.iter().all(|attribute| found.attributes.contains(attribute))
}

/// The table of a dumped route, and the interface it leads to.
pub(super) fn table_and_interface(message: &Message) -> Option<(u32, Option<u32>)> {
    let Message::NewRoute(route) = message else { return None };
    let table = route.attributes.iter().find_map(|attribute| match attribute {
        RouteAttribute::Table(table) => Some(*table),
        _ => None,
    });
    let index = route.attributes.iter().find_map(|attribute| match attribute {
        RouteAttribute::Oif(index) => Some(*index),
        _ => None,
    });
    Some((table.unwrap_or(route.header.table.into()), index))
}

/// The destination of a dumped route, its table and its interface, unless one of ours into the tunnel goes before it.
pub(super) fn not_behind_ours(message: &Message) -> Option<(IpNet, u32, Option<u32>)> {
    let Message::NewRoute(route) = message else { return None };
    let metric = route.attributes.iter().find_map(|attribute| match attribute {
        RouteAttribute::Priority(metric) => Some(*metric),
        _ => None,
    });
    let ours = if route.header.address_family == INET6 { USUAL_INET6 } else { 0 };
    // A route for one class of service (RFC 2474) leaves the place to ours.
    let is_before = metric.unwrap_or(0) <= ours && route.header.tos == 0;
    let (table, interface) = table_and_interface(message)?;
    Some((destination(route)?, table, interface)).filter(|_| is_before)
}

/// The gateway of a route; of a family other than that of its destination where it says so (RFC 5549).
pub(super) fn gateway(message: &Message) -> Option<IpAddr> {
    let Message::NewRoute(route) = message else { return None };
    route.attributes.iter().find_map(|attribute| match attribute {
        RouteAttribute::Gateway(RouteAddress::Inet(address)) => Some((*address).into()),
        RouteAttribute::Gateway(RouteAddress::Inet6(address)) => Some((*address).into()),
        RouteAttribute::Via(RouteVia::Inet(address)) => Some((*address).into()),
        RouteAttribute::Via(RouteVia::Inet6(address)) => Some((*address).into()),
        _ => None,
    })
}

/// The address that datagrams by a route leave with, if the kernel says it.
pub(super) fn source(message: &Message) -> Option<IpAddr> {
    let Message::NewRoute(route) = message else { return None };
    route.attributes.iter().find_map(|attribute| match attribute {
        RouteAttribute::PrefSource(RouteAddress::Inet(address)) => Some((*address).into()),
        RouteAttribute::PrefSource(RouteAddress::Inet6(address)) => Some((*address).into()),
        _ => None,
    })
}

/// A dumped rule, if it is one that we make for `mark`.
pub(super) fn is_ours(message: &Message, mark: u32) -> Option<RuleMessage> {
    let Message::NewRule(rule) = message else { return None };
    let has = |wanted: RuleAttribute| rule.attributes.contains(&wanted);
    let ours = has(RuleAttribute::Protocol(OURS)) && has(RuleAttribute::FwMark(mark));
    ours.then(|| rule.clone())
}

/// The routes of `table`, where the kernel can tell; all there are otherwise.
pub(super) fn routes_in(table: u32, family: AddressFamily) -> Message {
    let mut message = RouteMessage::default();
    message.header.address_family = family;
    message.header.table = narrow(table);
    message.attributes = vec![RouteAttribute::Table(table)];
    Message::GetRoute(message)
}

/// Where a dumped unreachable route of `table` leads that we made, if it is one.
pub(super) fn closed_by_us(message: &Message, table: u32) -> Option<IpNet> {
    let Message::NewRoute(route) = message else { return None };
    let ours = route.header.kind == RouteType::Unreachable && route.header.protocol == OURS;
    let here = table_and_interface(message).is_some_and(|(found, _)| found == table);
    destination(route).filter(|_| ours && here)
}
