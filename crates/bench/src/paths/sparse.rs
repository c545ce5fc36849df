//! What sparse traffic costs by the byte, both directions counted: polls and a call at their recorded times.

use std::time::Duration;

use strait_lab::measure::{RunValues, settle};
use strait_testbed::interrupt;

use super::recorded::{CaptureSection, FedBytes, PathFeeds, TimedPacket};
use super::stage::{PathPrograms, PathStage, PathWay, ThinPath};
use crate::error::Error;
use crate::payload::{PayloadKind, SensorStation};
use crate::report::{BenchSection, progress};
use crate::stage::BenchSetup;
use crate::target::Target;

/// The link: a T1 with a round trip of 60 ms.
const PATH: ThinPath = ThinPath::clean(1.54, 60);
/// What is compared, wireguard-go first.
const WAYS: [PathWay; 3] = [PathWay::WireGuard, PathWay::Told, PathWay::Auto];
const COLUMNS: [&str; 5] =
    ["wireguard-go", "rate told", "auto", "told / wireguard-go", "auto / wireguard-go"];
/// Wire bytes over those of wireguard-go.
const BYTES: Target = Target::AtMost(1.0);
/// Between two polls that are not recorded: 20 a second.
const POLLS: Duration = Duration::from_millis(50);
/// Until handshakes, and what follows them, are over.
const WARM_UP: Duration = Duration::from_secs(5);

/// Traffic with its name; the ports are those of Modbus/TCP.
const RECORDED: [(&str, CaptureSection); 2] = [
    (
        "Modbus polls at recorded times",
        CaptureSection { file: "captures/ics-modicon-http-modbus.pcap", port: Some(502), begin: 0 },
    ),
    // The call begins then; registrations come before.
    (
        "voice at recorded times",
        CaptureSection { file: "captures/voip-sip-rtp-t38.pcap", port: None, begin: 27 },
    ),
];

pub(super) fn run(setting: &BenchSetup) -> Result<BenchSection, Error> {
    let programs = PathPrograms::find(setting)?;
    let (runs, seconds) = setting.effort.pick((2, 35), (1, 8));
    let title = format!(
        "sparse packets over {PATH}, compression on, bytes of outer IP packets both ways for each packet, {runs} runs of \
         {seconds} s, median (min-max)"
    );
    let mut section = BenchSection::new("paths: sparse", title, &COLUMNS);
    section.notes.push(programs.note.clone());
    let mut traffic = vec![("Modbus, 20 polls a second, one way", polls(seconds))];
    for (name, capture) in RECORDED {
        match capture.packets(seconds)? {
            Some(packets) => traffic.push((name, packets)),
            None => section.notes.push(format!("skipped {name}: no {}", capture.file)),
        }
    }
    for (name, packets) in traffic {
        let mut samples: [RunValues; WAYS.len()] = Default::default();
        for run in 1..=runs {
            section.before.push(settle()?);
            for ((way, found), sample) in
                WAYS.into_iter().zip(all(&programs, &packets, run)?).zip(&mut samples)
            {
                let each = found.map_or(f64::NAN, |found| found.wire as f64 / found.packets as f64);
                let number = usize::try_from(run).unwrap_or(0);
                progress("paths", number, &format!("{name}, {}", way.name()), each, "bytes a packet");
                sample.push(each);
            }
        }
        let inner: usize = packets.iter().map(TimedPacket::len).sum();
        let [wireguard, told, auto] = samples;
        let ratios = [told.over(&wireguard), auto.over(&wireguard)];
        let cells = [wireguard, told, auto].into_iter().chain(ratios.clone());
        section.row(format!("{name}, {} packets of {inner} bytes, bytes a packet", packets.len()), cells);
        for (way, ratio) in ["rate told", "auto"].into_iter().zip(ratios) {
            section.judge(format!("{name}, {way} / wireguard-go"), ratio, BYTES);
        }
    }
    Ok(section)
}

/// What a station is told again and again.
fn polls(seconds: u64) -> Vec<TimedPacket> {
    let mut station = SensorStation::new(PayloadKind::Modbus);
    let count = u32::try_from(Duration::from_secs(seconds).as_nanos() / POLLS.as_nanos()).unwrap_or(u32::MAX);
    (0..count).map(|number| TimedPacket::there(POLLS * number, &station.answer().1)).collect()
}

/// The same packets over a path for each way, at the same time.
fn all(programs: &PathPrograms, packets: &[TimedPacket], seed: u64) -> Result<Vec<Option<FedBytes>>, Error> {
    let set = |way| PathStage::set(programs, PATH, way, "", seed);
    let stages: Vec<Option<PathStage>> = WAYS.into_iter().map(set).collect::<Result<_, _>>()?;
    let feeds: Vec<Option<PathFeeds<'_>>> = stages
        .iter()
        .map(|stage| stage.as_ref().map(PathFeeds::open).transpose())
        .collect::<Result<_, _>>()?;
    // One packet each way, so that there are addresses and keys.
    let play = |packets: &[TimedPacket]| -> Result<Vec<Option<FedBytes>>, Error> {
        std::thread::scope(|scope| {
            let start = |feeds| scope.spawn(move || PathFeeds::play(feeds, packets));
            let running: Vec<_> = feeds.iter().map(|feeds| feeds.as_ref().map(start)).collect();
            let end = |thread: std::thread::ScopedJoinHandle<'_, Result<FedBytes, Error>>| {
                let silent = || Error::Silent { what: "a capture", way: PATH.to_string() };
                thread.join().map_err(|_| silent())?
            };
            let ended = running.into_iter().map(|thread| thread.map(end).transpose());
            ended.collect::<Vec<_>>().into_iter().collect()
        })
    };
    play(packets.get(..1).unwrap_or_default())?;
    interrupt::pause(WARM_UP)?;
    play(packets)
}
