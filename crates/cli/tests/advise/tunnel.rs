//! What is advised is what a tunnel does: the same packets through two real daemons.

use std::fs::{self, File};
use std::net::Ipv4Addr;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;
use strait_advise::{CaptureReader, Crossing};
use strait_testbed::{DaemonProcess, Extra, Feed, LinkSpec, Networks, Site, TwoHosts, Workdir, sandbox};

use crate::write::pcap;

/// Longest packet of the captures, and of the hosts on both sides.
const MTU: usize = 1_500;
/// What ESP in UDP puts around it at most, as advice has it, and the room that is kept for a payload that is sent again.
const PATH_MTU: usize = MTU + 57 + 4;
/// How much is fed at once: less than the device's queue of 500 packets takes, and the tunnel's of 192 KiB.
const FED_PACKETS: u64 = 400;
const FED_BYTES: u64 = 32 * 1024;
/// How much may wait in the tunnel before more is fed, as advice has it.
const WAITING: u64 = 128 * 1024;
const WAITING_PACKETS: u64 = 2_048;
/// How long anything may take: hosts share processors with other tests.
const PATIENCE: Duration = Duration::from_secs(60);

/// The most comparisons of both.
const COMPARISONS: u32 = 3;

/// Held while a tunnel is compared with what was advised.
static ALONE: Mutex<()> = Mutex::new(());

/// The networks behind the sites.
const NETWORKS: [Ipv4Addr; 2] = [Ipv4Addr::new(10, 98, 0, 0), Ipv4Addr::new(10, 99, 0, 0)];

/// The IPv4 packets of a capture, cut to what hosts send, and all from one side to the other.
fn crossing(capture: &Path) -> Vec<Vec<u8>> {
    let mut reader = CaptureReader::open(File::open(capture).unwrap()).unwrap();
    let mut crossing = Crossing::new(NETWORKS, MTU);
    let mut packets = Vec::new();
    while let Some(frame) = reader.frame().unwrap() {
        crossing.frame(&frame, |packet| packets.push(packet.to_vec())).unwrap();
    }
    packets
}

/// Two sites whose hosts have those addresses, joined by a tunnel of 512 kbit/s.
struct Joined {
    near: DaemonProcess,
    _far: DaemonProcess,
    feed: Feed,
}

impl Joined {
    /// Both have the rule: what its byte cache holds is agreed.
    fn new(dir: &Workdir, rule: &str) -> Joined {
        let hosts = TwoHosts::direct(LinkSpec { mtu: 1_600, ..LinkSpec::unshaped() }).unwrap();
        let sites = Site::pair(Path::new(env!("CARGO_BIN_EXE_strait")), &hosts, dir.path()).unwrap();
        let start = |at: usize, link: &str, sections: &str| {
            let (site, peer) = (&sites[at], &sites[1 - at]);
            let (mtu, path) = (format!("mtu = {MTU}"), format!("mtu = {PATH_MTU}"));
            let networks = Networks::Reached;
            let extra = Extra { node: &mtu, peer: &path, link, sections, networks };
            site.start(&site.configure("strait", &[peer], extra).unwrap(), "run").unwrap()
        };
        let near = start(0, "up = \"512kbit\"\naqm = \"off\"\nacks = \"all\"", rule);
        let far = start(1, "", rule);
        near.wait_for_session("site-b", PATIENCE).unwrap();
        far.wait_for_session("site-a", PATIENCE).unwrap();
        Joined { feed: Feed::open(&hosts.a).unwrap(), near, _far: far }
    }

    /// What the near side has sent.
    fn sent(&self, figure: &str) -> u64 {
        self.near.show().unwrap()["peers"][0]["sent"][figure].as_u64().unwrap()
    }

    /// Sends packets as fast as the tunnel takes them without dropping any; gives bytes on the wire.
    fn carry(&self, packets: &[Vec<u8>]) -> u64 {
        let (mut fed, mut burst, mut since) = (0, 0, 0);
        for (count, packet) in (1..).zip(packets) {
            self.feed.send(packet).unwrap();
            (fed, burst, since) = (fed + packet.len() as u64, burst + packet.len() as u64, since + 1);
            if burst >= FED_BYTES || since >= FED_PACKETS {
                self.wait("sent", || {
                    fed <= self.sent("bytes") + WAITING - FED_BYTES
                        && count <= self.sent("packets") + WAITING_PACKETS - FED_PACKETS
                });
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

/// What is advised of these packets over 512 kbit/s, on one of the ways. All are from the same side, whose hosts speak first.
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
    let sent = report["total"]["sent"].as_array().unwrap();
    assert_eq!(report["total"]["packets"], packets.len());
    sent.iter().find(|it| it["mode"] == way).unwrap()["wire_bytes"].as_u64().unwrap()
}

/// Both figures, of which the first must be within 5 % of the second. Other tests take the processors in turn, and both an advice and a
/// tunnel choose levels by how fast codecs seem just then: a comparison that such a moment has spoiled is made again.
fn compare(capture: &str, way: &str, rule: &str) {
    compare_times(capture, way, rule, 1);
}

/// The same with the packets so many times one after another.
fn compare_times(capture: &str, way: &str, rule: &str, times: usize) {
    if !sandbox::allows_tests() {
        return;
    }
    let Some(capture) = strait_testdata::find_or_skip(capture) else { return };
    // One at a time: with a processor that others use, codecs seem slower, and a tunnel chooses differently.
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let once = crossing(&capture);
    let packets: Vec<Vec<u8>> = once.iter().cycle().take(once.len() * times).cloned().collect();
    let alike = (0..COMPARISONS).any(|_| {
        let dir = Workdir::create().unwrap();
        let advised = advised(&dir, &packets, way);
        let carried = Joined::new(&dir, rule).carry(&packets);
        println!("{}, {way}: {advised} advised, {carried} carried", capture.display());
        advised.abs_diff(carried) * 100 <= carried * 5
    });
    assert!(alike, "{way}: advice was off by more than 5 % {COMPARISONS} times");
}

const RULE: &str = "[[compress]]\nfrom = \"10.98.0.0/16\"\nto = \"10.99.0.0/16\"\ndomain = \"test\"\n";

#[test]
fn a_web_site() {
    compare("captures/http-site.pcap", "history", RULE);
}

#[test]
fn a_web_site_twice_with_a_byte_cache() {
    compare_times("captures/http-site.pcap", "cache", &format!("{RULE}cache = \"256MiB\"\n"), 2);
}

#[test]
fn file_service() {
    compare("captures/smb-dcerpc.pcap", "history", RULE);
}

#[test]
fn a_plant() {
    compare("captures/ics-mixed.pcap", "history", RULE);
}

#[test]
fn aggregation_alone() {
    compare("captures/snmpwalk.pcap", "contexts", "");
}
