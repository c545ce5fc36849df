//! The one UDP socket of a node: trains of datagrams out (UDP GSO), trains in (UDP GRO), with their
//! traffic class; nothing is allocated per call.

mod message;
mod options;

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use strait_ipsec::Place;

use crate::fast_path::FastPath;
pub use crate::packet_errors::has_no_source;
use crate::packet_errors::{ErrorMeaning, PacketCall, meaning};
use crate::poll::{PollFd, wait};
use message::Destination;

/// Most datagrams in one call to the kernel (Linux `UDP_MAX_SEGMENTS` before 6.9; 128 since).
pub const TRAIN_SEGMENTS: usize = 64;
/// Most bytes in one call to the kernel: an IP packet's 65,535 less the largest headers in front,
/// rounded down.
pub const TRAIN_BYTES: usize = 65_000;
/// What a buffer for [`UdpSocket::recv`] must hold: the kernel joins up to one full IP packet.
pub const RECEIVE_BYTES: usize = 65_535;
/// How long a datagram in the middle of a train waits for room in the socket's buffer.
const PATIENCE: Duration = Duration::from_millis(50);

/// Where to receive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Listen {
    /// This port (0: any) on every address, IPv6 and IPv4 alike.
    Port(u16),
    /// This address only.
    Address(SocketAddr),
}

impl Listen {
    /// The port; 0 lets the system choose.
    #[must_use]
    pub const fn port(self) -> u16 {
        match self {
            Listen::Port(port) => port,
            Listen::Address(address) => address.port(),
        }
    }

    /// The same with a port that the system chooses.
    #[must_use]
    pub const fn any_port(self) -> Listen {
        match self {
            Listen::Port(_) => Listen::Port(0),
            Listen::Address(mut address) => {
                address.set_port(0);
                Listen::Address(address)
            }
        }
    }
}

impl std::fmt::Display for Listen {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Listen::Port(port) => write!(f, "port {port}"),
            Listen::Address(address) => write!(f, "{address}"),
        }
    }
}

/// Why there is no socket.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum UdpError {
    /// Another program has the port.
    #[error(
        "UDP {listen} is in use by another program; choose another 'listen', or stop it ('ss -ulpn' names it)"
    )]
    InUse {
        /// What was asked for.
        listen: Listen,
    },
    /// No interface has the address.
    #[error("no local interface has the address of UDP {listen}; correct 'listen', or give a port only")]
    NoSuchAddress {
        /// What was asked for.
        listen: Listen,
    },
    /// The port is below 1024.
    #[error(
        "UDP {listen} may not be used without CAP_NET_BIND_SERVICE; run as root or choose a port above 1023"
    )]
    Unprivileged {
        /// What was asked for.
        listen: Listen,
    },
    /// `fwmark` takes a capability.
    #[error("fwmark {mark:#x} may not be set without CAP_NET_ADMIN; run as root or leave 'fwmark' out")]
    Mark {
        /// What was asked for.
        mark: u32,
    },
    /// Anything else.
    #[error("cannot open a UDP socket on {listen}: {source}")]
    Io {
        /// What was asked for.
        listen: Listen,
        /// What the system said.
        source: io::Error,
    },
}

/// One call's worth of received datagrams, all from one sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReceivedBatch {
    /// Bytes received.
    pub len: usize,
    /// The sender, and the address that they came to, as far as answers can leave with that: a socket on one address has no other. An IPv4
    /// address is never written as IPv6.
    pub from: Place,
    /// Traffic class of the outer IP header.
    pub tos: u8,
    /// Bytes a datagram, at least 1; only the last of the train may be shorter.
    pub segment: usize,
}

