//! The size of a socket's buffer.
#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsFd, AsRawFd};

/// A buffer of a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SocketBuffer {
    /// Of packets that arrived.
    Receive,
    /// Of packets that are to leave.
    Send,
}

impl SocketBuffer {
    /// Makes room for so many bytes: beyond the system's limit when privileged, up to it otherwise (socket(7)).
    ///
    /// # Errors
    /// That of the kernel.
    pub fn enlarge(self, socket: impl AsFd, bytes: libc::c_int) -> io::Result<()> {
        let [force, ask] = match self {
            SocketBuffer::Receive => [libc::SO_RCVBUFFORCE, libc::SO_RCVBUF],
            SocketBuffer::Send => [libc::SO_SNDBUFFORCE, libc::SO_SNDBUF],
        };
        let fd = socket.as_fd().as_raw_fd();
        let len = libc::socklen_t::try_from(size_of::<libc::c_int>()).map_err(io::Error::other)?;
        let set = |option| {
            // SAFETY: the pointer and length describe `bytes`, which outlives the call; all four options take an int.
            let result =
                unsafe { libc::setsockopt(fd, libc::SOL_SOCKET, option, (&raw const bytes).cast(), len) };
            if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
        };
        set(force).or_else(|_| set(ask))
    }
}
