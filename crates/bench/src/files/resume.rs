//! A transfer that is killed near its end and begun again.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::{Child, Command};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use strait_lab::measure::{RunValues, settle};
use strait_testbed::interrupt;

use super::content::{FileContent, write_sparse};
use super::processes::{EndPeaks, forget_peaks, tree, watched};
use super::stage::FileStage;
use super::table::{ENDS, MEMORY, size_name};
use super::unshaped::UNSHAPED;
use super::way::{FileWay, wait};
use crate::error::Error;
use crate::report::{BenchSection, progress};
use crate::stage::BenchSetup;
use crate::target::Target;

/// Seconds to the first new byte, and megabytes that an end reads again.
const FIRST: Target = Target::AtMost(5.0);
const AGAIN: Target = Target::AtMost(200.0);
/// Sizes of the dense file, and size and data of the sparse one. The disk needs room for twice the dense one.
const DENSE: (u64, u64) = (4 << 30, 256 << 20);
const SPARSE: ([u64; 2], [u64; 2]) = ([20 << 30, 2 << 30], [2 << 30, 128 << 20]);
/// Between two looks, and how long any of it may take.
const TICK: Duration = Duration::from_millis(5);
const PATIENCE: Duration = Duration::from_secs(600);
/// Until a transfer that is refused is begun again.
const RETRY: Duration = Duration::from_millis(100);
/// The process at the receiver's end that writes the file.
const WORKER: &str = "strait-files";

/// What is killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Victim {
    /// `strait send`.
    Sender,
    /// The process that writes what arrives.
    Receiver,
}

/// What one resume took.
#[derive(Debug)]
struct ResumeRun {
    seconds: f64,
    whole: f64,
    /// How often it was begun.
    tries: usize,
    /// Megabytes read again, and MiB of memory, of both ends.
    again: [f64; 2],
    largest: [f64; 2],
    together: [f64; 2],
}

pub(super) fn run(setting: &BenchSetup) -> Result<BenchSection, Error> {
    let runs = setting.effort.pick(3, 1);
    let title = format!("killed with SIGKILL at 90 % and run again, unshaped, {runs} runs, median (min-max)");
    let mut section = BenchSection::new("files: resume", title, &["sender killed", "receiver killed"]);
    section.notes.push(
        "the first new byte is one that is written at the receiver's end; a run that is refused is begun again after 0.1 s; what an \
         end reads again is rchar of /proc/PID/io, at the sender less what is new; memory is the most of before and after the kill"
            .to_owned(),
    );
    let stage = FileStage::set(setting, UNSHAPED)?;
    let dense = setting.effort.pick(DENSE.0, DENSE.1);
    FileContent::Random.write(&stage.source("dense"), dense)?;
    measure(&mut section, &stage, ("dense", dense), runs)?;
    fs::remove_file(stage.source("dense")).map_err(Error::doing("remove a file"))?;
    let [size, data] = setting.effort.pick(SPARSE.0, SPARSE.1);
    write_sparse(&stage.source("sparse"), size, data)?;
    measure(&mut section, &stage, ("sparse", data), runs)?;
    section.notes.push(format!(
        "dense is {} of random bytes, sparse {} with {} of data",
        size_name(dense),
        size_name(size),
        size_name(data)
    ));
    Ok(section)
}

/// One file, with either end killed.
fn measure(
    section: &mut BenchSection,
    stage: &FileStage,
    (name, data): (&str, u64),
    runs: usize,
) -> Result<(), Error> {
    let mut measured: [Vec<ResumeRun>; 2] = Default::default();
    for run in 1..=runs {
        for (victim, measured) in [Victim::Sender, Victim::Receiver].into_iter().zip(&mut measured) {
            section.before.push(settle()?);
            stage.clear(name)?;
            let resumed = resume(stage, name, data, victim)?;
            let subject = format!("{name}, {victim:?} killed, begun {} times", resumed.tries);
            progress(section.name, run, &subject, resumed.seconds, "s to the first new byte");
            measured.push(resumed);
        }
    }
    stage.clear(name)?;
    tell(section, name, &measured);
    Ok(())
}

fn tell(section: &mut BenchSection, name: &str, measured: &[Vec<ResumeRun>; 2]) {
    type Quantity = (String, fn(&ResumeRun) -> f64, Option<Target>);
    let [sender, receiver] = ENDS;
    let quantities: [Quantity; 9] = [
        ("s to the first new byte".to_owned(), |run| run.seconds, Some(FIRST)),
        ("s until it is whole".to_owned(), |run| run.whole, None),
        ("times begun again".to_owned(), |run| run.tries as f64, None),
        (format!("MB read again, {sender}"), |run| run.again[0], Some(AGAIN)),
        (format!("MB read again, {receiver}"), |run| run.again[1], Some(AGAIN)),
        (format!("largest process, MiB, {sender}"), |run| run.largest[0], Some(MEMORY)),
        (format!("largest process, MiB, {receiver}"), |run| run.largest[1], Some(MEMORY)),
        (format!("all processes at once, MiB, {sender}"), |run| run.together[0], Some(MEMORY)),
        (format!("all processes at once, MiB, {receiver}"), |run| run.together[1], Some(MEMORY)),
    ];
    for (what, of, target) in quantities {
        let cells = measured.each_ref().map(|runs| runs.iter().map(of).collect::<RunValues>());
        for (cell, column) in cells.iter().zip(["sender killed", "receiver killed"]) {
            if let Some(target) = target {
                section.judge(format!("{name}, {column}, {what}"), cell.clone(), target);
            }
        }
        section.row(format!("{name}: {what}"), cells);
    }
}

