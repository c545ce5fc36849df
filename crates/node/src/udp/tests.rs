use super::*;
use crate::network::{Network, OuterRoutes, Plan};
use crate::poll::{PollFd, wait};
use crate::tun::Tun;
use std::os::fd::AsFd;
use std::time::Instant;

fn bound(listen: &str) -> UdpSocket {
    UdpSocket::bind(Listen::Address(listen.parse().unwrap()), None).unwrap()
}

fn to_loopback(socket: &UdpSocket, ip: &str) -> SocketAddr {
    SocketAddr::new(ip.parse().unwrap(), socket.local().port())
}

/// Every datagram that arrives until there are `count`, each with its traffic class and sender.
fn collect(socket: &UdpSocket, count: usize) -> Vec<(Vec<u8>, u8, SocketAddr)> {
    let mut buf = vec![0; RECEIVE_BYTES];
    let mut all = Vec::new();
    while all.len() < count {
        let mut fds = [PollFd::readable(socket.as_fd())];
        assert_eq!(
            wait(&mut fds, Some(Duration::from_secs(10))).unwrap(),
            1,
            "{} of {count} came",
            all.len()
        );
        while let Ok(ReceivedBatch { len, from, tos, segment }) = socket.recv(&mut buf) {
            all.extend(buf[..len].chunks(segment).map(|datagram| (datagram.to_vec(), tos, from.remote)));
        }
    }
    all
}

/// How many bytes each of so many calls brings.
fn calls(socket: &UdpSocket, count: usize) -> Vec<usize> {
    let mut buf = vec![0; RECEIVE_BYTES];
    let mut receive = || {
        let mut fds = [PollFd::readable(socket.as_fd())];
        assert_eq!(wait(&mut fds, Some(Duration::from_secs(10))).unwrap(), 1);
        socket.recv(&mut buf).unwrap().len
    };
    (0..count).map(|_| receive()).collect()
}

fn numbered(len: usize) -> Vec<u8> {
    (0..len).map(|at| u8::try_from(at % 251).unwrap()).collect()
}

#[test]
fn trains_cross_whole_with_their_traffic_class() {
    for (from, to, ip) in [
        ("127.0.0.1:0", "127.0.0.1:0", "127.0.0.1"),
        ("[::1]:0", "[::1]:0", "::1"),
        ("[::]:0", "[::]:0", "127.0.0.1"),
        ("[::]:0", "[::]:0", "::1"),
        ("127.0.0.1:0", "[::]:0", "127.0.0.1"),
    ] {
        let (sender, receiver) = (bound(from), bound(to));
        let bytes = numbered(1400 * 10 + 77);
        sender.send_train(to_loopback(&receiver, ip), 0xb9, 1400, &bytes).unwrap();
        let got = collect(&receiver, 11);
        assert_eq!(got.len(), 11);
        for ((datagram, tos, source), sent) in got.iter().zip(bytes.chunks(1400)) {
            assert_eq!((datagram.as_slice(), *tos), (sent, 0xb9), "{from} {to} {ip}");
            assert_eq!(*source, to_loopback(&sender, ip), "IPv4 is never written as IPv6");
        }
    }
}

/// A host with two addresses of each family.
fn with_addresses(work: impl FnOnce() + Send + 'static) {
    crate::testing::in_namespace(move || {
        let tun = Tun::open("st-several").unwrap();
        let addresses = ["10.77.0.1/24", "10.77.0.3/24", "fd77::1/64", "fd77::3/64"];
        let addresses = addresses.map(|address| address.parse().unwrap()).into();
        let plan = Plan { mtu: 1400, addresses, ..Plan::default() };
        let _network = Network::set_up(tun.name(), &plan, None).unwrap();
        crate::testing::bring_up_loopback();
        // The kernel takes packets to IPv6 addresses a moment later.
        let (mut routes, end) = (OuterRoutes::open().unwrap(), Instant::now() + Duration::from_secs(10));
        for address in ["fd77::1", "fd77::3"] {
            while routes.route(address.parse().unwrap(), None).unwrap().interface != "lo" {
                assert!(Instant::now() < end, "no way to {address}");
                std::thread::sleep(Duration::from_millis(5));
            }
        }
        work();
    });
}

