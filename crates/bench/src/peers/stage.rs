//! Two hosts, a link and one tunnel over it.

use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use strait_testbed::outside::Sshd;
use strait_testbed::{
    EmulatedPath, Extra, FrameDirection, Guest, LinkTraffic, Relay, TestTunnel, TwoHosts, Workdir, interrupt,
};

use super::kernel;
use super::openvpn::{self, OpenVpnCompression};
use super::process::{INTERFACE, PeerProcess};
use super::programs::{PeerProgram, PeerProgramKind, PeerPrograms};
use super::ssh;
use super::tinc::{self, TincCompression};
use super::way::PeerWay;
use crate::echo::Echoes;
use crate::error::Error;
use crate::paths::ThinPath;
use crate::stage::{BenchSetup, MTU, rule};
use crate::wireguard::{WireGuard, inside, raise};

/// Bytes of a frame beside its IP packet.
const ETHERNET: u64 = 14;
/// Inner MTU of WireGuard over IPv4: 60 bytes less than the path takes (20 IP, 8 UDP, 16 header, 16 tag).
const WIREGUARD_MTU: u32 = 1440;
/// How long a tunnel may take until packets come back through it, once its interfaces are there.
const PATIENCE: Duration = Duration::from_secs(60);
/// The lines of `[link]` with which Strait looks for the rate of a link of the testbed.
const AUTO: &str = "up = \"auto\"\ndown = \"auto\"\noverhead = 14\n";

/// What runs at the ends.
#[derive(Debug)]
enum PeerEnds {
    Bare,
    Strait(Box<TestTunnel>),
    WireGuard {
        _both: [WireGuard; 2],
    },
    /// Routers beside the hosts, and what their kernels say.
    Guests {
        both: [Guest; 2],
        _dir: Workdir,
    },
    /// In the order in which they must go: who calls, who is called, their files.
    Programs {
        processes: Vec<PeerProcess>,
        _sshd: Option<Sshd>,
        _dir: Workdir,
    },
}

/// A link with a tunnel over it. Dropped, it leaves nothing behind.
#[derive(Debug)]
pub(super) struct PeerStage {
    pub(super) way: PeerWay,
    // In the order in which they must go.
    ends: PeerEnds,
    pub(super) hosts: TwoHosts,
    relay: Option<(Relay, EmulatedPath)>,
}

impl PeerStage {
    /// Sets it up and waits until packets come back through it; `seed` decides what is lost.
    pub(super) fn set(
        setting: &BenchSetup,
        programs: &PeerPrograms,
        path: ThinPath,
        way: PeerWay,
        seed: u64,
    ) -> Result<PeerStage, Error> {
        let (hosts, relay) = path.hosts(seed)?;
        let ends = match way.program() {
            None => bare_or_strait(programs, path, way, &hosts)?,
            Some(kind) => {
                let missing = || Error::NoTunnel { tunnel: way.name(), why: "it is not here".to_owned() };
                other(setting, programs.of(kind).ok_or_else(missing)?, kind, way, &hosts)?
            }
        };
        let stage = PeerStage { way, ends, hosts, relay };
        stage.wait()?;
        Ok(stage)
    }

    /// The second host's address this way.
    pub(super) fn address(&self) -> IpAddr {
        match &self.ends {
            PeerEnds::Bare => self.hosts.address_of_b().0,
            PeerEnds::Strait(tunnel) => tunnel.far_address(),
            PeerEnds::WireGuard { .. } | PeerEnds::Guests { .. } | PeerEnds::Programs { .. } => {
                inside(1).into()
            }
        }
    }

    /// The same with any port.
    pub(super) fn any_port(&self) -> SocketAddr {
        SocketAddr::new(self.address(), 0)
    }

    /// A socket at each host, the first one's connected to the second's, this way.
    pub(super) fn sockets(&self) -> Result<[UdpSocket; 2], Error> {
        let server = self.hosts.b.run("listen for datagrams", || UdpSocket::bind(self.any_port()))?;
        let target = server.local_addr().map_err(Error::doing("find the port that was chosen"))?;
        let client = self.hosts.a.run("open a socket for datagrams", || {
            let socket = UdpSocket::bind("0.0.0.0:0")?;
            socket.connect(target)?;
            Ok(socket)
        })?;
        Ok([client, server])
    }

    /// Bytes of all outer IP packets that have crossed the link so far, both ways.
    pub(super) fn wire(&self) -> Result<u64, Error> {
        if let Some((_, path)) = &self.relay {
            let counters = [FrameDirection::There, FrameDirection::Back].map(|way| path.counters(way));
            return Ok(counters.iter().map(|it| it.bytes - ETHERNET * it.carried).sum());
        }
        let LinkTraffic { there, back } = self.hosts.link.traffic()?;
        Ok(there.bytes + back.bytes - ETHERNET * (there.packets + back.packets))
    }

