//! IPsec of the Linux kernel with IPComp between two hosts: what strongSwan sets up, which itself only agrees on the keys.
//!
//! Few kernels have IPComp, so each host has a router with a kernel of its own, a virtual machine (User-Mode Linux). A host sends what
//! is for the other one to its router, and the router sends it back, protected, to be forwarded over the link.

use std::fmt::Write;
use std::fs;
use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;

use strait_testbed::{Guest, LinkSpec, Namespace, Offloads, TwoHosts, WireLink};

use super::process::ip;
use crate::error::Error;
use crate::wireguard::{hex, inside};

/// Inner MTU: ESP has 20 (IP) + 8 (header) + 8 (IV) + 2 (trailer) + 16 (tag) bytes more, and what IPComp does not make smaller stays as
/// it is.
const MTU: u32 = 1446;
/// Bytes of a key of AES-128-GCM with its salt (RFC 4106 section 8.1).
const KEY: usize = 20;
/// The well-known CPI of DEFLATE (RFC 3173 section 3.3), as `ip xfrm` takes it.
const CPI: &str = "0x2";
/// Numbers that tie policies to states.
const IPCOMP: u32 = 1;
const ESP: u32 = 2;
/// Numbers of the links to the routers; the hosts' own is 0.
const NETWORKS: [u8; 2] = [3, 4];

/// Boots both routers and gives them keys; what their kernels say goes to files in the folder `dir`.
pub(super) fn start(
    kernel: &Path,
    hosts: &TwoHosts,
    dir: &Path,
    tunnel: &'static str,
) -> Result<[Guest; 2], Error> {
    let outside = [hosts.address_of_a().0, hosts.address_of_b().0];
    let links = [router(&hosts.a, 0)?, router(&hosts.b, 1)?];
    let keys = [key()?, key()?];
    let ends = [&links[0], &links[1]].map(|link| link.b.v4);
    let one = |me: usize| {
        let (link, other) = (&links[me], 1 - me);
        let host = &link.a.host;
        host.run("forward packets", || fs::write("/proc/sys/net/ipv4/ip_forward", "1"))?;
        link.a.add_address(inside(me).into(), 32)?;
        // The other router is behind the other host.
        host.add_route(IpAddr::V4(ends[other]), 32, outside[other])?;
        let (to, via, from) = (inside(other).to_string(), link.b.v4.to_string(), inside(me).to_string());
        ip(tunnel, host, &["route", "add", &to, "via", &via, "src", &from, "mtu", &MTU.to_string()])?;
        let mut guest = Guest::start(kernel, link, &[], &dir.join(format!("console-{me}")))?;
        guest.run(&configuration(me, link.a.v4, ends, &keys))?;
        Ok::<_, Error>(guest)
    };
    Ok([one(0)?, one(1)?])
}

/// A place for a router beside `host`.
fn router(host: &Namespace, me: usize) -> Result<WireLink, Error> {
    let spec = LinkSpec { offloads: Offloads::Off, ..LinkSpec::unshaped() };
    Ok(WireLink::join(host, &Namespace::create("router")?, NETWORKS[me], spec)?)
}

/// A key with its salt, as `ip xfrm` takes it.
fn key() -> Result<String, Error> {
    let mut bytes = [0; KEY];
    aws_lc_rs::rand::fill(&mut bytes).map_err(|error| Error::doing("make a key")(io::Error::other(error)))?;
    Ok(format!("0x{}", hex(&bytes)))
}

/// Text for the shell of router `me`, whose host is at `near`: states and policies of both directions, of which the key of the first
/// goes from router 0 to router 1. Packets that IPComp leaves as they are, and all small ones, are taken, too.
fn configuration(me: usize, near: Ipv4Addr, ends: [Ipv4Addr; 2], keys: &[String; 2]) -> String {
    let mut lines = format!("route add default via {near} dev vec0\n");
    for from in [0, 1] {
        let (source, destination) = (ends[from], ends[1 - from]);
        let outer = format!("src {source} dst {destination}");
        let spi = 0x1000 + from;
        let _ = write!(
            lines,
            "xfrm state add {outer} proto comp spi {CPI} reqid {IPCOMP} mode tunnel comp deflate\n\
             xfrm state add {outer} proto esp spi {spi:#x} reqid {ESP} mode transport replay-window 32 \
             aead rfc4106(gcm(aes)) {} 128\n",
            keys[from]
        );
        let directions: &[(&str, &str)] =
            if from == me { &[("out", "")] } else { &[("in", " level use"), ("fwd", " level use")] };
        for (direction, level) in directions {
            let _ = writeln!(
                lines,
                "xfrm policy add src {} dst {} dir {direction} \
                 tmpl {outer} proto comp reqid {IPCOMP} mode tunnel{level} tmpl {outer} proto esp reqid {ESP} mode transport",
                inside(from),
                inside(1 - from)
            );
        }
    }
    // What comes from a host and goes back to it is meant so, and needs no advice.
    format!(
        "for each in all default vec0; do echo 0 >/proc/sys/net/ipv4/conf/$each/send_redirects; done\n\
         echo 1 >/proc/sys/net/ipv4/ip_forward\nip -batch - <<'end'\n{lines}end\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_routers_have_the_same_states_and_mirrored_policies() {
        let ends = [Ipv4Addr::new(198, 18, 3, 2), Ipv4Addr::new(198, 18, 4, 2)];
        let keys = [key().unwrap(), key().unwrap()];
        let text = [0, 1].map(|me| configuration(me, Ipv4Addr::new(198, 18, 3, 1), ends, &keys));
        let lines = |me: usize, what: &str| -> Vec<&str> {
            text[me].lines().filter(|line| line.starts_with(what)).collect()
        };
        assert_eq!(lines(0, "xfrm state"), lines(1, "xfrm state"));
        assert_eq!(lines(0, "xfrm state").len(), 4);
        let [out, back]: [&str; 2] = [0, 1].map(|me| lines(me, "xfrm policy")[me * 2]);
        assert!(
            out.starts_with("xfrm policy add src 10.78.0.1 dst 10.78.0.2 dir out tmpl src 198.18.3.2 "),
            "{out}"
        );
        assert!(
            back.starts_with("xfrm policy add src 10.78.0.2 dst 10.78.0.1 dir out tmpl src 198.18.4.2 "),
            "{back}"
        );
        let incoming = lines(1, "xfrm policy add src 10.78.0.1 dst 10.78.0.2 dir in ");
        assert!(incoming[0].contains(" mode tunnel level use tmpl "), "{incoming:?}");
    }

    #[test]
    fn keys_differ_and_no_outer_packet_is_larger_than_the_path_takes() {
        let keys = [key().unwrap(), key().unwrap()];
        assert_ne!(keys[0], keys[1]);
        assert!(keys.iter().all(|key| key.len() == 2 + 2 * KEY && key.starts_with("0x")));
        // The trailer ends at a multiple of 4 (RFC 4303 section 2.4).
        const { assert!(20 + 8 + 8 + (MTU + 2).next_multiple_of(4) + 16 == 1500) };
    }
}
