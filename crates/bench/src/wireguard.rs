//! wireguard-go between two hosts, to compare with: found or installed, configured over its own control socket.

mod find;

use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use aws_lc_rs::agreement::{PrivateKey, X25519};
use strait_testbed::{InterfaceState, LinkEnd, Namespace, ProcessCost, TwoHosts, interrupt};

use crate::error::Error;
pub(crate) use find::{WireguardSearch, find};

/// The interface, one of its own name on each host.
const INTERFACE: &str = "wg0";
/// Where each listens.
pub(crate) const PORT: u16 = 51821;
/// How long it may take to be there.
const START: Duration = Duration::from_secs(10);
/// How long an answer on the control socket may take.
const ANSWER: Duration = Duration::from_secs(5);

/// A running wireguard-go; killed when dropped.
#[derive(Debug)]
pub(crate) struct WireGuard {
    host: Namespace,
    child: Child,
}

/// A key pair in WireGuard's form.
struct WireguardKeys {
    private: [u8; 32],
    public: [u8; 32],
}

impl WireGuard {
    /// Starts one on each host and joins them by IPv4; inside they are what [`inside`] says.
    pub(crate) fn pair(program: &Path, hosts: &TwoHosts, mtu: u32) -> Result<[WireGuard; 2], Error> {
        WireGuard::pair_with(program, &["-f"], hosts, mtu)
    }

    /// The same of any implementation in user space that takes `arguments` before the name of the interface.
    pub(crate) fn pair_with(
        program: &Path,
        arguments: &[&str],
        hosts: &TwoHosts,
        mtu: u32,
    ) -> Result<[WireGuard; 2], Error> {
        let keys = [WireguardKeys::new()?, WireguardKeys::new()?];
        let outside = [hosts.address_of_a().0, hosts.address_of_b().0];
        let one = |host: &Namespace, me: usize| -> Result<WireGuard, Error> {
            let other = 1 - me;
            let running = WireGuard::start(program, arguments, host)?;
            let peer = (&keys[other].public, SocketAddr::new(outside[other], PORT), inside(other));
            running.set(&configuration(&keys[me], peer))?;
            raise(host, INTERFACE, inside(me), mtu)?;
            Ok(running)
        };
        Ok([one(&hosts.a, 0)?, one(&hosts.b, 1)?])
    }

    /// What its process has used.
    pub(crate) fn cost(&self) -> Result<ProcessCost, Error> {
        Ok(ProcessCost::of_process(self.child.id())?)
    }

    /// Has its host reach a network of 16 bits behind the other end, which is at `via` inside the tunnel.
    pub(crate) fn lead_to(&self, network: Ipv4Addr, via: Ipv4Addr) -> Result<(), Error> {
        Ok(self.host.add_route(network.into(), 16, via.into())?)
    }

