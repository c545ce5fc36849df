//! Packets directly behind IP, without UDP: AH, ESP and IPComp as protocols 51, 50 and 108.
//!
//! They are sent whole, with the header that the packet path made, and received before the kernel puts fragments
//! together or takes extension headers off, since that is what an integrity check may cover.

mod apart;
mod filter;
mod socket;

use std::io;
use std::net::IpAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use strait_wire::{Protocol, ip};

use crate::packet_errors::{ErrorMeaning, PacketCall, meaning};
use crate::poll::{PollFd, wait};

use filter::Look;
pub use filter::{PeerFlow, Watched};
use socket::Marks;
pub(crate) use socket::attach;

/// Protocols that are answered here and not by the kernel.
const OWNED: [Protocol; 5] = [Protocol::ESP, Protocol::AH, Protocol::IPCOMP, Protocol::IPIP, Protocol::IPV6];
/// The largest IP packet without a jumbo payload: IPv6's header and what its length field can say.
const PACKET_MAX: usize = 40 + 65_535;
/// How long a packet in the middle of a train waits for room in the socket's buffer.
const PATIENCE: Duration = Duration::from_millis(50);

/// Why there are no such sockets.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DirectError {
    /// They take a capability.
    #[error(
        "raw IP sockets need CAP_NET_RAW; run as root, or use `carrier = \"udp\"` if the peer \
         supports it"
    )]
    Unprivileged,
    /// `fwmark` takes a capability.
    #[error("fwmark {mark:#x} may not be set without CAP_NET_ADMIN; run as root or leave 'fwmark' out")]
    Mark {
        /// What was asked for.
        mark: u32,
    },
    /// Anything else.
    #[error("cannot {step}: {source}")]
    Io {
        /// What was tried.
        step: &'static str,
        /// What the system said.
        source: io::Error,
    },
}

/// Where packets are received, and taken apart.
#[derive(Debug)]
pub struct Buffer {
    bytes: Box<[u8]>,
    room: Box<[u8]>,
}

impl Buffer {
    /// Room for the largest packet.
    #[must_use]
    pub fn new() -> Buffer {
        let zeros = |len| vec![0; len].into_boxed_slice();
        Buffer { bytes: zeros(PACKET_MAX), room: zeros(PACKET_MAX) }
    }
}

impl Default for Buffer {
    fn default() -> Buffer {
        Buffer::new()
    }
}

/// The sockets for one version of IP.
#[derive(Debug)]
struct DirectSockets {
    sender: OwnedFd,
    /// Takes ESP, in front of which the system puts the IP header.
    esp: OwnedFd,
    tap: OwnedFd,
    /// Held for what they keep the kernel from.
    _owners: Vec<OwnedFd>,
}

/// The sockets for packets directly behind IP.
#[derive(Debug)]
pub struct Direct {
    v4: DirectSockets,
    /// None where the system has no IPv6.
    v6: Option<DirectSockets>,
}

impl Direct {
    /// Opens them, deaf to all but what is `watched`; every packet sent carries `mark` for policy routing, if there is one.
    ///
    /// # Errors
    /// [`DirectError`] with the remedy.
    pub fn open(watched: &Watched, mark: Option<u32>) -> Result<Direct, DirectError> {
        let direct = Direct {
            v4: DirectSockets::open(ip::Version::V4)?,
            v6: match DirectSockets::open(ip::Version::V6) {
                Err(DirectError::Io { source, .. }) if source.raw_os_error() == Some(libc::EAFNOSUPPORT) => {
                    None
                }
                opened => Some(opened?),
            },
        };
        if let Some(mark) = mark {
            let mut senders = direct.sockets().flat_map(|(_, sockets)| [&sockets.sender, &sockets.esp]);
            senders
                .try_for_each(|sender| socket::mark(sender, mark))
                .map_err(|_| DirectError::Mark { mark })?;
        }
        direct.watch(watched)?;
        Ok(direct)
    }

