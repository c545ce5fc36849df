//! A host: a network namespace that lives as long as a handle to it.
//!
//! Nothing is mounted and nothing is named in the file system. The namespace exists while this process holds its
//! descriptor or a process runs in it, so it vanishes with the program however that ends.
#![allow(unsafe_code)]

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::net::IpAddr;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use crate::Error;
use crate::interface;

/// A network namespace with its loopback up; clones share it.
#[derive(Clone, Debug)]
pub struct Namespace {
    name: Arc<str>,
    handle: Arc<OwnedFd>,
    control: Option<&'static str>,
}

impl Namespace {
    /// A new host, with no network but its loopback; `name` is for people.
    ///
    /// # Errors
    /// [`Error::System`] when the caller may not make namespaces; see [`crate::sandbox`].
    pub fn create(name: &str) -> Result<Namespace, Error> {
        let handle = thread::scope(|scope| {
            scope
                .spawn(|| {
                    unshare_network()?;
                    interface::set_state("lo", interface::InterfaceState::Up)?;
                    seek_no_routers();
                    File::open("/proc/thread-self/ns/net").map(OwnedFd::from)
                })
                .join()
                .unwrap_or_else(|_| Err(io::Error::other("the thread that makes namespaces panicked")))
        })
        .map_err(Error::doing(format!("make the network namespace {name}")))?;
        Ok(Namespace { name: name.into(), handle: Arc::new(handle), control: None })
    }

    /// The same host, whose streams and transfers begin with this congestion control of TCP, such as `cubic`, and not with the
    /// system's default.
    #[must_use]
    pub fn with_congestion_control(self, control: &'static str) -> Namespace {
        Namespace { control: Some(control), ..self }
    }

    /// The same host under another name, for one of several nodes on it.
    #[must_use]
    pub fn renamed(&self, name: &str) -> Namespace {
        Namespace { name: name.into(), ..self.clone() }
    }

    /// The congestion control that it was given.
    pub(crate) const fn congestion_control(&self) -> Option<&'static str> {
        self.control
    }

    /// The name given at creation.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The namespace's descriptor.
    pub(crate) fn handle(&self) -> &OwnedFd {
        &self.handle
    }

    /// Runs `work` on a thread inside the namespace and waits for it. Sockets made there stay there.
    ///
    /// # Errors
    /// [`Error::System`] when the namespace cannot be entered or `work` fails with an I/O error.
    pub fn run<T: Send>(&self, doing: &str, work: impl FnOnce() -> io::Result<T> + Send) -> Result<T, Error> {
        thread::scope(|scope| {
            scope
                .spawn(|| {
                    enter(self.handle.as_raw_fd())?;
                    work()
                })
                .join()
                .unwrap_or_else(|_| Err(io::Error::other("its thread panicked")))
        })
        .map_err(Error::doing(format!("{doing} on {}", self.name)))
    }

    /// Starts `work` on a thread inside the namespace.
    ///
    /// # Errors
    /// [`Error::System`] when no thread can be started; the thread's own result says whether it could enter.
    pub fn spawn<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> io::Result<T> + Send + 'static,
    ) -> Result<JoinHandle<io::Result<T>>, Error> {
        let handle = Arc::clone(&self.handle);
        thread::Builder::new()
            .name(format!("host-{}", self.name))
            .spawn(move || {
                enter(handle.as_raw_fd())?;
                work()
            })
            .map_err(Error::doing(format!("start a thread on {}", self.name)))
    }

    /// Waits for such a thread, which was `doing` something, and takes its result.
    ///
    /// # Errors
    /// [`Error::System`] when it failed or panicked.
    pub fn join<T>(thread: JoinHandle<io::Result<T>>, doing: &str) -> Result<T, Error> {
        let outcome = thread.join().unwrap_or_else(|_| Err(io::Error::other("its thread panicked")));
        outcome.map_err(Error::doing(doing))
    }

    /// Gives one of the host's interfaces an address.
    ///
    /// # Errors
    /// [`Error::System`] when the kernel refuses.
    pub fn add_address(&self, name: &str, address: IpAddr, prefix: u8) -> Result<(), Error> {
        self.run(&format!("add {address}/{prefix} to {name}"), || {
            interface::add_address(name, address, prefix)
        })
    }

    /// Takes an address away from one of the host's interfaces.
    ///
    /// # Errors
    /// [`Error::System`] when the interface has no such address.
    pub fn remove_address(&self, name: &str, address: IpAddr, prefix: u8) -> Result<(), Error> {
        self.run(&format!("remove {address}/{prefix} from {name}"), || {
            interface::remove_address(name, address, prefix)
        })
    }

    /// Sends what is meant for `destination`/`prefix` to the router `via`.
    ///
    /// # Errors
    /// [`Error::System`] when the kernel refuses.
    pub fn add_route(&self, destination: IpAddr, prefix: u8, via: IpAddr) -> Result<(), Error> {
        self.run(&format!("route {destination}/{prefix} by way of {via}"), || {
            interface::add_route(destination, prefix, via)
        })
    }

    /// The names of the host's interfaces.
    ///
    /// # Errors
    /// [`Error::System`] when they cannot be read.
    pub fn interfaces(&self) -> Result<Vec<String>, Error> {
        self.run("list interfaces", interface::names)
    }

    /// A command that will run inside the namespace, and is killed when the thread that spawns it ends.
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let handle = Arc::clone(&self.handle);
        let mut command = command_here(program);
        // SAFETY: between fork and exec only `setns` is called, which is async-signal-safe; the descriptor is kept open by the
        // closure's own reference.
        unsafe {
            command.pre_exec(move || enter(handle.as_raw_fd()));
        }
        command
    }
}

/// A command that will run where the thread is that spawns it, and is killed when that ends.
pub(crate) fn command_here(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    // SAFETY: between fork and exec only `prctl` is called, which is async-signal-safe.
    unsafe {
        command.pre_exec(die_with_parent);
    }
    command
}

/// Interfaces of this namespace ask for no routers (RFC 4861 section 6.3.7): what crosses an idle link is not the system's. Without
/// IPv6, or where the system forbids it, they are as they are.
fn seek_no_routers() {
    let _ = std::fs::write("/proc/sys/net/ipv6/conf/default/accept_ra", "0");
}

fn unshare_network() -> io::Result<()> {
    // SAFETY: takes no pointers; affects the calling thread only.
    check(unsafe { libc::unshare(libc::CLONE_NEWNET) })
}

fn enter(handle: i32) -> io::Result<()> {
    // SAFETY: takes no pointers; an unsuitable descriptor is refused.
    check(unsafe { libc::setns(handle, libc::CLONE_NEWNET) })
}

fn die_with_parent() -> io::Result<()> {
    // SAFETY: PR_SET_PDEATHSIG takes a signal number, no pointers.
    check(unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) })
}

/// The system's error when `result` is negative.
pub(crate) fn check(result: i32) -> io::Result<()> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
