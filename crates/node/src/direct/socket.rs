//! Raw and packet sockets, made and used.
#![allow(unsafe_code)]

use std::io;
use std::mem::zeroed;
use std::net::IpAddr;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use libc::sock_filter;

use crate::socket_buffer::SocketBuffer;

/// As for the node's UDP socket: room for one round of a busy receiver.
const RECEIVE_BUFFER: libc::c_int = 4 << 20;
/// As for the node's UDP socket: room for a few trains.
const SEND_BUFFER: libc::c_int = 1 << 20;
/// Most packets in one call: as many as in a train.
const AT_ONCE: usize = crate::udp::TRAIN_SEGMENTS;

fn open(domain: libc::c_int, kind: libc::c_int, protocol: libc::c_int) -> io::Result<OwnedFd> {
    // SAFETY: no pointer is passed; the result is checked before it is used.
    let fd = unsafe { libc::socket(domain, kind | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC, protocol) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor was just made and has no other owner.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// A socket that takes whole IP packets to send (raw(7): `IPPROTO_RAW` implies `IP_HDRINCL`) and receives none.
pub(super) fn sender(domain: libc::c_int) -> io::Result<OwnedFd> {
    let fd = open(domain, libc::SOCK_RAW, libc::IPPROTO_RAW)?;
    // Only makes it faster.
    let _ = SocketBuffer::Send.enlarge(&fd, SEND_BUFFER);
    Ok(fd)
}

/// A socket that takes ESP to send, and receives none; the system makes the IP header, as for the node's UDP socket: whatever ICMP
/// says of the path, and never to be fragmented.
pub(super) fn esp(domain: libc::c_int, nothing: &[sock_filter]) -> io::Result<OwnedFd> {
    let fd = owner(domain, strait_wire::Protocol::ESP.0, nothing)?;
    let (level, name, value) = match domain {
        libc::AF_INET6 => (libc::IPPROTO_IPV6, libc::IPV6_MTU_DISCOVER, libc::IPV6_PMTUDISC_PROBE),
        _ => (libc::IPPROTO_IP, libc::IP_MTU_DISCOVER, libc::IP_PMTUDISC_PROBE),
    };
    // SAFETY: the option takes an int.
    unsafe { set(&fd, level, name, value) }?;
    // Only makes it faster.
    let _ = SocketBuffer::Send.enlarge(&fd, SEND_BUFFER);
    Ok(fd)
}

/// A socket that keeps the kernel from answering `protocol` with "protocol unreachable", and takes nothing.
pub(super) fn owner(domain: libc::c_int, protocol: u8, nothing: &[sock_filter]) -> io::Result<OwnedFd> {
    let fd = open(domain, libc::SOCK_RAW, protocol.into())?;
    attach(&fd, nothing)?;
    Ok(fd)
}

/// A socket that gets incoming packets of one version as they are on the wire, fragments included, as far as `filter`
/// lets them pass (packet(7)).
pub(super) fn tap(ethertype: libc::c_int, filter: &[sock_filter]) -> io::Result<OwnedFd> {
    // Deaf until the filter is there.
    let fd = open(libc::AF_PACKET, libc::SOCK_DGRAM, 0)?;
    attach(&fd, filter)?;
    // SAFETY: the option takes an int.
    unsafe { set(&fd, libc::SOL_PACKET, libc::PACKET_AUXDATA, 1 as libc::c_int) }?;
    // Only makes it faster.
    let _ = SocketBuffer::Receive.enlarge(&fd, RECEIVE_BUFFER);
    // SAFETY: all zeros is a valid sockaddr_ll, whose fields are integers.
    let mut address: libc::sockaddr_ll = unsafe { zeroed() };
    address.sll_family = libc::AF_PACKET as libc::sa_family_t;
    address.sll_protocol = u16::try_from(ethertype).unwrap_or(0).to_be();
    // SAFETY: the pointer and length describe `address`, which outlives the call.
    let result = unsafe {
        libc::bind(fd.as_raw_fd(), (&raw const address).cast(), socklen(size_of::<libc::sockaddr_ll>()))
    };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(fd) }
}

/// Puts a filter in place of the one there is.
pub(crate) fn attach(fd: &OwnedFd, filter: &[sock_filter]) -> io::Result<()> {
    let len = u16::try_from(filter.len()).map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
    let program = libc::sock_fprog { len, filter: filter.as_ptr().cast_mut() };
    // SAFETY: the program points to `len` steps that outlive the call, which copies them.
    unsafe { set(fd, libc::SOL_SOCKET, libc::SO_ATTACH_FILTER, program) }
}

/// Marks everything that is sent, for policy routing (socket(7), `SO_MARK`).
pub(super) fn mark(fd: &OwnedFd, mark: u32) -> io::Result<()> {
    // SAFETY: the option takes an int.
    unsafe { set(fd, libc::SOL_SOCKET, libc::SO_MARK, mark) }
}

/// Sets an option.
///
/// # Safety
/// `value` must be what the option takes, and what it points to must be alive.
unsafe fn set<T>(fd: &OwnedFd, level: libc::c_int, name: libc::c_int, value: T) -> io::Result<()> {
    // SAFETY: the pointer and length describe `value`, which outlives the call; the rest is as the caller promises.
    let result = unsafe {
        let len = socklen(size_of::<T>());
        libc::setsockopt(fd.as_raw_fd(), level, name, (&raw const value).cast(), len)
    };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Sends packets to one address, with these control messages unless they are whole IP packets; says how many the kernel took, at least one.
///
/// # Errors
/// As `sendmmsg(2)` for the first of them.
pub(super) fn send<'p>(
    fd: &OwnedFd,
    to: IpAddr,
    marks: Option<&Marks>,
    packets: impl Iterator<Item = &'p [u8]>,
) -> io::Result<usize> {
    let mut name = LinkAddress::new(to);
    // SAFETY: all zeros are valid: null pointers and zero lengths.
    let (mut parts, mut messages): ([libc::iovec; AT_ONCE], [libc::mmsghdr; AT_ONCE]) =
        unsafe { (zeroed(), zeroed()) };
    let mut count = 0;
    for ((packet, part), message) in packets.zip(&mut parts).zip(&mut messages) {
        *part = libc::iovec { iov_base: packet.as_ptr().cast_mut().cast(), iov_len: packet.len() };
        message.msg_hdr.msg_name = (&raw mut name.storage).cast();
        message.msg_hdr.msg_namelen = name.len;
        message.msg_hdr.msg_iov = part;
        message.msg_hdr.msg_iovlen = 1;
        if let Some(marks) = marks {
            message.msg_hdr.msg_control = marks.bytes.as_ptr().cast_mut().cast();
            message.msg_hdr.msg_controllen = marks.len as _;
        }
        count += 1;
    }
    // SAFETY: the first `count` messages point to values that outlive the call, each with the length beside it;
    // sendmmsg only reads them, but for the lengths sent, which are in `messages`.
    let sent = unsafe { libc::sendmmsg(fd.as_raw_fd(), messages.as_mut_ptr(), count, 0) };
    usize::try_from(sent).map_err(|_| io::Error::last_os_error())
}

/// Control messages with the marks of what is sent and its source (ip(7), ipv6(7)).
#[repr(C, align(8))]
pub(super) struct Marks {
    bytes: [u8; 96],
    len: usize,
}

const _: () = assert!(align_of::<Marks>() >= align_of::<libc::cmsghdr>());

impl Marks {
    pub(super) fn new(to: IpAddr, from: Option<IpAddr>, tos: u8) -> Marks {
        let mut marks = Marks { bytes: [0; 96], len: 0 };
        let tos = libc::c_int::from(tos);
        match to {
            IpAddr::V4(_) => marks.push(libc::IPPROTO_IP, libc::IP_TOS, tos),
            IpAddr::V6(_) => marks.push(libc::IPPROTO_IPV6, libc::IPV6_TCLASS, tos),
        }
        match from.filter(|from| from.is_ipv4() == to.is_ipv4()) {
            Some(IpAddr::V4(from)) => {
                let [from, unused] =
                    [u32::from_ne_bytes(from.octets()), 0].map(|s_addr| libc::in_addr { s_addr });
                let from = libc::in_pktinfo { ipi_ifindex: 0, ipi_spec_dst: from, ipi_addr: unused };
                marks.push(libc::IPPROTO_IP, libc::IP_PKTINFO, from);
            }
            Some(IpAddr::V6(from)) => {
                let ipi6_addr = libc::in6_addr { s6_addr: from.octets() };
                let from = libc::in6_pktinfo { ipi6_addr, ipi6_ifindex: 0 };
                marks.push(libc::IPPROTO_IPV6, libc::IPV6_PKTINFO, from);
            }
            None => {}
        }
        marks
    }

    fn push<T: Copy>(&mut self, level: libc::c_int, kind: libc::c_int, value: T) {
        // SAFETY: both only compute sizes.
        let (len, space) = unsafe {
            let size = socklen(size_of::<T>());
            (libc::CMSG_LEN(size), libc::CMSG_SPACE(size) as usize)
        };
        let Some(place) = self.bytes.get_mut(self.len..self.len + space) else { return };
        let header = place.as_mut_ptr().cast::<libc::cmsghdr>();
        // SAFETY: `place` holds a header and the value behind it, and is aligned for a header, as `bytes` is and CMSG_SPACE is a
        // multiple of that alignment; the value is written unaligned.
        unsafe {
            (*header).cmsg_len = len as _;
            (*header).cmsg_level = level;
            (*header).cmsg_type = kind;
            libc::CMSG_DATA(header).cast::<T>().write_unaligned(value);
        }
        self.len += space;
    }
}

/// A packet that was received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Taken {
    /// Its whole length, even if that is more than there was room for.
    pub(super) len: usize,
    /// Whether its innermost checksum is not made yet, as after a driver joined several packets.
    pub(super) unfinished: bool,
}