    /// Until a packet has come back: with most tunnels, the first one has them agree on keys.
    fn wait(&self) -> Result<(), Error> {
        let start = Instant::now();
        loop {
            let error = match Echoes::idle(&self.hosts, self.any_port(), 1).run() {
                Ok(_) => return Ok(()),
                Err(error) => error,
            };
            match error {
                error if !is_no_answer(&error) => return Err(error),
                _ if start.elapsed() > PATIENCE => return Err(self.silent()),
                _ => interrupt::pause(Duration::from_millis(50))?,
            }
        }
    }

    fn silent(&self) -> Error {
        let what = "no packet came back through it".to_owned();
        match &self.ends {
            PeerEnds::Guests { both, .. } => {
                let said = both.each_ref().map(Guest::last_words).join("\n");
                Error::NoTunnel { tunnel: self.way.name(), why: format!("{what}\n{said}") }
            }
            PeerEnds::Programs { processes, .. } if !processes.is_empty() => {
                let said: Vec<String> =
                    processes.iter().map(|it| it.failed(String::new()).to_string()).collect();
                Error::NoTunnel { tunnel: self.way.name(), why: format!("{what}\n{}", said.join("\n")) }
            }
            _ => Error::NoTunnel { tunnel: self.way.name(), why: what },
        }
    }
}

/// Whether a tunnel may only not have its peer yet: tinc says so to those who send, by ICMP.
fn is_no_answer(error: &Error) -> bool {
    use io::ErrorKind::{ConnectionRefused, HostUnreachable, NetworkUnreachable};
    match error {
        Error::Silent { .. } => true,
        Error::System { source, .. } => {
            matches!(source.kind(), ConnectionRefused | HostUnreachable | NetworkUnreachable)
        }
        _ => false,
    }
}

fn bare_or_strait(
    programs: &PeerPrograms,
    path: ThinPath,
    way: PeerWay,
    hosts: &TwoHosts,
) -> Result<PeerEnds, Error> {
    if way == PeerWay::Plain {
        return Ok(PeerEnds::Bare);
    }
    let node = format!("mtu = {MTU}");
    let sections = rule("auto", "");
    let (rates, link) = if way == PeerWay::Auto { ([None; 2], AUTO) } else { ([path.rate(); 2], "") };
    let extra = Extra { node: &node, link, sections: &sections, ..Extra::default() };
    let tunnel = TestTunnel::between(&programs.strait, hosts.clone(), rates, extra)?;
    Ok(PeerEnds::Strait(Box::new(tunnel)))
}

fn other(
    setting: &BenchSetup,
    program: &PeerProgram,
    kind: PeerProgramKind,
    way: PeerWay,
    hosts: &TwoHosts,
) -> Result<PeerEnds, Error> {
    let wireguard = |arguments: &[&str]| -> Result<PeerEnds, Error> {
        let _both = WireGuard::pair_with(&program.program, arguments, hosts, WIREGUARD_MTU)?;
        Ok(PeerEnds::WireGuard { _both })
    };
    let dir = Workdir::create()?;
    let mut sshd = None;
    let (mut processes, mtu) = match kind {
        PeerProgramKind::WireGuardGo => return wireguard(&["-f"]),
        PeerProgramKind::BoringTun => return wireguard(&["--foreground", "--disable-drop-privileges"]),
        PeerProgramKind::OpenVpn => {
            let compression =
                if way == PeerWay::OpenVpn { OpenVpnCompression::None } else { OpenVpnCompression::Lz4 };
            (openvpn::start(program, hosts, dir.path(), (way.name(), compression))?, openvpn::MTU)
        }
        PeerProgramKind::Tinc => {
            let compression =
                if way == PeerWay::TincZlib { TincCompression::Zlib } else { TincCompression::Lzo };
            (tinc::start(program, hosts, dir.path(), (way.name(), compression))?, tinc::MTU)
        }
        PeerProgramKind::Kernel => {
            let both = kernel::start(&program.program, hosts, dir.path(), way.name())?;
            return Ok(PeerEnds::Guests { both, _dir: dir });
        }
        PeerProgramKind::Ssh => {
            let flags: &[&str] = if way == PeerWay::Ssh { &[] } else { &["-C"] };
            let (processes, started) = ssh::start(setting, program, hosts, &dir, (way.name(), flags))?;
            sshd = Some(started);
            (processes, ssh::MTU)
        }
    };
    for (me, host) in [&hosts.a, &hosts.b].into_iter().enumerate() {
        // ssh has one process of ours, and sshd makes the interface of the other end.
        let at = me.min(processes.len() - 1);
        processes[at].wait_for_interface(host)?;
        raise(host, INTERFACE, inside(me), mtu)?;
    }
    Ok(PeerEnds::Programs { processes, _sshd: sshd, _dir: dir })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tunnel_without_its_peer_is_waited_for_and_one_without_a_device_is_not() {
        let system = |kind: io::ErrorKind| Error::doing("send an echo")(kind.into());
        assert!(is_no_answer(&system(io::ErrorKind::NetworkUnreachable)));
        assert!(is_no_answer(&Error::Silent { what: "a UDP echo", way: String::new() }));
        assert!(!is_no_answer(&system(io::ErrorKind::AddrNotAvailable)));
        assert!(!is_no_answer(&Error::Testbed(strait_testbed::Error::Interrupted(2))));
    }
}
