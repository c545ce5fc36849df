//! `sendmsg` and `recvmsg` with addresses and control messages in place on the stack.
#![allow(unsafe_code)]

use std::io;
use std::mem::{MaybeUninit, zeroed};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use super::{ReceivedBatch, SocketFamily};

/// Room for three control messages of one int each and an address, the most that is ever asked for.
const CONTROL_BYTES: usize = 144;

/// Control messages, aligned as they have to be.
#[repr(C, align(8))]
struct ControlMessages {
    bytes: [u8; CONTROL_BYTES],
    used: usize,
}

const _: () = assert!(align_of::<ControlMessages>() >= align_of::<libc::cmsghdr>());

impl ControlMessages {
    const EMPTY: ControlMessages = ControlMessages { bytes: [0; CONTROL_BYTES], used: 0 };

    /// Appends one message (cmsg(3)); one that finds no room is left out, which the constant above rules out.
    fn push<T: Copy>(&mut self, level: libc::c_int, kind: libc::c_int, value: T) {
        const { assert!(size_of::<T>() <= 20, "control messages here are integers and addresses") };
        let size = u32::try_from(size_of::<T>()).unwrap_or(0);
        // SAFETY: both only compute sizes.
        let (len, space) = unsafe { (libc::CMSG_LEN(size) as usize, libc::CMSG_SPACE(size) as usize) };
        let Some(place) = self.bytes.get_mut(self.used..self.used + space) else { return };
        let header = place.as_mut_ptr().cast::<libc::cmsghdr>();
        // SAFETY: `place` holds a header and the value behind it. It is aligned for a header, since the
        // array is and CMSG_SPACE is a multiple of that alignment. CMSG_DATA stays inside `place`; the
        // value is written unaligned.
        unsafe {
            (*header).cmsg_len = len as _;
            (*header).cmsg_level = level;
            (*header).cmsg_type = kind;
            libc::CMSG_DATA(header).cast::<T>().write_unaligned(value);
        }
        self.used += space;
    }
}

/// A destination as the kernel wants it.
pub(super) struct Destination {
    storage: libc::sockaddr_storage,
    len: libc::socklen_t,
    /// Whether datagrams to it are IPv4, mapped or not.
    v4: bool,
    /// The address that they leave with; none where the system chooses it.
    source: Option<IpAddr>,
}

impl Destination {
    /// For a socket of `family`.
    ///
    /// # Errors
    /// EAFNOSUPPORT for IPv6 on an IPv4 socket.
    pub(super) fn new(to: SocketAddr, family: SocketFamily) -> io::Result<Destination> {
        let to = match to.ip().to_canonical() {
            IpAddr::V4(ip) => SocketAddr::new(ip.into(), to.port()),
            IpAddr::V6(_) => to,
        };
        let v4 = to.is_ipv4();
        match (family, to) {
            (SocketFamily::V4, SocketAddr::V4(to)) => Ok(Destination::place(raw_v4(to), v4)),
            (SocketFamily::V6, SocketAddr::V6(to)) => Ok(Destination::place(raw_v6(to), v4)),
            (SocketFamily::V6, SocketAddr::V4(to)) => {
                let mapped = SocketAddrV6::new(to.ip().to_ipv6_mapped(), to.port(), 0, 0);
                Ok(Destination::place(raw_v6(mapped), v4))
            }
            (SocketFamily::V4, SocketAddr::V6(_)) => Err(io::Error::from_raw_os_error(libc::EAFNOSUPPORT)),
        }
    }

    fn place<T: Copy>(address: T, v4: bool) -> Destination {
        const { assert!(size_of::<T>() <= size_of::<libc::sockaddr_storage>()) };
        // SAFETY: all zeros is a valid sockaddr_storage, whose fields are integers.
        let mut storage: libc::sockaddr_storage = unsafe { zeroed() };
        // SAFETY: a sockaddr_storage is at least as large (checked above) and as aligned as any socket
        // address, by its definition in POSIX.
        unsafe { (&raw mut storage).cast::<T>().write(address) };
        Destination { storage, len: socklen(size_of::<T>()), v4, source: None }
    }

    /// The same with this source address, by whichever interface the routing table says (ip(7), ipv6(7): the index is 0).
    pub(super) fn leaving(self, source: Option<IpAddr>) -> Destination {
        Destination { source, ..self }
    }
}

