use super::*;
use crate::network::{Network, Plan};
use crate::testing::in_namespace;
use crate::tun::Tun;
use crate::udp::is_too_big;
use std::io::IoSlice;
use strait_wire::{Tos, vnet};

const NEAR: &str = "10.9.0.1";
const FAR: &str = "10.9.0.2";
const NEAR6: &str = "fd09::1";
const FAR6: &str = "fd09::2";

/// A host on a wire that the test holds the other end of.
struct Wire {
    tun: Tun,
    _network: Network,
}

impl Wire {
    fn new() -> Wire {
        Wire::with(&["10.9.0.1/24", "fd09::1/64"])
    }

    fn with(addresses: &[&str]) -> Wire {
        let tun = Tun::open("st-wire").unwrap();
        let addresses = addresses.iter().map(|address| address.parse().unwrap()).collect();
        let plan = Plan { mtu: 1400, addresses, ..Plan::default() };
        let network = Network::set_up(tun.name(), &plan, None).unwrap();
        Wire { tun, _network: network }
    }

    fn arrives(&self, packet: &[u8]) {
        self.tun.writev(&[IoSlice::new(&[0; vnet::LEN]), IoSlice::new(packet)]).unwrap();
    }

    /// The next packet that the host sends.
    fn leaves(&self) -> Vec<u8> {
        let mut buffer = vec![0; 70_000];
        let mut fds = [PollFd::readable(self.tun.as_fd())];
        assert_eq!(wait(&mut fds, Some(Duration::from_secs(10))).unwrap(), 1, "nothing left");
        let len = self.tun.read(&mut buffer).unwrap();
        buffer[vnet::LEN..len].to_vec()
    }

    /// The protocol of the next packet that the host sends, with a datagram of its own after all it has sent so far.
    fn next_protocol(&self) -> u8 {
        let socket = std::net::UdpSocket::bind("10.9.0.1:0").unwrap();
        socket.send_to(b"marker", "10.9.0.2:9").unwrap();
        self.leaves()[9]
    }
}

fn watched(protocols: &[Protocol]) -> Watched {
    let flows = [(FAR, NEAR), (FAR6, NEAR6)].map(|(from, to)| PeerFlow {
        from: from.parse().unwrap(),
        to: to.parse().unwrap(),
        protocols: protocols.to_vec(),
    });
    Watched { flows: flows.to_vec(), sessions: false }
}

/// A packet with `len` bytes behind its header.
fn packet(from: &str, to: &str, protocol: Protocol, len: usize) -> Vec<u8> {
    let (tos, id, dont_fragment) = (Tos(0xb8), 7, true);
    match (from.parse().unwrap(), to.parse().unwrap()) {
        (IpAddr::V4(src), IpAddr::V4(dst)) => {
            let mut packet = vec![0x5a; 20 + len];
            let header = ip::V4Header { src, dst, tos, id, dont_fragment, protocol, payload_len: len };
            header.emit(&mut packet).unwrap();
            packet
        }
        (IpAddr::V6(src), IpAddr::V6(dst)) => {
            let mut packet = vec![0x5a; 40 + len];
            ip::V6Header { src, dst, tos, next: protocol, payload_len: len }.emit(&mut packet).unwrap();
            packet
        }
        _ => unreachable!(),
    }
}

/// Everything that has come, in both versions.
fn received(direct: &Direct) -> Vec<Vec<u8>> {
    let mut buffer = Buffer::new();
    let mut all = Vec::new();
    for version in [ip::Version::V4, ip::Version::V6] {
        while direct.receive(version, &mut buffer, |packet| all.push(packet.to_vec())).is_ok() {}
    }
    all
}

#[test]
fn packets_arrive_as_they_were_on_the_wire() {
    in_namespace(|| {
        let wire = Wire::new();
        let direct = Direct::open(&watched(&[Protocol::ESP]), None).unwrap();
        let (own, own6) = (packet(FAR, NEAR, Protocol::ESP, 100), packet(FAR6, NEAR6, Protocol::ESP, 100));
        // The first of two fragments: the kernel keeps it, and it comes here all the same.
        let mut piece = packet(FAR, NEAR, Protocol::ESP, 160);
        piece[6] = 0x20;
        let checksum = ip::v4_header_checksum(&piece[..20]).to_be_bytes();
        piece[10..12].copy_from_slice(&checksum);
        let others = [
            packet("10.9.0.3", NEAR, Protocol::ESP, 100),
            packet(FAR, NEAR, Protocol::AH, 100),
            packet(FAR, "10.9.0.7", Protocol::ESP, 100),
            packet(FAR, NEAR, Protocol::UDP, 100),
            packet("fd09::3", NEAR6, Protocol::ESP, 100),
        ];
        for one in others.iter().chain([&own, &own6, &piece]) {
            wire.arrives(one);
        }
        assert_eq!(received(&direct), [own.clone(), piece, own6]);
        direct.watch(&watched(&[Protocol::AH])).unwrap();
        wire.arrives(&own);
        wire.arrives(&others[1]);
        assert_eq!(received(&direct), [others[1].clone()], "another filter from now on");
    });
}

