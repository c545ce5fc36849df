use std::io;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixDatagram;

use super::super::socket::attach;
use super::*;

const NEAR: &str = "192.0.2.1";
const FAR: &str = "192.0.2.2";
const NEAR6: &str = "2001:db8::1";
const FAR6: &str = "2001:db8::2";

fn flow(from: &str, to: &str, protocols: &[Protocol]) -> PeerFlow {
    PeerFlow { from: from.parse().unwrap(), to: to.parse().unwrap(), protocols: protocols.to_vec() }
}

/// The kernel's own filter on a socket pair, whose datagrams stand for packets from their IP header on.
struct Gate {
    outside: UnixDatagram,
    inside: OwnedFd,
}

impl Gate {
    fn new(version: ip::Version, flows: &[PeerFlow]) -> Gate {
        let watched = Watched { flows: flows.to_vec(), sessions: false };
        Gate::of(version, &watched)
    }

    fn of(version: ip::Version, watched: &Watched) -> Gate {
        let (outside, inside) = UnixDatagram::pair().unwrap();
        inside.set_nonblocking(true).unwrap();
        let inside = OwnedFd::from(inside);
        attach(&inside, &program(version, watched, Look::Exact).unwrap()).unwrap();
        Gate { outside, inside }
    }

    /// Whether a packet passes, and whole.
    fn passes(&self, packet: &[u8]) -> bool {
        self.outside.send(packet).map_or_else(
            |error| {
                // Refused by the filter where it is sent.
                assert_eq!(error.raw_os_error(), Some(libc::EPERM), "{error}");
                false
            },
            |_| true,
        ) && {
            let mut buffer = vec![0; packet.len() + 1];
            match super::super::socket::receive(&self.inside, &mut buffer) {
                Ok(taken) => {
                    assert_eq!(taken.len, packet.len());
                    true
                }
                Err(error) => {
                    assert_eq!(error.kind(), io::ErrorKind::WouldBlock, "{error}");
                    false
                }
            }
        }
    }
}

fn v4(from: &str, to: &str, protocol: u8, flags_and_offset: u16) -> Vec<u8> {
    let mut packet = vec![0; 40];
    packet[0] = 0x45;
    packet[6..8].copy_from_slice(&flags_and_offset.to_be_bytes());
    packet[9] = protocol;
    packet[12..16].copy_from_slice(&from.parse::<Ipv4Addr>().unwrap().octets());
    packet[16..20].copy_from_slice(&to.parse::<Ipv4Addr>().unwrap().octets());
    packet
}

/// Extension headers by their numbers and lengths in bytes.
type Headers<'a> = &'a [(u8, usize)];

/// An IPv6 packet with these headers, each by its number and length in bytes, and the protocol after them.
fn v6(from: &str, to: &str, headers: Headers, protocol: u8) -> Vec<u8> {
    let mut packet = vec![0; 40];
    packet[0] = 0x60;
    packet[8..24].copy_from_slice(&from.parse::<Ipv6Addr>().unwrap().octets());
    packet[24..40].copy_from_slice(&to.parse::<Ipv6Addr>().unwrap().octets());
    let mut next_at = 6;
    for (number, len) in headers {
        packet[next_at] = *number;
        next_at = packet.len();
        let mut header = vec![0xff; *len];
        header[1] = if *number == 44 { 0 } else { u8::try_from(len / 8 - 1).unwrap() };
        packet.extend(header);
    }
    packet[next_at] = protocol;
    packet.extend([7; 24]);
    packet
}

