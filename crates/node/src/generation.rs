//! A watch for copies of this machine: a virtual machine that is restored from a snapshot, or cloned, goes on with the keys and numbers that
//! another copy uses too.
//!
//! Linux says so since 6.8, if the hypervisor has a generation id (`drivers/virt/vmgenid.c`): by a uevent, which follows when its random
//! numbers are fresh.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex, PoisonError};

use netlink_sys::protocols::NETLINK_KOBJECT_UEVENT;
use netlink_sys::{Socket, SocketAddr};
use strait_ipsec::Counters;
use tokio::io::unix::AsyncFd;

use crate::bpf::Program;
use crate::direct::attach;
use crate::process::watched;

/// The group of the kernel's own uevents; udev has another (`lib/kobject_uevent.c`).
const KERNEL: u32 = 1;
/// The longest uevent (`UEVENT_BUFFER_SIZE`, `linux/kobject.h`), and the path in front of it.
const EVENT_BYTES: usize = 2048 + 4096;
/// Events read before anything else is done.
const AT_ONCE: usize = 64;
/// The kind of event, in front of the path of the device.
const CHANGE: [u8; 8] = *b"change@/";
/// The variable of the event.
const NEW: &[u8] = b"NEW_VMGENID=1";

/// Counts copies of this machine in [`Counters::generations`]. Threads share it, and each may look.
#[derive(Debug)]
pub struct GenerationWatch {
    /// Nothing where the system has no uevents for this process.
    events: Option<OwnedFd>,
    /// The socket, and room for an event.
    socket: Mutex<Option<(Socket, Vec<u8>)>>,
    counters: Arc<Counters>,
}

impl GenerationWatch {
    /// Listens from now on.
    #[must_use]
    pub fn open(counters: Arc<Counters>) -> GenerationWatch {
        let opened = open().inspect_err(|error| tracing::debug!(%error, "no uevents are heard"));
        let (events, socket) = opened.ok().unzip();
        let socket = socket.map(|socket| (socket, Vec::with_capacity(EVENT_BYTES)));
        GenerationWatch { events, socket: Mutex::new(socket), counters }
    }

    /// Returns the counters in which it counts.
    pub(crate) const fn counters(&self) -> &Arc<Counters> {
        &self.counters
    }

    /// Returns a descriptor that is readable when there is something to look at.
    #[must_use]
    pub fn events(&self) -> Option<BorrowedFd<'_>> {
        self.events.as_ref().map(AsFd::as_fd)
    }

    /// The same for a runtime.
    pub(crate) fn watched(&self) -> io::Result<Option<AsyncFd<OwnedFd>>> {
        self.events.as_ref().map(|events| watched(events.try_clone()?)).transpose()
    }

    /// Looks at what the kernel says, and counts. Never waits, but for another thread that looks.
    pub fn look(&self) {
        let mut socket = self.socket.lock().unwrap_or_else(PoisonError::into_inner);
        let Some((socket, buffer)) = socket.as_mut() else { return };
        for _ in 0..AT_ONCE {
            buffer.clear();
            let is_new = match socket.recv_from(buffer, libc::MSG_DONTWAIT) {
                // Any process with CAP_NET_ADMIN may send to the group; the kernel has no port.
                Ok((_, from)) => from.port_number() == 0 && is_new_generation(buffer),
                // The kernel had more to say than there was room for, so it may have been this.
                Err(error) if error.raw_os_error() == Some(libc::ENOBUFS) => true,
                Err(_) => return,
            };
            self.counters.generations.add(is_new.into());
        }
    }
}

/// The socket, and another descriptor of it.
fn open() -> io::Result<(OwnedFd, Socket)> {
    let mut socket = Socket::new(NETLINK_KOBJECT_UEVENT)?;
    let events = socket.as_fd().try_clone_to_owned()?;
    // Where devices come and go all the time, that wakes nobody.
    attach(&events, &changes().unwrap_or_default())?;
    socket.bind(&SocketAddr::new(0, KERNEL))?;
    socket.set_non_blocking(true)?;
    Ok((events, socket))
}

/// Lets events of the one kind pass.
fn changes() -> Option<Vec<libc::sock_filter>> {
    let mut program = Program::default();
    let other = program.label();
    for (word, at) in CHANGE.as_chunks::<4>().0.iter().zip([0, 4]) {
        program.load_word(at);
        program.differs(u32::from_be_bytes(*word), other);
    }
    program.take(u32::MAX);
    program.here(other);
    program.take(0);
    program.finish()
}

/// Says whether a uevent, which is text between zero bytes, says that this machine is another copy.
fn is_new_generation(event: &[u8]) -> bool {
    event.starts_with(&CHANGE) && event.split(|byte| *byte == 0).skip(1).any(|variable| variable == NEW)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const EVENT: &[u8] = b"change@/devices/platform/VMGENCTR:00\0ACTION=change\0DEVPATH=/devices/platform/VMGENCTR:00\0\
        SUBSYSTEM=platform\0NEW_VMGENID=1\0DRIVER=vmgenid\0MODALIAS=acpi:VMGENCTR:VM_GEN_COUNTER:\0SEQNUM=4711\0";

    #[test]
    fn the_event_of_the_driver_is_known_and_what_looks_like_it_is_not() {
        assert!(is_new_generation(EVENT));
        let changed = |from: &str, to: &str| String::from_utf8_lossy(EVENT).replace(from, to).into_bytes();
        for (from, to) in [
            ("change@", "add@"),
            // What a write to the file `uevent` of a device makes.
            ("NEW_VMGENID=1", "SYNTH_ARG_NEW_VMGENID=1"),
            ("NEW_VMGENID=1", "NEW_VMGENID=10"),
            ("NEW_VMGENID=1", "NEW_VMGENID="),
            ("\0NEW_VMGENID=1", " NEW_VMGENID=1"),
        ] {
            assert!(!is_new_generation(&changed(from, to)), "{from} -> {to}");
        }
        assert!(!is_new_generation(b"NEW_VMGENID=1"));
        assert!(!is_new_generation(b""));
    }

    #[test]
    fn a_process_that_sends_to_the_group_is_not_the_kernel() {
        let counters = Arc::<Counters>::default();
        let watch = GenerationWatch::open(Arc::clone(&counters));
        let forger = Socket::new(NETLINK_KOBJECT_UEVENT).unwrap();
        // Without the privilege it is the kernel that refuses.
        let sent = forger.send_to(EVENT, &SocketAddr::new(0, KERNEL), 0);
        watch.look();
        assert_eq!(counters.generations.get(), 0, "{sent:?}");
    }

    proptest! {
        #[test]
        fn no_bytes_are_too_strange(bytes in proptest::collection::vec(any::<u8>(), 0..300), at in 0..400_usize) {
            let _ = is_new_generation(&bytes);
            let cut = &EVENT[..at.min(EVENT.len())];
            let whole = EVENT.windows(NEW.len()).position(|part| part == NEW).unwrap() + NEW.len();
            prop_assert_eq!(is_new_generation(cut), at >= whole);
        }
    }
}
