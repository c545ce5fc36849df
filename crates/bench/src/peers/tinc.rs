//! tinc 1.0 between two hosts: its router mode over UDP, with RSA keys of its own.

use std::fs;
use std::net::IpAddr;
use std::path::Path;

use strait_testbed::TwoHosts;

use super::process::{INTERFACE, PeerProcess, run, write_private};
use super::programs::PeerProgram;
use crate::error::Error;
use crate::wireguard::inside;

/// What the nodes are called.
const NAMES: [&str; 2] = ["first", "second"];
/// Inner MTU: the outer packet has 20 + 8 (IP, UDP) + 4 (number) + 14 (Ethernet) + 4 (MAC) bytes more, up to 16 of padding, and what
/// a compressor adds to data that does not shrink, 11 for zlib and a 255th of it with 16 more for LZO.
pub(super) const MTU: u32 = 1400;

/// A compressor, as tinc numbers its levels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TincCompression {
    /// zlib's own default level.
    Zlib = 6,
    /// The fast one of two.
    Lzo = 10,
}

/// Starts one on each host with its files in the folder `dir`.
pub(super) fn start(
    program: &PeerProgram,
    hosts: &TwoHosts,
    dir: &Path,
    (tunnel, compression): (&'static str, TincCompression),
) -> Result<Vec<PeerProcess>, Error> {
    let outside = [hosts.address_of_a().0, hosts.address_of_b().0];
    for me in [0, 1] {
        let folder = dir.join(NAMES[me]);
        fs::create_dir_all(folder.join("hosts")).map_err(Error::doing("make a folder for tinc"))?;
        write_private(&folder.join("tinc.conf"), &configuration(me))?;
        let own = folder.join("hosts").join(NAMES[me]);
        write_private(&own, &host(me, outside[me], compression))?;
        // It writes its private key with mode 0600, and adds the public one to its own host file.
        let mut make = program.command(&hosts.a);
        run(tunnel, "make a key for tinc", make.arg("-c").arg(&folder).arg("-K2048"))?;
    }
    for (me, other) in [(0, 1), (1, 0)] {
        let file = |folder: usize| dir.join(NAMES[folder]).join("hosts").join(NAMES[other]);
        fs::copy(file(other), file(me)).map_err(Error::doing("exchange the keys of tinc"))?;
    }
    let one = |me: usize| {
        let at = if me == 0 { &hosts.a } else { &hosts.b };
        let folder = dir.join(NAMES[me]);
        let mut command = program.command(at);
        command.arg("-c").arg(&folder).arg("-D").arg(format!("--pidfile={}", folder.join("pid").display()));
        PeerProcess::start(tunnel, command, folder.join("log"))
    };
    Ok(vec![one(0)?, one(1)?])
}

/// The node's own settings; the first connects to the second.
fn configuration(me: usize) -> String {
    let connect = if me == 0 { format!("ConnectTo = {}\n", NAMES[1]) } else { String::new() };
    format!(
        "Name = {}\n{connect}Mode = router\nDevice = /dev/net/tun\nInterface = {INTERFACE}\nAddressFamily = ipv4\n\
         ProcessPriority = normal\n",
        NAMES[me]
    )
}

/// What both know of a node.
fn host(me: usize, address: IpAddr, compression: TincCompression) -> String {
    format!(
        "Address = {address}\nSubnet = {}/32\nCipher = aes-128-cbc\nDigest = sha256\nCompression = {}\nTCPOnly = no\n\
         ClampMSS = yes\nPMTUDiscovery = no\n",
        inside(me),
        compression as u8
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_node_connects_and_both_compress() {
        assert!(configuration(0).contains("\nConnectTo = second\n"));
        assert!(!configuration(1).contains("ConnectTo"));
        let text = host(1, "198.18.0.2".parse().unwrap(), TincCompression::Lzo);
        assert!(text.starts_with("Address = 198.18.0.2\nSubnet = 10.78.0.2/32\n"), "{text}");
        assert!(text.contains("\nCompression = 10\nTCPOnly = no\n"), "{text}");
        assert!(
            host(0, "198.18.0.1".parse().unwrap(), TincCompression::Zlib).contains("\nCompression = 6\n")
        );
    }

    #[test]
    fn no_outer_packet_is_larger_than_the_path_takes() {
        let frame = MTU + 4 + 14;
        for growth in [11, frame / 255 + 16] {
            let sealed = (frame + growth) / 16 * 16 + 16;
            assert!(sealed + 4 + 20 + 8 <= 1500, "{sealed}");
        }
    }
}