#[test]
fn only_what_is_a_peers_passes() {
    let gate = Gate::new(
        ip::Version::V4,
        &[
            flow(FAR, NEAR, &[Protocol::ESP]),
            flow("192.0.2.3", NEAR, &[Protocol::AH]),
            flow("192.0.2.4", "192.0.2.9", &[Protocol::IPCOMP, Protocol::IPIP, Protocol::IPV6]),
            flow(FAR6, NEAR6, &[Protocol::ESP]),
        ],
    );
    for (from, to, protocol, passes) in [
        (FAR, NEAR, 50, true),
        (FAR, NEAR, 51, false),
        (FAR, NEAR, 6, false),
        ("192.0.2.3", NEAR, 51, true),
        ("192.0.2.3", NEAR, 50, false),
        ("192.0.2.4", "192.0.2.9", 108, true),
        ("192.0.2.4", "192.0.2.9", 4, true),
        ("192.0.2.4", "192.0.2.9", 41, true),
        ("192.0.2.4", NEAR, 108, false),
        ("192.0.2.5", NEAR, 50, false),
        (NEAR, FAR, 50, false),
    ] {
        assert_eq!(gate.passes(&v4(from, to, protocol, 0)), passes, "{protocol} from {from} to {to}");
    }
    assert!(gate.passes(&v4(FAR, NEAR, 50, 0x2000)), "the first fragment");
    assert!(gate.passes(&v4(FAR, NEAR, 50, 0x00b9)), "another");
}

#[test]
fn the_protocol_is_found_behind_extension_headers() {
    let gate = Gate::new(
        ip::Version::V6,
        &[flow(FAR6, NEAR6, &[Protocol::ESP]), flow("2001:db8::3", NEAR6, &[Protocol::AH])],
    );
    let packet = |headers: Headers, protocol| v6(FAR6, NEAR6, headers, protocol);
    let eight = [(0, 16), (60, 24), (43, 40), (60, 8), (60, 8), (60, 8), (60, 8), (60, 8)];
    let nine = [eight.as_slice(), &[(60, 8)]].concat();
    let cases: [(Headers, u8, bool); 15] = [
        (&[], 50, true),
        (&[], 51, false),
        (&[], 6, false),
        (&[(0, 8)], 50, true),
        (&[(0, 8)], 6, false),
        (&[(0, 64), (43, 24)], 50, true),
        (&[(60, 8)], 50, true),
        (&[(44, 8)], 50, true),
        (&[(44, 8)], 17, false),
        // What stands behind options in the first fragment, the others do not show.
        (&[(0, 8), (44, 8)], 60, true),
        (&[(60, 8), (43, 8), (44, 8)], 50, true),
        (&eight, 50, true),
        (&nine, 50, false),
        (&[(17, 8)], 50, false),
        (&[(51, 24)], 50, false),
    ];
    for (headers, protocol, passes) in cases {
        assert_eq!(gate.passes(&packet(headers, protocol)), passes, "{protocol} behind {headers:?}");
    }
    assert!(!gate.passes(&v6("2001:db8::3", NEAR6, &[(0, 8)], 50)), "another peer's protocol");
    assert!(!gate.passes(&v6(FAR6, FAR6, &[], 50)), "another host's");
}

#[test]
fn what_is_cut_before_the_protocol_and_the_addresses_does_not_pass() {
    let behind = v6(FAR6, NEAR6, &[(0, 8), (43, 24), (44, 8)], 50);
    for (version, flow, packet, least) in [
        (ip::Version::V4, flow(FAR, NEAR, &[Protocol::ESP]), v4(FAR, NEAR, 50, 0), 20),
        (ip::Version::V6, flow(FAR6, NEAR6, &[Protocol::ESP]), behind, 40 + 8 + 24 + 1),
    ] {
        let gate = Gate::new(version, &[flow]);
        for len in 1..=packet.len() {
            assert_eq!(gate.passes(&packet[..len]), len >= least, "{len} of {}", packet.len());
        }
    }
}

