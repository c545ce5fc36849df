//! A tunnel of ssh, `ssh -w`, to an sshd of its own.

use std::fs;
use std::net::IpAddr;
use std::path::Path;

use strait_testbed::outside::Sshd;
use strait_testbed::{Namespace, TwoHosts, Workdir};

use super::process::{PeerProcess, ip};
use super::programs::PeerProgram;
use crate::error::Error;
use crate::stage::BenchSetup;

/// Inner MTU: what crosses is a stream, so a packet may be as large as those of the link.
pub(super) const MTU: u32 = 1500;
/// Whether a connection begins anew after a pause (tcp(7)): a tunnel has many, and is none of the connections inside.
const AFTER_IDLE: &str = "/proc/sys/net/ipv4/tcp_slow_start_after_idle";
/// The fastest cipher of OpenSSH on processors with AES.
const CIPHER: &str = "aes128-gcm@openssh.com";

/// Starts sshd on the second host and ssh on the first; both tunnels' interfaces are number 0.
pub(super) fn start(
    setting: &BenchSetup,
    program: &PeerProgram,
    hosts: &TwoHosts,
    dir: &Workdir,
    (tunnel, flags): (&'static str, &[&str]),
) -> Result<(Vec<PeerProcess>, Sshd), Error> {
    for (host, end, peer) in
        [(&hosts.a, &hosts.link.a, hosts.address_of_b().0), (&hosts.b, &hosts.link.b, hosts.address_of_a().0)]
    {
        host.run("keep the rate of idle connections", || fs::write(AFTER_IDLE, "0"))?;
        prefer_cubic(tunnel, host, &end.interface, peer)?;
    }
    let sshd = setting.sshd(hosts, dir).map_err(|why| Error::NoTunnel { tunnel, why })?;
    let mut command = program.command(&hosts.a);
    let host = format!("{}@{}", sshd.user(), hosts.address_of_b().0);
    command.args(sshd.options()).args(arguments(flags)).arg(host);
    let log = |dir: &Path| dir.join("ssh.log");
    Ok((vec![PeerProcess::start(tunnel, command, log(dir.path()))?], sshd))
}

/// Has connections to `peer` begin with CUBIC, whatever the system's default is: as all streams here do.
fn prefer_cubic(tunnel: &'static str, host: &Namespace, interface: &str, peer: IpAddr) -> Result<(), Error> {
    ip(tunnel, host, &["route", "add", &peer.to_string(), "dev", interface, "congctl", "cubic"])
}

fn arguments<'a>(flags: &[&'a str]) -> Vec<&'a str> {
    let fixed = [
        "-N",
        "-T",
        "-o",
        "ExitOnForwardFailure=yes",
        "-o",
        "Tunnel=point-to-point",
        "-w",
        "0:0",
        "-c",
        CIPHER,
    ];
    fixed.into_iter().chain(flags.iter().copied()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compression_is_a_flag_beside_the_same_tunnel() {
        assert_eq!(arguments(&["-C"]).split_last(), Some((&"-C", &arguments(&[])[..])));
        assert!(arguments(&[]).windows(2).any(|pair| pair == ["-w", "0:0"]));
    }
}
