//! Whole Ethernet frames from and to one interface (packet(7)).
#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::time::{Duration, Instant, SystemTime};

use strait_node::poll::{self, PollFd};
use strait_node::socket_buffer::SocketBuffer;

use crate::interface::index;
use crate::namespace::check;

/// A packet socket bound to one interface of the calling thread's namespace; never blocks.
#[derive(Debug)]
pub(crate) struct FrameSocket(OwnedFd);

/// Every protocol, in network byte order as `sockaddr_ll` wants it.
const ALL_PROTOCOLS: u16 = (libc::ETH_P_ALL as u16).to_be();
/// No protocol: such a socket receives nothing.
const NO_PROTOCOL: u16 = 0;
/// How long a frame may have waited to be read, so that a clock that was set in the meantime does little harm.
const AGE_MAX: Duration = Duration::from_millis(100);
/// Bytes of a buffer; in a user namespace as many as the system gives everybody.
const BUFFER: libc::c_int = 8 << 20;
/// Words of control messages that are received with a frame: a header of 16 bytes and a time of as many, and as much again.
const CONTROL: usize = 8;
/// Most frames that one system call sends.
pub(crate) const BATCH: usize = 64;

impl FrameSocket {
    /// A socket that gets every frame the interface receives, and none that it sends.
    pub(crate) fn open(interface: &str) -> io::Result<FrameSocket> {
        let socket = FrameSocket::unbound()?;
        socket.set(libc::SOL_PACKET, libc::PACKET_IGNORE_OUTGOING, 1)?;
        socket.set(libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, 1)?;
        SocketBuffer::Receive.enlarge(&socket.0, BUFFER)?;
        socket.promiscuous(interface)?;
        socket.bind(interface, ALL_PROTOCOLS)?;
        Ok(socket)
    }

    /// A socket that gets nothing, and sends past the interface's queue.
    pub(crate) fn for_sending(interface: &str) -> io::Result<FrameSocket> {
        let socket = FrameSocket::unbound()?;
        socket.set(libc::SOL_PACKET, libc::PACKET_QDISC_BYPASS, 1)?;
        SocketBuffer::Send.enlarge(&socket.0, BUFFER)?;
        socket.bind(interface, NO_PROTOCOL)?;
        Ok(socket)
    }

    fn unbound() -> io::Result<FrameSocket> {
        // Protocol 0: nothing arrives before the socket is bound to its interface.
        let kind = libc::SOCK_RAW | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
        // SAFETY: takes no pointers.
        let socket = unsafe { libc::socket(libc::AF_PACKET, kind, i32::from(NO_PROTOCOL)) };
        check(socket)?;
        // SAFETY: just opened, with no other owner.
        Ok(FrameSocket(unsafe { OwnedFd::from_raw_fd(socket) }))
    }

    fn set(&self, level: i32, option: i32, value: i32) -> io::Result<()> {
        self.set_struct(level, option, &value)
    }

    fn set_struct<T>(&self, level: i32, option: i32, value: &T) -> io::Result<()> {
        let size = libc::socklen_t::try_from(size_of::<T>()).map_err(io::Error::other)?;
        let pointer: *const T = value;
        // SAFETY: the pointer and the size describe `value`, which outlives the call.
        check(unsafe { libc::setsockopt(self.0.as_raw_fd(), level, option, pointer.cast(), size) })
    }

    /// The hosts' frames are not addressed to the relay.
    fn promiscuous(&self, interface: &str) -> io::Result<()> {
        let request = libc::packet_mreq {
            mr_ifindex: i32::try_from(index(interface)?).map_err(io::Error::other)?,
            mr_type: libc::PACKET_MR_PROMISC as u16,
            mr_alen: 0,
            mr_address: [0; 8],
        };
        self.set_struct(libc::SOL_PACKET, libc::PACKET_ADD_MEMBERSHIP, &request)
    }

    fn bind(&self, interface: &str, protocol: u16) -> io::Result<()> {
        // SAFETY: `sockaddr_ll` is plain data, all zeros is a valid value of it.
        let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
        address.sll_family = libc::AF_PACKET as u16;
        address.sll_protocol = protocol;
        address.sll_ifindex = i32::try_from(index(interface)?).map_err(io::Error::other)?;
        let size = libc::socklen_t::try_from(size_of::<libc::sockaddr_ll>()).map_err(io::Error::other)?;
        // SAFETY: the pointer and the size describe `address`, which outlives the call.
        check(unsafe { libc::bind(self.0.as_raw_fd(), (&raw const address).cast(), size) })
    }

    /// The next frame's length, or nothing when none is waiting.
    pub(crate) fn receive(&self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        Ok(self.receive_timed(buffer)?.map(|(length, _)| length))
    }

