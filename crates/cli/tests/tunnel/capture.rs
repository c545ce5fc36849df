//! What crosses a link, written to a file by tcpdump while it lives.

use std::io::{BufRead, BufReader};
use std::net::{SocketAddr, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use strait_testbed::{Namespace, PORT, TwoHosts};

use crate::pair::{Family, Pair, eventually};

/// Sent last: what is in the file before it is all that crossed before. Neither ESP nor anything else of the tunnel's.
const LAST: &[u8] = b"\0the end of the capture";

/// Bytes of a capture's head and of a packet's (pcap, draft-ietf-opsawg-pcap sections 4 and 5).
const FILE_HEAD: usize = 24;
const RECORD_HEAD: usize = 16;

/// A running capture.
pub(crate) struct Capture {
    tcpdump: Child,
    file: PathBuf,
    /// Who sends the last datagram, and where to.
    marker: (Namespace, SocketAddr),
}

impl Capture {
    /// Captures the datagrams of the tunnel that cross the link of `hosts`, from now on, into `file`.
    pub(crate) fn start(hosts: &TwoHosts, file: &Path) -> Capture {
        Capture::of(hosts, "udp port 51820", file)
    }

    /// The same with ESP directly behind IP.
    pub(crate) fn with_esp(hosts: &TwoHosts, file: &Path) -> Capture {
        Capture::of(hosts, "udp port 51820 or ip proto 50", file)
    }

    fn of(hosts: &TwoHosts, filter: &str, file: &Path) -> Capture {
        let end = &hosts.link.b;
        let marker = (hosts.a.clone(), SocketAddr::new(hosts.address_of_b().0, PORT));
        Capture::on((&end.host, &end.interface), filter, file, marker)
    }

    /// Captures what a site sends into the tunnel, of IPv4 and of what `filter` names, on the tunnel's own interface.
    pub(crate) fn inside(pair: &Pair, which: usize, filter: &str, file: &Path) -> Capture {
        let host = &pair.sites[which].host;
        let marker = (host.clone(), SocketAddr::new(pair.inside(1 - which, Family::V4), PORT));
        let filter = format!("src host {} and ({filter} or udp port {PORT})", pair.inside(which, Family::V4));
        Capture::on((host, "strait0"), &filter, file, marker)
    }

    /// Captures what a site gets out of the tunnel, on the tunnel's own interface.
    pub(crate) fn delivered(pair: &Pair, which: usize, file: &Path) -> Capture {
        let host = &pair.sites[which].host;
        let [v4, v6] = [Family::V4, Family::V6].map(|family| pair.inside(which, family));
        let marker = (pair.sites[1 - which].host.clone(), SocketAddr::new(v4, PORT));
        Capture::on((host, "strait0"), &format!("dst host {v4} or dst host {v6}"), file, marker)
    }

    fn on(
        (host, interface): (&Namespace, &str),
        filter: &str,
        file: &Path,
        marker: (Namespace, SocketAddr),
    ) -> Capture {
        let mut tcpdump = host
            .command("tcpdump")
            // As root all the way, or it could not write into a folder that only its owner may enter.
            .args(["-i", interface, "-U", "--immediate-mode", "-B", "16384", "-Z", "root", "-w"])
            .arg(file)
            .args([filter])
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("tcpdump: {error}; install it (scripts/setup test)"));
        let mut said = BufReader::new(tcpdump.stderr.take().unwrap());
        let mut line = String::new();
        while !line.contains("listening on") {
            line.clear();
            assert!(said.read_line(&mut line).unwrap() > 0, "tcpdump ended before it began");
        }
        // Whatever it says later must not stop it.
        std::thread::spawn(move || std::io::copy(&mut said, &mut std::io::sink()));
        Capture { tcpdump, file: file.to_owned(), marker }
    }

    /// Ends the capture; everything that crossed before is in the file.
    pub(crate) fn stop(mut self) -> PathBuf {
        let (host, target) = &self.marker;
        host.run("mark the end", || UdpSocket::bind("0.0.0.0:0")?.send_to(LAST, target)).unwrap();
        eventually("the end is in the file", || {
            std::fs::read(&self.file).unwrap().windows(LAST.len()).any(|window| window == LAST)
        });
        let pid = self.tcpdump.id().to_string();
        assert!(Command::new("kill").args(["-INT", &pid]).status().unwrap().success());
        assert!(self.tcpdump.wait().unwrap().success());
        self.file.clone()
    }
}

/// The packets of a capture of IP packets without a link layer, as a TUN device has it.
pub(crate) fn packets(capture: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = &capture[FILE_HEAD..];
    std::iter::from_fn(move || {
        let (head, behind) = rest.split_at_checked(RECORD_HEAD)?;
        let len = u32::from_ne_bytes(head[8..12].try_into().unwrap()) as usize;
        // The last one may be cut off.
        let (packet, next) = behind.split_at_checked(len)?;
        rest = next;
        Some(packet)
    })
}

impl Drop for Capture {
    fn drop(&mut self) {
        let _ = self.tcpdump.kill();
        let _ = self.tcpdump.wait();
    }
}
