//! What tests of this crate need: a network namespace of their own.
#![allow(unsafe_code)]

use std::fs::OpenOptions;
use std::io;
use std::thread::{self, Builder};

use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::link::{LinkFlags, LinkMessage};
use strait_testdata::skip::{Need, skip};

use crate::netlink::Netlink;

/// Runs `body` in a thread with an empty network namespace of its own, whose loopback is down. The thread has the
/// test's name.
///
/// Skips the test where the system forbids namespaces or has no TUN devices.
pub(crate) fn in_namespace(body: impl FnOnce() + Send) {
    let name = thread::current().name().unwrap_or_default().to_owned();
    let outcome = thread::scope(|scope| {
        let thread = Builder::new().name(name).spawn_scoped(scope, || {
            if enter_namespace() && has_tun() {
                body();
            }
        });
        thread.unwrap().join()
    });
    if let Err(panic) = outcome {
        std::panic::resume_unwind(panic);
    }
}

/// Brings the loopback of this thread's network namespace up.
pub(crate) fn bring_up_loopback() {
    let mut link = LinkMessage::default();
    // The first interface of every namespace.
    link.header.index = 1;
    link.header.flags = LinkFlags::Up;
    link.header.change_mask = LinkFlags::Up;
    Netlink::open().unwrap().change(RouteNetlinkMessage::SetLink(link), 0).unwrap();
}

fn enter_namespace() -> bool {
    // SAFETY: no pointer is passed; only this thread moves to the new namespace.
    if unsafe { libc::unshare(libc::CLONE_NEWNET) } == 0 {
        return true;
    }
    let error = io::Error::last_os_error();
    skip(Need::Namespaces, &format!("may not make network namespaces: {error}"))
}

fn has_tun() -> bool {
    let opened = OpenOptions::new().read(true).write(true).open("/dev/net/tun");
    let why = |error| format!("may not open /dev/net/tun: {error}");
    opened.map_or_else(|error| skip(Need::Tun, &why(error)), |_| true)
}
