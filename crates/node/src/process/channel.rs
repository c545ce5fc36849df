//! Whole messages between two processes, each with descriptors if need be (unix(7), `SCM_RIGHTS`).
#![allow(unsafe_code)]

use std::io;
use std::mem::zeroed;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::time::Duration;

use crate::timespec::timeval;

/// Most bytes of a message: thousands of addresses.
const MESSAGE_MAX: usize = 128 << 10;
/// Most descriptors with a message.
pub(crate) const DESCRIPTORS_MAX: usize = 8;

/// Room for one control message with descriptors.
#[repr(C, align(8))]
struct Rights([u8; 64]);

const _: () = assert!(align_of::<Rights>() >= align_of::<libc::cmsghdr>());
const _: () = assert!(size_of::<Rights>() >= size_of::<libc::cmsghdr>() + 8 + DESCRIPTORS_MAX * 4);

/// One end of a channel. A message arrives whole or not at all.
#[derive(Debug)]
pub(crate) struct ProcessChannel(OwnedFd);

impl ProcessChannel {
    /// Both ends.
    pub(crate) fn pair() -> io::Result<(ProcessChannel, ProcessChannel)> {
        let mut ends = [-1; 2];
        // SAFETY: the pointer is to two integers, which outlive the call.
        let made = unsafe {
            let kind = libc::SOCK_SEQPACKET | libc::SOCK_CLOEXEC;
            libc::socketpair(libc::AF_UNIX, kind, 0, ends.as_mut_ptr())
        };
        if made < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the descriptors were just made and have no other owner.
        let [one, other] = ends.map(|end| ProcessChannel(unsafe { OwnedFd::from_raw_fd(end) }));
        Ok((one, other))
    }

    /// How long to wait for room and for messages; for ever until this is called.
    pub(crate) fn set_patience(&self, patience: Duration) -> io::Result<()> {
        let span = timeval(patience);
        let len = libc::socklen_t::try_from(size_of::<libc::timeval>()).unwrap_or(0);
        for name in [libc::SO_RCVTIMEO, libc::SO_SNDTIMEO] {
            let fd = self.0.as_raw_fd();
            // SAFETY: the pointer and length describe `span`, which outlives the call.
            let set = unsafe { libc::setsockopt(fd, libc::SOL_SOCKET, name, (&raw const span).cast(), len) };
            if set < 0 {
                return Err(io::Error::last_os_error());
            }
        }
        Ok(())
    }

