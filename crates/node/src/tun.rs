//! The tunnel device: whole IP packets and offloaded super-packets, each behind a
//! [`strait_wire::vnet`] header.
#![allow(unsafe_code)]

mod joined;

use std::ffi::CStr;
use std::fs::{File, OpenOptions};
use std::io::{self, IoSlice, Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::sync::Arc;

use strait_wire::vnet;

use crate::fast_path::FastPath;
use crate::packet_errors::RefusalLog;
use crate::process::checked;

const PATH: &str = "/dev/net/tun";
/// The longest name an interface can have: `IFNAMSIZ` less its terminating zero.
pub const NAME_MAX: usize = libc::IFNAMSIZ - 1;

/// Which super-packets the kernel hands over uncut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Offload {
    /// TCP and UDP (Linux 6.2 and later).
    TcpAndUdp,
    /// TCP only.
    Tcp,
}

/// Why there is no tunnel device.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TunError {
    /// The name cannot be an interface's.
    #[error("`{name}` cannot name an interface: 1 to {NAME_MAX} characters without `/`, `:`, `%` and spaces")]
    Name {
        /// What was asked for.
        name: String,
    },
    /// The kernel has no tunnel driver or the system hides it.
    #[error(
        "there is no {PATH}; load the driver with 'modprobe tun', or in a container pass the device in \
         ('--device /dev/net/tun')"
    )]
    Missing,
    /// The file exists and this user may not open it.
    #[error(
        "{PATH} may not be opened by this user; run as root, or 'chmod 666 {PATH}' as most distributions ship it"
    )]
    Forbidden,
    /// Making an interface takes a capability.
    #[error(
        "interface '{name}' may not be created without CAP_NET_ADMIN; run as root, or \
         'setcap cap_net_admin+ep' the strait binary"
    )]
    Unprivileged {
        /// The interface.
        name: String,
    },
    /// Another program uses it.
    #[error(
        "interface '{name}' is in use; stop the program that uses it ('strait down {name}'), or choose another \
         name with 'interface = \"...\"'"
    )]
    Busy {
        /// The interface.
        name: String,
    },
    /// Anything else.
    #[error("cannot {step} tunnel interface '{name}': {source}")]
    Io {
        /// What was tried.
        step: &'static str,
        /// The interface.
        name: String,
        /// What the system said.
        source: io::Error,
    },
}

/// A tunnel device that is gone when this is dropped.
#[derive(Debug)]
pub struct Tun {
    file: File,
    name: String,
    offload: Offload,
    /// The way of joined packets into the kernel.
    joined: Arc<FastPath>,
    refused: RefusalLog,
}

impl Tun {
    /// Makes the interface `name`, down and without addresses, non-blocking, with checksum and
    /// segmentation offload.
    ///
    /// # Errors
    /// [`TunError`] with the remedy.
    pub fn open(name: &str) -> Result<Tun, TunError> {
        check_name(name)?;
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .custom_flags(libc::O_NONBLOCK | libc::O_CLOEXEC)
            .open(PATH)
            .map_err(|error| open_error(error, name))?;
        let name = attach(&file, name)?;
        let failed = |step| {
            let name = name.clone();
            move |source| TunError::Io { step, name, source }
        };
        let header = libc::c_int::try_from(vnet::LEN).unwrap_or(libc::c_int::MAX);
        // SAFETY: the argument is a pointer to an int that outlives the call, as TUNSETVNETHDRSZ wants.
        checked(unsafe { libc::ioctl(file.as_raw_fd(), libc::TUNSETVNETHDRSZ, &raw const header) })
            .map_err(failed("set the header size of"))?;
        let offload = set_offload(&file).map_err(failed("set the offloads of"))?;
        Ok(Tun::of(file, name, offload))
    }

    fn of(file: File, name: String, offload: Offload) -> Tun {
        let joined = Arc::new(FastPath::new("the tunnel device"));
        Tun { file, name, offload, joined, refused: RefusalLog::default() }
    }

    /// What stands for a device where there is none: it brings no packet and takes none.
    ///
    /// # Errors
    /// [`TunError::Io`] when the process has no file descriptor left.
    pub fn none() -> Result<Tun, TunError> {
        // A timer that is never set: nothing can be read from it, and nothing written.
        // SAFETY: no pointer is passed; the result is checked before it is used.
        let fd =
            unsafe { libc::timerfd_create(libc::CLOCK_MONOTONIC, libc::TFD_NONBLOCK | libc::TFD_CLOEXEC) };
        checked(fd).map_err(|source| TunError::Io { step: "do without", name: String::new(), source })?;
        // SAFETY: the descriptor was just made and has no other owner.
        let file = File::from(unsafe { OwnedFd::from_raw_fd(fd) });
        Ok(Tun::of(file, String::new(), Offload::Tcp))
    }