    /// Receives what is `watched` from now on, and nothing else of the host's traffic; of more peers than the kernel has room to
    /// tell apart, all that has their protocols.
    ///
    /// # Errors
    /// [`DirectError::Io`] when the kernel takes no filter at all.
    pub fn watch(&self, watched: &Watched) -> Result<(), DirectError> {
        for (version, sockets) in self.sockets() {
            let exact = sockets.filter(version, watched, Look::Exact);
            exact
                .or_else(|_| sockets.filter(version, watched, Look::Coarse))
                .map_err(failed("set the packet filter"))?;
        }
        Ok(())
    }

    /// What packets are sent by.
    pub fn senders(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.sockets().flat_map(|(_, sockets)| [sockets.sender.as_fd(), sockets.esp.as_fd()])
    }

    /// Sends `bytes` as packets of `segment` bytes each (the last may be shorter) towards `to`.
    ///
    /// # Errors
    /// `WouldBlock` when the socket's buffer is full and nothing was sent. EMSGSIZE (see
    /// [`crate::udp::is_too_big`]) when a packet does not fit the path's first interface. Anything else as
    /// `sendmmsg(2)`.
    pub fn send_train(&self, to: IpAddr, segment: usize, bytes: &[u8]) -> io::Result<()> {
        let sockets = self.to(to)?;
        DirectSockets::send(&sockets.sender, (to, None), segment, bytes)
    }

    /// Sends `bytes` as ESP packets of `segment` bytes each (the last may be shorter) towards `to`, with an IP header
    /// that the system makes: its source is `from`, or that of a UDP datagram on any address, and it has these marks.
    ///
    /// # Errors
    /// As [`Direct::send_train`].
    pub fn send_esp(
        &self,
        (to, from): (IpAddr, Option<IpAddr>),
        tos: u8,
        segment: usize,
        bytes: &[u8],
    ) -> io::Result<()> {
        let to = to.to_canonical();
        let sockets = self.to(to)?;
        DirectSockets::send(&sockets.esp, (to, Some(Marks::new(to, from, tos))), segment, bytes)
    }

    fn to(&self, to: IpAddr) -> io::Result<&DirectSockets> {
        self.of(version_of(to)).ok_or_else(|| io::Error::from_raw_os_error(libc::EAFNOSUPPORT))
    }

    /// What is readable when packets of `version` have come; nothing where the system has no such packets.
    #[must_use]
    pub fn tap(&self, version: ip::Version) -> Option<BorrowedFd<'_>> {
        self.of(version).map(|sockets| sockets.tap.as_fd())
    }

    /// Waits until a packet can be sent to `to`.
    ///
    /// # Errors
    /// As `ppoll(2)`; `TimedOut`.
    pub fn wait_writable(&self, to: IpAddr, patience: Duration) -> io::Result<()> {
        self.of(version_of(to)).map_or(Ok(()), |sockets| wait_writable(&sockets.sender, patience))
    }

    /// The same for ESP.
    ///
    /// # Errors
    /// As `ppoll(2)`; `TimedOut`.
    pub fn wait_esp_writable(&self, to: IpAddr, patience: Duration) -> io::Result<()> {
        let sockets = self.of(version_of(to.to_canonical()));
        sockets.map_or(Ok(()), |sockets| wait_writable(&sockets.esp, patience))
    }

    /// Gives `each` the next packet of `version`, or several that a driver joined, one after the other.
    ///
    /// # Errors
    /// `WouldBlock` when there is none; anything else as `recv(2)`.
    pub fn receive(
        &self,
        version: ip::Version,
        buffer: &mut Buffer,
        mut each: impl FnMut(&mut [u8]),
    ) -> io::Result<()> {
        let sockets = self.of(version).ok_or(io::ErrorKind::WouldBlock)?;
        let Buffer { bytes, room } = buffer;
        let taken = loop {
            // More than an IP packet can have is passed over.
            let taken = socket::receive(&sockets.tap, bytes)?;
            if taken.len <= bytes.len() {
                break taken;
            }
        };
        let packet = bytes.get_mut(..taken.len).unwrap_or_default();
        if !taken.unfinished {
            each(packet);
        } else if apart::apart(packet, room, each).is_err() {
            tracing::debug!(len = taken.len, "joined packets that are not IP in IP");
        }
        Ok(())
    }

    fn of(&self, version: ip::Version) -> Option<&DirectSockets> {
        match version {
            ip::Version::V4 => Some(&self.v4),
            ip::Version::V6 => self.v6.as_ref(),
        }
    }

    fn sockets(&self) -> impl Iterator<Item = (ip::Version, &DirectSockets)> {
        [(ip::Version::V4, Some(&self.v4)), (ip::Version::V6, self.v6.as_ref())]
            .into_iter()
            .filter_map(|(version, sockets)| Some((version, sockets?)))
    }
}

