//! The pool: a queue of tests for each group, each with its own number of places.

use std::collections::VecDeque;
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::binary::{Binary, Group};
use crate::process::{self, End};
use crate::report;

/// A test of a binary.
#[derive(Debug)]
pub(crate) struct Test<'a> {
    pub(crate) binary: &'a Binary,
    /// The name in its binary.
    pub(crate) name: String,
}

impl Test<'_> {
    pub(crate) fn full_name(&self) -> String {
        self.binary.full_name(&self.name)
    }
}

/// A test that ran.
#[derive(Debug)]
pub(crate) struct Outcome<'a> {
    pub(crate) test: Test<'a>,
    pub(crate) end: End,
    pub(crate) took: Duration,
    /// Time of processors.
    pub(crate) computed: Duration,
}

/// The words that give a test a loopback of its own, so that no other program takes a port of it.
const OWN_LOOPBACK: [&str; 6] =
    ["unshare", "--net", "--", "sh", "-c", "ip link set lo up && exec \"$0\" \"$@\""];

/// The words that start a test of a group. Who may not raise a priority (nice(1)) or make a network runs it without.
fn beginning(group: Group, own_loopback: bool, busy: bool) -> Vec<&'static str> {
    let priority: &[&str] = match group {
        Group::Quiet => &["nice", "-n", "-15"],
        Group::Hosts => &[],
        // Beside endless loops nothing would be left for them.
        Group::Computing if busy => &[],
        // They take what the others leave.
        Group::Computing => &["nice", "-n", "10"],
    };
    let loopback: &[&str] = if own_loopback && group != Group::Computing { &OWN_LOOPBACK } else { &[] };
    [priority, loopback].concat()
}

/// True where tests can have a loopback of their own.
fn may_make_networks() -> bool {
    let [unshare, net, ..] = OWN_LOOPBACK;
    Command::new(unshare)
        .args([net, "ip", "link", "set", "lo", "up"])
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|it| it.success())
}

/// Runs all tests, each for `limit` at most; the results come in the order in which they ended.
pub(crate) fn run(mut tests: Vec<Test<'_>>, limit: Duration) -> Result<Vec<Outcome<'_>>, String> {
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let own_loopback = may_make_networks();
    let busy = std::env::var_os("STRAIT_BUSY").is_some();
    let mut queues = Vec::new();
    for group in Group::ALL {
        let places = match group {
            Group::Quiet => 1,
            Group::Hosts => 4 * processors,
            Group::Computing => processors,
        };
        let (of_group, others): (Vec<_>, Vec<_>) =
            tests.into_iter().partition(|test| test.binary.group_of(&test.name) == group);
        tests = others;
        queues.push((places, beginning(group, own_loopback, busy), Mutex::new(VecDeque::from(of_group))));
    }
    let results = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        let mut places = Vec::new();
        for (count, before, queue) in &queues {
            for _ in 0..*count {
                places.push(scope.spawn(|| work(queue, before, limit, &results)));
            }
        }
        places
            .into_iter()
            .try_for_each(|place| place.join().map_err(|_| "a thread ended early".to_owned())?)
    })?;
    Ok(results.into_inner().unwrap_or_else(PoisonError::into_inner))
}

/// Takes tests from a queue until it is empty.
fn work<'a>(
    queue: &Mutex<VecDeque<Test<'a>>>,
    before: &[&str],
    limit: Duration,
    results: &Mutex<Vec<Outcome<'a>>>,
) -> Result<(), String> {
    loop {
        let Some(test) = queue.lock().unwrap_or_else(PoisonError::into_inner).pop_front() else {
            return Ok(());
        };
        let command =
            test.binary.command(before, &["--exact", "--include-ignored", "--nocapture", &test.name]);
        let start = Instant::now();
        let (end, computed) =
            process::run(command, limit).map_err(|error| format!("{}: {error}", test.full_name()))?;
        let outcome = Outcome { test, end, took: start.elapsed(), computed };
        report::failure(&outcome);
        results.lock().unwrap_or_else(PoisonError::into_inner).push(outcome);
    }
}
