//! What crosses a link, written to a file by tcpdump while it lives.

use std::io::{BufRead, BufReader};
use std::net::UdpSocket;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use strait_testbed::{PORT, TwoHosts};

use crate::pair::eventually;

/// Sent last: what is in the file before it is all that crossed before. Neither ESP nor anything else of the tunnel's.
const LAST: &[u8] = b"\0the end of the capture";

/// A running capture of the datagrams of the tunnel.
pub(crate) struct Capture {
    tcpdump: Child,
    file: PathBuf,
    hosts: TwoHosts,
}

impl Capture {
    /// Captures what crosses the link of `hosts`, from now on, into `file`.
    pub(crate) fn start(hosts: &TwoHosts, file: &Path) -> Capture {
        let end = &hosts.link.b;
        let mut tcpdump = end
            .host
            .command("tcpdump")
            // As root all the way, or it could not write into a folder that only its owner may enter.
            .args(["-i", &end.interface, "-U", "--immediate-mode", "-Z", "root", "-w"])
            .arg(file)
            .args(["udp port 51820"])
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
        Capture { tcpdump, file: file.to_owned(), hosts: hosts.clone() }
    }

    /// Ends the capture; everything that crossed before is in the file.
    pub(crate) fn stop(mut self) -> PathBuf {
        let target = (self.hosts.address_of_b().0, PORT);
        self.hosts.a.run("mark the end", || UdpSocket::bind("0.0.0.0:0")?.send_to(LAST, target)).unwrap();
        eventually("the end is in the file", || {
            std::fs::read(&self.file).unwrap().windows(LAST.len()).any(|window| window == LAST)
        });
        let pid = self.tcpdump.id().to_string();
        assert!(Command::new("kill").args(["-INT", &pid]).status().unwrap().success());
        assert!(self.tcpdump.wait().unwrap().success());
        self.file.clone()
    }
}

impl Drop for Capture {
    fn drop(&mut self) {
        let _ = self.tcpdump.kill();
        let _ = self.tcpdump.wait();
    }
}