impl DirectSockets {
    /// Sends all of `bytes` by one socket, with these marks and this source unless they are whole packets.
    fn send(
        socket: &OwnedFd,
        (to, marks): (IpAddr, Option<Marks>),
        segment: usize,
        bytes: &[u8],
    ) -> io::Result<()> {
        let segment = segment.max(1);
        let (mut rest, mut result) = (bytes, Ok(()));
        while !rest.is_empty() {
            match socket::send(socket, to, marks.as_ref(), rest.chunks(segment)) {
                Ok(sent) => rest = rest.get(sent * segment..).unwrap_or_default(),
                Err(error) if rest.len() == bytes.len() => return Err(error),
                Err(error) => match meaning(PacketCall::Send, &error) {
                    ErrorMeaning::Wait => wait_writable(socket, PATIENCE)?,
                    // It concerns the first packet of the rest, which is lost alone.
                    ErrorMeaning::Passing => {
                        rest = rest.get(segment..).unwrap_or_default();
                        result = result.and(Err(error));
                    }
                    _ => return Err(error),
                },
            }
        }
        result
    }

    fn open(version: ip::Version) -> Result<DirectSockets, DirectError> {
        let (domain, ethertype) = match version {
            ip::Version::V4 => (libc::AF_INET, libc::ETH_P_IP),
            ip::Version::V6 => (libc::AF_INET6, libc::ETH_P_IPV6),
        };
        let nothing = filter::program(version, &Watched::default(), Look::Coarse).unwrap_or_default();
        let owner = |protocol: Protocol| socket::owner(domain, protocol.0, &nothing);
        let owners: io::Result<Vec<OwnedFd>> = OWNED.into_iter().map(owner).collect();
        Ok(DirectSockets {
            sender: socket::sender(domain).map_err(failed("open a raw socket"))?,
            esp: socket::esp(domain, &nothing).map_err(failed("open a raw socket"))?,
            _owners: owners.map_err(failed("open a raw socket"))?,
            tap: socket::tap(ethertype, &nothing).map_err(failed("open a packet socket"))?,
        })
    }

    fn filter(&self, version: ip::Version, watched: &Watched, look: Look) -> io::Result<()> {
        // Too many steps; where there is no room for them (sysctl `net.core.optmem_max`) the kernel says so.
        let program = filter::program(version, watched, look).ok_or(io::ErrorKind::StorageFull)?;
        socket::attach(&self.tap, &program)
    }
}

fn wait_writable(socket: &OwnedFd, patience: Duration) -> io::Result<()> {
    match wait(&mut [PollFd::writable(socket.as_fd())], Some(patience))? {
        0 => Err(io::ErrorKind::TimedOut.into()),
        _ => Ok(()),
    }
}

const fn version_of(address: IpAddr) -> ip::Version {
    match address {
        IpAddr::V4(_) => ip::Version::V4,
        IpAddr::V6(_) => ip::Version::V6,
    }
}

fn failed(step: &'static str) -> impl Fn(io::Error) -> DirectError {
    move |source| match source.raw_os_error() {
        Some(libc::EPERM | libc::EACCES) => DirectError::Unprivileged,
        _ => DirectError::Io { step, source },
    }
}

#[cfg(test)]
mod tests;