/// A non-blocking UDP socket that joins and splits trains of datagrams in the kernel.
///
/// It fragments nothing but by [`UdpSocket::send_in_fragments`] (`IP_PMTUDISC_PROBE`): what does not fit the interface is refused
/// with EMSGSIZE.
#[derive(Debug)]
pub struct UdpSocket {
    fd: OwnedFd,
    local: SocketAddr,
    family: SocketFamily,
    /// The way of trains into the kernel, which some devices and paths refuse.
    trains: FastPath,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SocketFamily {
    V4,
    /// Takes IPv4 too, as mapped addresses.
    V6,
}

impl UdpSocket {
    /// Opens and binds; every datagram sent carries `mark` for policy routing, if there is one.
    ///
    /// # Errors
    /// [`UdpError`] with the remedy.
    pub fn bind(listen: Listen, mark: Option<u32>) -> Result<UdpSocket, UdpError> {
        match listen {
            Listen::Address(address) => UdpSocket::bind_to(address, listen, mark),
            Listen::Port(port) => {
                let any = |ip: IpAddr| SocketAddr::new(ip, port);
                match UdpSocket::bind_to(any(Ipv6Addr::UNSPECIFIED.into()), listen, mark) {
                    // The system has no IPv6, or none on its interfaces.
                    Err(UdpError::Io { source, .. }) if source.raw_os_error() == Some(libc::EAFNOSUPPORT) => {
                        UdpSocket::bind_to(any(Ipv4Addr::UNSPECIFIED.into()), listen, mark)
                    }
                    Err(UdpError::NoSuchAddress { .. }) => {
                        UdpSocket::bind_to(any(Ipv4Addr::UNSPECIFIED.into()), listen, mark)
                    }
                    other => other,
                }
            }
        }
    }

    fn bind_to(address: SocketAddr, listen: Listen, mark: Option<u32>) -> Result<UdpSocket, UdpError> {
        let family = if address.is_ipv4() { SocketFamily::V4 } else { SocketFamily::V6 };
        let failed = |source: io::Error| match source.raw_os_error() {
            Some(libc::EADDRINUSE) => UdpError::InUse { listen },
            Some(libc::EADDRNOTAVAIL) => UdpError::NoSuchAddress { listen },
            Some(libc::EACCES | libc::EPERM) => UdpError::Unprivileged { listen },
            _ => UdpError::Io { listen, source },
        };
        let fd = message::socket(family).map_err(failed)?;
        if let Some(mark) = mark {
            options::mark(&fd, mark).map_err(|_| UdpError::Mark { mark })?;
        }
        options::prepare(&fd, family, address.ip().is_unspecified()).map_err(failed)?;
        message::bind(&fd, &Destination::new(address, family).map_err(failed)?).map_err(failed)?;
        let local = message::local(&fd).map_err(failed)?;
        Ok(UdpSocket { fd, local, family, trains: FastPath::new("UDP of this system (GSO)") })
    }

    /// The address and port it is bound to.
    #[must_use]
    pub const fn local(&self) -> SocketAddr {
        self.local
    }

    /// Whether datagrams can be sent to `to` at all: an IPv4 socket reaches no IPv6 address.
    #[must_use]
    pub fn reaches(&self, to: SocketAddr) -> bool {
        Destination::new(to, self.family).is_ok()
    }

    /// Sends `bytes` as datagrams of `segment` bytes each (the last may be shorter), with traffic class `tos`, from the local address that
    /// `to` has, if it has one.
    ///
    /// # Errors
    /// `WouldBlock` when the socket's buffer is full: nothing was sent, provided that `bytes` is at most
    /// [`TRAIN_BYTES`] in at most [`TRAIN_SEGMENTS`] datagrams. EMSGSIZE (see [`is_too_big`]) when a datagram
    /// does not fit the path's first interface. See [`has_no_source`] for a local address that is gone. Anything else as `sendmsg(2)`.
    pub fn send_train(&self, to: impl Into<Place>, tos: u8, segment: usize, bytes: &[u8]) -> io::Result<()> {
        let Place { remote, local } = to.into();
        let way = way_to(remote.ip());
        let to = Destination::new(remote, self.family)?.leaving(local);
        let segment = segment.clamp(1, TRAIN_BYTES);
        let train = segment * (TRAIN_BYTES / segment).clamp(1, TRAIN_SEGMENTS);
        let mut rest = bytes;
        while !rest.is_empty() {
            let (now, later) = rest.split_at(train.min(rest.len()));
            match self.send_one_train((&to, way), tos, segment, now) {
                Err(error) if is_full(&error) && rest.len() < bytes.len() => {
                    self.wait_writable()?;
                }
                other => {
                    other?;
                    rest = later;
                }
            }
        }
        Ok(())
    }

    /// Sends one datagram that this host and routers may fragment (RFC 791), so that it leaves whatever the path takes; IPv6 has
    /// no such datagrams, and one to an IPv6 address leaves as any.
    ///
    /// Datagrams that another thread sends meanwhile may be fragmented as well.
    ///
    /// # Errors
    /// As [`UdpSocket::send_train`], but for EMSGSIZE.
    pub fn send_in_fragments(&self, to: impl Into<Place>, tos: u8, bytes: &[u8]) -> io::Result<()> {
        options::may_fragment(&self.fd, true)?;
        let sent = self.send_train(to, tos, bytes.len(), bytes);
        options::may_fragment(&self.fd, false)?;
        sent
    }

