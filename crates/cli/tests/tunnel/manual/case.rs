//! Two sites whose keys are in their files, described once and written down for either.

use std::fmt::Write as _;
use std::fs;
use std::net::{IpAddr, UdpSocket};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use strait_testbed::{Transfer, TwoHosts};

use crate::pair::{PATIENCE, Pair, echoes, eventually};

/// What protects the traffic of two sites, and how.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Case {
    pub(crate) transport: bool,
    /// Directly behind IP, not in UDP.
    pub(crate) bare: bool,
    /// Outside.
    pub(crate) v6: bool,
    pub(crate) esp: Option<Esp>,
    pub(crate) ah: Option<&'static str>,
    /// More lines of `[peer.manual]`.
    pub(crate) manual: &'static str,
    /// More lines of `[[peer]]`.
    pub(crate) peer: &'static str,
    /// More sections.
    pub(crate) sections: &'static str,
}

/// What ESP protects with, each with the bytes of its key.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Esp {
    Suite(&'static str, usize),
    Separate { cipher: (&'static str, usize), integrity: Option<(&'static str, usize)> },
}

pub(crate) const GCM: Esp = Esp::Suite("aes-128-gcm", 20);
pub(crate) const CBC: Esp =
    Esp::Separate { cipher: ("aes-128-cbc", 16), integrity: Some(("hmac-sha-256-128", 32)) };

/// AES-GCM in UDP, tunnel mode, over IPv4.
pub(crate) const PLAIN: Case = Case {
    transport: false,
    bare: false,
    v6: false,
    esp: Some(GCM),
    ah: None,
    manual: "",
    peer: "",
    sections: "",
};

impl Case {
    /// A site's configuration.
    pub(crate) fn configuration(&self, pair: &Pair, which: usize) -> String {
        let other = 1 - which;
        let mut text = "[node]\nlisten = 4500\n".to_owned();
        let (site, peer) = (&pair.sites[which], &pair.sites[other]);
        if !self.transport {
            let _ = writeln!(text, "address = [\"{}/24\", \"{}/64\"]", site.inside(), site.inside_v6());
        }
        let (local, remote) = (self.outside(&pair.hosts, which), self.outside(&pair.hosts, other));
        let endpoint = match (self.bare, remote) {
            (true, _) => remote.to_string(),
            (false, IpAddr::V4(_)) => format!("{remote}:4500"),
            (false, IpAddr::V6(_)) => format!("[{remote}]:4500"),
        };
        let _ =
            writeln!(text, "[[peer]]\nname = \"{}\"\nendpoint = \"{endpoint}\"\n{}", peer.name(), self.peer);
        if !self.transport {
            let _ = writeln!(text, "allowed_ips = [\"{}/32\", \"{}/128\"]", peer.inside(), peer.inside_v6());
        }
        let mode = if self.transport { "transport" } else { "tunnel" };
        let carrier = if self.bare { "ip" } else { "udp" };
        let _ = writeln!(text, "[peer.manual]\nmode = \"{mode}\"\ncarrier = \"{carrier}\"\n{}", self.manual);
        if self.transport || self.bare {
            let _ = writeln!(text, "local = \"{local}\"");
        }
        if self.esp.is_some() || self.ah.is_some() {
            text.push_str("counter_file = \"manual.counter\"\n");
        }
        self.protocols(which, &mut text);
        text.push_str(self.sections);
        text
    }

    fn protocols(&self, which: usize, text: &mut String) {
        if let Some(esp) = self.esp {
            let _ = writeln!(text, "[peer.manual.esp]\n{}", spis(which, 0x0400_1000));
            match esp {
                Esp::Suite(suite, len) => {
                    let _ = writeln!(text, "suite = \"{suite}\"\n{}", keys("", which, len, 1));
                }
                Esp::Separate { cipher: (cipher, len), integrity } => {
                    let _ = writeln!(text, "cipher = \"{cipher}\"\n{}", keys("", which, len, 1));
                    if let Some((integrity, len)) = integrity {
                        let keys = keys("integrity_", which, len, 3);
                        let _ = writeln!(text, "integrity = \"{integrity}\"\n{keys}");
                    }
                }
            }
        }
        if let Some(integrity) = self.ah {
            let _ =
                writeln!(text, "[peer.manual.ah]\nintegrity = \"{integrity}\"\n{}", spis(which, 0x0400_2000));
            text.push_str(&keys("", which, 32, 5));
        }
    }

    /// A site's address outside.
    pub(crate) fn outside(&self, hosts: &TwoHosts, which: usize) -> IpAddr {
        let (v4, v6) = if which == 0 { hosts.address_of_a() } else { hosts.address_of_b() };
        if self.v6 { v6 } else { v4 }
    }

    /// Writes a site's configuration, for its owner only.
    pub(crate) fn write(&self, pair: &Pair, which: usize) -> PathBuf {
        let path = pair.sites[which].folder().join("manual.toml");
        fs::write(&path, self.configuration(pair, which)).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        path
    }

    /// Starts a site's daemon.
    pub(crate) fn start(&self, pair: &mut Pair, which: usize) {
        let path = self.write(pair, which);
        pair.daemons[which] = Some(pair.sites[which].start(&path, "run").unwrap());
    }

    /// Both sites with their daemons.
    pub(crate) fn up(&self, hosts: TwoHosts) -> Pair {
        let mut pair = Pair::idle(hosts);
        self.start(&mut pair, 0);
        self.start(&mut pair, 1);
        pair
    }

