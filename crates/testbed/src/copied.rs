//! A host that is told that its machine was restored from a snapshot, or cloned.

use std::io;

use netlink_packet_core::{NLM_F_ACK, NLM_F_REQUEST};
use netlink_sys::protocols::NETLINK_KOBJECT_UEVENT;
use netlink_sys::{Socket, SocketAddr};

use crate::{Error, Namespace};

/// As `drivers/virt/vmgenid.c` says it; the kernel adds a number.
const EVENT: &[u8] =
    b"change@/devices/platform/VMGENCTR:00\0ACTION=change\0DEVPATH=/devices/platform/VMGENCTR:00\0\
    SUBSYSTEM=platform\0NEW_VMGENID=1\0DRIVER=vmgenid\0";
/// `NLMSG_MIN_TYPE` (`linux/netlink.h`): what the kernel takes for a message and not for a part of its protocol.
const KIND: u16 = 0x10;
/// Bytes of a header: length, kind, flags, number and port (`struct nlmsghdr`).
const HEADER: usize = 16;

/// Has the kernel say on `host` that the machine is another copy: to who is privileged over a network namespace, it lends its voice there
/// (`uevent_net_rcv_skb` in `lib/kobject_uevent.c`). When this returns, whoever listens has the event.
///
/// # Errors
/// [`Error::System`] when the kernel refuses.
pub fn tell_copied(host: &Namespace) -> Result<(), Error> {
    host.run("tell that the machine was copied", || {
        let mut socket = Socket::new(NETLINK_KOBJECT_UEVENT)?;
        socket.bind_auto()?;
        let length = u32::try_from(HEADER + EVENT.len()).map_err(io::Error::other)?;
        let mut message = length.to_ne_bytes().to_vec();
        message.extend(KIND.to_ne_bytes());
        message.extend((NLM_F_REQUEST | NLM_F_ACK).to_ne_bytes());
        message.extend([0; 8]);
        message.extend(EVENT);
        socket.send_to(&message, &SocketAddr::new(0, 0), 0)?;
        let (answer, _) = socket.recv_from_full()?;
        // An acknowledgement has an error number behind its header, 0 for none.
        match answer.get(HEADER..HEADER + 4).and_then(|error| error.try_into().ok()).map(i32::from_ne_bytes) {
            Some(0) => Ok(()),
            Some(error) => Err(io::Error::from_raw_os_error(-error)),
            None => Err(io::ErrorKind::InvalidData.into()),
        }
    })
}
