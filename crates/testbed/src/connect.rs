//! A TCP connection whose congestion control or own address is chosen before it begins; the standard library cannot do that.
#![allow(unsafe_code)]

use std::io;
use std::net::{SocketAddr, TcpStream};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::time::Duration;

use crate::namespace::check;

/// Connects with `control`, such as `cubic`, where one is named, and with the system's own otherwise.
///
/// # Errors
/// As [`TcpStream::connect_timeout`]; `EPERM` or `ENOENT` when the kernel does not give this control.
pub(crate) fn connect(
    target: SocketAddr,
    control: Option<&str>,
    patience: Duration,
) -> io::Result<TcpStream> {
    let Some(control) = control else { return TcpStream::connect_timeout(&target, patience) };
    let socket = open(target)?;
    set(&socket, libc::IPPROTO_TCP, libc::TCP_CONGESTION, control.as_bytes())?;
    complete(socket, target, patience)
}

/// Connects from `source`, an address of this host; its port 0 is any.
///
/// # Errors
/// As `bind(2)` and [`TcpStream::connect_timeout`].
pub fn connect_from(source: SocketAddr, target: SocketAddr, patience: Duration) -> io::Result<TcpStream> {
    let socket = open(target)?;
    let (address, length) = address(source);
    // SAFETY: the pointer and the length describe `address`, which is large enough for either family and outlives the call.
    check(unsafe { libc::bind(socket.as_raw_fd(), (&raw const address).cast(), length) })?;
    complete(socket, target, patience)
}

/// A socket for a connection to an address of this family.
fn open(target: SocketAddr) -> io::Result<OwnedFd> {
    let family = if target.is_ipv4() { libc::AF_INET } else { libc::AF_INET6 };
    // SAFETY: takes no pointers.
    let socket = unsafe { libc::socket(family, libc::SOCK_STREAM | libc::SOCK_CLOEXEC, 0) };
    check(socket)?;
    // SAFETY: just opened, with no other owner.
    Ok(unsafe { OwnedFd::from_raw_fd(socket) })
}

fn complete(socket: OwnedFd, target: SocketAddr, patience: Duration) -> io::Result<TcpStream> {
    let stream = TcpStream::from(socket);
    // Which limits the time of a connection too (socket(7)).
    stream.set_write_timeout(Some(patience))?;
    let (address, length) = address(target);
    // SAFETY: the pointer and the length describe `address`, which is large enough for either family and outlives the call.
    check(unsafe { libc::connect(stream.as_raw_fd(), (&raw const address).cast(), length) })?;
    stream.set_write_timeout(None)?;
    Ok(stream)
}

fn set(socket: &impl AsRawFd, level: i32, option: i32, value: &[u8]) -> io::Result<()> {
    let length = libc::socklen_t::try_from(value.len()).map_err(io::Error::other)?;
    // SAFETY: the pointer and the length describe `value`, which outlives the call.
    check(unsafe { libc::setsockopt(socket.as_raw_fd(), level, option, value.as_ptr().cast(), length) })
}

/// An address as the kernel takes it: `sockaddr_in` and `sockaddr_in6` begin as `sockaddr_storage` does.
fn address(target: SocketAddr) -> (libc::sockaddr_storage, libc::socklen_t) {
    // SAFETY: plain data, all zeros is a valid value of it.
    let mut storage: libc::sockaddr_storage = unsafe { std::mem::zeroed() };
    let length = match target {
        SocketAddr::V4(target) => {
            let address = libc::sockaddr_in {
                sin_family: libc::AF_INET as libc::sa_family_t,
                sin_port: target.port().to_be(),
                sin_addr: libc::in_addr { s_addr: u32::from_ne_bytes(target.ip().octets()) },
                sin_zero: [0; 8],
            };
            // SAFETY: `sockaddr_storage` is larger than every address and aligned for each.
            unsafe { (&raw mut storage).cast::<libc::sockaddr_in>().write(address) };
            size_of::<libc::sockaddr_in>()
        }
        SocketAddr::V6(target) => {
            let address = libc::sockaddr_in6 {
                sin6_family: libc::AF_INET6 as libc::sa_family_t,
                sin6_port: target.port().to_be(),
                sin6_flowinfo: target.flowinfo(),
                sin6_addr: libc::in6_addr { s6_addr: target.ip().octets() },
                sin6_scope_id: target.scope_id(),
            };
            // SAFETY: as above.
            unsafe { (&raw mut storage).cast::<libc::sockaddr_in6>().write(address) };
            size_of::<libc::sockaddr_in6>()
        }
    };
    (storage, length as libc::socklen_t)
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{TcpListener, UdpSocket};
    use std::sync::Arc;

    use super::*;
    use crate::{LinkSpec, Transfer, TwoHosts, sandbox};

    fn control(stream: &TcpStream) -> String {
        let mut name = [0_u8; 16];
        let mut length = name.len() as libc::socklen_t;
        // SAFETY: the pointers describe `name` and its length, which outlive the call.
        let result = unsafe {
            let name = name.as_mut_ptr().cast();
            libc::getsockopt(
                stream.as_raw_fd(),
                libc::IPPROTO_TCP,
                libc::TCP_CONGESTION,
                name,
                &raw mut length,
            )
        };
        check(result).unwrap();
        String::from_utf8_lossy(&name).trim_end_matches('\0').to_owned()
    }

    #[test]
    fn a_connection_has_the_control_that_it_was_given() {
        for address in ["127.0.0.1:0", "[::1]:0"] {
            // A machine without IPv6 has no such address.
            let Ok(listener) = TcpListener::bind(address) else { continue };
            let target = listener.local_addr().unwrap();
            let mut stream = connect(target, Some("reno"), Duration::from_secs(5)).unwrap();
            assert_eq!(control(&stream), "reno");
            stream.write_all(b"through").unwrap();
            let mut received = [0; 7];
            listener.accept().unwrap().0.read_exact(&mut received).unwrap();
            assert_eq!(&received, b"through");
        }
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let target = listener.local_addr().unwrap();
        assert!(connect(target, Some("no-such-control"), Duration::from_secs(5)).is_err());
        assert!(connect(target, None, Duration::from_secs(5)).is_ok());
    }

    #[test]
    fn a_link_that_grows_slower_does_not_wait_for_large_frames() {
        if !sandbox::allows_tests() {
            return;
        }
        let rate = |mbit: u64| strait_scheduler::Rate::from_bits(mbit * 1_000_000);
        let mut hosts = TwoHosts::direct(LinkSpec::thin(rate(100).unwrap())).unwrap();
        let address = hosts.address_of_b().0;
        // Frames of 10 datagrams wait, as a tunnel sends them; the bucket of the slow link holds three datagrams.
        let burst = || {
            let socket = UdpSocket::bind("0.0.0.0:0")?;
            set(&socket, libc::SOL_UDP, libc::UDP_SEGMENT, &1_000_i32.to_ne_bytes())?;
            (0..50).try_for_each(|_| socket.send_to(&[0; 10_000], (address, 9)).map(drop))
        };
        hosts.a.run("send large frames", burst).unwrap();
        hosts.link.set_rate(rate(2)).unwrap();
        let content: Arc<[u8]> = [1; 100_000].into();
        let (from, to, patience) = (&hosts.a, &hosts.b, Duration::from_secs(20));
        Transfer { from, to, address, name: "test", content: &content, patience }.run(&mut |_| {}).unwrap();
    }
}
