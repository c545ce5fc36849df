//! A socket of a running daemon, changed from outside, so that the kernel really refuses what it sends.
#![allow(unsafe_code)]

use std::fs;
use std::io;
use std::net::UdpSocket;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

use crate::Error;
use crate::namespace::check;

/// The UDP socket of another process, by a descriptor of this one (pidfd_getfd(2)).
#[derive(Debug)]
pub struct BorrowedSocket(UdpSocket);

impl BorrowedSocket {
    /// Borrows the socket that the process has on `port`.
    ///
    /// # Errors
    /// [`Error::System`] when it has none, or this process may not look into it.
    pub fn of(pid: u32, port: u16) -> Result<BorrowedSocket, Error> {
        borrow(pid, port).map(BorrowedSocket).map_err(|source| Error::System {
            doing: format!("borrow the UDP socket of process {pid} on port {port}"),
            source,
        })
    }

    /// Has the kernel refuse trains of datagrams from now on (UDP GSO), or take them: it cuts none where nothing computes the
    /// checksums (Linux `udp_send_skb`).
    ///
    /// # Errors
    /// [`Error::System`] when the kernel refuses that.
    pub fn refuse_trains(&self, refuse: bool) -> Result<(), Error> {
        let value = libc::c_int::from(refuse);
        let len = libc::socklen_t::try_from(size_of::<libc::c_int>()).unwrap_or(0);
        // SAFETY: the pointer and length describe `value`, which outlives the call.
        let set = unsafe {
            let value = (&raw const value).cast();
            libc::setsockopt(self.0.as_raw_fd(), libc::SOL_SOCKET, libc::SO_NO_CHECK, value, len)
        };
        check(set).map_err(|source| Error::System { doing: "set SO_NO_CHECK".to_owned(), source })
    }
}

fn borrow(pid: u32, port: u16) -> io::Result<UdpSocket> {
    let number = libc::pid_t::try_from(pid).map_err(io::Error::other)?;
    // SAFETY: takes no pointers.
    let process = descriptor(unsafe { libc::syscall(libc::SYS_pidfd_open, number, 0) })?;
    for entry in fs::read_dir(format!("/proc/{pid}/fd"))? {
        let entry = entry?;
        let target = fs::read_link(entry.path()).unwrap_or_default();
        let theirs = entry.file_name().to_str().and_then(|name| name.parse::<RawFd>().ok());
        let Some(theirs) = theirs.filter(|_| target.to_string_lossy().starts_with("socket:")) else {
            continue;
        };
        // SAFETY: takes no pointers.
        let ours = unsafe { libc::syscall(libc::SYS_pidfd_getfd, process.as_raw_fd(), theirs, 0) };
        let socket = match descriptor(ours) {
            // Closed meanwhile.
            Err(error) if error.raw_os_error() == Some(libc::EBADF) => continue,
            ours => UdpSocket::from(ours?),
        };
        // Of other kinds of sockets, none has this port: the standard library takes their addresses for those of UDP.
        if socket.local_addr().is_ok_and(|address| address.port() == port) {
            return Ok(socket);
        }
    }
    Err(io::ErrorKind::NotFound.into())
}

fn descriptor(result: libc::c_long) -> io::Result<OwnedFd> {
    let number = RawFd::try_from(result).map_err(io::Error::other)?;
    check(number)?;
    // SAFETY: just opened, with no other owner.
    Ok(unsafe { OwnedFd::from_raw_fd(number) })
}
