//! Readers against Wireshark's: as many packets, as many bytes, in every capture there is.

#![allow(clippy::unwrap_used)]

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use strait_advise::report::{AdviseVerdict, ClassReport, Conditions};
use strait_advise::{
    AdviseReport, CaptureReader, LinkType, MachineModel, Mender, ReplayLink, TunnelReplay, TunnelVariant,
};
use strait_scheduler::Rate;
use strait_testbed::outside;
use strait_testdata::thorough::all_or;

/// The captures, when they are here.
fn captures() -> Vec<PathBuf> {
    let Some(folder) = strait_testdata::find_or_skip("captures") else { return Vec::new() };
    let mut files: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert!(!files.is_empty());
    files
}

/// Those whose packets are sent through tunnels: the long ones take minutes.
fn captures_to_replay() -> Vec<PathBuf> {
    const SHORT: u64 = 256 * 1024;
    let mut files = captures();
    let size = |file: &PathBuf| fs::metadata(file).unwrap().len();
    let long = files.iter().filter(|file| size(file) > SHORT).count();
    if long > 0 && !all_or(&format!("{long} captures of more than 256 KiB")) {
        files.retain(|file| size(file) <= SHORT);
    }
    files
}

/// Frames, and their bytes on the network, as capinfos counts them.
fn counted_by_capinfos(capture: &Path) -> (u64, u64) {
    let output = Command::new("capinfos").args(["-TrcdM"]).arg(capture).output().unwrap();
    let line = String::from_utf8(output.stdout).unwrap();
    let mut figures = line.trim().split('\t').skip(1).map(|figure| figure.parse().unwrap());
    (figures.next().unwrap(), figures.next().unwrap())
}

#[test]
fn as_many_frames_and_bytes_as_capinfos_finds() {
    if !outside::has("capinfos") {
        return;
    }
    for capture in captures() {
        let mut reader = CaptureReader::open(File::open(&capture).unwrap()).unwrap();
        let (mut frames, mut bytes) = (0, 0);
        while let Some(frame) = reader.frame().unwrap() {
            frames += 1;
            bytes += frame.len as u64;
        }
        assert_eq!((frames, bytes), counted_by_capinfos(&capture), "{}", capture.display());
        assert_eq!(reader.position(), fs::metadata(&capture).unwrap().len());
    }
}

#[test]
fn ip_is_found_where_tshark_finds_it() {
    if !outside::has("tshark") {
        return;
    }
    let mut mender = Mender::default();
    for capture in captures() {
        let fields = ["frame.time_epoch", "ip.len", "ipv6.plen"];
        let lines = outside::dissect(&capture, &["-o".to_owned(), "ip.defragment:FALSE".to_owned()], &fields);
        let mut reader = CaptureReader::open(File::open(&capture).unwrap()).unwrap();
        for (number, line) in lines.unwrap().iter().enumerate() {
            let frame = reader.frame().unwrap().unwrap();
            let place = format!("frame {} of {}", number + 1, capture.display());
            let (seconds, nanos) = (frame.at.as_nanos() / 1_000_000_000, frame.at.as_nanos() % 1_000_000_000);
            assert_eq!(format!("{seconds}.{nanos:09}"), line[0], "{place}");
            assert_eq!(frame.link, LinkType::ETHERNET);
            let ip = frame.ip().unwrap();
            // Of packets within packets, such as an ICMP error quotes, the first is the frame's.
            let first = |field: &str| field.split(',').next().and_then(|len| len.parse::<u64>().ok());
            let expected = first(&line[1]).or_else(|| first(&line[2]).map(|len| len + 40));
            let found = ip.and_then(|(ip, len)| mender.mend(ip, len)).map(|it| it.bytes.len() as u64);
            assert_eq!(found, expected, "{place}");
        }
        assert!(reader.frame().unwrap().is_none());
    }
}

/// What a tunnel of 2 Mbit/s would make of a capture or another file.
fn replayed(capture: &Path) -> AdviseReport {
    sent(TunnelReplay::new(link(), &MachineModel::assumed()), capture)
}

