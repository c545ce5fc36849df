//! What is advised is what a tunnel does: the same packets through two real daemons.

use std::fs::{self, File};
use std::io::{self, IoSlice};
use std::net::Ipv4Addr;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;
use strait_advise::{Mender, Reader, Scissors};
use strait_node::tun::Tun;
use strait_testbed::{Daemon, Extra, LinkSpec, Namespace, Site, TwoHosts, Workdir, sandbox};
use strait_wire::ip::{self, Packet, V4_HEADER_LEN};
use strait_wire::vnet;

use crate::write::pcap;

/// Longest packet of the captures, and of the hosts on both sides.
const MTU: usize = 1_500;
/// What ESP in UDP puts around it at most, as advice has it.
const PATH_MTU: usize = MTU + 57;
/// How much is fed at once: less than the device's queue of 500 packets takes, and the tunnel's of 192 KiB.
const FED_PACKETS: usize = 100;
const FED_BYTES: u64 = 32 * 1024;
/// How much may wait in the tunnel before more is fed, as advice has it.
const WAITING: u64 = 128 * 1024;
/// How long anything may take: hosts share processors with other tests.
const PATIENCE: Duration = Duration::from_secs(60);

/// The IPv4 packets of a capture, cut to what hosts send, and all from one side to the other: whoever sends is in
/// 10.98.0.0/16, and to whom in 10.99.0.0/16.
fn crossing(capture: &Path) -> Vec<Vec<u8>> {
    let mut reader = Reader::open(File::open(capture).unwrap()).unwrap();
    let (mut mender, mut scissors) = (Mender::default(), Scissors::default());
    let mut hosts: Vec<[u8; 4]> = Vec::new();
    let mut packets = Vec::new();
    while let Some(frame) = reader.frame().unwrap() {
        let Some((kept, len)) = frame.ip().unwrap() else { continue };
        let Some(mended) = mender.mend(kept, len).filter(|_| ip::version_of(kept) == Some(ip::Version::V4))
        else {
            continue;
        };
        let Ok(packet) = Packet::parse(mended.bytes) else { continue };
        let mut number = |at: usize| {
            let host = packet.bytes()[at..at + 4].try_into().unwrap();
            let known = hosts.iter().position(|it| *it == host);
            u8::try_from(known.unwrap_or_else(|| {
                hosts.push(host);
                hosts.len() - 1
            }))
            .unwrap()
        };
        let (src, dst) = (number(12), number(16));
        scissors.cut(&packet, MTU, |piece| packets.push(readdressed(piece, src, dst))).unwrap();
    }
    packets
}

fn readdressed(packet: &[u8], src: u8, dst: u8) -> Vec<u8> {
    let mut packet = packet.to_vec();
    // No packet dies on its way through the near host.
    packet[8] = 64;
    packet[12..16].copy_from_slice(&Ipv4Addr::new(10, 98, 0, src + 1).octets());
    packet[16..20].copy_from_slice(&Ipv4Addr::new(10, 99, 0, dst + 1).octets());
    let header_len = usize::from(packet[0] & 0x0f) * 4;
    assert!(header_len >= V4_HEADER_LEN);
    let sum = ip::v4_header_checksum(&packet[..header_len]).to_be_bytes();
    packet[10..12].copy_from_slice(&sum);
    packet
}

/// Two sites whose hosts have those addresses, joined by a tunnel of 512 kbit/s.
struct Joined {
    near: Daemon,
    _far: Daemon,
    feed: Tun,
}

impl Joined {
    fn new(dir: &Workdir, rule: &str) -> Joined {
        let hosts = TwoHosts::direct(LinkSpec { mtu: 1_600, ..LinkSpec::unshaped() }).unwrap();
        let sites = Site::pair(Path::new(env!("CARGO_BIN_EXE_strait")), &hosts, dir.path()).unwrap();
        let start = |at: usize, sections: &str| {
            let (site, peer) = (&sites[at], &sites[1 - at]);
            let (mtu, path) = (format!("mtu = {MTU}"), format!("mtu = {PATH_MTU}"));
            let extra = Extra { node: &mtu, peer: &path, sections };
            let own = format!("\"{}/32\"", peer.inside());
            let wider = format!("{own}, \"10.{}.0.0/16\"", 99 - at);
            let text = site.configuration(&[peer], extra).replace(&own, &wider);
            let config = site.folder().join("strait.toml");
            fs::write(&config, text).unwrap();
            site.start(&config, "run").unwrap()
        };
        let near = start(0, &format!("[link]\nup = \"512kbit\"\ndrop = \"full\"\n{rule}"));
        let far = start(1, "");
        near.wait_for_session("site-b", PATIENCE).unwrap();
        far.wait_for_session("site-a", PATIENCE).unwrap();
        Joined { feed: feed(&hosts.a), near, _far: far }
    }

