//! The pool: two queues of tests, each with its own number of places.

use std::collections::VecDeque;
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::binary::Binary;
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

/// How many tests run at once, and how long each may take.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pool {
    /// Tests that compute.
    pub(crate) computing: usize,
    /// Tests of whole hosts.
    pub(crate) hosts: usize,
    /// After so long a test is ended.
    pub(crate) limit: Duration,
}

/// The words that start a test which computes: its priority is low, so it takes what the hosts leave.
const COMPUTING: [&str; 3] = ["nice", "-n", "10"];

/// The words that start a test of whole hosts: its loopback is its own, so no other program takes a port of it.
const HOSTS: [&str; 6] = ["unshare", "--net", "--", "sh", "-c", "ip link set lo up && exec \"$0\" \"$@\""];

/// Whether tests can have a loopback of their own here.
fn may_make_networks() -> bool {
    let [unshare, net, ..] = HOSTS;
    Command::new(unshare)
        .args([net, "ip", "link", "set", "lo", "up"])
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|it| it.success())
}

impl Pool {
    /// Runs all tests; the results come in the order in which they ended.
    pub(crate) fn run(self, tests: Vec<Test<'_>>) -> Result<Vec<Outcome<'_>>, String> {
        let (hosts, computing): (VecDeque<_>, VecDeque<_>) =
            tests.into_iter().partition(|test| test.binary.hosts);
        let beside: &[&str] = if may_make_networks() { &HOSTS } else { &[] };
        let queues = [
            (self.hosts, beside, Mutex::new(hosts)),
            (self.computing, &COMPUTING[..], Mutex::new(computing)),
        ];
        let results = Mutex::new(Vec::new());
        std::thread::scope(|scope| {
            let mut places = Vec::new();
            for (count, beside, queue) in &queues {
                for _ in 0..*count {
                    places.push(scope.spawn(|| self.place(queue, beside, &results)));
                }
            }
            places
                .into_iter()
                .try_for_each(|place| place.join().map_err(|_| "a thread ended early".to_owned())?)
        })?;
        Ok(results.into_inner().unwrap_or_else(PoisonError::into_inner))
    }

    /// Takes tests from a queue until it is empty.
    fn place<'a>(
        self,
        queue: &Mutex<VecDeque<Test<'a>>>,
        beside: &[&str],
        results: &Mutex<Vec<Outcome<'a>>>,
    ) -> Result<(), String> {
        loop {
            let Some(test) = queue.lock().unwrap_or_else(PoisonError::into_inner).pop_front() else {
                return Ok(());
            };
            let command =
                test.binary.command(beside, &["--exact", "--include-ignored", "--nocapture", &test.name]);
            let start = Instant::now();
            let (end, computed) = process::run(command, self.limit)
                .map_err(|error| format!("{}: {error}", test.full_name()))?;
            let outcome = Outcome { test, end, took: start.elapsed(), computed };
            report::failure(&outcome);
            results.lock().unwrap_or_else(PoisonError::into_inner).push(outcome);
        }
    }
}
