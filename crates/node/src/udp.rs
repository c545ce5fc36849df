//! The one UDP socket of a node: trains of datagrams out (UDP GSO), trains in (UDP GRO), with their
//! traffic class; nothing is allocated per call.

mod message;
mod options;

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

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
    /// Who sent them; an IPv4 address is never written as IPv6.
    pub from: SocketAddr,
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
    /// Whether the kernel takes trains; some devices and paths do not.
    trains: AtomicBool,
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
        Ok(UdpSocket { fd, local, family, trains: AtomicBool::new(true) })
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

    /// Sends `bytes` as datagrams of `segment` bytes each (the last may be shorter), with traffic class `tos`.
    ///
    /// # Errors
    /// `WouldBlock` when the socket's buffer is full: nothing was sent, provided that `bytes` is at most
    /// [`TRAIN_BYTES`] in at most [`TRAIN_SEGMENTS`] datagrams. EMSGSIZE (see [`is_too_big`]) when a datagram
    /// does not fit the path's first interface. Anything else as `sendmsg(2)`.
    pub fn send_train(&self, to: SocketAddr, tos: u8, segment: usize, bytes: &[u8]) -> io::Result<()> {
        let to = Destination::new(to, self.family)?;
        let segment = segment.clamp(1, TRAIN_BYTES);
        let train = segment * (TRAIN_BYTES / segment).clamp(1, TRAIN_SEGMENTS);
        let mut rest = bytes;
        while !rest.is_empty() {
            let (now, later) = rest.split_at(train.min(rest.len()));
            match self.send_one_train(&to, tos, segment, now) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock && rest.len() < bytes.len() => {
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
    pub fn send_in_fragments(&self, to: SocketAddr, tos: u8, bytes: &[u8]) -> io::Result<()> {
        options::may_fragment(&self.fd, true)?;
        let sent = self.send_train(to, tos, bytes.len(), bytes);
        options::may_fragment(&self.fd, false)?;
        sent
    }

    fn send_one_train(&self, to: &Destination, tos: u8, segment: usize, bytes: &[u8]) -> io::Result<()> {
        if bytes.len() <= segment {
            return message::send(&self.fd, to, tos, None, bytes);
        }
        if !self.trains.load(Ordering::Relaxed) {
            return self.send_singly(to, tos, segment, bytes);
        }
        // At most TRAIN_BYTES, so it fits.
        let size = u16::try_from(segment).unwrap_or(u16::MAX);
        match message::send(&self.fd, to, tos, Some(size), bytes) {
            // EIO: no checksum offload on the way out (before Linux 6.11). EINVAL: not built in, or (before
            // 5.19) a segment larger than the interface takes, which sending singly will tell.
            Err(error)
                if matches!(error.raw_os_error(), Some(libc::EIO | libc::EINVAL | libc::EOPNOTSUPP)) =>
            {
                self.send_singly(to, tos, segment, bytes)?;
                self.trains.store(false, Ordering::Relaxed);
                tracing::info!(%error, "the system does not support UDP GSO; sending datagrams one by one");
                Ok(())
            }
            other => other,
        }
    }

    fn send_singly(&self, to: &Destination, tos: u8, segment: usize, bytes: &[u8]) -> io::Result<()> {
        let mut first = true;
        for datagram in bytes.chunks(segment) {
            loop {
                match message::send(&self.fd, to, tos, None, datagram) {
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock && !first => {
                        self.wait_writable()?
                    }
                    other => break other?,
                }
            }
            first = false;
        }
        Ok(())
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

/// Whether a datagram was refused because it is larger than the interface takes.
#[must_use]
pub fn is_too_big(error: &io::Error) -> bool {
    error.raw_os_error() == Some(libc::EMSGSIZE)
}

#[cfg(test)]
mod tests;