    /// Sends a message, which must not be empty, with at most [`DESCRIPTORS_MAX`] descriptors.
    pub(crate) fn send(&self, message: &[u8], descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
        if message.is_empty() || message.len() > MESSAGE_MAX || descriptors.len() > DESCRIPTORS_MAX {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let mut control = Rights([0; 64]);
        let mut part = libc::iovec { iov_base: message.as_ptr().cast_mut().cast(), iov_len: message.len() };
        // SAFETY: all zeros is a valid msghdr: null pointers and zero lengths.
        let mut header: libc::msghdr = unsafe { zeroed() };
        header.msg_iov = &raw mut part;
        header.msg_iovlen = 1;
        if !descriptors.is_empty() {
            let bytes = u32::try_from(size_of_val(descriptors)).unwrap_or(0);
            header.msg_control = control.0.as_mut_ptr().cast();
            // SAFETY: the assertion above leaves room for a header and all descriptors; the numbers are written unaligned.
            unsafe {
                header.msg_controllen = libc::CMSG_SPACE(bytes) as _;
                let first = libc::CMSG_FIRSTHDR(&raw const header);
                (*first).cmsg_level = libc::SOL_SOCKET;
                (*first).cmsg_type = libc::SCM_RIGHTS;
                (*first).cmsg_len = libc::CMSG_LEN(bytes) as _;
                let data = libc::CMSG_DATA(first).cast::<libc::c_int>();
                for (at, descriptor) in descriptors.iter().enumerate() {
                    data.add(at).write_unaligned(descriptor.as_raw_fd());
                }
            }
        }
        again(|| {
            // SAFETY: every pointer in `header` points to a value that outlives the call, with its length beside it.
            unsafe { libc::sendmsg(self.0.as_raw_fd(), &raw const header, libc::MSG_NOSIGNAL) }
        })
        .map(|_| ())
    }

    /// The next message, waited for.
    ///
    /// # Errors
    /// `UnexpectedEof` when the other end is gone, `WouldBlock` when the patience is over.
    pub(crate) fn receive(&self) -> io::Result<(Vec<u8>, Vec<OwnedFd>)> {
        self.take(0)
    }

    /// The next message if there is one.
    ///
    /// # Errors
    /// As [`ProcessChannel::receive`]; `WouldBlock` when there is none.
    pub(crate) fn receive_now(&self) -> io::Result<(Vec<u8>, Vec<OwnedFd>)> {
        self.take(libc::MSG_DONTWAIT)
    }

    /// Whether the other end is gone.
    pub(crate) fn has_ended(&self) -> bool {
        let mut byte = 0_u8;
        let flags = libc::MSG_PEEK | libc::MSG_DONTWAIT;
        // SAFETY: the pointer and length describe `byte`, which outlives the call.
        let read = unsafe { libc::recv(self.0.as_raw_fd(), (&raw mut byte).cast(), 1, flags) };
        read == 0 || read < 0 && io::Error::last_os_error().kind() != io::ErrorKind::WouldBlock
    }

    /// The same end once more.
    pub(crate) fn try_clone(&self) -> io::Result<ProcessChannel> {
        self.0.try_clone().map(ProcessChannel)
    }

    fn take(&self, flags: libc::c_int) -> io::Result<(Vec<u8>, Vec<OwnedFd>)> {
        let mut message = vec![0; MESSAGE_MAX];
        let mut control = Rights([0; 64]);
        let mut part = libc::iovec { iov_base: message.as_mut_ptr().cast(), iov_len: message.len() };
        // SAFETY: all zeros is a valid msghdr: null pointers and zero lengths.
        let mut header: libc::msghdr = unsafe { zeroed() };
        header.msg_iov = &raw mut part;
        header.msg_iovlen = 1;
        header.msg_control = control.0.as_mut_ptr().cast();
        header.msg_controllen = size_of::<Rights>() as _;
        let len = again(|| {
            // SAFETY: every pointer in `header` points to a value that outlives the call, with its length beside it, and
            // nothing else refers to them meanwhile.
            let flags = flags | libc::MSG_CMSG_CLOEXEC;
            unsafe { libc::recvmsg(self.0.as_raw_fd(), &raw mut header, flags) }
        })?;
        // SAFETY: the kernel filled `header`, whose control buffer is still alive; each is taken once.
        let descriptors = unsafe { descriptors(&header) };
        if len == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        if header.msg_flags & (libc::MSG_TRUNC | libc::MSG_CTRUNC) != 0 {
            return Err(io::ErrorKind::InvalidData.into());
        }
        message.truncate(len);
        Ok((message, descriptors))
    }
}

/// The descriptors that came with a message.
///
/// # Safety
/// `header` must come from a successful `recvmsg`, its control buffer must be alive, and this is called once for it.
unsafe fn descriptors(header: &libc::msghdr) -> Vec<OwnedFd> {
    let mut found = Vec::new();
    // SAFETY: as the caller promises; the kernel wrote whole headers, each with as many descriptors behind it as its length
    // says, which have no other owner.
    unsafe {
        let mut next = libc::CMSG_FIRSTHDR(header);
        while !next.is_null() {
            if (*next).cmsg_level == libc::SOL_SOCKET && (*next).cmsg_type == libc::SCM_RIGHTS {
                let bytes = ((*next).cmsg_len as usize).saturating_sub(libc::CMSG_LEN(0) as usize);
                let data = libc::CMSG_DATA(next).cast::<libc::c_int>();
                for at in 0..bytes / size_of::<libc::c_int>() {
                    found.push(OwnedFd::from_raw_fd(data.add(at).read_unaligned()));
                }
            }
            next = libc::CMSG_NXTHDR(header, next);
        }
    }
    found
}

/// Makes a call again that a signal ended.
fn again(mut call: impl FnMut() -> libc::ssize_t) -> io::Result<usize> {
    loop {
        match usize::try_from(call()) {
            Ok(len) => return Ok(len),
            Err(_) => match io::Error::last_os_error() {
                error if error.kind() == io::ErrorKind::Interrupted => {}
                error => return Err(error),
            },
        }
    }
}

impl From<OwnedFd> for ProcessChannel {
    /// The end that a connected socket of whole messages is.
    fn from(socket: OwnedFd) -> ProcessChannel {
        ProcessChannel(socket)
    }
}

impl AsFd for ProcessChannel {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl AsRawFd for ProcessChannel {
    fn as_raw_fd(&self) -> std::os::fd::RawFd {
        self.0.as_raw_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::io::{Read, Write};

    #[test]
    fn messages_arrive_whole_with_their_descriptors() {
        let (one, other) = ProcessChannel::pair().unwrap();
        let (mut reader, writer) = std::io::pipe().unwrap();
        one.send(b"first", &[]).unwrap();
        one.send(b"second", &[writer.as_fd(), writer.as_fd()]).unwrap();
        drop(writer);
        let (message, none) = other.receive().unwrap();
        assert_eq!((&message[..], none.len()), (&b"first"[..], 0));
        let (message, mut both) = other.receive_now().unwrap();
        assert_eq!((&message[..], both.len()), (&b"second"[..], 2));
        File::from(both.remove(0)).write_all(b"through").unwrap();
        drop(both);
        let mut text = String::new();
        reader.read_to_string(&mut text).unwrap();
        assert_eq!(text, "through");
        assert_eq!(other.receive_now().unwrap_err().kind(), io::ErrorKind::WouldBlock);
    }

    #[test]
    fn the_end_of_the_other_is_seen_and_a_message_before_it_is_not_lost() {
        let (one, other) = ProcessChannel::pair().unwrap();
        assert!(!other.has_ended());
        one.send(b"last", &[]).unwrap();
        assert!(!other.has_ended());
        drop(one);
        assert_eq!(other.receive().unwrap().0, b"last");
        assert!(other.has_ended());
        assert_eq!(other.receive().unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
        assert!(other.send(b"unheard", &[]).is_err());
    }

    #[test]
    fn too_much_is_refused_and_silence_ends() {
        let (one, other) = ProcessChannel::pair().unwrap();
        assert!(one.send(&[], &[]).is_err());
        assert!(one.send(&vec![0; MESSAGE_MAX + 1], &[]).is_err());
        assert!(one.send(b"x", &[other.as_fd(); DESCRIPTORS_MAX + 1]).is_err());
        one.send(&vec![7; MESSAGE_MAX], &[other.as_fd(); DESCRIPTORS_MAX]).unwrap();
        let (message, descriptors) = other.receive().unwrap();
        assert_eq!((message.len(), descriptors.len()), (MESSAGE_MAX, DESCRIPTORS_MAX));
        other.set_patience(Duration::from_millis(1)).unwrap();
        assert_eq!(other.receive().unwrap_err().kind(), io::ErrorKind::WouldBlock);
    }
}
