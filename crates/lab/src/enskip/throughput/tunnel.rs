//! The same file through a tunnel with manual keys: one daemon at each of two hosts, and a peer for each algorithm, each with inner
//! addresses of its own.

use std::fmt::Write;
use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use strait_crypto::{Cipher, Integrity};
use strait_testbed::{DaemonProcess, LinkSpec, Offloads, PORT, Transfer, TwoHosts, Workdir};

use super::memory::kbytes;
use crate::enskip::algorithm::{Combination, Crypt};
use crate::error::Error;
use crate::manual::{is_taken, key, written};
use crate::measure::RunValues;

/// Inner networks, one an algorithm, are 10.100.0.0/24 and those after it.
const FIRST_NETWORK: u8 = 100;
/// SPIs, one an algorithm and direction: of those that ESP in UDP has here.
const FIRST_SPI: u32 = 0x0400_5000;
/// How long a transfer may stand still.
const PATIENCE: Duration = Duration::from_secs(20);

/// What tunnels did.
#[derive(Clone, Debug)]
pub(super) struct TunnelRuns {
    /// kbytes/s by the clock on the wall, by the places of combinations; nothing for those that tunnels do not have.
    pub(super) rates: Vec<RunValues>,
    /// Whether the program that runs tunnels has the algorithms of the paper's time.
    pub(super) legacy: bool,
}

/// An algorithm of a tunnel.
#[derive(Clone, Copy, Debug)]
struct TunnelPeer {
    /// Its place among combinations.
    place: usize,
    combination: Combination,
}

impl TunnelPeer {
    /// Those that a tunnel has: no RC4, which would repeat its key stream, and no cipher alone, which protects nothing.
    fn all(legacy: bool) -> Vec<TunnelPeer> {
        let peers =
            Combination::all().enumerate().map(|(place, combination)| TunnelPeer { place, combination });
        peers
            .filter(|peer| match peer.combination.crypt {
                Crypt::Suite(_) => true,
                Crypt::Null | Crypt::Blocks(_) => legacy && peer.combination.md5,
                Crypt::Rc4 => false,
            })
            .collect()
    }

    /// The inner address of a host, 0 or 1.
    fn inside(self, host: usize) -> Ipv4Addr {
        Ipv4Addr::new(10, FIRST_NETWORK + self.place as u8, 0, host as u8 + 1)
    }

    /// Its `[[peer]]` at a host; keys are the same both ways and no secrets.
    fn section(self, host: usize, endpoint: IpAddr) -> String {
        let mut text = format!(
            "\n[[peer]]\nname = \"{}\"\nendpoint = \"{endpoint}:{PORT}\"\nallowed_ips = [\"{}/32\"]\n[peer.manual]\n",
            self.place,
            self.inside(1 - host),
        );
        let _ = writeln!(text, "counter_file = \"{}.counter\"", self.place);
        let legacy = !matches!(self.combination.crypt, Crypt::Suite(_));
        let _ = writeln!(text, "{}[peer.manual.esp]", if legacy { "danger_legacy = true\n" } else { "" });
        let spi = FIRST_SPI + 2 * self.place as u32;
        let [there, back] = [spi + host as u32, spi + 1 - host as u32];
        let _ = writeln!(text, "spi_in = {there:#010x}\nspi_out = {back:#010x}");
        let mut keys = |name: &str, len: usize| {
            for (way, byte) in [("in", host as u8), ("out", 1 - host as u8)] {
                let _ = writeln!(text, "{name}_{way} = \"{}\"", key(len, 0x40 + byte + self.place as u8));
            }
        };
        let mut cipher_of = Cipher::Null;
        match self.combination.crypt {
            Crypt::Suite(suite) => {
                keys("key", suite.key_material_len());
                let _ = writeln!(text, "suite = \"{suite}\"");
                return text;
            }
            Crypt::Blocks(cipher) => {
                keys("key", cipher.key_len());
                cipher_of = cipher;
            }
            Crypt::Null | Crypt::Rc4 => {}
        }
        let integrity = Integrity::HmacMd5_96;
        keys("integrity_key", integrity.key_len());
        let _ = writeln!(text, "cipher = \"{cipher_of}\"\nintegrity = \"{integrity}\"");
        text
    }
}

