//! Sockets at which sessions are found while no stream is attached to them, in a folder for each account.
//!
//! Processes of an account work in its folder, so that sockets have names without a path: the folder may lie where the account
//! itself may not go.

use std::fs::{DirBuilder, File};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::account::Account;
use crate::privileges::ServiceUser;
use crate::process::{ProcessChannel, checked};
use crate::runtime;

/// What the name of the folder ends with.
const SUFFIX: &str = "-login";
/// Connections that may wait at a session's socket: streams that come back.
const WAITING: libc::c_int = 16;

/// Where sessions of this user's daemons are, in place of the system's.
pub(super) fn folder() -> Result<PathBuf, runtime::RuntimeError> {
    let mut name = runtime::folder()?.into_os_string();
    name.push(SUFFIX);
    Ok(name.into())
}

/// Where the sockets of an account's sessions are.
pub(super) fn of(account: &Account) -> Result<PathBuf, runtime::RuntimeError> {
    Ok(folder()?.join(account.user.to_string()))
}

/// Makes the account's folder and works in it from here on; says where it is.
pub(super) fn enter(account: &Account) -> io::Result<PathBuf> {
    enter_own(&account.user.to_string(), account.service_user())
}

/// The same with a folder called `name`, of another user's.
pub(super) fn enter_own(name: &str, user: ServiceUser) -> io::Result<PathBuf> {
    let parent = folder().map_err(io::Error::other)?;
    runtime::make_shared(&parent).map_err(io::Error::other)?;
    let path = parent.join(name);
    match DirBuilder::new().mode(0o700).create(&path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    let opened = File::options().read(true).custom_flags(libc::O_DIRECTORY | libc::O_NOFOLLOW).open(&path)?;
    if let ServiceUser::Other { user, group } = user {
        std::os::unix::fs::fchown(&opened, Some(user), Some(group))?;
    }
    // SAFETY: takes a descriptor.
    checked(unsafe { libc::fchdir(opened.as_raw_fd()) })?;
    Ok(path)
}

/// A connection between two processes of an account, for messages that arrive whole.
#[derive(Debug)]
pub struct SessionChannel(ProcessChannel);

impl SessionChannel {
    /// A connection to the socket `name` in the folder that this process works in.
    ///
    /// # Errors
    /// As `connect(2)`; a socket without a listener is removed.
    pub fn connect(name: &str) -> io::Result<SessionChannel> {
        connected(name).or_else(|error| {
            if error.kind() != io::ErrorKind::ConnectionRefused {
                return Err(error);
            }
            // Another may have its name by now.
            let _named = runtime::lock(Path::new("."))?;
            connected(name).inspect_err(|error| {
                if error.kind() == io::ErrorKind::ConnectionRefused {
                    let _ = std::fs::remove_file(name);
                }
            })
        })
    }

    /// How long to wait for room and for messages.
    ///
    /// # Errors
    /// As `setsockopt(2)`.
    pub fn set_patience(&self, patience: Duration) -> io::Result<()> {
        self.0.set_patience(patience)
    }

    /// Sends a message with descriptors.
    ///
    /// # Errors
    /// As `sendmsg(2)`.
    pub fn send(&self, message: &[u8], descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
        self.0.send(message, descriptors)
    }

    /// The next message, waited for as long as the patience says.
    ///
    /// # Errors
    /// `UnexpectedEof` at the end, `WouldBlock` when the patience is over.
    pub fn receive(&self) -> io::Result<(Vec<u8>, Vec<OwnedFd>)> {
        self.0.receive()
    }

    /// The next message if there is one.
    ///
    /// # Errors
    /// `UnexpectedEof` at the end, `WouldBlock` when there is none.
    pub fn receive_now(&self) -> io::Result<(Vec<u8>, Vec<OwnedFd>)> {
        self.0.receive_now()
    }
}

fn connected(name: &str) -> io::Result<SessionChannel> {
    let socket = socket(0)?;
    let (address, length) = address(name)?;
    // SAFETY: the pointer and length describe `address`, which outlives the call.
    checked(unsafe { libc::connect(socket.as_raw_fd(), (&raw const address).cast(), length) })?;
    Ok(SessionChannel(ProcessChannel::from(socket)))
}

impl AsFd for SessionChannel {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// A session's socket, whose file is removed with this.
#[derive(Debug)]
pub struct SessionListener {
    socket: OwnedFd,
    name: String,
}

impl SessionListener {
    /// Makes the socket `name` in the folder that this process works in, for its user only.
    ///
    /// # Errors
    /// As `bind(2)`.
    pub fn bind(name: &str) -> io::Result<SessionListener> {
        let socket = socket(libc::SOCK_NONBLOCK)?;
        // It gets its name when it listens: a socket without a listener is taken for one that was left, and removed.
        let mut listener = SessionListener { socket, name: format!("{name}.{}", std::process::id()) };
        let (address, length) = address(&listener.name)?;
        let socket = listener.socket.as_raw_fd();
        // SAFETY: takes integers.
        let before = unsafe { libc::umask(0o177) };
        // SAFETY: the pointer and length describe `address`, which outlives the call.
        let bound = checked(unsafe { libc::bind(socket, (&raw const address).cast(), length) });
        // SAFETY: takes integers.
        unsafe { libc::umask(before) };
        bound?;
        // SAFETY: takes integers.
        checked(unsafe { libc::listen(socket, WAITING) })?;
        let named = runtime::lock(Path::new("."))?;
        std::fs::hard_link(&listener.name, name).map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => io::ErrorKind::AddrInUse.into(),
            _ => error,
        })?;
        drop(named);
        let aside = std::mem::replace(&mut listener.name, name.to_owned());
        std::fs::remove_file(aside)?;
        Ok(listener)
    }

    /// The next connection, of this process's user or root.
    ///
    /// # Errors
    /// `WouldBlock` when there is none.
    pub fn accept(&self) -> io::Result<SessionChannel> {
        let null = std::ptr::null_mut();
        // SAFETY: null pointers ask for no address; the descriptor it makes has no other owner.
        let accepted = unsafe {
            let accepted =
                libc::accept4(self.socket.as_raw_fd(), null, std::ptr::null_mut(), libc::SOCK_CLOEXEC);
            checked(accepted)?;
            OwnedFd::from_raw_fd(accepted)
        };
        Ok(SessionChannel(ProcessChannel::from(accepted)))
    }
}