/// Room for one control message with [`libc::tpacket_auxdata`].
#[repr(C, align(8))]
struct AuxiliaryData([u8; 64]);

const _: () = assert!(align_of::<AuxiliaryData>() >= align_of::<libc::cmsghdr>());

/// The next packet into `buf`.
pub(super) fn receive(fd: &OwnedFd, buf: &mut [u8]) -> io::Result<Taken> {
    let mut control = AuxiliaryData([0; 64]);
    let mut part = libc::iovec { iov_base: buf.as_mut_ptr().cast(), iov_len: buf.len() };
    // SAFETY: all zeros is a valid msghdr: null pointers and zero lengths.
    let mut message: libc::msghdr = unsafe { zeroed() };
    message.msg_iov = &raw mut part;
    message.msg_iovlen = 1;
    message.msg_control = control.0.as_mut_ptr().cast();
    message.msg_controllen = size_of::<AuxiliaryData>() as _;
    // SAFETY: every pointer in `message` points to a local or borrowed value with the length beside it, all outlive the
    // call, and nothing else refers to them meanwhile.
    let len = unsafe { libc::recvmsg(fd.as_raw_fd(), &raw mut message, libc::MSG_TRUNC) };
    let len = usize::try_from(len).map_err(|_| io::Error::last_os_error())?;
    // SAFETY: the kernel filled `message`, whose control buffer is still alive.
    Ok(Taken { len, unfinished: unsafe { is_unfinished(&message) } })
}