/// Both files' text for some peers.
fn configuration(peers: &[TunnelPeer], host: usize, endpoint: IpAddr) -> String {
    let addresses: Vec<String> = peers.iter().map(|peer| format!("\"{}/24\"", peer.inside(host))).collect();
    let sections: String = peers.iter().map(|peer| peer.section(host, endpoint)).collect();
    format!("[node]\nlisten = {PORT}\naddress = [{}]\n{sections}", addresses.join(", "))
}

/// Sends the file through a tunnel of two `program`s for so long an algorithm; the first row is the link without one.
pub(super) fn measured(program: &Path, file: &Arc<[u8]>, span: Duration) -> Result<TunnelRuns, Error> {
    let hosts = TwoHosts::direct(LinkSpec { offloads: Offloads::Off, ..LinkSpec::unshaped() })?;
    let folder = Workdir::create()?;
    let legacy = has_legacy(program, &hosts, folder.path())?;
    let peers = TunnelPeer::all(legacy);
    let mut rates = vec![RunValues::default(); Combination::COUNT];
    // Before daemons are there: they measure ciphers as they start.
    rates[0] = sent(&hosts, hosts.address_of_b().0, file, span)?;
    let _daemons = [0, 1].map(|host| started(program, &hosts, host, &peers, folder.path()));
    let _daemons = match _daemons {
        [Ok(a), Ok(b)] => [a, b],
        [Err(error), _] | [_, Err(error)] => return Err(error),
    };
    for peer in &peers {
        rates[peer.place] = sent(&hosts, peer.inside(1).into(), file, span)?;
    }
    Ok(TunnelRuns { rates, legacy })
}

/// Whether the program takes the algorithms of the paper's time.
fn has_legacy(program: &Path, hosts: &TwoHosts, folder: &Path) -> Result<bool, Error> {
    let path = written(folder, "check", &configuration(&TunnelPeer::all(true), 0, hosts.address_of_b().0))?;
    is_taken(program, &hosts.a, &path)
}

fn started(
    program: &Path,
    hosts: &TwoHosts,
    host: usize,
    peers: &[TunnelPeer],
    folder: &Path,
) -> Result<DaemonProcess, Error> {
    let (on, other) =
        if host == 0 { (&hosts.a, hosts.address_of_b()) } else { (&hosts.b, hosts.address_of_a()) };
    let path = written(folder, on.name(), &configuration(peers, host, other.0))?;
    Ok(DaemonProcess::start(on, program, &path, &folder.join(on.name()).join("run"))?)
}

/// kbytes/s of transfers, one after the other, after one that does not count.
pub(in crate::enskip) fn sent(
    hosts: &TwoHosts,
    address: IpAddr,
    file: &Arc<[u8]>,
    span: Duration,
) -> Result<RunValues, Error> {
    let (from, to) = (&hosts.a, &hosts.b);
    let transfer = Transfer { from, to, address, name: "a file", content: file, patience: PATIENCE };
    transfer.run(&mut |_| ())?;
    let (mut rates, start) = (RunValues::default(), Instant::now());
    loop {
        rates.push(kbytes(file.len(), transfer.run(&mut |_| ())?));
        if start.elapsed() >= span {
            return Ok(rates);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn peers_are_those_that_a_tunnel_protects() {
        let names = |legacy| -> Vec<String> {
            TunnelPeer::all(legacy).iter().map(|peer| peer.combination.to_string()).collect()
        };
        assert_eq!(names(false), ["aes-128-gcm", "chacha20-poly1305"]);
        let all = ["none, MD5", "DES, MD5", "2DES, MD5", "IDEA, MD5", "3DES, MD5", "RC2, MD5", "SAFER, MD5"];
        assert_eq!(names(true), [&all[..], &["aes-128-gcm", "chacha20-poly1305"]].concat());
    }

    #[test]
    fn what_is_in_at_one_end_is_out_at_the_other() {
        for peer in TunnelPeer::all(true) {
            let [a, b] = [0, 1].map(|host| peer.section(host, Ipv4Addr::LOCALHOST.into()));
            let value = |text: &str, key: &str| {
                text.lines().find_map(|line| line.strip_prefix(key)).map(str::to_owned)
            };
            for key in ["spi", "key", "integrity_key"] {
                let [into, out] = ["in", "out"].map(|way| format!("{key}_{way} = "));
                assert_eq!(value(&a, &into), value(&b, &out), "{a}\n{b}");
                assert_eq!(value(&a, &out), value(&b, &into), "{a}\n{b}");
            }
            assert_ne!(value(&a, "spi_in = "), value(&a, "spi_out = "));
        }
    }
}
