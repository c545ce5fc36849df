//! The card's side of an interface: whether its wire is alive, its address, and switching off what a network card would do for the kernel, so that
//! real datagrams cross the wire.
#![allow(unsafe_code)]

use std::io;
use std::net::UdpSocket;
use std::os::fd::AsRawFd;

use crate::namespace::check;

/// `struct ethtool_value` of `linux/ethtool.h`.
#[repr(C)]
struct Value {
    command: u32,
    data: u32,
}

/// Checksums first: the kernel takes segmentation away from an interface that cannot fill them in.
const SWITCHES: [u32; 7] = [
    0x17, // ETHTOOL_STXCSUM
    0x15, // ETHTOOL_SRXCSUM
    0x19, // ETHTOOL_SSG
    0x1f, // ETHTOOL_STSO
    0x22, // ETHTOOL_SUFO
    0x24, // ETHTOOL_SGSO
    0x2c, // ETHTOOL_SGRO
];

const SIOCETHTOOL: libc::c_ulong = 0x8946; // linux/sockios.h

/// Switches off checksum, segmentation and receive offloads of an interface; a switch that the driver does not
/// have is passed over.
pub(crate) fn disable_offloads(name: &str) -> io::Result<()> {
    let socket = UdpSocket::bind(("127.0.0.1", 0))?;
    for command in SWITCHES {
        match switch_off(&socket, name, command) {
            Err(error) if error.raw_os_error() == Some(libc::EOPNOTSUPP) => {}
            result => result?,
        }
    }
    Ok(())
}

fn switch_off(socket: &UdpSocket, name: &str, command: u32) -> io::Result<()> {
    let mut value = Value { command, data: 0 };
    let mut request = named(name)?;
    request.ifr_ifru.ifru_data = (&raw mut value).cast();
    // SAFETY: the kernel reads and writes one `ifreq` and, through it, one `ethtool_value`; both outlive the call.
    check(unsafe { libc::ioctl(socket.as_raw_fd(), SIOCETHTOOL, &raw mut request) })
}

/// Whether an interface is up and so is the one at the other end of its wire.
pub(crate) fn is_running(name: &str) -> io::Result<bool> {
    let socket = UdpSocket::bind(("127.0.0.1", 0))?;
    let mut request = named(name)?;
    // SAFETY: the kernel reads and writes one `ifreq`, which outlives the call.
    check(unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCGIFFLAGS, &raw mut request) })?;
    // SAFETY: SIOCGIFFLAGS has filled in the flags.
    let flags = unsafe { request.ifr_ifru.ifru_flags };
    Ok(i32::from(flags) & libc::IFF_RUNNING != 0)
}

/// The hardware address of an Ethernet interface.
pub(crate) fn hardware_address(name: &str) -> io::Result<[u8; 6]> {
    let socket = UdpSocket::bind(("127.0.0.1", 0))?;
    let mut request = named(name)?;
    // SAFETY: the kernel reads and writes one `ifreq`, which outlives the call.
    check(unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCGIFHWADDR, &raw mut request) })?;
    // SAFETY: SIOCGIFHWADDR has filled in the address.
    let address = unsafe { request.ifr_ifru.ifru_hwaddr }.sa_data;
    Ok([0, 1, 2, 3, 4, 5].map(|at| u8::from_ne_bytes(address[at].to_ne_bytes())))
}

/// A request about the interface `name`.
fn named(name: &str) -> io::Result<libc::ifreq> {
    // SAFETY: `ifreq` is plain data, all zeros is a valid value of it.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    let room = request.ifr_name.len() - 1;
    if name.len() > room {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            format!("{name} is longer than {room} bytes"),
        ));
    }
    for (slot, byte) in request.ifr_name.iter_mut().zip(name.bytes()) {
        *slot = libc::c_char::from_ne_bytes([byte]);
    }
    Ok(request)
}