    fn start(program: &Path, arguments: &[&str], host: &Namespace) -> Result<WireGuard, Error> {
        // Its control socket has a fixed place, so each gets a folder of its own there; with the process goes
        // the mount, and nothing is left behind.
        let child = host
            .command("unshare")
            .args(["--mount", "sh", "-c", "mount -t tmpfs none \"$0\" && exec \"$@\""])
            .arg(run_folder())
            .arg(program)
            .args(arguments)
            .arg(INTERFACE)
            .env("LOG_LEVEL", "error")
            // Without this it advises, in a large frame, to use the kernel instead.
            .env("WG_PROCESS_FOREGROUND", "1")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::inherit())
            .spawn()
            .map_err(Error::doing(format!("start {} on {}", program.display(), host.name())))?;
        let running = WireGuard { host: host.clone(), child };
        running.wait()
    }

    fn wait(mut self) -> Result<WireGuard, Error> {
        let start = Instant::now();
        while !self.socket().exists() {
            interrupt::check()?;
            let ended = self.child.try_wait().map_err(Error::doing("look after wireguard-go"))?;
            if ended.is_some() || start.elapsed() > START {
                let answer =
                    ended.map_or("no control socket in time".to_owned(), |status| status.to_string());
                return Err(Error::Refused { host: self.host.name().to_owned(), answer });
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(self)
    }

    /// Where its control socket is, seen through its own mounts.
    fn socket(&self) -> PathBuf {
        let root = PathBuf::from(format!("/proc/{}/root", self.child.id()));
        let folder = run_folder();
        let inside = folder.strip_prefix("/").unwrap_or(&folder);
        root.join(inside).join("wireguard").join(format!("{INTERFACE}.sock"))
    }

    /// One request of the configuration protocol (wireguard.com/xplatform).
    fn set(&self, configuration: &str) -> Result<(), Error> {
        let ask = || -> io::Result<String> {
            let mut socket = UnixStream::connect(self.socket())?;
            socket.set_read_timeout(Some(ANSWER))?;
            socket.write_all(configuration.as_bytes())?;
            socket.shutdown(std::net::Shutdown::Write)?;
            let mut answer = String::new();
            socket.read_to_string(&mut answer)?;
            Ok(answer)
        };
        let answer = ask().map_err(Error::doing("configure wireguard-go"))?;
        if answer.lines().any(|line| line == "errno=0") {
            return Ok(());
        }
        Err(Error::Refused { host: self.host.name().to_owned(), answer: answer.trim().to_owned() })
    }
}

impl Drop for WireGuard {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl WireguardKeys {
    fn new() -> Result<WireguardKeys, Error> {
        let make = || -> Result<WireguardKeys, aws_lc_rs::error::Unspecified> {
            let mut private = [0_u8; 32];
            aws_lc_rs::rand::fill(&mut private)?;
            // Clamped as RFC 7748 section 5 says.
            private[0] &= 248;
            private[31] = private[31] & 127 | 64;
            let key =
                PrivateKey::from_private_key(&X25519, &private).map_err(|_| aws_lc_rs::error::Unspecified)?;
            let public = key.compute_public_key()?;
            let public = public.as_ref().try_into().map_err(|_| aws_lc_rs::error::Unspecified)?;
            Ok(WireguardKeys { private, public })
        };
        make().map_err(|error| Error::doing("make a key for wireguard-go")(io::Error::other(error)))
    }
}

/// Gives a tunnel's interface an address and an MTU, and sets it up.
pub(crate) fn raise(host: &Namespace, interface: &str, address: Ipv4Addr, mtu: u32) -> Result<(), Error> {
    let end = LinkEnd {
        host: host.clone(),
        interface: interface.to_owned(),
        v4: address,
        v6: Ipv6Addr::UNSPECIFIED,
    };
    end.set_mtu(mtu)?;
    end.set_state(InterfaceState::Up)?;
    Ok(end.add_address(IpAddr::V4(address), 24)?)
}

/// The address inside the tunnel of host 0 or 1.
pub(crate) fn inside(host: usize) -> Ipv4Addr {
    if host == 0 { Ipv4Addr::new(10, 78, 0, 1) } else { Ipv4Addr::new(10, 78, 0, 2) }
}

fn configuration(me: &WireguardKeys, peer: (&[u8; 32], SocketAddr, Ipv4Addr)) -> String {
    let (public, endpoint, allowed) = peer;
    format!(
        "set=1\nprivate_key={}\nlisten_port={PORT}\nreplace_peers=true\npublic_key={}\nendpoint={endpoint}\n\
         replace_allowed_ips=true\nallowed_ip={allowed}/32\nallowed_ip=10.0.0.0/8\n\n",
        hex(&me.private),
        hex(public),
    )
}

/// Bytes as hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The folder of run-time files, where wireguard-go puts `wireguard/`; often a link to `/run`.
fn run_folder() -> PathBuf {
    std::fs::canonicalize("/var/run").unwrap_or_else(|_| PathBuf::from("/var/run"))
}

#[cfg(test)]
mod tests {
    use strait_testdata::skip::{Need, skip};

    use super::*;

    #[test]
    fn a_public_key_belongs_to_its_private_key() {
        let (ours, theirs) = (WireguardKeys::new().unwrap(), WireguardKeys::new().unwrap());
        let agree = |mine: &WireguardKeys, other: &WireguardKeys| {
            let key = PrivateKey::from_private_key(&X25519, &mine.private).unwrap();
            let peer = aws_lc_rs::agreement::UnparsedPublicKey::new(&X25519, other.public);
            aws_lc_rs::agreement::agree(&key, peer, (), |secret| Ok(secret.to_vec())).unwrap()
        };
        assert_eq!(agree(&ours, &theirs), agree(&theirs, &ours));
        assert_eq!((ours.private[0] & 7, ours.private[31] & 0xc0), (0, 0x40));
    }

    #[test]
    fn the_request_ends_with_an_empty_line() {
        let keys = WireguardKeys { private: [0xab; 32], public: [0; 32] };
        let text = configuration(&keys, (&[0xcd; 32], "192.0.2.1:9".parse().unwrap(), inside(1)));
        assert!(text.starts_with(&format!("set=1\nprivate_key={}\nlisten_port=51821\n", "ab".repeat(32))));
        assert!(text.contains(&format!("\npublic_key={}\nendpoint=192.0.2.1:9\n", "cd".repeat(32))));
        assert!(text.ends_with("\nallowed_ip=10.78.0.2/32\nallowed_ip=10.0.0.0/8\n\n"));
    }

    #[test]
    fn two_of_them_carry_datagrams() {
        let Some(WireguardSearch::Here { program, .. }) = find::look(Path::new("/nonexistent")) else {
            let _ = skip(Need::Wireguard, "no wireguard-go (scripts/setup test)");
            return;
        };
        if !strait_testbed::sandbox::allows_tests() {
            return;
        }
        let hosts = TwoHosts::direct(strait_testbed::LinkSpec::unshaped()).unwrap();
        let both = WireGuard::pair(&program, &hosts, 1420).unwrap();
        let address = SocketAddr::new(inside(1).into(), 0);
        let times = crate::echo::Echoes::idle(&hosts, address, 10).run().unwrap();
        assert!(!times.is_empty());
        assert!(both.iter().all(|one| one.cost().unwrap().resident > 0));
    }
}