pub(super) fn socket(family: SocketFamily) -> io::Result<OwnedFd> {
    let domain = match family {
        SocketFamily::V4 => libc::AF_INET,
        SocketFamily::V6 => libc::AF_INET6,
    };
    // SAFETY: no pointer is passed; the result is checked before it is used.
    let fd = unsafe { libc::socket(domain, libc::SOCK_DGRAM | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC, 0) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor was just made and has no other owner.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

pub(super) fn bind(fd: &OwnedFd, to: &Destination) -> io::Result<()> {
    // SAFETY: the pointer and length describe the address in `to`, which outlives the call.
    let result = unsafe { libc::bind(fd.as_raw_fd(), (&raw const to.storage).cast(), to.len) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

pub(super) fn local(fd: &OwnedFd) -> io::Result<SocketAddr> {
    let mut storage = MaybeUninit::<libc::sockaddr_storage>::zeroed();
    let mut len = socklen(size_of::<libc::sockaddr_storage>());
    // SAFETY: the pointer and length describe `storage`, which outlives the call.
    let result = unsafe { libc::getsockname(fd.as_raw_fd(), storage.as_mut_ptr().cast(), &raw mut len) };
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: it was all zeros, which is valid, before the kernel wrote to it.
    let storage = unsafe { storage.assume_init() };
    address(&storage).ok_or_else(|| io::ErrorKind::AddrNotAvailable.into())
}

/// One datagram, or a train of datagrams of `segment` bytes.
pub(super) fn send(
    fd: &OwnedFd,
    to: &Destination,
    tos: u8,
    segment: Option<u16>,
    bytes: &[u8],
) -> io::Result<()> {
    let mut control = ControlMessages::EMPTY;
    if to.v4 {
        control.push(libc::IPPROTO_IP, libc::IP_TOS, libc::c_int::from(tos));
    } else {
        control.push(libc::IPPROTO_IPV6, libc::IPV6_TCLASS, libc::c_int::from(tos));
    }
    match to.source.filter(|source| source.is_ipv4() == to.v4) {
        Some(IpAddr::V4(source)) => {
            let [source, unused] = [source, Ipv4Addr::UNSPECIFIED].map(raw_ipv4);
            let source = libc::in_pktinfo { ipi_ifindex: 0, ipi_spec_dst: source, ipi_addr: unused };
            control.push(libc::IPPROTO_IP, libc::IP_PKTINFO, source);
        }
        Some(IpAddr::V6(source)) => {
            let ipi6_addr = libc::in6_addr { s6_addr: source.octets() };
            let source = libc::in6_pktinfo { ipi6_addr, ipi6_ifindex: 0 };
            control.push(libc::IPPROTO_IPV6, libc::IPV6_PKTINFO, source);
        }
        None => {}
    }
    if let Some(segment) = segment {
        control.push(libc::SOL_UDP, libc::UDP_SEGMENT, segment);
    }
    let mut part = libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
    // SAFETY: all zeros is a valid msghdr: null pointers and zero lengths.
    let mut message: libc::msghdr = unsafe { zeroed() };
    message.msg_name = (&raw const to.storage).cast_mut().cast();
    message.msg_namelen = to.len;
    message.msg_iov = &raw mut part;
    message.msg_iovlen = 1;
    message.msg_control = control.bytes.as_mut_ptr().cast();
    message.msg_controllen = control.used as _;
    // SAFETY: every pointer in `message` points to a local or borrowed value with the length beside it,
    // all outlive the call, and sendmsg only reads them.
    let sent = unsafe { libc::sendmsg(fd.as_raw_fd(), &raw const message, 0) };
    if sent < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// One datagram, or a train of them that the kernel joined.
pub(super) fn receive(fd: &OwnedFd, buf: &mut [u8]) -> io::Result<ReceivedBatch> {
    let mut control = ControlMessages::EMPTY;
    let mut part = libc::iovec { iov_base: buf.as_mut_ptr().cast(), iov_len: buf.len() };
    // SAFETY: all zeros is a valid sockaddr_storage, whose fields are integers.
    let mut from: libc::sockaddr_storage = unsafe { zeroed() };
    // SAFETY: all zeros is a valid msghdr: null pointers and zero lengths.
    let mut message: libc::msghdr = unsafe { zeroed() };
    message.msg_name = (&raw mut from).cast();
    message.msg_namelen = socklen(size_of::<libc::sockaddr_storage>());
    message.msg_iov = &raw mut part;
    message.msg_iovlen = 1;
    message.msg_control = control.bytes.as_mut_ptr().cast();
    message.msg_controllen = CONTROL_BYTES as _;
    // SAFETY: every pointer in `message` points to a local or borrowed value with the length beside it,
    // all outlive the call, and nothing else refers to them meanwhile.
    let len = unsafe { libc::recvmsg(fd.as_raw_fd(), &raw mut message, 0) };
    let Ok(len) = usize::try_from(len) else { return Err(io::Error::last_os_error()) };
    let from = address(&from).ok_or_else(|| io::Error::from(io::ErrorKind::InvalidData))?;
    let mut received = ReceivedBatch { len, from: from.into(), tos: 0, segment: len.max(1) };
    // SAFETY: the kernel filled `message`, whose control buffer is still alive and is read only.
    unsafe { read_control(&message, &mut received) };
    Ok(received)
}

/// Takes traffic class, segment size and local address from the control messages.
///
/// # Safety
/// `message` must come from a successful `recvmsg` and its control buffer must be alive.
unsafe fn read_control(message: &libc::msghdr, received: &mut ReceivedBatch) {
    // SAFETY: as the caller promises.
    let mut next = unsafe { libc::CMSG_FIRSTHDR(message) };
    while !next.is_null() {
        // SAFETY: a non-null pointer from CMSG_FIRSTHDR or CMSG_NXTHDR is a whole header in the buffer.
        let header = unsafe { &*next };
        // SAFETY: CMSG_DATA points behind that header; each value is read with the size that the
        // kernel documents for this kind of message, and unaligned.
        unsafe {
            let data = libc::CMSG_DATA(next);
            match (header.cmsg_level, header.cmsg_type) {
                (libc::IPPROTO_IP, libc::IP_TOS) => received.tos = data.read(),
                (libc::IPPROTO_IPV6, libc::IPV6_TCLASS) => {
                    received.tos = low_byte(data.cast::<libc::c_int>().read_unaligned());
                }
                (libc::SOL_UDP, libc::UDP_GRO) => {
                    let size = data.cast::<libc::c_int>().read_unaligned();
                    received.segment = usize::try_from(size).unwrap_or(1).max(1);
                }
                (libc::IPPROTO_IP, libc::IP_PKTINFO) => {
                    let info = data.cast::<libc::in_pktinfo>().read_unaligned();
                    let to = Ipv4Addr::from(info.ipi_addr.s_addr.to_ne_bytes());
                    received.from.local = usable(to.into());
                }
                (libc::IPPROTO_IPV6, libc::IPV6_PKTINFO) => {
                    let info = data.cast::<libc::in6_pktinfo>().read_unaligned();
                    received.from.local = usable(Ipv6Addr::from(info.ipi6_addr.s6_addr).into());
                }
                _ => {}
            }
            next = libc::CMSG_NXTHDR(message, next);
        }
    }
}

/// The address that a datagram came to, if answers can have it as their source: a group's cannot, and one of a link says nothing without
/// the link.
fn usable(address: IpAddr) -> Option<IpAddr> {
    let address = address.to_canonical();
    let is_one_hosts = match address {
        IpAddr::V4(address) => !address.is_multicast() && !address.is_broadcast(),
        IpAddr::V6(address) => !address.is_multicast() && !address.is_unicast_link_local(),
    };
    (is_one_hosts && !address.is_unspecified()).then_some(address)
}

fn low_byte(value: libc::c_int) -> u8 {
    let [.., low] = value.to_be_bytes();
    low
}

fn raw_v4(address: SocketAddrV4) -> libc::sockaddr_in {
    // SAFETY: all zeros is a valid sockaddr_in, whose fields are integers.
    let mut raw: libc::sockaddr_in = unsafe { zeroed() };
    raw.sin_family = libc::AF_INET as libc::sa_family_t;
    raw.sin_port = address.port().to_be();
    raw.sin_addr = raw_ipv4(*address.ip());
    raw
}

const fn raw_ipv4(address: Ipv4Addr) -> libc::in_addr {
    libc::in_addr { s_addr: u32::from_ne_bytes(address.octets()) }
}

fn raw_v6(address: SocketAddrV6) -> libc::sockaddr_in6 {
    // SAFETY: all zeros is a valid sockaddr_in6, whose fields are integers.
    let mut raw: libc::sockaddr_in6 = unsafe { zeroed() };
    raw.sin6_family = libc::AF_INET6 as libc::sa_family_t;
    raw.sin6_port = address.port().to_be();
    raw.sin6_addr = libc::in6_addr { s6_addr: address.ip().octets() };
    raw.sin6_scope_id = address.scope_id();
    raw
}

/// The address in `storage`, IPv4 never written as IPv6; nothing when it is neither.
fn address(storage: &libc::sockaddr_storage) -> Option<SocketAddr> {
    match libc::c_int::from(storage.ss_family) {
        libc::AF_INET => {
            // SAFETY: the family says that this is a sockaddr_in, which fits and is aligned.
            let raw = unsafe { &*(&raw const *storage).cast::<libc::sockaddr_in>() };
            let ip = Ipv4Addr::from(raw.sin_addr.s_addr.to_ne_bytes());
            Some(SocketAddr::new(ip.into(), u16::from_be(raw.sin_port)))
        }
        libc::AF_INET6 => {
            // SAFETY: the family says that this is a sockaddr_in6, which fits and is aligned.
            let raw = unsafe { &*(&raw const *storage).cast::<libc::sockaddr_in6>() };
            let ip = Ipv6Addr::from(raw.sin6_addr.s6_addr);
            let port = u16::from_be(raw.sin6_port);
            Some(match IpAddr::V6(ip).to_canonical() {
                IpAddr::V4(ip) => SocketAddr::new(ip.into(), port),
                IpAddr::V6(ip) => SocketAddrV6::new(ip, port, 0, raw.sin6_scope_id).into(),
            })
        }
        _ => None,
    }
}

fn socklen(size: usize) -> libc::socklen_t {
    libc::socklen_t::try_from(size).unwrap_or(libc::socklen_t::MAX)
}