    /// The next frame's length, and when it came to the interface, however much later it is read; nothing when none is waiting.
    pub(crate) fn receive_timed(&self, buffer: &mut [u8]) -> io::Result<Option<(usize, Instant)>> {
        let mut part = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
        // As words, so that the headers of control messages are aligned in it.
        let mut control = [0_usize; CONTROL];
        // SAFETY: `msghdr` is plain data, all zeros is a valid value of it.
        let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
        (message.msg_iov, message.msg_iovlen) = (&raw mut part, 1);
        message.msg_control = control.as_mut_ptr().cast();
        message.msg_controllen = size_of_val(&control);
        // SAFETY: `message` has one part, which describes `buffer`, and describes `control`; all outlive the call.
        let length = unsafe { libc::recvmsg(self.0.as_raw_fd(), &raw mut message, 0) };
        match usize::try_from(length) {
            Ok(length) => Ok(Some((length, came_at(&message)))),
            Err(_) => match io::Error::last_os_error() {
                error if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
                // The interface is down; it may come back.
                error if error.raw_os_error() == Some(libc::ENETDOWN) => Ok(None),
                error => Err(error),
            },
        }
    }

    /// Sends one frame with its Ethernet header.
    pub(crate) fn send(&self, frame: &[u8]) -> io::Result<()> {
        // SAFETY: the pointer and the length describe `frame`, which outlives the call.
        let sent = unsafe { libc::send(self.0.as_raw_fd(), frame.as_ptr().cast(), frame.len(), 0) };
        if sent < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }
}

/// When the kernel received a frame (socket(7), `SO_TIMESTAMPNS`); now where it does not say, or where its clock was set since.
fn came_at(message: &libc::msghdr) -> Instant {
    let now = Instant::now();
    // SAFETY: the kernel filled `message` in, and its control messages are still there.
    let first = unsafe { libc::CMSG_FIRSTHDR(message).as_ref() };
    let stamp = first
        .filter(|header| (header.cmsg_level, header.cmsg_type) == (libc::SOL_SOCKET, libc::SCM_TIMESTAMPNS));
    let Some(header) = stamp else { return now };
    // SAFETY: a message of this type carries a `timespec`, which need not be aligned.
    let at: libc::timespec = unsafe { libc::CMSG_DATA(header).cast::<libc::timespec>().read_unaligned() };
    let nanos = u32::try_from(at.tv_nsec).unwrap_or(0);
    let at = SystemTime::UNIX_EPOCH + Duration::new(u64::try_from(at.tv_sec).unwrap_or(0), nanos);
    let age = SystemTime::now().duration_since(at).unwrap_or_default();
    now.checked_sub(age.min(AGE_MAX)).unwrap_or(now)
}

impl FrameSocket {
    /// Sends the first [`BATCH`] of some frames in one system call; says how many had room.
    pub(crate) fn send_many(&self, frames: &[Vec<u8>]) -> io::Result<usize> {
        let mut parts = frames.iter().take(BATCH).map(|frame| libc::iovec {
            // The kernel only reads what is sent.
            iov_base: frame.as_ptr().cast_mut().cast(),
            iov_len: frame.len(),
        });
        let empty = libc::iovec { iov_base: std::ptr::null_mut(), iov_len: 0 };
        let mut parts: [libc::iovec; BATCH] = std::array::from_fn(|_| parts.next().unwrap_or(empty));
        // SAFETY: `mmsghdr` is plain data, all zeros is a valid value of it.
        let mut messages: [libc::mmsghdr; BATCH] = unsafe { std::mem::zeroed() };
        for (message, part) in messages.iter_mut().zip(&mut parts) {
            message.msg_hdr.msg_iov = part;
            message.msg_hdr.msg_iovlen = 1;
        }
        let count = u32::try_from(frames.len().min(BATCH)).unwrap_or(0);
        // SAFETY: each of the first `count` messages has one part, which describes a frame; all outlive the call.
        let sent = unsafe { libc::sendmmsg(self.0.as_raw_fd(), messages.as_mut_ptr(), count, 0) };
        match usize::try_from(sent) {
            Ok(sent) => Ok(sent),
            Err(_) => match io::Error::last_os_error() {
                error if error.kind() == io::ErrorKind::WouldBlock => Ok(0),
                error if error.raw_os_error() == Some(libc::ENOBUFS) => Ok(0),
                error => Err(error),
            },
        }
    }
}

/// Waits until a frame arrives on either socket, or for `time`.
pub(crate) fn wait(sockets: &[FrameSocket; 2], time: Duration) -> io::Result<()> {
    let mut polled = sockets.each_ref().map(|socket| PollFd::readable(socket.0.as_fd()));
    poll::wait(&mut polled, Some(time)).map(drop)
}
