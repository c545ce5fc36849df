//! Frames as they pass an interface, both ways, read from a packet socket (packet(7)).
#![allow(unsafe_code)]

use std::ffi::CString;
use std::io;
use std::mem::zeroed;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use crate::socket_buffer::SocketBuffer;

/// Room for a tenth of a second of a gigabit.
const RECEIVE_BUFFER: libc::c_int = 16 << 20;
/// A super-packet that a card cuts or has joined, with its headers.
const FRAME_MAX: usize = 65_535 + 256;

/// What a frame begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// An Ethernet header.
    Ethernet,
    /// An IP packet.
    Ip,
}

/// A frame that passed.
#[derive(Clone, Copy, Debug)]
pub struct TappedFrame<'a> {
    /// Its bytes.
    pub bytes: &'a [u8],
    /// Its whole length.
    pub len: usize,
}

/// A socket that sees everything that an interface sends and receives.
#[derive(Debug)]
pub struct Tap {
    fd: OwnedFd,
    framing: Framing,
    /// Whether everything passes twice: sent, and received again.
    loops: bool,
    buffer: Box<[u8]>,
    missed: u64,
}

impl Tap {
    /// Watches an interface.
    ///
    /// # Errors
    /// `NotFound` when there is none of this name, `PermissionDenied` without the right to watch (`CAP_NET_RAW`),
    /// `Unsupported` when its frames begin with neither an Ethernet header nor an IP packet.
    pub fn open(interface: &str) -> io::Result<Tap> {
        let name = CString::new(interface).map_err(|_| io::ErrorKind::NotFound)?;
        // SAFETY: `name` ends in a zero byte and outlives the call.
        let index = unsafe { libc::if_nametoindex(name.as_ptr()) };
        let index = libc::c_int::try_from(index).ok().filter(|index| *index > 0);
        let index = index.ok_or(io::ErrorKind::NotFound)?;
        // Deaf until it is bound: protocol 0 receives nothing.
        let kind = libc::SOCK_RAW | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
        // SAFETY: no pointer is passed; the result is checked before it is used.
        let fd = unsafe { libc::socket(libc::AF_PACKET, kind, 0) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the descriptor was just made and has no other owner.
        let fd = unsafe { OwnedFd::from_raw_fd(fd) };
        // Only helps.
        let _ = SocketBuffer::Receive.enlarge(&fd, RECEIVE_BUFFER);
        bind(&fd, index)?;
        let hardware = hardware(&fd)?;
        let framing = framing(hardware).ok_or_else(|| {
            let words = format!("it has hardware type {hardware}, which is neither Ethernet nor raw IP");
            io::Error::new(io::ErrorKind::Unsupported, words)
        })?;
        let buffer = vec![0; FRAME_MAX].into_boxed_slice();
        Ok(Tap { fd, framing, loops: hardware == libc::ARPHRD_LOOPBACK, buffer, missed: 0 })
    }

    /// What its frames begin with.
    #[must_use]
    pub const fn framing(&self) -> Framing {
        self.framing
    }

    /// The next frame that passed; nothing when none has since.
    ///
    /// # Errors
    /// As `recvfrom(2)`; `NetworkDown` when the interface went away.
    pub fn frame(&mut self) -> io::Result<Option<TappedFrame<'_>>> {
        loop {
            // SAFETY: all zeros is a valid sockaddr_ll, whose fields are integers.
            let mut from: libc::sockaddr_ll = unsafe { zeroed() };
            let mut size = socklen::<libc::sockaddr_ll>();
            // SAFETY: both pointers and lengths describe buffers that outlive the call.
            let len = unsafe {
                libc::recvfrom(
                    self.fd.as_raw_fd(),
                    self.buffer.as_mut_ptr().cast(),
                    self.buffer.len(),
                    libc::MSG_TRUNC,
                    (&raw mut from).cast(),
                    &raw mut size,
                )
            };
            let Ok(len) = usize::try_from(len) else {
                let error = io::Error::last_os_error();
                return if error.kind() == io::ErrorKind::WouldBlock { Ok(None) } else { Err(error) };
            };
            if self.loops && from.sll_pkttype == libc::PACKET_OUTGOING {
                continue;
            }
            let bytes = self.buffer.get(..len.min(self.buffer.len())).unwrap_or_default();
            return Ok(Some(TappedFrame { bytes, len }));
        }
    }

