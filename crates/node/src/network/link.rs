//! The tunnel interface itself: size, queue, silence, up.

use std::fs;
use std::io;
use std::path::Path;

use netlink_packet_core::DefaultNla;
use netlink_packet_route::RouteNetlinkMessage as Message;
use netlink_packet_route::link::{
    AfSpecInet6, AfSpecUnspec, In6AddrGenMode, LinkAttribute, LinkFlags, LinkMessage,
};

use super::NetworkError;
use crate::netlink::Netlink;

/// Packets that may wait for the tunnel; the queue that matters is the tunnel's own.
const QUEUE_LEN: u32 = 1000;
/// Largest super-packet, so that with everything around it fits one call for UDP.
const GSO_MAX: u32 = 65_000;
/// `IFLA_GSO_IPV4_MAX_SIZE` (Linux 6.3, `include/uapi/linux/if_link.h`).
const IFLA_GSO_IPV4_MAX_SIZE: u16 = 63;

/// The number of `interface`.
pub(super) fn index(netlink: &mut Netlink, interface: &str) -> Result<u32, NetworkError> {
    let mut message = LinkMessage::default();
    message.attributes.push(LinkAttribute::IfName(interface.to_owned()));
    let failed = |source| NetworkError::Link { step: "find", interface: interface.to_owned(), source };
    match netlink.get(Message::GetLink(message)).map_err(failed)? {
        Message::NewLink(link) => Ok(link.header.index),
        _ => Err(failed(io::ErrorKind::InvalidData.into())),
    }
}

/// The name and state of an interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct LinkState {
    pub(super) name: String,
    pub(super) is_up: bool,
}

/// The name of the interface `index`.
pub(super) fn name(netlink: &mut Netlink, index: u32) -> io::Result<String> {
    state(netlink, index).map(|state| state.name)
}

/// Looks at the interface `index`.
///
/// # Errors
/// ENODEV when there is none; anything else that the kernel says.
pub(super) fn state(netlink: &mut Netlink, index: u32) -> io::Result<LinkState> {
    let Message::NewLink(link) = netlink.get(Message::GetLink(message(index)))? else {
        return Err(io::ErrorKind::InvalidData.into());
    };
    let is_up = link.header.flags.contains(LinkFlags::Up);
    let name = link.attributes.into_iter().find_map(|attribute| match attribute {
        LinkAttribute::IfName(name) => Some(name),
        _ => None,
    });
    Ok(LinkState { name: name.ok_or(io::ErrorKind::InvalidData)?, is_up })
}

/// Size and queue, and nothing that the kernel sends of its own accord: an idle tunnel is silent.
pub(super) fn prepare(
    netlink: &mut Netlink,
    interface: &str,
    index: u32,
    mtu: u16,
) -> Result<(), NetworkError> {
    let mut link = message(index);
    link.attributes = vec![LinkAttribute::Mtu(mtu.into()), LinkAttribute::TxQueueLen(QUEUE_LEN)];
    // Without multicast there are no listener reports (MLD) and no router solicitations.
    link.header.change_mask = LinkFlags::Multicast;
    set(netlink, link, "set the MTU of", interface)?;
    let ipv4 = DefaultNla::new(IFLA_GSO_IPV4_MAX_SIZE, GSO_MAX.to_ne_bytes().to_vec());
    for attribute in [LinkAttribute::GsoMaxSize(GSO_MAX), LinkAttribute::Other(ipv4)] {
        let mut link = message(index);
        link.attributes = vec![attribute];
        // Older kernels know neither; their super-packets are cut once more.
        if let Err(error) = netlink.change(Message::SetLink(link), 0) {
            tracing::debug!(%error, "cannot set the GSO size; using the default of the kernel");
        }
    }
    // No link-local address. By netlink, since /proc/sys may be read-only; without the address there are no solicitations.
    let mut link = message(index);
    let mode = AfSpecInet6::AddrGenMode(In6AddrGenMode::None);
    link.attributes = vec![LinkAttribute::AfSpecUnspec(vec![AfSpecUnspec::Inet6(vec![mode])])];
    if let Err(error) = netlink.change(Message::SetLink(link), 0) {
        tracing::debug!(%error, "the interface has a link-local address");
    }
    for (setting, value) in [("accept_ra", "0"), ("router_solicitations", "0")] {
        let path = Path::new("/proc/sys/net/ipv6/conf").join(interface).join(setting);
        if let Err(error) = fs::write(&path, value) {
            tracing::debug!(path = %path.display(), %error, "setting not changed");
        }
    }
    Ok(())
}

pub(super) fn up(netlink: &mut Netlink, interface: &str, index: u32) -> Result<(), NetworkError> {
    let mut link = message(index);
    link.header.flags = LinkFlags::Up;
    link.header.change_mask = LinkFlags::Up;
    set(netlink, link, "bring up", interface)
}

fn set(
    netlink: &mut Netlink,
    link: LinkMessage,
    step: &'static str,
    interface: &str,
) -> Result<(), NetworkError> {
    let failed = |source| NetworkError::Link { step, interface: interface.to_owned(), source };
    netlink.change(Message::SetLink(link), 0).map_err(failed)
}

fn message(index: u32) -> LinkMessage {
    let mut message = LinkMessage::default();
    message.header.index = index;
    message
}
