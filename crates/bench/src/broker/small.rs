//! Many small objects: puts, lists, and names from their manifests.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use strait_clock::Random;
use strait_lab::measure::{RunValues, settle};

use super::stage::{BrokerStage, BrokerStore, TRANSFER};
use super::unshaped::UNSHAPED;
use crate::error::Error;
use crate::files::wait;
use crate::report::{BenchSection, progress};
use crate::stage::BenchSetup;
use crate::target::Target;

/// Bytes of an object's only file.
const SIZE: usize = 4096;
/// Objects a second, into a folder and into a bucket.
const FOLDER: Target = Target::AtLeast(500.0);
const BUCKET: Target = Target::AtLeast(200.0);
/// Seconds.
const LIST: Target = Target::AtMost(2.0);
const FIRST_NAMES: Target = Target::AtMost(5.0);
/// Objects of the long list over those that are put.
const MORE: usize = 10;

pub(super) fn run(setting: &BenchSetup) -> Result<BenchSection, Error> {
    let (objects, runs) = setting.effort.pick((10_000, 3), (500, 1));
    let title = format!(
        "{objects} objects with a file of {SIZE} random bytes each, unshaped, {runs} runs, median (min-max)"
    );
    let mut section = BenchSection::new("broker: small", title, &["folder", "bucket"]);
    let mut rates = Vec::new();
    for store in [BrokerStore::Folder, BrokerStore::Bucket] {
        let stage = BrokerStage::set(setting, UNSHAPED, store, 1)?;
        let files = write(&stage, objects)?;
        let mut rate = RunValues::default();
        for run in 1..=runs {
            section.before.push(settle()?);
            let mut put = stage.sender.command(&["put", "--each"]);
            put.args(&files).args([stage.post.broker.name(), "--to", stage.post.receiver.name()]);
            let seconds = timed(&stage, &mut put)?;
            progress(section.name, run, &format!("{store:?}, put"), objects as f64 / seconds, "objects/s");
            rate.push(objects as f64 / seconds);
            if run == 1 && store == BrokerStore::Folder {
                names(&mut section, &stage, (objects, runs))?;
            }
        }
        rates.push(rate);
        if store == BrokerStore::Folder {
            list(&mut section, &stage, (objects * MORE, runs))?;
        }
    }
    section.row("put, objects/s", rates.clone());
    for (rate, (name, target)) in rates.into_iter().zip([("a folder", FOLDER), ("a bucket", BUCKET)]) {
        section.judge(format!("objects a second into {name}"), rate, target);
    }
    Ok(section)
}

/// The files, a hundred to a folder.
fn write(stage: &BrokerStage, count: usize) -> Result<Vec<PathBuf>, Error> {
    let mut random = Random::new(1);
    let doing = || "write small files".to_owned();
    (0..count)
        .map(|number| {
            let folder = stage.source(&format!("{:03}", number / 100));
            fs::create_dir_all(&folder).map_err(Error::doing(doing()))?;
            let path = folder.join(format!("note-{number:05}"));
            let words = std::iter::repeat_with(|| random.next_u64().to_le_bytes());
            let bytes: Vec<u8> = words.take(SIZE / 8).flatten().collect();
            fs::write(&path, bytes).map_err(Error::doing(doing()))?;
            Ok(path)
        })
        .collect()
}

/// How long a command takes that has to end well.
fn timed(stage: &BrokerStage, command: &mut Command) -> Result<f64, Error> {
    let begin = Instant::now();
    let log = fs::File::create(stage.log()).map_err(Error::doing("make a log"))?;
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
    let mut child = command.spawn().map_err(Error::doing("start strait"))?;
    let status = wait(&mut child, TRANSFER)?;
    let seconds = begin.elapsed().as_secs_f64();
    if !status.success() {
        let words: Vec<_> = command.get_args().take(3).map(|it| it.to_string_lossy().into_owned()).collect();
        let (command, host) = (format!("strait {}", words.join(" ")), "a host".to_owned());
        let failed =
            strait_testbed::Error::Command { command, host, status: status.to_string(), said: stage.said() };
        return Err(failed.into());
    }
    Ok(seconds)
}

/// Lists the receiver's inbox with the state in a folder of its own.
fn listed(stage: &BrokerStage, more: &[&str], state: &Path) -> Result<f64, Error> {
    let place = format!("{}:", stage.post.broker.name());
    let mut command = stage.receiver.command(&["ls", &place]);
    timed(stage, command.args(more).env("STRAIT_STATE_DIR", state))
}

/// Names of all objects, first with nothing that is cached.
fn names(
    section: &mut BenchSection,
    stage: &BrokerStage,
    (objects, runs): (usize, usize),
) -> Result<(), Error> {
    let (mut first, mut cached) = (RunValues::default(), RunValues::default());
    for run in 0..runs {
        let state = stage.source(&format!("state-{run}"));
        section.before.push(settle()?);
        first.push(listed(stage, &["--names"], &state)?);
        cached.push(listed(stage, &["--names"], &state)?);
    }
    section.row(format!("names of {objects}, first, s"), [first.clone(), RunValues::default()]);
    section.row(format!("names of {objects}, cached, s"), [cached, RunValues::default()]);
    section.judge(format!("names of {objects} from their manifests, s"), first, FIRST_NAMES);
    Ok(())
}

/// A list of so many: those that were put, and letters like theirs under other ids, which a list does not read.
fn list(
    section: &mut BenchSection,
    stage: &BrokerStage,
    (objects, runs): (usize, usize),
) -> Result<(), Error> {
    let doing = || "add letters to the inbox".to_owned();
    let inboxes = stage.post.broker.folder().join("store/inbox");
    let entries = |at: &Path| {
        fs::read_dir(at).and_then(|entries| entries.map(|it| Ok(it?.path())).collect::<Result<Vec<_>, _>>())
    };
    let inbox = entries(&inboxes).map_err(Error::doing(doing()))?;
    let inbox = inbox.first().ok_or(Error::Silent { what: "an inbox", way: "strait put".to_owned() })?;
    let letters = entries(inbox).map_err(Error::doing(doing()))?;
    let mut random = Random::new(2);
    for number in letters.len()..objects {
        let like = &letters[number % letters.len()];
        let name = like.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let mut parts: Vec<&str> = name.split('-').collect();
        let id = format!("{:016x}{:016x}", random.next_u64(), random.next_u64());
        if parts.len() < 3 {
            return Err(Error::Silent { what: "a letter's name", way: name });
        }
        parts[2] = &id;
        fs::hard_link(like, inbox.join(parts.join("-"))).map_err(Error::doing(doing()))?;
    }
    let mut seconds = RunValues::default();
    for run in 0..runs {
        section.before.push(settle()?);
        seconds.push(listed(stage, &[], &stage.source(&format!("list-{run}")))?);
    }
    section.row(format!("ls of {objects}, s"), [seconds.clone(), RunValues::default()]);
    section.judge(format!("ls of {objects} objects in a folder, s"), seconds, LIST);
    section
        .notes
        .push("of the long list, a part are letters under other ids, which a list does not open".to_owned());
    Ok(())
}