    /// What stands for a device in tests, and its other end, where each write of the device is one message.
    #[cfg(test)]
    pub(crate) fn pair() -> (Tun, std::os::unix::net::UnixDatagram) {
        let (near, far) = std::os::unix::net::UnixDatagram::pair().unwrap();
        let file = File::from(std::os::fd::OwnedFd::from(near));
        (Tun::of(file, "pair".to_owned(), Offload::Tcp), far)
    }

    /// Says in words what an error of the device means.
    pub(crate) fn explain(&self, error: io::Error) -> io::Error {
        match error.raw_os_error() {
            // Linux `tun_chr_read_iter`: nothing is attached any more.
            Some(libc::EBADFD) => {
                io::Error::other(format!("another program removed the interface {}", self.name))
            }
            _ => error,
        }
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Which super-packets it may bring.
    #[must_use]
    pub const fn offload(&self) -> Offload {
        self.offload
    }

    /// The next packet behind its [`vnet`] header into `buf`; the length of both.
    ///
    /// # Errors
    /// As `read(2)`, `WouldBlock` when there is none.
    pub fn read(&self, buf: &mut [u8]) -> io::Result<usize> {
        (&self.file).read(buf)
    }

    /// Hands a packet to the host, or several that are joined as `header` says; `pieces` are joined. What the kernel does not take
    /// together goes one by one.
    ///
    /// # Errors
    /// As [`Tun::writev`] of the first packet that the host did not take.
    pub fn deliver(&self, header: &vnet::Header, pieces: &[IoSlice<'_>]) -> io::Result<()> {
        let way = (&*self.joined, || self.joined.now());
        let taken = joined::hand_over(way, header, pieces, |parts| self.writev(parts));
        if let Err(error) = &taken
            && self.refused.is_news(self.joined.now())
        {
            tracing::warn!("the host does not take packets ({error}); drops say how many (host-refused)");
        }
        taken
    }

    /// The way of joined packets into the kernel.
    pub(crate) fn joined(&self) -> Arc<FastPath> {
        Arc::clone(&self.joined)
    }

    /// Hands one packet, its [`vnet`] header first, to the host; `parts` are joined.
    ///
    /// # Errors
    /// As `writev(2)`: EINVAL for what the kernel does not take, EIO while the interface is down.
    /// Neither concerns the next packet.
    pub fn writev(&self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        (&self.file).write_vectored(parts)
    }
}

impl AsFd for Tun {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

/// Whether `name` can be an interface's (Linux `dev_valid_name`; '%' would be a pattern).
///
/// # Errors
/// [`TunError::Name`].
pub fn check_name(name: &str) -> Result<(), TunError> {
    let fits = (1..=NAME_MAX).contains(&name.len()) && name != "." && name != "..";
    let clean = name.chars().all(|c| c.is_ascii_graphic() && !matches!(c, '/' | ':' | '%'));
    if fits && clean { Ok(()) } else { Err(TunError::Name { name: name.to_owned() }) }
}

fn open_error(error: io::Error, name: &str) -> TunError {
    match error.raw_os_error() {
        Some(libc::ENOENT | libc::ENODEV | libc::ENXIO) => TunError::Missing,
        Some(libc::EACCES | libc::EPERM) => TunError::Forbidden,
        _ => TunError::Io { step: "open", name: name.to_owned(), source: error },
    }
}

/// Binds the file to an interface, which makes it; returns the interface's name.
fn attach(file: &File, name: &str) -> Result<String, TunError> {
    let flags = libc::IFF_TUN | libc::IFF_NO_PI | libc::IFF_VNET_HDR;
    let mut request = libc::ifreq {
        ifr_name: [0; libc::IFNAMSIZ],
        ifr_ifru: libc::__c_anonymous_ifr_ifru { ifru_flags: libc::c_short::try_from(flags).unwrap_or(0) },
    };
    for (to, from) in request.ifr_name.iter_mut().take(NAME_MAX).zip(name.bytes()) {
        *to = libc::c_char::from_ne_bytes([from]);
    }
    // SAFETY: the argument is a pointer to an ifreq that outlives the call, as TUNSETIFF wants; the
    // name in it ends with a zero because one place was left.
    checked(unsafe { libc::ioctl(file.as_raw_fd(), libc::TUNSETIFF, &raw mut request) }).map_err(
        |source| {
            let name = name.to_owned();
            match source.raw_os_error() {
                Some(libc::EPERM | libc::EACCES) => TunError::Unprivileged { name },
                // EINVAL: an interface of this name exists and is not a tunnel device.
                Some(libc::EBUSY | libc::EINVAL | libc::EEXIST) => TunError::Busy { name },
                _ => TunError::Io { step: "create", name, source },
            }
        },
    )?;
    let name = request.ifr_name.map(|c| c.to_ne_bytes()[0]);
    let name = CStr::from_bytes_until_nul(&name).map(CStr::to_string_lossy);
    Ok(name.unwrap_or_default().into_owned())
}

fn set_offload(file: &File) -> io::Result<Offload> {
    let tcp = libc::TUN_F_CSUM | libc::TUN_F_TSO4 | libc::TUN_F_TSO6 | libc::TUN_F_TSO_ECN;
    let both = tcp | libc::TUN_F_USO4 | libc::TUN_F_USO6;
    // SAFETY: TUNSETOFFLOAD takes its flags by value; no pointer is passed.
    let set = |flags: libc::c_uint| {
        checked(unsafe { libc::ioctl(file.as_raw_fd(), libc::TUNSETOFFLOAD, libc::c_ulong::from(flags)) })
    };
    match set(both) {
        Ok(()) => Ok(Offload::TcpAndUdp),
        // Older kernels know nothing of USO and refuse the whole set.
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) => set(tcp).map(|()| Offload::Tcp),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::{Network, Plan};
    use crate::poll::{PollFd, wait};
    use crate::testing::in_namespace;
    use std::time::Duration;
    use strait_testdata::skip::{Need, skip};

    #[test]
    fn names() {
        for good in ["strait0", "a", "fifteen-letters", "st.1"] {
            assert!(check_name(good).is_ok(), "{good}");
        }
        for bad in ["", "sixteen-letters!", "a/b", "a b", "tun%d", ".", "..", "eth0:1", "straße"] {
            assert!(check_name(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn errors_say_what_to_do() {
        let error = |code| open_error(io::Error::from_raw_os_error(code), "strait0").to_string();
        assert!(error(libc::ENOENT).contains("modprobe tun"));
        assert!(error(libc::EACCES).contains("run as root"));
        assert!(error(libc::EMFILE).contains("cannot open tunnel interface 'strait0'"));
    }

    fn plan() -> Plan {
        let addresses = ["10.77.0.1/24".parse().unwrap()].into();
        Plan { mtu: 1420, addresses, ..Plan::default() }
    }

    /// The next IPv4 packet from the host, with its header.
    fn next(tun: &Tun) -> (vnet::Header, Vec<u8>) {
        let mut buf = vec![0; 70_000];
        loop {
            let mut fds = [PollFd::readable(tun.as_fd())];
            assert_eq!(wait(&mut fds, Some(Duration::from_secs(10))).unwrap(), 1, "no packet came");
            let len = tun.read(&mut buf).unwrap();
            let (header, packet) = vnet::Header::parse(&buf[..len]).unwrap();
            if packet[0] >> 4 == 4 {
                return (header, packet.to_vec());
            }
        }
    }

    #[test]
    fn packets_cross_both_ways() {
        in_namespace(|| {
            let tun = Tun::open("st-tun").unwrap();
            let _network = Network::set_up("st-tun", &plan(), None).unwrap();
            let socket = std::net::UdpSocket::bind("10.77.0.1:7").unwrap();
            socket.send_to(b"there", "10.77.0.2:8").unwrap();
            let (header, mut packet) = next(&tun);
            assert_eq!(header.flags, vnet::NEEDS_CSUM, "the host leaves the checksum to the tunnel");
            assert!(packet.ends_with(b"there"));
            // Sent back with source and destination exchanged, which leaves the header checksum right.
            let (src, dst) = (packet[12..16].to_vec(), packet[16..20].to_vec());
            packet[12..16].copy_from_slice(&dst);
            packet[16..20].copy_from_slice(&src);
            packet[20..24].copy_from_slice(&[0, 8, 0, 7]);
            let mut head = [0; vnet::LEN];
            header.emit(&mut head);
            let parts = [IoSlice::new(&head), IoSlice::new(&packet[..20]), IoSlice::new(&packet[20..])];
            assert_eq!(tun.writev(&parts).unwrap(), vnet::LEN + packet.len());
            socket.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
            let mut back = [0; 10];
            let (len, from) = socket.recv_from(&mut back).unwrap();
            assert_eq!((&back[..len], from), (&b"there"[..], "10.77.0.2:8".parse().unwrap()));
        });
    }

    #[test]
    fn what_the_device_does_not_take_joined_arrives_in_pieces() {
        in_namespace(|| {
            let tun = Tun::open("st-joined").unwrap();
            let _network = Network::set_up("st-joined", &plan(), None).unwrap();
            let socket = std::net::UdpSocket::bind("10.77.0.1:7").unwrap();
            socket.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
            let mut packet =
                [0x45, 0, 13, 200, 0, 0, 0x40, 0, 64, 17, 0, 0, 10, 77, 0, 2, 10, 77, 0, 1].to_vec();
            let sum = strait_wire::ip::v4_header_checksum(&packet);
            packet[10..12].copy_from_slice(&sum.to_be_bytes());
            packet.extend([0, 8, 0, 7, 13, 180, 0, 0]);
            packet.extend((0..3_500_u16).map(|at| at.to_be_bytes()[1]));
            // A sum that begins behind the end is taken by no kernel.
            let header = vnet::Header {
                flags: vnet::NEEDS_CSUM,
                gso_type: vnet::GSO_UDP_L4,
                hdr_len: 28,
                gso_size: 1000,
                csum_start: 65_000,
                csum_offset: 6,
            };
            for _ in 0..2 {
                let (front, back) = packet.split_at(1_028);
                tun.deliver(&header, &[IoSlice::new(front), IoSlice::new(back)]).unwrap();
                let mut received = Vec::new();
                for len in [1000, 1000, 1000, 500] {
                    let mut buffer = [0; 2000];
                    assert_eq!(socket.recv(&mut buffer).unwrap(), len);
                    received.extend_from_slice(&buffer[..len]);
                }
                assert!(received == packet[28..]);
            }
            assert!(tun.joined().refused() >= 1);
        });
    }

    #[test]
    fn super_packets_come_uncut() {
        in_namespace(|| {
            let tun = Tun::open("st-gso").unwrap();
            let _network = Network::set_up("st-gso", &plan(), None).unwrap();
            if tun.offload() == Offload::Tcp {
                let _ = skip(Need::Offload, "this kernel has no UDP segmentation offload for tunnel devices");
                return;
            }
            let socket = crate::udp::UdpSocket::bind(crate::udp::Listen::Port(0), None).unwrap();
            socket
                .send_train("10.77.0.2:8".parse::<std::net::SocketAddr>().unwrap(), 0, 1000, &[7; 5000])
                .unwrap();
            let (header, packet) = next(&tun);
            assert_eq!((header.gso_type, header.gso_size), (vnet::GSO_UDP_L4, 1000));
            assert_eq!(packet.len(), 28 + 5000);
        });
    }

    #[test]
    fn interface_down_is_survived_and_removal_reported() {
        in_namespace(|| {
            let tun = Tun::open("st-down").unwrap();
            assert_eq!(tun.read(&mut [0; 100]).unwrap_err().kind(), io::ErrorKind::WouldBlock);
            let head = [0; vnet::LEN];
            let packet = [0x45; 20];
            let error = tun.writev(&[IoSlice::new(&head), IoSlice::new(&packet)]).unwrap_err();
            assert_eq!(error.raw_os_error(), Some(libc::EIO), "while the interface is down");
            let _network = Network::set_up("st-down", &plan(), None).unwrap();
            assert!(tun.writev(&[IoSlice::new(&head), IoSlice::new(&packet)]).is_ok());
        });
    }

    #[test]
    fn a_name_in_use_is_named() {
        in_namespace(|| {
            let _tun = Tun::open("st-busy").unwrap();
            for (name, remedy) in
                [("st-busy", "stop the program that uses it"), ("lo", "choose another name")]
            {
                let error = Tun::open(name).unwrap_err();
                assert!(matches!(&error, TunError::Busy { name: busy } if busy == name), "{error}");
                assert!(error.to_string().contains(remedy));
            }
        });
    }

    #[test]
    fn what_stands_for_no_device_brings_and_takes_nothing() {
        let none = Tun::none().unwrap();
        assert_eq!(none.read(&mut [0; 100]).unwrap_err().kind(), io::ErrorKind::WouldBlock);
        assert!(none.writev(&[IoSlice::new(&[1; 12]), IoSlice::new(&[0x45; 40])]).is_err());
        let mut fds = [crate::poll::PollFd::readable(none.as_fd())];
        assert_eq!(crate::poll::wait(&mut fds, Some(std::time::Duration::ZERO)).unwrap(), 0);
    }
}
