//! By which interface datagrams leave to a peer, which may be gone and come back.

use std::io;
use std::net::IpAddr;

use netlink_packet_route::RouteNetlinkMessage as Message;

use super::{link, request};
use crate::netlink::Netlink;

/// Asks the kernel which way datagrams take, in the network namespace it was opened in.
#[derive(Debug)]
pub struct OuterRoutes(Netlink);

impl OuterRoutes {
    /// Connects.
    ///
    /// # Errors
    /// When the process has no file descriptor left.
    pub fn open() -> io::Result<OuterRoutes> {
        Netlink::open().map(OuterRoutes)
    }

    /// The name of the interface by which datagrams with `mark` leave to `address`.
    ///
    /// # Errors
    /// What the kernel said; mostly that the network is unreachable.
    pub fn interface(&mut self, address: IpAddr, mark: Option<u32>) -> io::Result<String> {
        let route = match self.0.get(request::route_to(address, mark))? {
            route @ Message::NewRoute(_) => request::table_and_interface(&route),
            _ => None,
        };
        let index = route.and_then(|(_, index)| index).ok_or(io::ErrorKind::NetworkUnreachable)?;
        link::name(&mut self.0, index)
    }
}