fn link() -> ReplayLink {
    ReplayLink::of(Rate::from_bits(2_000_000).unwrap())
}

fn sent(mut replay: TunnelReplay, file: &Path) -> AdviseReport {
    let mut reader = CaptureReader::open(File::open(file).unwrap()).unwrap();
    replay.begin(reader.is_file().then_some(0));
    while let Some(frame) = reader.frame().unwrap() {
        replay.frame(&frame).unwrap();
    }
    replay.finish();
    AdviseReport::new(&replay, &MachineModel::assumed(), &Conditions::default(), Vec::new())
}

#[test]
fn every_packet_goes_through_every_tunnel() {
    for capture in captures_to_replay() {
        let report = replayed(&capture);
        let (whole, name) = (&report.total, capture.display());
        assert_eq!(whole.chosen.iter().map(|share| share.bytes).sum::<u64>(), whole.bytes, "{name}");
        let [plain, bundles, compression, both, ..] =
            TunnelVariant::ALL.map(|way| whole.on(way).unwrap().wire_bytes);
        assert!(plain > whole.bytes && bundles <= plain, "{name}: {plain} {bundles}");
        // What is tried in vain costs nothing but the attempt.
        assert!(
            compression <= plain && both <= bundles * 101 / 100,
            "{name}: {compression} {both} {bundles}"
        );
        let services =
            report.services.classes.iter().chain(report.services.others.iter().map(|it| &it.total));
        let sent = |class: &ClassReport| class.on(TunnelVariant::Both).unwrap().wire_bytes;
        assert_eq!(services.map(sent).sum::<u64>(), both, "{name}");
    }
}

#[test]
fn tls_has_nothing_to_gain_from_compression_and_log_lines_have() {
    let Some(tls) = strait_testdata::find_or_skip("captures/tls12.pcap") else { return };
    let report = replayed(&tls);
    assert_ne!(report.total.verdict, AdviseVerdict::Compression);
    let ftp = replayed(&strait_testdata::find_or_skip("captures/ftp-text.pcap").unwrap());
    assert_eq!(ftp.total.verdict, AdviseVerdict::Compression);
    let [plain, both] =
        [TunnelVariant::Plain, TunnelVariant::Both].map(|way| ftp.total.on(way).unwrap().wire_bytes);
    assert!(both * 3 < plain, "{both} {plain}");
}

#[test]
fn captures_and_text_are_not_taken_for_guesses_of_a_secret() {
    let text = ["modern/log-openssh-2k.log", "modern/telemetry-weather-hourly.csv", "canterbury/alice29.txt"];
    let text = text.into_iter().filter_map(strait_testdata::find_or_skip);
    for file in captures_to_replay().into_iter().chain(text) {
        let machine = MachineModel::assumed();
        // One direction of polls alone is nearly equal blocks, and pauses once.
        let link = ReplayLink { one_way: true, ..link() };
        let report = sent(TunnelReplay::new(link, &machine).with_policies(&machine), &file);
        let name = file.display();
        let [none, padme, buckets, constant, flow, pause] = report.policies[..] else { panic!("{report:?}") };
        assert_eq!((pause.pause, pause.pauses), (true, 0), "{name}");
        assert_eq!(pause.wire_bytes, none.wire_bytes, "{name}");
        let whole = report.total.on(TunnelVariant::Both).unwrap().wire_bytes;
        assert_eq!(none.wire_bytes, whole, "{name}: without a policy");
        // Padmé adds at most 12 %; what aggregates less is sent at other times, and blocks are others.
        assert!(padme.wire_bytes * 100 <= none.wire_bytes * 112, "{name}: {padme:?} {none:?}");
        let plain = report.total.on(TunnelVariant::Plain).unwrap().wire_bytes;
        for cost in [padme, buckets, constant, flow] {
            assert!(cost.wire_bytes <= plain, "{name}: {cost:?} {plain}");
            assert!(cost.wire_bytes * 100 >= none.wire_bytes * 90, "{name}: {cost:?} {none:?}");
        }
    }
}
