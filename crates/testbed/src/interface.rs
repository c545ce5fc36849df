//! Interfaces, addresses and routes in the network namespace of the calling thread.
#![allow(unsafe_code)]

mod card;
mod shape;

use std::ffi::CString;
use std::io;
use std::net::IpAddr;
use std::os::fd::{AsRawFd, OwnedFd};

use netlink_packet_core::{NLM_F_CREATE, NLM_F_EXCL, NLM_F_REPLACE};
use netlink_packet_route::AddressFamily;
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::address::{AddressAttribute, AddressFlags, AddressMessage};
use netlink_packet_route::link::{
    InfoData, InfoKind, InfoVeth, LinkAttribute, LinkFlags, LinkInfo, LinkMessage,
};
use netlink_packet_route::neighbour::{
    NeighbourAddress, NeighbourAttribute, NeighbourMessage, NeighbourState,
};
use netlink_packet_route::route::{
    RouteAddress, RouteAttribute, RouteMessage, RouteProtocol, RouteScope, RouteType,
};
use strait_node::netlink::Netlink;

pub(crate) use card::{disable_offloads, hardware_address, is_running};
pub(crate) use shape::{set_shape, take_shape};

/// Whether an interface passes packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InterfaceState {
    /// It does.
    Up,
    /// It does not.
    Down,
}

/// What an interface has carried since it was made, in whole Ethernet frames without preamble and checksum.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InterfaceTraffic {
    /// Frames received.
    pub received_packets: u64,
    /// Bytes received.
    pub received_bytes: u64,
    /// Frames sent.
    pub sent_packets: u64,
    /// Bytes sent.
    pub sent_bytes: u64,
}

/// Asks the kernel for a change in the namespace of the calling thread.
fn request(message: RouteNetlinkMessage, flags: u16) -> io::Result<()> {
    Netlink::open()?.change(message, flags)
}

/// Makes a pair of interfaces joined by a wire: `name` here, `peer` in the namespace `there`.
pub(crate) fn create_veth(name: &str, peer: &str, there: &OwnedFd, mtu: u32) -> io::Result<()> {
    let mut other = LinkMessage::default();
    other.attributes = vec![
        LinkAttribute::IfName(peer.to_owned()),
        LinkAttribute::Mtu(mtu),
        LinkAttribute::NetNsFd(there.as_raw_fd()),
    ];
    let mut message = LinkMessage::default();
    message.attributes = vec![
        LinkAttribute::IfName(name.to_owned()),
        LinkAttribute::Mtu(mtu),
        LinkAttribute::LinkInfo(vec![
            LinkInfo::Kind(InfoKind::Veth),
            LinkInfo::Data(InfoData::Veth(InfoVeth::Peer(other))),
        ]),
    ];
    request(RouteNetlinkMessage::NewLink(message), NLM_F_CREATE | NLM_F_EXCL)
}

/// Brings an interface up or down.
pub(crate) fn set_state(name: &str, state: InterfaceState) -> io::Result<()> {
    let mut message = LinkMessage::default();
    message.header.index = index(name)?;
    message.header.change_mask = LinkFlags::Up;
    if state == InterfaceState::Up {
        message.header.flags = LinkFlags::Up;
    }
    request(RouteNetlinkMessage::SetLink(message), 0)
}

/// Sets the largest packet an interface takes, in bytes without the Ethernet header.
pub(crate) fn set_mtu(name: &str, mtu: u32) -> io::Result<()> {
    let mut message = LinkMessage::default();
    message.header.index = index(name)?;
    message.attributes = vec![LinkAttribute::Mtu(mtu)];
    request(RouteNetlinkMessage::SetLink(message), 0)
}

/// Gives an interface an address, usable at once (no duplicate address detection).
pub(crate) fn add_address(name: &str, address: IpAddr, prefix: u8) -> io::Result<()> {
    let message = address_message(name, address, prefix)?;
    request(RouteNetlinkMessage::NewAddress(message), NLM_F_CREATE | NLM_F_EXCL)
}

/// Takes an address away from an interface.
pub(crate) fn remove_address(name: &str, address: IpAddr, prefix: u8) -> io::Result<()> {
    request(RouteNetlinkMessage::DelAddress(address_message(name, address, prefix)?), 0)
}

fn address_message(name: &str, address: IpAddr, prefix: u8) -> io::Result<AddressMessage> {
    let mut message = AddressMessage::default();
    message.header.family = family(address);
    message.header.prefix_len = prefix;
    message.header.index = index(name)?;
    message.attributes = vec![AddressAttribute::Address(address), AddressAttribute::Local(address)];
    if address.is_ipv6() {
        message.attributes.push(AddressAttribute::Flags(AddressFlags::Nodad));
    }
    Ok(message)
}