#[test]
fn datagrams_leave_with_the_address_that_was_asked_for_and_say_where_they_came() {
    with_addresses(|| {
        for (listen, first, second) in [
            ("0.0.0.0:0", "10.77.0.1", "10.77.0.3"),
            ("[::]:0", "10.77.0.1", "10.77.0.3"),
            ("[::]:0", "fd77::1", "fd77::3"),
        ] {
            let (sender, receiver) = (bound(listen), bound(listen));
            for (to, local) in [(first, second), (second, first), (first, first)] {
                let local: IpAddr = local.parse().unwrap();
                let place = Place { remote: to_loopback(&receiver, to), local: Some(local) };
                // One alone, and a train.
                for bytes in [numbered(100), numbered(3000)] {
                    sender.send_train(place, 7, 1000, &bytes).unwrap();
                    let mut fds = [PollFd::readable(receiver.as_fd())];
                    assert_eq!(wait(&mut fds, Some(Duration::from_secs(10))).unwrap(), 1);
                    let got = receiver.recv(&mut vec![0; RECEIVE_BYTES]).unwrap();
                    assert_eq!((got.len, got.tos), (bytes.len(), 7), "{listen} {to}");
                    let from = SocketAddr::new(local, sender.local().port());
                    let expected = Place { remote: from, local: Some(to.parse().unwrap()) };
                    assert_eq!(got.from, expected, "{listen}");
                }
            }
        }
    });
}

#[test]
fn an_address_that_the_host_has_not_is_told_from_other_refusals() {
    with_addresses(|| {
        for (listen, to, gone) in [
            ("0.0.0.0:0", "10.77.0.1", "10.77.0.9"),
            ("[::]:0", "10.77.0.1", "10.77.0.9"),
            ("[::]:0", "fd77::1", "fd77::9"),
        ] {
            let (sender, receiver) = (bound(listen), bound(listen));
            let remote = to_loopback(&receiver, to);
            for len in [100, 3000] {
                let place = Place { remote, local: Some(gone.parse().unwrap()) };
                let error = sender.send_train(place, 0, 1000, &numbered(len)).unwrap_err();
                assert!(has_no_source(&error), "{listen} {to}: {error}");
                sender.send_train(remote, 0, 1000, &numbered(len)).unwrap();
            }
            assert_eq!(sender.refused_trains(), 0, "that says nothing of trains");
            assert_eq!(collect(&receiver, 4).len(), 4);
        }
    });
}

#[test]
fn the_kernel_joins_what_it_was_given_joined() {
    let (sender, receiver) = (bound("127.0.0.1:0"), bound("127.0.0.1:0"));
    sender.send_train(receiver.local(), 0, 1000, &numbered(8000)).unwrap();
    let mut fds = [PollFd::readable(receiver.as_fd())];
    assert_eq!(wait(&mut fds, Some(Duration::from_secs(10))).unwrap(), 1);
    let received = receiver.recv(&mut vec![0; RECEIVE_BYTES]).unwrap();
    assert_eq!((received.len, received.segment), (8000, 1000), "one call, eight datagrams");
}

#[test]
fn long_trains_are_split() {
    let (sender, receiver) = (bound("127.0.0.1:0"), bound("127.0.0.1:0"));
    for (segment, datagrams) in [(100, 200), (1400, 100), (1, 130), (60_000, 3)] {
        let bytes = numbered(segment * datagrams);
        sender.send_train(receiver.local(), 0, segment, &bytes).unwrap();
        let got: Vec<u8> = collect(&receiver, datagrams).into_iter().flat_map(|(bytes, ..)| bytes).collect();
        assert_eq!(got, bytes, "segment {segment}");
    }
}

