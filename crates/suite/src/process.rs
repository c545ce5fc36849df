//! One test as a process: its end is an event, its time is limited, and nothing that it started stays when it is ended.

use std::fs::{self, File};
use std::io::{self, Read, Seek};
use std::os::fd::OwnedFd;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

/// The end of a test.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Passed,
    /// Its last output.
    Failed(String),
    /// It took longer than it may, and was ended; its last output.
    Hung(String),
}

/// So much of a test's output is kept, its end.
const KEPT: u64 = 64 * 1024;

/// Runs a test, for `limit` at most: how it ended, and what it took of processors, with the processes that it waited for.
pub(crate) fn run(mut command: Command, limit: Duration) -> io::Result<(End, Duration)> {
    let mut output = unnamed()?;
    command.stdin(Stdio::null()).stdout(output.try_clone()?).stderr(output.try_clone()?);
    let mut child = command.spawn()?;
    if !ends_within(&child, limit)? {
        end_with_descendants(&mut child)?;
        return Ok((End::Hung(last_of(&mut output)?), limit));
    }
    // It has ended, and its figures are there until it is waited for.
    let computed = computed(child.id());
    let status = child.wait()?;
    if status.success() {
        return Ok((End::Passed, computed));
    }
    let mut said = last_of(&mut output)?;
    // A panic says itself what happened (101, as libtest exits); a signal does not.
    if status.code() != Some(101) {
        said.push_str(&format!("\n{status}\n"));
    }
    Ok((End::Failed(said), computed))
}

/// The time of processors that an ended process and its children have taken (proc_pid_stat(5), fields 14 to 17, in ticks of 10 ms).
fn computed(number: u32) -> Duration {
    let text = fs::read_to_string(format!("/proc/{number}/stat")).unwrap_or_default();
    let fields = text.rsplit(") ").next().unwrap_or_default().split(' ').skip(11).take(4);
    Duration::from_millis(10 * fields.filter_map(|field| field.parse::<u64>().ok()).sum::<u64>())
}

/// A file for a test's output that goes when it is closed.
fn unnamed() -> io::Result<File> {
    let flags = rustix::fs::OFlags::TMPFILE | rustix::fs::OFlags::RDWR;
    Ok(rustix::fs::open(std::env::temp_dir(), flags, rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR)?.into())
}

/// True if a process ends in this time.
fn ends_within(child: &Child, limit: Duration) -> io::Result<bool> {
    let limit = Timespec { tv_sec: limit.as_secs().try_into().unwrap_or(i64::MAX), tv_nsec: 0 };
    ended(&pidfd_open(pid(child.id())?, PidfdFlags::empty())?, Some(&limit))
}

/// Waits for the end of a process: true if it came in time.
fn ended(process: &OwnedFd, limit: Option<&Timespec>) -> io::Result<bool> {
    loop {
        match poll(&mut [PollFd::new(process, PollFlags::IN)], limit) {
            Ok(ready) => return Ok(ready > 0),
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

fn pid(number: u32) -> io::Result<Pid> {
    i32::try_from(number).ok().and_then(Pid::from_raw).ok_or_else(|| io::ErrorKind::InvalidInput.into())
}

/// Kills a process and all that come from it, and returns when none of them runs.
fn end_with_descendants(child: &mut Child) -> io::Result<()> {
    // The parents last: a child whose parent is gone is no longer known as a descendant.
    for number in descendants(child.id()).into_iter().rev() {
        // One that has ended meanwhile is no error.
        if let Ok(process) = pidfd_open(pid(number)?, PidfdFlags::empty()) {
            let _ = pidfd_send_signal(&process, Signal::KILL);
            ended(&process, None)?;
        }
    }
    child.kill()?;
    child.wait().map(drop)
}

/// The processes that come from one, parents before their children.
fn descendants(root: u32) -> Vec<u32> {
    let mut found = vec![root];
    let mut at = 0;
    while let Some(number) = found.get(at).copied() {
        let tasks = fs::read_dir(format!("/proc/{number}/task")).into_iter().flatten().flatten();
        let children = tasks.filter_map(|task| fs::read_to_string(task.path().join("children")).ok());
        found.extend(children.flat_map(|text| {
            let numbers = text.split_whitespace().filter_map(|word| word.parse().ok());
            numbers.collect::<Vec<u32>>()
        }));
        at += 1;
    }
    found.remove(0);
    found
}

/// The end of what a test wrote.
fn last_of(output: &mut File) -> io::Result<String> {
    let length = output.seek(io::SeekFrom::End(0))?;
    output.seek(io::SeekFrom::Start(length.saturating_sub(KEPT)))?;
    let mut bytes = Vec::new();
    output.take(KEPT).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn a_failure_keeps_its_output_and_names_its_signal() {
        let run = |script: &str| run(shell(script), Duration::from_secs(60)).unwrap().0;
        assert_eq!(run("echo fine"), End::Passed);
        let End::Failed(said) = run("echo why; kill -ABRT $$") else { panic!("it failed") };
        assert!(said.starts_with("why\n") && said.contains("signal: 6"), "{said}");
    }

    #[test]
    fn what_it_computes_is_counted_with_its_children() {
        let script = "sh -c 'n=0; while [ $n -lt 100000 ]; do n=$((n + 1)); done'";
        let (end, computed) = run(shell(script), Duration::from_secs(60)).unwrap();
        assert_eq!(end, End::Passed);
        assert!(computed > Duration::ZERO);
    }

    #[test]
    fn one_that_hangs_is_ended_with_what_it_started() {
        let (end, _) = run(shell("setsid sleep 1000 & echo $!; wait"), Duration::from_secs(1)).unwrap();
        let End::Hung(said) = end else { panic!("{end:?}") };
        let number: u32 = said.trim().parse().unwrap();
        let state = fs::read_to_string(format!("/proc/{number}/stat")).unwrap_or_default();
        assert!(state.is_empty() || state.contains(") Z "), "{state}");
    }
}