/// What the kernel says of a packet's checksum.
///
/// # Safety
/// `message` must come from a successful `recvmsg` and its control buffer must be alive.
unsafe fn is_unfinished(message: &libc::msghdr) -> bool {
    // SAFETY: as the caller promises; a non-null pointer is a whole header in the buffer, and of this kind has a
    // `tpacket_auxdata` behind it, which is read unaligned.
    unsafe {
        let header = libc::CMSG_FIRSTHDR(message);
        if header.is_null()
            || (*header).cmsg_level != libc::SOL_PACKET
            || (*header).cmsg_type != libc::PACKET_AUXDATA
        {
            return false;
        }
        let data = libc::CMSG_DATA(header).cast::<libc::tpacket_auxdata>().read_unaligned();
        data.tp_status & libc::TP_STATUS_CSUMNOTREADY != 0
    }
}

/// An address as the kernel wants it.
struct LinkAddress {
    storage: libc::sockaddr_storage,
    len: libc::socklen_t,
}

impl LinkAddress {
    fn new(address: IpAddr) -> LinkAddress {
        // SAFETY: all zeros is a valid sockaddr_storage, whose fields are integers.
        let mut storage: libc::sockaddr_storage = unsafe { zeroed() };
        let len = match address {
            IpAddr::V4(address) => {
                // SAFETY: a sockaddr_storage is at least as large and as aligned as any socket address.
                let raw = unsafe { &mut *(&raw mut storage).cast::<libc::sockaddr_in>() };
                raw.sin_family = libc::AF_INET as libc::sa_family_t;
                raw.sin_addr.s_addr = u32::from_ne_bytes(address.octets());
                size_of::<libc::sockaddr_in>()
            }
            IpAddr::V6(address) => {
                // SAFETY: as above.
                let raw = unsafe { &mut *(&raw mut storage).cast::<libc::sockaddr_in6>() };
                raw.sin6_family = libc::AF_INET6 as libc::sa_family_t;
                raw.sin6_addr.s6_addr = address.octets();
                size_of::<libc::sockaddr_in6>()
            }
        };
        LinkAddress { storage, len: socklen(len) }
    }
}

fn socklen(size: usize) -> libc::socklen_t {
    libc::socklen_t::try_from(size).unwrap_or(libc::socklen_t::MAX)
}