    /// The addresses of a site that the traffic is between.
    pub(crate) fn protected(&self, pair: &Pair, which: usize) -> Vec<IpAddr> {
        match self.transport {
            true => vec![self.outside(&pair.hosts, which)],
            false => vec![pair.sites[which].inside().into(), pair.sites[which].inside_v6().into()],
        }
    }

    /// Echoes, datagrams and TCP, both ways.
    pub(crate) fn exchange(&self, pair: &Pair, bytes: usize) {
        for to in [1, 0] {
            for (from, address) in self.protected(pair, 1 - to).into_iter().zip(self.protected(pair, to)) {
                self.ping(pair, to, address, 2, &["-s", "56"]);
                self.datagrams(pair, to, [from, address]);
                self.tcp(pair, to, address, bytes);
            }
        }
    }

    /// Datagrams of several sizes to a site, none of which is lost but the first that is too large: it tells the host
    /// what fits.
    fn datagrams(&self, pair: &Pair, to: usize, [from, address]: [IpAddr; 2]) {
        let bind = |which: usize, address: IpAddr| {
            pair.sites[which].host.run("bind", || UdpSocket::bind((address, 0))).unwrap()
        };
        let (sender, receiver) = (bind(1 - to, from), bind(to, address));
        let mut buffer = vec![0; 4000];
        // Transport mode has no fragments inside (RFC 4301 section 7), and UDP none outside.
        let largest = if self.transport && !self.bare { 1250 } else { 3000 };
        for (size, tries) in [(0, 1), (1, 1), (30, 1), (1000, 1), (1250, 1), (largest, 3)] {
            let sent: Vec<u8> = (0..size).map(|at| u8::try_from(at % 256).unwrap()).collect();
            receiver.set_read_timeout(Some(Duration::from_secs(if tries == 1 { 5 } else { 1 }))).unwrap();
            let mut passes = || {
                let _ = sender.send_to(&sent, receiver.local_addr().unwrap());
                receiver.recv(&mut buffer).is_ok_and(|len| buffer[..len] == sent)
            };
            let passed = (0..tries).any(|_| passes());
            assert!(passed, "{self:?}: {size} bytes to {address}\n{}", self.evidence(pair));
        }
    }

    /// Waits until both hosts have their IPv6 addresses: a kernel gives the route to one that it has just taken to a thread of its own, and
    /// until then drops what comes for it, answers too.
    fn wait_for_addresses(&self, pair: &Pair) {
        for (which, host) in [&pair.hosts.a, &pair.hosts.b].into_iter().enumerate() {
            for address in self.protected(pair, which).into_iter().filter(IpAddr::is_ipv6) {
                eventually("the address is the host's", || {
                    let found = host.command("ip").args(["route", "get", &address.to_string()]).output();
                    found.unwrap().stdout.starts_with(b"local ")
                });
            }
        }
    }

    /// Echo requests to a site, all of which are answered.
    pub(crate) fn ping(&self, pair: &Pair, to: usize, address: IpAddr, count: usize, arguments: &[&str]) {
        let from = [&pair.hosts.a, &pair.hosts.b][1 - to];
        self.wait_for_addresses(pair);
        let (answered, said) = echoes(from, count, &[arguments, &[&address.to_string()]].concat());
        assert_eq!(answered, count, "{self:?} to {address}: {said}\n{}", self.evidence(pair));
    }

    pub(crate) fn tcp(&self, pair: &Pair, to: usize, address: IpAddr, bytes: usize) {
        let lines = (0..).flat_map(|line| format!("line {line} of many that are much alike\n").into_bytes());
        let content: Arc<[u8]> = lines.take(bytes).collect();
        let hosts = [&pair.hosts.a, &pair.hosts.b];
        let (from, to) = (hosts[1 - to], hosts[to]);
        let transfer = Transfer { from, to, address, name: "test", content: &content, patience: PATIENCE };
        let done = transfer.run(&mut |_| {});
        done.unwrap_or_else(|error| panic!("{self:?} to {address}: {error}\n{}", self.evidence(pair)));
    }

    /// What both daemons know.
    pub(crate) fn evidence(&self, pair: &Pair) -> String {
        let mut text = pair.logs();
        for daemon in pair.daemons.iter().flatten() {
            let shown = daemon.command(&["show"]).output().unwrap();
            text.push_str(&String::from_utf8_lossy(&shown.stdout));
        }
        text
    }
}

/// The numbers of one protocol; those of site A are the smaller ones.
fn spis(which: usize, base: u32) -> String {
    let (own, other) = if which == 0 { (base, base + 1) } else { (base + 1, base) };
    format!("spi_in = {own:#010x}\nspi_out = {other:#010x}")
}

/// Keys of `len` bytes for both ways; no two are alike.
fn keys(prefix: &str, which: usize, len: usize, seed: u8) -> String {
    if len == 0 {
        return String::new();
    }
    let key = |seed: u8| (0..len).map(|at| format!("{:02x}", at as u8 ^ (seed * 17))).collect::<String>();
    let (to_a, to_b) = (key(seed), key(seed + 1));
    let (inbound, outbound) = if which == 0 { (to_a, to_b) } else { (to_b, to_a) };
    format!("{prefix}key_in = \"0x{inbound}\"\n{prefix}key_out = \"0x{outbound}\"\n")
}