/// Sends what is meant for `destination`/`prefix` to the router `via`.
pub(crate) fn add_route(destination: IpAddr, prefix: u8, via: IpAddr) -> io::Result<()> {
    let mut message = RouteMessage::default();
    message.header.address_family = family(destination);
    message.header.destination_prefix_length = prefix;
    message.header.table = 254; // RT_TABLE_MAIN, linux/rtnetlink.h
    message.header.protocol = RouteProtocol::Static;
    message.header.scope = RouteScope::Universe;
    message.header.kind = RouteType::Unicast;
    message.attributes = vec![
        RouteAttribute::Destination(route_address(destination)),
        RouteAttribute::Gateway(route_address(via)),
    ];
    request(RouteNetlinkMessage::NewRoute(message), NLM_F_CREATE | NLM_F_EXCL)
}

/// Says for good which hardware address a neighbour has, so that it is never asked.
pub(crate) fn add_neighbour(name: &str, address: IpAddr, hardware: [u8; 6]) -> io::Result<()> {
    let mut message = NeighbourMessage::default();
    message.header.family = family(address);
    message.header.ifindex = index(name)?;
    message.header.state = NeighbourState::Permanent;
    let destination = match address {
        IpAddr::V4(v4) => NeighbourAddress::Inet(v4),
        IpAddr::V6(v6) => NeighbourAddress::Inet6(v6),
    };
    message.attributes = vec![
        NeighbourAttribute::Destination(destination),
        NeighbourAttribute::LinkLocalAddress(hardware.to_vec()),
    ];
    request(RouteNetlinkMessage::NewNeighbour(message), NLM_F_CREATE | NLM_F_REPLACE)
}

const fn family(address: IpAddr) -> AddressFamily {
    match address {
        IpAddr::V4(_) => AddressFamily::Inet,
        IpAddr::V6(_) => AddressFamily::Inet6,
    }
}

const fn route_address(address: IpAddr) -> RouteAddress {
    match address {
        IpAddr::V4(v4) => RouteAddress::Inet(v4),
        IpAddr::V6(v6) => RouteAddress::Inet6(v6),
    }
}

/// What the interface has carried so far.
pub(crate) fn traffic(name: &str) -> io::Result<InterfaceTraffic> {
    let table = std::fs::read_to_string("/proc/thread-self/net/dev")?;
    parse_traffic(&table, name)
        .ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, format!("no interface {name}")))
}

/// The names of all interfaces.
pub(crate) fn names() -> io::Result<Vec<String>> {
    let table = std::fs::read_to_string("/proc/thread-self/net/dev")?;
    Ok(table.lines().filter_map(|line| Some(line.split_once(':')?.0.trim().to_owned())).collect())
}

/// Reads one line of `/proc/net/dev`: eight columns received (bytes, packets first), then eight sent.
fn parse_traffic(table: &str, name: &str) -> Option<InterfaceTraffic> {
    let columns = table.lines().find_map(|line| line.trim().strip_prefix(name)?.strip_prefix(':'))?;
    let columns: Vec<u64> = columns.split_whitespace().map(str::parse).collect::<Result<_, _>>().ok()?;
    Some(InterfaceTraffic {
        received_bytes: *columns.first()?,
        received_packets: *columns.get(1)?,
        sent_bytes: *columns.get(8)?,
        sent_packets: *columns.get(9)?,
    })
}

/// The system's number for an interface.
pub(crate) fn index(name: &str) -> io::Result<u32> {
    let name = CString::new(name)?;
    // SAFETY: `name` is a NUL-terminated string that outlives the call.
    match unsafe { libc::if_nametoindex(name.as_ptr()) } {
        0 => Err(io::Error::last_os_error()),
        index => Ok(index),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "Inter-|   Receive                                                |  Transmit\n \
        face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed\n    \
        lo: 1 2 0 0 0 0 0 0 3 4 0 0 0 0 0 0\n  a-b0:   1500       1    0    0    0     0          0         0  4542       3    0    0    0     0       0          0\n";

    #[test]
    fn a_line_of_the_table() {
        let expected =
            InterfaceTraffic { received_packets: 1, received_bytes: 1500, sent_packets: 3, sent_bytes: 4542 };
        assert_eq!(parse_traffic(TABLE, "a-b0"), Some(expected));
    }

    #[test]
    fn no_line_and_a_short_line() {
        assert_eq!(parse_traffic(TABLE, "a-b"), None);
        assert_eq!(parse_traffic("x: 1 2 3", "x"), None);
        assert_eq!(parse_traffic("x: one two", "x"), None);
    }
}
