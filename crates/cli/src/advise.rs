//! `advise`: what a tunnel would make of captured traffic.

mod amounts;
mod charts;
mod classes;
mod content;
mod html;
mod keys;
mod live;
mod text;

use std::fs::{self, File};
use std::path::Path;

use strait_advise::report::{CacheBounds, CacheSizes, Conditions, Input};
use strait_advise::{AdviseReport, CaptureReader, MachineModel, ReplayLink, TunnelReplay};
use strait_compress::{EndpointCosts, PeerCosts, PerByteCost};
use strait_crypto::Ranking;
use strait_node::config::DirectorySection;
use strait_node::speed::MachineSpeed;

use crate::failure::{CommandResult, Failure, colours};
use crate::flags;
use crate::output::print;
use crate::progress::Progress;
use crate::units;

/// Sizes of caches of keys, without a word in the configuration and at most.
const CACHES: CacheBounds = CacheBounds {
    today: CacheSizes {
        peers: DirectorySection::MAX_PEERS,
        certificates: DirectorySection::MAX_CERTIFICATES,
    },
    most: CacheSizes {
        peers: DirectorySection::MOST_PEERS,
        certificates: DirectorySection::MAX_CERTIFICATES,
    },
};

/// Reads the files one after another, or watches an interface, and prints the report, also when a file is damaged.
pub(crate) fn run(flags: &flags::Advise) -> CommandResult {
    let sources = opened(&flags.files)?;
    let tap = flags.live.as_deref().map(live::open).transpose()?;
    let machine = measured();
    let link = ReplayLink::of(flags.link);
    let round_trip = flags.rtt.unwrap_or(link.round_trip);
    let link =
        ReplayLink { mtu: usize::from(flags.mtu), near: flags.from, round_trip, cache: flags.cache, ..link };
    let mut replay = TunnelReplay::new(link, &machine);
    if flags.policies {
        replay = replay.with_policies(&machine);
    }
    let inputs = match tap {
        Some(tap) => vec![live::watch(tap, flags.span, &mut replay)?],
        None => FileReading::all(sources, &mut replay),
    };
    replay.finish();
    let conditions = Conditions { price: flags.price, round_trip: flags.rtt, caches: CACHES };
    let report = AdviseReport::new(&replay, &machine, &conditions, inputs);
    give(flags, &report)?;
    whole(&report)
}

/// A file that is about to be read.
struct InputFile {
    name: String,
    file: File,
    len: u64,
}

/// All files, or why one of them cannot be read: before anything is.
fn opened(files: &[impl AsRef<Path>]) -> Result<Vec<InputFile>, Failure> {
    let open = |path: &Path| -> Result<InputFile, Failure> {
        let doing = || Failure::doing(format!("read {}", path.display()));
        let file = File::open(path).map_err(doing())?;
        let metadata = fs::metadata(path).map_err(doing())?;
        if metadata.is_dir() {
            return Err(
                Failure::new(format!("{} is a directory", path.display())).remedy("name the files in it")
            );
        }
        Ok(InputFile { name: path.display().to_string(), file, len: metadata.len() })
    };
    files.iter().map(|path| open(path.as_ref())).collect()
}

/// Files on their way through a replay.
struct FileReading<'a> {
    replay: &'a mut TunnelReplay,
    progress: Progress,
    /// Bytes of files before the present one.
    before: u64,
    total: u64,
}

impl FileReading<'_> {
    /// Replays one file after another.
    fn all(sources: Vec<InputFile>, replay: &mut TunnelReplay) -> Vec<Input> {
        let progress = Progress::new("{decimal_bytes:>10} {decimal_bytes_per_sec:>12}");
        let total = sources.iter().map(|source| source.len).sum();
        let mut reading = FileReading { replay, progress, before: 0, total };
        let inputs =
            sources.into_iter().zip(0..).map(|(source, number)| reading.one(source, number)).collect();
        reading.progress.finish();
        inputs
    }

    /// Replays one file as far as it can be read.
    fn one(&mut self, source: InputFile, number: u32) -> Input {
        let InputFile { name, file, len } = source;
        let mut input = Input { name, kind: None, frames: 0, dropped_frames: 0, error: None };
        match CaptureReader::open(file) {
            Ok(reader) => self.frames(reader, number, &mut input),
            Err(error) => input.error = Some(error.to_string()),
        }
        self.before += len;
        input
    }

    fn frames(&mut self, mut reader: CaptureReader<File>, number: u32, input: &mut Input) {
        input.kind = Some(reader.kind());
        self.replay.begin(reader.is_file().then_some(number));
        input.error = loop {
            match reader.frame() {
                Ok(Some(frame)) => match self.replay.frame(&frame) {
                    Ok(()) => input.frames += 1,
                    Err(unknown) => break Some(unknown.to_string()),
                },
                Ok(None) => break None,
                Err(error) => break Some(error.to_string()),
            }
            // Seldom enough not to count, and often enough to be seen moving.
            if input.frames.is_multiple_of(256) {
                let (done, total, name) = (self.before + reader.position(), self.total, &input.name);
                let line = || format!("{name}: {} of {} read", units::bytes(done), units::bytes(total));
                self.progress.at(done, total, name, line);
            }
        };
    }
}

/// What this machine computes how fast; the other end is taken to be alike.
fn measured() -> MachineModel {
    let MachineSpeed { ranking, calibration: codecs } = MachineSpeed::of_this_machine();
    let [fastest, ..] = ranking.order();
    let here = PerByteCost::MEASURED.with_crypto(ranking.cost(fastest), Ranking::PACKET_LEN);
    MachineModel {
        codecs,
        ends: EndpointCosts { here, there: PeerCosts { handling: here, ..PeerCosts::ALIKE } },
    }
}

/// Prints the report and writes it, as was asked for.
fn give(flags: &flags::Advise, report: &AdviseReport) -> CommandResult {
    if let Some(path) = &flags.html {
        let written = fs::write(path, html::render(report));
        written.map_err(Failure::doing(format!("write {}", path.display())))?;
    }
    if flags.json {
        let json = serde_json::to_string_pretty(report);
        let json = json.map_err(|error| Failure::new(format!("cannot write the report as JSON: {error}")))?;
        return print((json + "\n").as_bytes());
    }
    print(text::render(report, colours(&std::io::stdout()), flags.detail).as_bytes())
}

/// Says which files could not be read to their end.
fn whole(report: &AdviseReport) -> CommandResult {
    let stopped = report
        .inputs
        .iter()
        .filter_map(|input| input.error.as_ref().map(|why| format!("{} {why}", input.name)));
    let stopped: Vec<String> = stopped.collect();
    if stopped.is_empty() {
        return Ok(());
    }
    let failure = Failure::new(stopped.join("\n  "));
    let some = report.inputs.iter().any(|input| input.frames > 0);
    Err(if some { failure.remedy("the report covers what was read before the error") } else { failure })
}