    fn send_one_train(
        &self,
        (to, way): (&Destination, u8),
        tos: u8,
        segment: usize,
        bytes: &[u8],
    ) -> io::Result<()> {
        if bytes.len() <= segment {
            return message::send(&self.fd, to, tos, None, bytes);
        }
        if !self.trains.is_open(way, || self.trains.now()) {
            return self.send_singly(to, tos, segment, bytes);
        }
        // At most TRAIN_BYTES, so it fits.
        let size = u16::try_from(segment).unwrap_or(u16::MAX);
        match message::send(&self.fd, to, tos, Some(size), bytes) {
            Ok(()) => {
                self.trains.worked(way);
                Ok(())
            }
            Err(error) if meaning(PacketCall::SendTrain, &error) == ErrorMeaning::OneByOne => {
                // Where the first alone is refused as well, it was not the train.
                self.send_singly(to, tos, segment, bytes)?;
                self.trains.refuse(way, &error, self.trains.now());
                Ok(())
            }
            refused => refused,
        }
    }

    /// Sends each datagram for itself. Where the first is refused, none is sent; one that is refused later is lost alone.
    fn send_singly(&self, to: &Destination, tos: u8, segment: usize, bytes: &[u8]) -> io::Result<()> {
        let mut result = Ok(());
        for (index, datagram) in bytes.chunks(segment).enumerate() {
            let sent = loop {
                match message::send(&self.fd, to, tos, None, datagram) {
                    Err(error) if is_full(&error) && index > 0 => self.wait_writable()?,
                    sent => break sent,
                }
            };
            match sent {
                Err(error) if index > 0 && meaning(PacketCall::Send, &error) == ErrorMeaning::Passing => {
                    result = result.and(Err(error));
                }
                sent => sent?,
            }
        }
        result
    }

    /// The number of trains that the kernel refused, whose datagrams then left one by one.
    #[must_use]
    pub fn refused_trains(&self) -> u64 {
        self.trains.refused()
    }

    /// Returns what people should know of how it sends.
    #[must_use]
    pub fn warning(&self) -> Option<String> {
        self.trains.warning(self.trains.now())
    }

    fn wait_writable(&self) -> io::Result<()> {
        let mut fds = [PollFd::writable(self.fd.as_fd())];
        match wait(&mut fds, Some(PATIENCE))? {
            0 => Err(io::ErrorKind::TimedOut.into()),
            _ => Ok(()),
        }
    }

    /// Receives one datagram or a train of them into `buf`, which should hold [`RECEIVE_BYTES`].
    ///
    /// # Errors
    /// `WouldBlock` when there is none; anything else as `recvmsg(2)`.
    pub fn recv(&self, buf: &mut [u8]) -> io::Result<ReceivedBatch> {
        message::receive(&self.fd, buf)
    }
}

impl AsFd for UdpSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Marks everything that `socket` sends from now on, or nothing, for policy routing.
///
/// # Errors
/// EPERM without CAP_NET_ADMIN.
pub(crate) fn set_mark(socket: &OwnedFd, mark: Option<u32>) -> io::Result<()> {
    options::mark(socket, mark.unwrap_or(0))
}

/// Returns the port of a UDP socket.
///
/// # Errors
/// The descriptor is of something else.
pub(crate) fn port(socket: &OwnedFd) -> io::Result<u16> {
    message::local(socket).map(|local| local.port())
}

/// Whether a datagram was refused because it is larger than the interface takes.
#[must_use]
pub fn is_too_big(error: &io::Error) -> bool {
    meaning(PacketCall::Send, error) == ErrorMeaning::TooBig
}

/// Returns true if there was no room for what was to be sent.
fn is_full(error: &io::Error) -> bool {
    meaning(PacketCall::Send, error) == ErrorMeaning::Wait
}

/// The number by which trains to an address are told from trains to most others.
fn way_to(address: IpAddr) -> u8 {
    let fold = |bytes: &[u8]| bytes.iter().fold(0, |sum, byte| sum ^ byte);
    match address.to_canonical() {
        IpAddr::V4(address) => fold(&address.octets()),
        IpAddr::V6(address) => fold(&address.octets()),
    }
}

#[cfg(test)]
mod tests;
