//! `strait-suite`: runs the tests of all binaries of the workspace in one pool, each test in a process of its own.
//!
//! Tests of whole hosts wait for links and timers, so several run at once; tests that compute run beside them, as many as there
//! are processors and with a lower priority. A test that fails has its output printed, one that hangs is ended and named.
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod binary;
mod order;
mod pool;
mod process;
mod report;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;

/// Run the tests of all binaries in one pool.
#[derive(Debug, Parser)]
#[command(name = "strait-suite")]
struct Flags {
    /// The messages of `cargo test --no-run --message-format json`
    messages: PathBuf,
    /// Only tests whose `program::name` contains one of these words
    words: Vec<String>,
    /// Also run the tests that only `make test-all` runs (`#[ignore]`)
    #[arg(long)]
    all: bool,
    /// The seconds that a test may take before it is ended
    #[arg(long, value_name = "SECONDS", default_value_t = 600)]
    limit: u64,
    /// Add a line to this file for each test that fails
    #[arg(long, value_name = "FILE")]
    failed: Option<PathBuf>,
    /// The seconds that each test took in the last run: the longest begin first; written at the end
    #[arg(long, value_name = "FILE")]
    times: Option<PathBuf>,
}

fn main() -> ExitCode {
    let flags = Flags::parse();
    match run(&flags) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("strait-suite: {error}");
            ExitCode::from(2)
        }
    }
}

/// Runs the tests; true if every one passed.
fn run(flags: &Flags) -> Result<bool, String> {
    let path = &flags.messages;
    let messages = std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
    let binaries = binary::find(&messages)?;
    let (mut tests, mut later) = (Vec::new(), Vec::new());
    for (binary, listed) in binaries.iter().zip(binary::list(&binaries)?) {
        let wanted = |name: &str| {
            let name = binary.full_name(name);
            flags.words.is_empty() || flags.words.iter().any(|word| name.contains(word))
        };
        for (name, ignored) in listed.into_iter().filter(|(name, _)| wanted(name)) {
            let into = if ignored && !flags.all { &mut later } else { &mut tests };
            into.push(pool::Test { binary, name });
        }
    }
    if tests.is_empty() {
        return Err("no test has such a name".to_owned());
    }
    let times = flags.times.as_deref();
    order::longest_first(&mut tests, times);
    let results = pool::run(tests, Duration::from_secs(flags.limit))?;
    order::write(&results, times)?;
    report::conclude(&results, &later, flags.failed.as_deref())
}