    /// Frames that the kernel dropped for want of room, since it was opened.
    pub fn missed(&mut self) -> u64 {
        // SAFETY: all zeros is a valid tpacket_stats, whose fields are integers.
        let mut stats: libc::tpacket_stats = unsafe { zeroed() };
        let mut size = socklen::<libc::tpacket_stats>();
        // SAFETY: the pointer and length describe `stats`, which outlives the call.
        let result = unsafe {
            libc::getsockopt(
                self.fd.as_raw_fd(),
                libc::SOL_PACKET,
                libc::PACKET_STATISTICS,
                (&raw mut stats).cast(),
                &raw mut size,
            )
        };
        // Asking sets the kernel's counter to zero again.
        if result == 0 {
            self.missed += u64::from(stats.tp_drops);
        }
        self.missed
    }
}

impl AsFd for Tap {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// What frames of an interface of this hardware type (`ARPHRD_`) begin with, as a raw packet socket gives them.
fn framing(hardware: u16) -> Option<Framing> {
    match hardware {
        libc::ARPHRD_ETHER | libc::ARPHRD_LOOPBACK => Some(Framing::Ethernet),
        libc::ARPHRD_NONE
        | libc::ARPHRD_PPP
        | libc::ARPHRD_TUNNEL
        | libc::ARPHRD_TUNNEL6
        | libc::ARPHRD_SIT
        | libc::ARPHRD_IPGRE => Some(Framing::Ip),
        _ => None,
    }
}

/// From here on it hears all protocols on the interface with this number.
fn bind(fd: &OwnedFd, index: libc::c_int) -> io::Result<()> {
    // SAFETY: all zeros is a valid sockaddr_ll, whose fields are integers.
    let mut address: libc::sockaddr_ll = unsafe { zeroed() };
    address.sll_family = libc::AF_PACKET as libc::sa_family_t;
    address.sll_protocol = (libc::ETH_P_ALL as u16).to_be();
    address.sll_ifindex = index;
    // SAFETY: the pointer and length describe `address`, which outlives the call.
    let result =
        unsafe { libc::bind(fd.as_raw_fd(), (&raw const address).cast(), socklen::<libc::sockaddr_ll>()) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// The hardware type of the interface that it is bound to.
fn hardware(fd: &OwnedFd) -> io::Result<u16> {
    // SAFETY: all zeros is a valid sockaddr_ll, whose fields are integers.
    let mut address: libc::sockaddr_ll = unsafe { zeroed() };
    let mut size = socklen::<libc::sockaddr_ll>();
    // SAFETY: the pointers describe `address` and its length, which outlive the call.
    let result = unsafe { libc::getsockname(fd.as_raw_fd(), (&raw mut address).cast(), &raw mut size) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(address.sll_hatype) }
}

fn socklen<T>() -> libc::socklen_t {
    libc::socklen_t::try_from(size_of::<T>()).unwrap_or(libc::socklen_t::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interface_that_is_not_there() {
        for name in ["no-such-one", "with\0zero", ""] {
            assert_eq!(Tap::open(name).unwrap_err().kind(), io::ErrorKind::NotFound, "{name}");
        }
    }

    #[test]
    fn frames_by_hardware_type() {
        // Numbers of <linux/if_arp.h>.
        for (hardware, expected) in [
            (1, Some(Framing::Ethernet)),
            (772, Some(Framing::Ethernet)),
            (65_534, Some(Framing::Ip)),
            (512, Some(Framing::Ip)),
            (801, None),
        ] {
            assert_eq!(framing(hardware), expected, "{hardware}");
        }
    }
}
