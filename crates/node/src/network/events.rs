//! What the kernel says has changed about links, addresses, routes and rules (rtnetlink(7)).
#![allow(unsafe_code)]

use std::io;
use std::ops::BitOr;

use netlink_packet_core::{NetlinkMessage, NetlinkPayload};
use netlink_packet_route::RouteNetlinkMessage as Message;
use netlink_sys::protocols::NETLINK_ROUTE;
use netlink_sys::{Socket, SocketAddr};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use super::{Network, behind, request};

/// `RTNLGRP_LINK`, `RTNLGRP_IPV4_IFADDR`, `RTNLGRP_IPV4_ROUTE`, `RTNLGRP_IPV4_RULE`, `RTNLGRP_IPV6_IFADDR`,
/// `RTNLGRP_IPV6_ROUTE`, `RTNLGRP_IPV6_RULE` (Linux `include/uapi/linux/rtnetlink.h`).
const GROUPS: [u32; 7] = [1, 5, 7, 8, 9, 11, 19];
/// Larger than any datagram of the kernel's (32 KiB).
const EVENT_BYTES: usize = 64 << 10;
/// Datagrams read before anything else is done.
const AT_ONCE: usize = 64;

/// What may have changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NetworkChange {
    /// Something of what the tunnel has on this host.
    pub tunnel: bool,
    /// Links, addresses or routes by which datagrams leave.
    pub outside: bool,
}

impl NetworkChange {
    const ALL: NetworkChange = NetworkChange { tunnel: true, outside: true };
}

impl BitOr for NetworkChange {
    type Output = NetworkChange;

    fn bitor(self, other: NetworkChange) -> NetworkChange {
        NetworkChange { tunnel: self.tunnel || other.tunnel, outside: self.outside || other.outside }
    }
}

/// The kernel's news, in the network namespace it was opened in.
#[derive(Debug)]
pub struct NetworkEvents(AsyncFd<Socket>);

impl NetworkEvents {
    /// Listens from now on; within a runtime.
    ///
    /// # Errors
    /// When the process has no file descriptor left.
    pub fn open() -> io::Result<NetworkEvents> {
        let mut socket = Socket::new(NETLINK_ROUTE)?;
        let groups = GROUPS.iter().fold(0, |groups, group| groups | 1 << (group - 1));
        socket.bind(&SocketAddr::new(0, groups))?;
        socket.set_non_blocking(true)?;
        // SAFETY: the descriptor is the socket's, which keeps it open for as long as the `AsyncFd` has it.
        let socket = unsafe { AsyncFd::register_with_interest(socket, Interest::READABLE) }?;
        Ok(NetworkEvents(socket))
    }

    /// Waits until there is something to read; to be followed by [`NetworkEvents::read`].
    pub async fn ready(&self) {
        // Reading tells what the matter is.
        let _ = self.0.readable().await;
    }

    /// Reads what there is, and says what it may mean for `network`, if there is one.
    pub fn read(&self, network: Option<&Network>) -> NetworkChange {
        let (mut change, mut buffer) = (NetworkChange::default(), Vec::with_capacity(EVENT_BYTES));
        for _ in 0..AT_ONCE {
            buffer.clear();
            let read = self.0.try_io(Interest::READABLE, |socket| socket.recv(&mut buffer, 0));
            match read {
                Ok(_) => change = change | meaning(&buffer, network),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                // The kernel had more to say than there was room for (ENOBUFS), so it may have been anything.
                Err(_) => change = NetworkChange::ALL,
            }
        }
        change
    }
}

/// What the messages of one datagram may mean.
fn meaning(mut rest: &[u8], network: Option<&Network>) -> NetworkChange {
    let mut change = NetworkChange::default();
    while !rest.is_empty() {
        let Ok(message) = NetlinkMessage::<Message>::deserialize(rest) else { return NetworkChange::ALL };
        if let NetlinkPayload::InnerMessage(message) = &message.payload {
            let outside = NetworkChange { tunnel: false, outside: true };
            change = change | network.map_or(outside, |network| network.meaning_of(message));
        }
        // Messages are padded to four bytes (netlink(7)).
        let len = usize::try_from(message.header.length).unwrap_or(usize::MAX);
        rest = rest.get(len.next_multiple_of(4).max(4)..).unwrap_or_default();
    }
    change
}

impl Network {
    /// What may have changed when the kernel says this. A host may have many routes that change often, so those that are
    /// not to the tunnel's destinations do not concern it.
    fn meaning_of(&self, message: &Message) -> NetworkChange {
        match message {
            // The kernel names no IPv4 route that goes with its link.
            Message::NewLink(link) | Message::DelLink(link) if link.header.index != self.index => {
                NetworkChange { tunnel: !self.networks.is_empty() || !self.taken.is_empty(), outside: true }
            }
            Message::NewRoute(route) | Message::DelRoute(route) => {
                let concerns = request::destination(route).is_some_and(|net| {
                    self.routes.iter().chain(self.taken.keys()).any(|route| route.destination == net)
                        || self.networks.iter().any(|named| behind::leads_to(&net, named))
                });
                NetworkChange { tunnel: concerns, outside: true }
            }
            _ => NetworkChange::ALL,
        }
    }
}
