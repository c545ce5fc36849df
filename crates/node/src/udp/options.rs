//! Socket options, each set once.
#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use super::SocketFamily;
use crate::socket_buffer::SocketBuffer;

/// Room for half a second at 64 Mbit/s, or for one round of a busy receiver at 10 Gbit/s.
const RECEIVE_BUFFER: libc::c_int = 4 << 20;
/// Room for a few trains; what is shaped waits in the node's own queue, not here.
const SEND_BUFFER: libc::c_int = 1 << 20;

/// Marks everything that is sent, for policy routing (socket(7), `SO_MARK`).
pub(super) fn mark(fd: &OwnedFd, mark: u32) -> io::Result<()> {
    set(fd, libc::SOL_SOCKET, libc::SO_MARK, libc::c_int::from_ne_bytes(mark.to_ne_bytes()))
}

/// Everything else; what only makes it faster is allowed to fail. A socket on `any_address` takes both families.
pub(super) fn prepare(fd: &OwnedFd, family: SocketFamily, any_address: bool) -> io::Result<()> {
    set(fd, libc::IPPROTO_IP, libc::IP_MTU_DISCOVER, libc::IP_PMTUDISC_PROBE)?;
    set(fd, libc::IPPROTO_IP, libc::IP_RECVTOS, 1)?;
    // Which address a datagram came to; of IPv4 an IPv6 socket says that as well. A socket on one address has no other.
    match family {
        SocketFamily::V4 => set(fd, libc::IPPROTO_IP, libc::IP_PKTINFO, any_address.into())?,
        SocketFamily::V6 => set(fd, libc::IPPROTO_IPV6, libc::IPV6_RECVPKTINFO, any_address.into())?,
    }
    if family == SocketFamily::V6 {
        set(fd, libc::IPPROTO_IPV6, libc::IPV6_V6ONLY, (!any_address).into())?;
        set(fd, libc::IPPROTO_IPV6, libc::IPV6_MTU_DISCOVER, libc::IPV6_PMTUDISC_PROBE)?;
        set(fd, libc::IPPROTO_IPV6, libc::IPV6_RECVTCLASS, 1)?;
    }
    // Kernels before 5.0 deliver one datagram at a time.
    let _ = set(fd, libc::SOL_UDP, libc::UDP_GRO, 1);
    let _ = SocketBuffer::Receive.enlarge(fd, RECEIVE_BUFFER);
    let _ = SocketBuffer::Send.enlarge(fd, SEND_BUFFER);
    Ok(())
}

/// Clears the "don't fragment" of datagrams over IPv4 that are sent from now on, or sets it (ip(7)).
pub(super) fn may_fragment(fd: &OwnedFd, may: bool) -> io::Result<()> {
    let how = if may { libc::IP_PMTUDISC_DONT } else { libc::IP_PMTUDISC_PROBE };
    set(fd, libc::IPPROTO_IP, libc::IP_MTU_DISCOVER, how)
}

fn set(fd: &OwnedFd, level: libc::c_int, name: libc::c_int, value: libc::c_int) -> io::Result<()> {
    let len = libc::socklen_t::try_from(size_of::<libc::c_int>()).unwrap_or(0);
    // SAFETY: the pointer and length describe `value`, which outlives the call.
    let result = unsafe { libc::setsockopt(fd.as_raw_fd(), level, name, (&raw const value).cast(), len) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;
    use std::time::Duration;

    use super::super::{Listen, UdpSocket};
    use super::*;
    use crate::poll::{PollFd, wait};

    fn get(fd: &OwnedFd, level: libc::c_int, name: libc::c_int) -> libc::c_int {
        let mut value: libc::c_int = 0;
        let mut len = libc::socklen_t::try_from(size_of::<libc::c_int>()).unwrap();
        // SAFETY: both pointers are to locals of the sizes that `len` says, which outlive the call.
        let result =
            unsafe { libc::getsockopt(fd.as_raw_fd(), level, name, (&raw mut value).cast(), &raw mut len) };
        assert_eq!(result, 0, "{}", io::Error::last_os_error());
        value
    }

    #[test]
    fn a_system_that_refuses_trains_gets_datagrams_one_by_one_until_it_takes_them_again() {
        let bind = || UdpSocket::bind(Listen::Address("127.0.0.1:0".parse().unwrap()), None).unwrap();
        let (sender, receiver) = (bind(), bind());
        // Linux cuts no train where nothing computes the checksums (`udp_send_skb`).
        set(&sender.fd, libc::SOL_SOCKET, libc::SO_NO_CHECK, 1).unwrap();
        let mut buf = [0; 2000];
        let mut arrive = || {
            sender.send_train(receiver.local(), 0, 500, &[7; 1501]).unwrap();
            let (mut calls, mut bytes) = (0, 0);
            while bytes < 1501 {
                let mut fds = [PollFd::readable(receiver.as_fd())];
                assert_eq!(wait(&mut fds, Some(Duration::from_secs(10))).unwrap(), 1);
                (calls, bytes) = (calls + 1, bytes + receiver.recv(&mut buf).unwrap().len);
            }
            assert_eq!(bytes, 1501, "none is lost, and none comes twice");
            calls
        };
        assert_eq!((arrive(), sender.refused_trains()), (4, 1));
        while sender.refused_trains() < 3 {
            assert_eq!(arrive(), 4, "it is tried again, and refused again");
        }
        assert!(sender.warning().is_some());
        set(&sender.fd, libc::SOL_SOCKET, libc::SO_NO_CHECK, 0).unwrap();
        while arrive() == 4 {}
        assert_eq!((arrive(), sender.warning()), (1, None));
    }

    #[test]
    fn a_forged_icmp_too_big_does_not_change_what_leaves() {
        for listen in ["127.0.0.1:0", "[::1]:0", "[::]:0"] {
            let socket = UdpSocket::bind(Listen::Address(listen.parse().unwrap()), None).unwrap();
            // ip(7): with PROBE the kernel's own path MTU, which ICMP sets, is not looked at.
            let v4 = get(&socket.fd, libc::IPPROTO_IP, libc::IP_MTU_DISCOVER);
            assert_eq!(v4, libc::IP_PMTUDISC_PROBE, "{listen}");
            if listen.starts_with('[') {
                let v6 = get(&socket.fd, libc::IPPROTO_IPV6, libc::IPV6_MTU_DISCOVER);
                assert_eq!(v6, libc::IPV6_PMTUDISC_PROBE, "{listen}");
            }
        }
    }
}