impl AsFd for SessionListener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl Drop for SessionListener {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.name);
    }
}

fn socket(flags: libc::c_int) -> io::Result<OwnedFd> {
    let kind = libc::SOCK_SEQPACKET | libc::SOCK_CLOEXEC | flags;
    // SAFETY: takes integers; the descriptor it makes has no other owner.
    unsafe {
        let made = libc::socket(libc::AF_UNIX, kind, 0);
        checked(made)?;
        Ok(OwnedFd::from_raw_fd(made))
    }
}

fn address(name: &str) -> io::Result<(libc::sockaddr_un, libc::socklen_t)> {
    // SAFETY: all zeros is a valid address, of integers.
    let mut address: libc::sockaddr_un = unsafe { std::mem::zeroed() };
    if name.is_empty() || name.len() >= address.sun_path.len() || name.contains(['\0', '/']) {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    address.sun_family = libc::AF_UNIX as libc::sa_family_t;
    for (to, from) in address.sun_path.iter_mut().zip(name.bytes()) {
        *to = libc::c_char::from_ne_bytes([from]);
    }
    let length = libc::socklen_t::try_from(size_of::<libc::sockaddr_un>()).unwrap_or(0);
    Ok((address, length))
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::thread;

    use super::*;

    /// Makes a folder the working one of this thread alone.
    fn work_in(folder: &Path) {
        // SAFETY: takes an integer.
        checked(unsafe { libc::unshare(libc::CLONE_FS) }).unwrap();
        std::env::set_current_dir(folder).unwrap();
    }

    #[test]
    fn a_socket_that_is_being_made_is_not_taken_for_one_that_was_left() {
        let folder = std::env::temp_dir().join(format!("strait-sessions-{}", std::process::id()));
        std::fs::create_dir(&folder).unwrap();
        let over = AtomicBool::new(false);
        thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    work_in(&folder);
                    while !over.load(Ordering::Relaxed) {
                        let _ = SessionChannel::connect("here");
                    }
                });
            }
            let made = scope.spawn(|| {
                work_in(&folder);
                let made = (0..2_000).all(|_| {
                    let listener = SessionListener::bind("here").unwrap();
                    let there = Path::new("here").exists();
                    drop(listener);
                    there
                });
                // One that was left is, and its name free again.
                let _left = SessionListener::bind("here").unwrap();
                assert_eq!(SessionListener::bind("here").unwrap_err().kind(), io::ErrorKind::AddrInUse);
                made
            });
            let made = made.join();
            over.store(true, Ordering::Relaxed);
            assert!(made.unwrap(), "a listening socket was removed");
        });
        let left: Vec<_> =
            std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(left, ["lock"]);
        std::fs::remove_dir_all(folder).unwrap();
    }
}
