//! A release of a package sent to where the one before is.

use std::fs;
use std::path::PathBuf;

use super::releases;
use super::stage::FileStage;
use super::table::{FileTable, size_name};
use super::way::FileWay;
use crate::error::Error;
use crate::paths::ThinPath;
use crate::report::BenchSection;
use crate::stage::BenchSetup;
use crate::target::Target;

/// Wire bytes of both directions over those of `rsync -z`; and with what was sent last kept.
const DELTA: Target = Target::AtMost(0.65);
const KEPT: Target = Target::AtMost(0.25);
/// The file's name at both ends.
const NAME: &str = "package.tar";
/// What the node is told to keep: more than both releases.
const KEEP: &str = "keep_sent = \"1GiB\"";
/// Megabytes of the generated releases.
const SIZES: (usize, usize) = (26, 8);

pub(super) fn run(setting: &BenchSetup) -> Result<BenchSection, Error> {
    let runs = setting.effort.pick(3, 1);
    let path = ThinPath::clean(10.0, 100);
    let title =
        format!("a release sent under the name of the one before, {path}, {runs} runs, median (min-max)");
    let mut section = FileTable::section("files: delta", title);
    let stage = FileStage::set(setting, path)?;
    let [older, newer] = match &setting.releases {
        Some(both) => {
            section.notes.push(format!("from {} to {}", both[0].display(), both[1].display()));
            both.clone()
        }
        None => generate(setting, &stage, &mut section)?,
    };
    fs::copy(&newer, stage.source(NAME)).map_err(Error::doing(format!("copy {}", newer.display())))?;
    let prepare = || {
        let copied =
            fs::copy(&older, stage.inbox(NAME)).and_then(|_| fs::File::open(stage.inbox(NAME))?.sync_all());
        copied.map_err(Error::doing(format!("copy {}", older.display())))
    };
    let size = fs::metadata(&newer).map_err(Error::doing("look at a release"))?.len();
    let ways = [FileWay::Strait, FileWay::Rsync];
    let table = FileTable::measure(&mut section, &stage, (NAME, size), (&ways, runs), &prepare)?;
    table.tell(&mut section, &format!("{NAME}, {}", size_name(size)));
    let ratio = table.wire(FileWay::Strait).over(&table.wire(FileWay::Rsync));
    section.judge("wire bytes, both directions, Strait / rsync -z", ratio, DELTA);
    let read = |path: &PathBuf| fs::read(path).map_err(Error::doing("read a release"));
    let releases = [read(&older)?, read(&newer)?];
    // Generated ones are gone with it.
    drop(stage);
    let kept = with_copies(setting, &mut section, &releases, runs)?;
    kept.tell(&mut section, &format!("{NAME}, {}, keep_sent", size_name(size)));
    let ratio = kept.wire(FileWay::Strait).over(&table.wire(FileWay::Rsync));
    section.judge("the same with keep_sent", ratio, KEPT);
    Ok(section)
}

/// The same with a node that keeps what it sent: before each run the older release is sent as its user does.
fn with_copies(
    setting: &BenchSetup,
    section: &mut BenchSection,
    [older, newer]: &[Vec<u8>; 2],
    runs: usize,
) -> Result<FileTable, Error> {
    let stage = FileStage::set_with(setting, ThinPath::clean(10.0, 100), KEEP)?;
    let source =
        |release: &[u8]| fs::write(stage.source(NAME), release).map_err(Error::doing("write a release"));
    let prepare = || {
        source(older)?;
        stage.transfer(FileWay::Strait, NAME)?;
        source(newer)
    };
    let size = newer.len() as u64;
    FileTable::measure(section, &stage, (NAME, size), (&[FileWay::Strait], runs), &prepare)
}

fn generate(
    setting: &BenchSetup,
    stage: &FileStage,
    section: &mut BenchSection,
) -> Result<[PathBuf; 2], Error> {
    let megabytes = setting.effort.pick(SIZES.0, SIZES.1);
    let paths = ["older.tar", "newer.tar"].map(|name| stage.source(name));
    for (path, bytes) in paths.iter().zip(releases::generate(megabytes * 1_000_000)) {
        fs::write(path, bytes).map_err(Error::doing("write a release"))?;
    }
    section.notes.push(format!("two generated releases: {}", releases::CHANGE));
    Ok(paths)
}
