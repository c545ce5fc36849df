//! Captured traffic of small packets through a thin link: what it takes on the wire, each packet alone and aggregated.

mod recorded;
mod replay;

use std::fs::File;
use std::path::{Path, PathBuf};

use strait_advise::{CaptureReader, Crossing};
use strait_lab::measure::{RunValues, settle};
use strait_testbed::{Extra, LinkSpec, Networks};
use strait_testdata as data;
use strait_wire::ip::Packet;

use crate::error::Error;
use crate::random::rate;
use crate::report::{BenchSection, progress};
use crate::stage::{ALONE, BenchHosts, BenchSetup, MTU, NAMES};
use crate::target::Target;
use replay::{CaptureReplay, NETWORKS};

/// The link, in Mbit/s.
const LINK: f64 = 1.5;
/// Wire bytes with aggregation over those without.
const SHARE: Target = Target::AtMost(0.55);

/// What is replayed as one.
#[derive(Clone, Copy, Debug)]
struct CaptureMix {
    name: &'static str,
    files: &'static [&'static str],
    /// Only what comes from or goes to this port.
    port: Option<u16>,
}

/// All of them small packets; the ports are those of Modbus/TCP and IEC 60870-5-104.
const TRAFFIC: [CaptureMix; 6] = [
    CaptureMix { name: "DNS", files: &["captures/dns.pcap"], port: None },
    CaptureMix { name: "SNMP", files: &["captures/snmpwalk.pcap", "captures/snmp.pcap"], port: None },
    CaptureMix { name: "Modbus", files: &["captures/ics-modicon-http-modbus.pcap"], port: Some(502) },
    CaptureMix { name: "IEC 104", files: &["captures/iec104.pcap"], port: Some(2404) },
    CaptureMix { name: "C37.118", files: &["captures/synchrophasor-tcp.pcap"], port: None },
    CaptureMix { name: "MQTT", files: &["captures/mqtt.pcap"], port: None },
];
/// The lines of `[link]` that keep packets whose sender does not slow down, and acknowledgements that a newer one could replace.
const ALL: &str = "aqm = \"off\"\nacks = \"all\"";
/// Which of them stand for DNP3, of which there is no capture to be had: protocols for the same use, of stations and
/// substations.
const LIKE_DNP3: &str = "IEC 104 and C37.118 stand for DNP3, which is for the same use";

/// Columns of the table.
const COLUMNS: [&str; 11] = [
    NAMES[0],
    NAMES[1],
    "Strait / window = 1",
    "recorded, window = 1",
    "recorded, wait 0",
    "recorded, wait 20 ms",
    "both ways",
    "both ways, contexts",
    "both ways, history",
    "the same, 12-byte tag",
    "and history of services",
];

pub(crate) fn run(setting: &BenchSetup) -> Result<BenchSection, Error> {
    let runs = setting.effort.pick(3, 1);
    let title = format!(
        "captures over {LINK} Mbit/s, compression on, wire bytes of both directions a byte of inner packets: back to back through real tunnels, \
         {runs} runs; at their recorded times in virtual time, one way and both ways (50 ms RTT); median (min-max)"
    );
    let mut section = BenchSection::new("captures", title, &COLUMNS);
    section.notes.push(LIKE_DNP3.to_owned());
    let (there, missing): (Vec<_>, Vec<_>) =
        TRAFFIC.iter().map(|it| (it, it.paths())).partition(|(_, it)| it.is_some());
    for (traffic, _) in missing {
        let CaptureMix { name, files, .. } = traffic;
        section.notes.push(format!(
            "skipped {name}: not all of {} (see {})",
            files.join(", "),
            data::VARIABLE
        ));
    }
    let there: Vec<(&CaptureMix, Vec<PathBuf>)> =
        there.into_iter().filter_map(|(it, paths)| Some((it, paths?))).collect();
    if there.is_empty() {
        return Ok(section);
    }
    let tunnels = [replay(setting, ALONE)?, replay(setting, "")?];
    for (traffic, paths) in there {
        let packets = traffic.packets(&paths)?;
        let mut samples: [RunValues; 2] = Default::default();
        for run in 1..=runs {
            for ((tunnel, sample), name) in tunnels.iter().zip(&mut samples).zip(NAMES) {
                section.before.push(settle()?);
                let carried = tunnel.carry(&packets)?;
                let each = carried.wire as f64 / carried.inner as f64;
                progress(
                    "captures",
                    run,
                    &format!("{}, {name}, {carried}", traffic.name),
                    each,
                    "bytes a byte",
                );
                sample.push(each);
            }
        }
        let [alone, bundled] = samples;
        let share = bundled.over(&alone);
        let recorded = recorded::all(traffic, &paths, rate(LINK))?;
        let cells = [alone, bundled, share.clone()].into_iter().chain(recorded);
        let inner: usize = packets.iter().map(Vec::len).sum();
        section.row(format!("{}, {} packets, {inner} bytes", traffic.name, packets.len()), cells);
        section.judge(format!("{}, Strait / window = 1", traffic.name), share, SHARE);
    }
    Ok(section)
}

fn replay(setting: &BenchSetup, link: &str) -> Result<CaptureReplay, Error> {
    let [from, to] = NETWORKS;
    let rules = format!("[[compress]]\nfrom = \"{from}/16\"\nto = \"{to}/16\"\ndomain = \"bench\"\n");
    let link = format!("{link}\n{ALL}");
    let extra = Extra { link: &link, sections: &rules, networks: Networks::Reached, ..Extra::default() };
    CaptureReplay::new(BenchHosts::set(&setting.program, LinkSpec::thin(rate(LINK)), extra)?)
}

impl CaptureMix {
    /// Where its files are, if all are there.
    fn paths(&self) -> Option<Vec<PathBuf>> {
        self.files.iter().map(|file| data::find(file)).collect()
    }

    /// Its packets as they cross the link, all one way.
    fn packets(&self, paths: &[PathBuf]) -> Result<Vec<Vec<u8>>, Error> {
        let mut crossing = Crossing::new(NETWORKS, usize::try_from(MTU).unwrap_or(usize::MAX));
        let mut packets = Vec::new();
        for path in paths {
            let mut reader = CaptureReader::open(open(path)?).map_err(unreadable(path))?;
            while let Some(frame) = reader.frame().map_err(unreadable(path))? {
                let keep = |packet: &[u8]| {
                    if self.covers(packet) {
                        packets.push(packet.to_vec());
                    }
                };
                crossing.frame(&frame, keep).map_err(unreadable(path))?;
            }
        }
        Ok(packets)
    }

    /// Whether a packet is of this traffic.
    fn covers(&self, packet: &[u8]) -> bool {
        let Some(port) = self.port else { return true };
        Packet::parse(packet).is_ok_and(|packet| {
            let flow = packet.flow();
            flow.src_port == port || flow.dst_port == port
        })
    }
}

fn open(path: &Path) -> Result<File, Error> {
    File::open(path).map_err(Error::doing(format!("open {}", path.display())))
}

fn unreadable<E: std::error::Error + Send + Sync + 'static>(path: &Path) -> impl FnOnce(E) -> Error {
    move |source| Error::Capture { path: path.to_owned(), source: Box::new(source) }
}
