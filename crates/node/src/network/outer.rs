//! By which interface datagrams leave to a peer, which may be gone and come back.

use std::io;
use std::net::IpAddr;

use super::{link, request};
use crate::netlink::Netlink;

/// The way that datagrams take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OuterRoute {
    /// The name of the interface by which they leave.
    pub interface: String,
    /// The router that they go to there, if there is one.
    pub gateway: Option<IpAddr>,
}

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

    /// The way that datagrams with `mark` take to `address`.
    ///
    /// # Errors
    /// What the kernel said; mostly that the network is unreachable.
    pub fn route(&mut self, address: IpAddr, mark: Option<u32>) -> io::Result<OuterRoute> {
        let route = self.0.get(request::route_to(address, mark))?;
        let index = request::table_and_interface(&route).and_then(|(_, index)| index);
        let index = index.ok_or(io::ErrorKind::NetworkUnreachable)?;
        Ok(OuterRoute { interface: link::name(&mut self.0, index)?, gateway: request::gateway(&route) })
    }
}