#[test]
fn peers_beyond_filter_capacity_are_matched_by_protocol() {
    let flows = (0..1000)
        .map(|at| flow(&format!("2001:db8:{at:x}::2"), NEAR6, &[Protocol::IPCOMP, Protocol::IPIP]))
        .collect();
    let flows = Watched { flows, sessions: false };
    assert!(program(ip::Version::V6, &flows, Look::Exact).is_none(), "more steps than the kernel takes");
    let gate = Gate::new(ip::Version::V6, &[]);
    attach(&gate.inside, &program(ip::Version::V6, &flows, Look::Coarse).unwrap()).unwrap();
    assert!(gate.passes(&v6("2001:db8:77::2", NEAR6, &[(60, 16), (44, 8)], 108)));
    assert!(gate.passes(&v6("2001:db8::5", NEAR6, &[], 108)), "a stranger's, whom the packet path refuses");
    assert!(!gate.passes(&v6("2001:db8:77::2", NEAR6, &[], 50)));
}

#[test]
fn twenty_peers_are_told_apart() {
    let address = |at: usize| format!("2001:db8:{at:x}::2");
    let flows: Vec<PeerFlow> = (0..20).map(|at| flow(&address(at), NEAR6, &[Protocol::ESP])).collect();
    let gate = Gate::new(ip::Version::V6, &flows);
    assert!((0..20).all(|at| gate.passes(&v6(&address(at), NEAR6, &[], 50))));
    assert!(!gate.passes(&v6(&address(20), NEAR6, &[], 50)));
}

#[test]
fn without_peers_nothing_passes() {
    let gate = Gate::new(ip::Version::V4, &[]);
    assert!(!gate.passes(&v4(FAR, NEAR, 50, 0)));
}

#[test]
fn whole_esp_of_sessions_passes_from_anywhere_and_nothing_else() {
    let sessions = Watched { flows: Vec::new(), sessions: true };
    let flows = Watched { flows: vec![flow(FAR, NEAR, &[Protocol::AH])], sessions: true };
    for (watched, beside) in [(&sessions, false), (&flows, true)] {
        let gate = Gate::of(ip::Version::V4, watched);
        let packet = |protocol, flags, first, options: usize| {
            let mut packet = v4(FAR, "192.0.2.77", protocol, flags);
            packet[0] = 0x45 + u8::try_from(options).unwrap();
            packet[20 + 4 * options] = first;
            packet
        };
        for (options, first) in [(0, 0x04), (0, 0x0f), (3, 0x07)] {
            assert!(gate.passes(&packet(50, 0x4000, first, options)), "{options} {first}");
        }
        for first in [0, 0x03, 0x10, 0xff] {
            assert!(!gate.passes(&packet(50, 0x4000, first, 0)), "the SPI begins with {first}");
        }
        assert!(!gate.passes(&packet(51, 0, 0x05, 0)), "another protocol");
        assert!(!gate.passes(&packet(50, 0x2000, 0x05, 0)), "a first fragment");
        assert!(!gate.passes(&packet(50, 0x0010, 0x05, 0)), "a later one");
        assert_eq!(gate.passes(&v4(FAR, NEAR, 51, 0)), beside, "what else is watched");
        assert!(!gate.passes(&v4("192.0.2.9", NEAR, 51, 0)));
    }
}

#[test]
fn esp_of_sessions_passes_behind_extension_headers_of_ipv6() {
    let gate = Gate::of(ip::Version::V6, &Watched { flows: Vec::new(), sessions: true });
    let packet = |headers: Headers<'_>, first| {
        let mut packet = v6(FAR6, "2001:db8::77", headers, 50);
        packet.resize(packet.len() + 8, 0);
        let at = 40 + headers.iter().map(|(_, len)| len).sum::<usize>();
        packet[at] = first;
        packet
    };
    assert!(gate.passes(&packet(&[], 0x05)) && gate.passes(&packet(&[(60, 16)], 0x05)));
    assert!(!gate.passes(&packet(&[], 0x45)) && !gate.passes(&packet(&[(60, 16)], 0x45)));
    assert!(!gate.passes(&packet(&[(44, 8)], 0x05)), "a fragment");
}