#[test]
fn the_kernel_does_not_refuse_what_is_handled_here() {
    in_namespace(|| {
        let wire = Wire::new();
        let ours = packet(FAR, NEAR, Protocol::ESP, 100);
        wire.arrives(&ours);
        assert_eq!(wire.next_protocol(), 1, "by itself the kernel says \"protocol unreachable\"");
        assert_eq!(wire.leaves()[9], 17);
        let direct = Direct::open(&watched(&[Protocol::ESP]), None).unwrap();
        wire.arrives(&ours);
        assert_eq!(wire.next_protocol(), 17);
        assert_eq!(received(&direct).len(), 1);
    });
}

#[test]
fn packets_leave_as_they_are() {
    in_namespace(|| {
        let wire = Wire::new();
        let direct = Direct::open(&Watched::default(), None).unwrap();
        for (near, far) in [(NEAR, FAR), (NEAR6, FAR6)] {
            let one = packet(near, far, Protocol::ESP, 200);
            let (len, last) = (one.len(), packet(near, far, Protocol::ESP, 90));
            let train = [one.repeat(70), last.clone()].concat();
            direct.send_train(far.parse().unwrap(), len, &train).unwrap();
            for at in 0..70 {
                assert_eq!(wire.leaves(), one, "{at}");
            }
            assert_eq!(wire.leaves(), last);
            let large = packet(near, far, Protocol::ESP, 1400);
            let error = direct.send_train(far.parse().unwrap(), large.len(), &large).unwrap_err();
            assert!(is_too_big(&error), "{error}");
        }
    });
}

#[test]
fn a_packet_that_the_kernel_refuses_is_lost_alone() {
    in_namespace(|| {
        let wire = Wire::new();
        let direct = Direct::open(&Watched::default(), None).unwrap();
        let [first, mut broken, last] = [1, 2, 3].map(|byte| {
            let mut one = packet(NEAR, FAR, Protocol::ESP, 20);
            one[39] = byte;
            one
        });
        // A header that is longer than the packet.
        broken[0] = 0x4f;
        let train = [&first[..], &broken, &last].concat();
        let error = direct.send_train(FAR.parse().unwrap(), first.len(), &train).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::EINVAL));
        assert_eq!([wire.leaves(), wire.leaves()], [first, last]);
    });
}

#[test]
fn without_the_capability_the_error_says_so() {
    in_namespace(|| {
        crate::privileges::drop_all_but_network().unwrap();
        let error = Direct::open(&Watched::default(), None).unwrap_err();
        assert!(matches!(error, DirectError::Unprivileged), "{error}");
        assert!(error.to_string().contains("CAP_NET_RAW"));
    });
}

#[test]
fn esp_gets_a_header_of_the_systems_with_its_marks() {
    in_namespace(|| {
        let wire = Wire::new();
        let direct = Direct::open(&Watched { flows: Vec::new(), sessions: true }, None).unwrap();
        let esp: Vec<u8> = (0..90).collect();
        direct.send_esp((FAR.parse().unwrap(), None), 0xb9, 60, &esp).unwrap();
        for bytes in [&esp[..60], &esp[60..]] {
            let packet = wire.leaves();
            let parsed = ip::Packet::parse(&packet).unwrap();
            assert_eq!(
                (parsed.protocol(), parsed.tos(), parsed.dont_fragment()),
                (Protocol::ESP, Tos(0xb9), true)
            );
            assert_eq!((parsed.src().to_string(), parsed.dst().to_string()), (NEAR.into(), FAR.into()));
            assert_eq!(parsed.payload(), bytes);
        }
        direct.send_esp((FAR6.parse().unwrap(), None), 0x02, 60, &esp[..60]).unwrap();
        let packet = wire.leaves();
        let parsed = ip::Packet::parse(&packet).unwrap();
        assert_eq!(
            (parsed.protocol(), parsed.tos(), parsed.src().to_string()),
            (Protocol::ESP, Tos(2), NEAR6.into())
        );
        let error = direct.send_esp((FAR.parse().unwrap(), None), 0, 1401, &[5; 1401]).unwrap_err();
        assert!(is_too_big(&error), "{error}");
    });
}

#[test]
fn esp_leaves_with_the_address_that_was_asked_for() {
    in_namespace(|| {
        let wire = Wire::with(&["10.9.0.1/24", "10.9.0.3/24", "fd09::1/64", "fd09::3/64"]);
        let direct = Direct::open(&Watched { flows: Vec::new(), sessions: true }, None).unwrap();
        for (to, sources) in [(FAR, [NEAR, "10.9.0.3"]), (FAR6, [NEAR6, "fd09::3"])] {
            for from in sources {
                direct.send_esp((to.parse().unwrap(), from.parse().ok()), 0xb9, 60, &[7; 90]).unwrap();
                for _ in 0..2 {
                    let packet = wire.leaves();
                    let parsed = ip::Packet::parse(&packet).unwrap();
                    assert_eq!((parsed.src().to_string(), parsed.tos()), (from.to_owned(), Tos(0xb9)));
                }
            }
        }
        for (to, gone) in [(FAR, "10.9.0.9"), (FAR6, "fd09::9")] {
            let error =
                direct.send_esp((to.parse().unwrap(), gone.parse().ok()), 0, 60, &[7; 60]).unwrap_err();
            assert!(crate::udp::has_no_source(&error), "{gone}: {error}");
        }
    });
}