    /// What the near side has sent.
    fn sent(&self, figure: &str) -> u64 {
        self.near.show().unwrap()["peers"][0]["sent"][figure].as_u64().unwrap()
    }

    /// Sends packets as fast as the tunnel takes them without dropping any; gives bytes on the wire.
    fn carry(&self, packets: &[Vec<u8>]) -> u64 {
        let (mut fed, mut burst, mut since) = (0, 0, 0);
        for packet in packets {
            self.feed.writev(&[IoSlice::new(&[0; vnet::LEN]), IoSlice::new(packet)]).unwrap();
            (fed, burst, since) = (fed + packet.len() as u64, burst + packet.len() as u64, since + 1);
            if burst >= FED_BYTES || since >= FED_PACKETS {
                self.wait("sent", || fed <= self.sent("bytes") + WAITING - FED_BYTES);
                (burst, since) = (0, 0);
            }
        }
        self.wait("all sent", || self.sent("packets") >= packets.len() as u64);
        // What is sealed still waits for the link.
        let mut before = 0;
        self.wait("all gone", || {
            let now = self.sent("wire_bytes");
            std::mem::replace(&mut before, now) == now && now > 0
        });
        assert_eq!(self.sent("packets"), packets.len() as u64);
        assert_eq!(self.sent("bytes"), fed);
        before
    }

    fn wait(&self, what: &str, mut done: impl FnMut() -> bool) {
        let end = Instant::now() + PATIENCE;
        while !done() {
            assert!(Instant::now() < end, "not {what} in time: {:#}", self.near.show().unwrap());
            thread::sleep(Duration::from_millis(20));
        }
    }
}

/// A device of the near host's, whose packets it forwards.
fn feed(host: &Namespace) -> Tun {
    let tun = host.run("make a device", || Tun::open("feed0").map_err(io::Error::other)).unwrap();
    let up = host.command("ip").args(["link", "set", "feed0", "up"]).status().unwrap();
    assert!(up.success());
    host.run("forward packets from anywhere", || {
        fs::write("/proc/sys/net/ipv4/ip_forward", "1")?;
        ["all", "feed0"]
            .iter()
            .try_for_each(|name| fs::write(format!("/proc/sys/net/ipv4/conf/{name}/rp_filter"), "0"))
    })
    .unwrap();
    tun
}

/// What is advised of these packets over 512 kbit/s, on one of the ways.
fn advised(dir: &Workdir, packets: &[Vec<u8>], way: &str) -> u64 {
    let path = dir.path().join("crossing.pcap");
    // All at once: as fast as the tunnel takes them.
    let mut bytes = pcap(packets);
    let mut at = 24;
    for packet in packets {
        bytes[at..at + 8].fill(0);
        at += 16 + packet.len();
    }
    fs::write(&path, bytes).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_strait"));
    command.args(["advise", "--link", "512kbit", "--json"]).arg(&path).stdin(Stdio::null());
    let report: Value = serde_json::from_slice(&command.output().unwrap().stdout).unwrap();
    let sent = report["whole"]["sent"].as_array().unwrap();
    assert_eq!(report["whole"]["packets"], packets.len());
    sent.iter().find(|it| it["way"] == way).unwrap()["wire_bytes"].as_u64().unwrap()
}

/// Both figures, of which the first must be within 5 % of the second.
fn compare(capture: &str, way: &str, rule: &str) {
    if !sandbox::allows_tests() {
        return;
    }
    let Some(capture) = strait_testdata::find(capture) else { return };
    let dir = Workdir::create().unwrap();
    let packets = crossing(&capture);
    let advised = advised(&dir, &packets, way);
    let carried = Joined::new(&dir, rule).carry(&packets);
    println!("{}, {way}: {advised} advised, {carried} carried", capture.display());
    assert!(advised.abs_diff(carried) * 100 <= carried * 5, "{way}: {advised} advised, {carried} carried");
}

const RULE: &str = "[[compress]]\nfrom = \"10.98.0.0/16\"\nto = \"10.99.0.0/16\"\ndomain = \"test\"\n";

#[test]
fn a_web_site() {
    compare("captures/http-site.pcap", "both", RULE);
}

#[test]
fn file_service() {
    compare("captures/smb-dcerpc.pcap", "both", RULE);
}

#[test]
fn a_plant() {
    compare("captures/ics-mixed.pcap", "both", RULE);
}

#[test]
fn bundles_alone() {
    compare("captures/snmpwalk.pcap", "bundles", "");
}