fn resume(stage: &FileStage, name: &str, data: u64, victim: Victim) -> Result<ResumeRun, Error> {
    stage.daemons.iter().for_each(|daemon| forget_peaks(daemon.pid()));
    let roots = stage.daemons.each_ref().map(|daemon| Mutex::new(BTreeSet::from([daemon.pid()])));
    let (held, first) = watched(&roots, || kill_at(stage, name, data / 10 * 9, victim, &roots[0]));
    let held = held?;
    // What ran before reads nothing again.
    let old = stage.daemons.each_ref().map(|daemon| tree(daemon.pid()));
    let ((seconds, tries, whole), second) = {
        let (done, peaks) = watched(&roots, || go_on(stage, &roots[0], name, &old[1]));
        (done?, peaks)
    };
    stage.compare(FileWay::Strait, name)?;
    // What comes from a socket is received and not read, so all that the receiver reads is what it had.
    let new = [data.saturating_sub(held), 0];
    let again = |end: usize| second[end].read(&old[end]).saturating_sub(new[end]) as f64 / 1e6;
    let both = |of: fn(&EndPeaks) -> f64| [0, 1].map(|end: usize| of(&first[end]).max(of(&second[end])));
    Ok(ResumeRun {
        seconds,
        whole,
        tries,
        again: [0, 1].map(again),
        largest: both(EndPeaks::largest),
        together: both(EndPeaks::together),
    })
}

/// Begins a transfer and kills it when the other end has so many bytes; says how many it has then.
fn kill_at(
    stage: &FileStage,
    name: &str,
    enough: u64,
    victim: Victim,
    near: &Mutex<BTreeSet<u32>>,
) -> Result<u64, Error> {
    let mut child = spawn(stage, name, near)?;
    let begin = Instant::now();
    while held(&stage.inbox("")) < enough {
        let ended = child.try_wait().map_err(Error::doing("look after a transfer"))?;
        if let Some(status) = ended {
            stage.check(status, FileWay::Strait)?;
        }
        if ended.is_some() || begin.elapsed() > PATIENCE {
            let _ = child.kill();
            let _ = child.wait();
            return Err(Error::Silent { what: "nine tenths of a file, before the rest,", way: stage.said() });
        }
        interrupt::pause(TICK)?;
    }
    match victim {
        Victim::Sender => child.kill().map_err(Error::doing("kill the sender"))?,
        Victim::Receiver => {
            let workers = tree(stage.daemons[1].pid()).into_iter().filter(|pid| is_worker(*pid));
            for pid in workers {
                let killed = Command::new("kill").args(["-9", &pid.to_string()]).status();
                killed.map_err(Error::doing("kill the receiver"))?;
            }
        }
    }
    wait(&mut child, PATIENCE)?;
    Ok(held(&stage.inbox("")))
}

/// Begins it again until it ends well: seconds to the first new byte, how often it was begun, and seconds to the end. `old` has the
/// processes at the receiver's end, of which those that write have to end before anything is new.
fn go_on(
    stage: &FileStage,
    near: &Mutex<BTreeSet<u32>>,
    name: &str,
    old: &BTreeSet<u32>,
) -> Result<(f64, usize, f64), Error> {
    let old: Vec<u32> = old.iter().copied().filter(|pid| is_worker(*pid)).collect();
    let (begin, mut tries, mut least, mut first) = (Instant::now(), 0, u64::MAX, None);
    loop {
        let mut child = spawn(stage, name, near)?;
        tries += 1;
        let status = loop {
            if old.iter().all(|pid| has_ended(*pid)) {
                let held = held(&stage.inbox(""));
                least = least.min(held);
                if held > least {
                    first = Some(begin.elapsed().as_secs_f64());
                    break wait(&mut child, PATIENCE)?;
                }
            }
            if let Some(status) = child.try_wait().map_err(Error::doing("look after a transfer"))? {
                break status;
            }
            interrupt::pause(TICK)?;
        };
        if status.success() || first.is_some() || begin.elapsed() > PATIENCE {
            stage.check(status, FileWay::Strait)?;
            return Ok((first.unwrap_or(f64::NAN), tries, begin.elapsed().as_secs_f64()));
        }
        interrupt::pause(RETRY)?;
    }
}

fn spawn(stage: &FileStage, name: &str, near: &Mutex<BTreeSet<u32>>) -> Result<Child, Error> {
    let child = stage.spawn(FileWay::Strait, name)?;
    if let Ok(mut roots) = near.lock() {
        roots.insert(child.id());
    }
    Ok(child)
}

/// Bytes on the disk of files that are not whole yet.
fn held(inbox: &Path) -> u64 {
    let entries = |folder: &Path| fs::read_dir(folder).into_iter().flatten().flatten().map(|it| it.path());
    let transfers = entries(&inbox.join(".strait-partial"));
    let files = transfers.flat_map(|folder| entries(&folder).collect::<Vec<_>>());
    let aside = files
        .filter(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("aside-")));
    aside.filter_map(|path| Some(fs::metadata(path).ok()?.blocks() * 512)).sum()
}

/// Also when its parent has not noticed yet: such a process has no program any more.
fn has_ended(pid: u32) -> bool {
    fs::read_link(format!("/proc/{pid}/exe")).is_err()
}

fn is_worker(pid: u32) -> bool {
    fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name.trim() == WORKER)
}