#[test]
fn one_by_one_when_trains_are_refused() {
    let (sender, receiver) = (bound("[::1]:0"), bound("[::1]:0"));
    let way = way_to(receiver.local().ip());
    // Closed for longer than a test takes.
    let later = sender.trains.now() + Duration::from_secs(3_600);
    sender.trains.refuse(way, &io::Error::from_raw_os_error(libc::EINVAL), later);
    sender.send_train(receiver.local(), 2, 500, &numbered(1501)).unwrap();
    assert_eq!(calls(&receiver, 4), [500, 500, 500, 1], "what is sent joined is received joined");
}

#[test]
fn datagram_too_big_error_keeps_trains_enabled() {
    let (sender, receiver) = (bound("127.0.0.1:0"), bound("127.0.0.1:0"));
    let error = sender.send_train(receiver.local(), 0, 65_000, &[0; 66_000]).map(|()| "sent");
    // 65,000 fit the loopback's 65,536 bytes; a datagram over 65,507 fits no IPv4 packet at all.
    assert_eq!(error.unwrap(), "sent");
    let error = message::send(
        &sender.fd,
        &Destination::new(receiver.local(), SocketFamily::V4).unwrap(),
        0,
        None,
        &[0; 65_508],
    )
    .unwrap_err();
    assert!(is_too_big(&error));
    assert_eq!(sender.refused_trains(), 0);
    // A whole train of them, over an interface that is too narrow.
    crate::testing::in_namespace(|| {
        let tun = Tun::open("st-narrow").unwrap();
        let addresses = ["10.77.0.1/24".parse().unwrap()].into();
        let plan = Plan { mtu: 1300, addresses, ..Plan::default() };
        let _network = Network::set_up(tun.name(), &plan, None).unwrap();
        let (sender, to) = (bound("10.77.0.1:0"), SocketAddr::from(([10, 77, 0, 2], 8)));
        let error = sender.send_train(to, 0, 1400, &[0; 4200]).unwrap_err();
        assert!(is_too_big(&error), "{error}");
        assert_eq!(sender.refused_trains(), 0);
        sender.send_train(to, 0, 1200, &[0; 3600]).unwrap();
    });
}

#[test]
fn the_largest_datagram_is_received_whole() {
    let (sender, receiver) = (std::net::UdpSocket::bind("127.0.0.1:0").unwrap(), bound("127.0.0.1:0"));
    // 65,535 less the headers of IPv4 and UDP.
    let largest = numbered(65_507);
    assert_eq!(sender.send_to(&largest, receiver.local()).unwrap(), largest.len());
    assert_eq!(sender.send_to(b"next", receiver.local()).unwrap(), 4);
    let got: Vec<Vec<u8>> = collect(&receiver, 2).into_iter().map(|(bytes, ..)| bytes).collect();
    assert_eq!(got.iter().map(Vec::len).collect::<Vec<_>>(), [largest.len(), 4]);
    assert!(got == [&largest[..], b"next"], "its bytes are others");
}

#[test]
fn families() {
    let v4 = bound("127.0.0.1:0");
    assert!(!v4.reaches("[2001:db8::1]:1".parse().unwrap()));
    assert!(v4.reaches("[::ffff:192.0.2.1]:1".parse().unwrap()));
    let error = v4.send_train("[::1]:9".parse::<SocketAddr>().unwrap(), 0, 10, b"x").unwrap_err();
    assert_eq!(error.raw_os_error(), Some(libc::EAFNOSUPPORT));
}

#[test]
fn a_port_in_use_is_named() {
    let taken = bound("127.0.0.1:0");
    let error = UdpSocket::bind(Listen::Address(taken.local()), None).unwrap_err();
    assert_eq!(
        error.to_string(),
        format!(
            "UDP {} is in use by another program; choose another 'listen', or stop it ('ss -ulpn' names it)",
            taken.local()
        )
    );
    let error = UdpSocket::bind(Listen::Address("192.0.2.1:0".parse().unwrap()), None).unwrap_err();
    assert!(matches!(error, UdpError::NoSuchAddress { .. }), "{error}");
}

#[test]
fn an_empty_socket_would_block() {
    let socket = UdpSocket::bind(Listen::Port(0), None).unwrap();
    let error = socket.recv(&mut [0; 10]).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
}
