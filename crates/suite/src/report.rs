//! The results of a run, in words.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;

use crate::pool::{Outcome, Test};
use crate::process::End;

/// Prints at once what a test said that did not pass.
pub(crate) fn failure(outcome: &Outcome<'_>) {
    let (what, said) = match &outcome.end {
        End::Passed => return,
        End::Failed(said) => ("failed", said),
        End::Hung(said) => ("hung and was ended", said),
    };
    let name = outcome.test.full_name();
    // In one call, so that outputs of several tests stay whole.
    let text = format!("---- {name} {what} after {:.1} s\n{said}----\n", outcome.took.as_secs_f64());
    let _ = std::io::stdout().lock().write_all(text.as_bytes());
}

/// The lines of a panic before its stack, as many as a screen has, from the last output of a test.
fn cause(end: &End) -> impl Iterator<Item = &str> {
    let said = match end {
        End::Passed => "",
        End::Failed(said) | End::Hung(said) => said,
    };
    let panic = said.lines().skip_while(|line| !line.contains(" panicked at "));
    panic.take_while(|line| *line != "stack backtrace:").take(30)
}

/// Prints the sums; answers whether every test passed.
pub(crate) fn conclude(
    results: &[Outcome<'_>],
    later: &[Test<'_>],
    file: Option<&Path>,
) -> Result<bool, String> {
    let mut failed: Vec<&Outcome<'_>> = results.iter().filter(|it| it.end != End::Passed).collect();
    failed.sort_by_key(|it| it.test.full_name());
    let mut longest: Vec<&Outcome<'_>> = results.iter().collect();
    longest.sort_by_key(|it| std::cmp::Reverse(it.took));
    println!("   the longest tests:");
    for outcome in longest.into_iter().take(10) {
        println!("   {:6.1} s  {}", outcome.took.as_secs_f64(), outcome.test.full_name());
    }
    let computed: f64 = results.iter().map(|it| it.computed.as_secs_f64()).sum();
    println!("   {computed:.0} s of processors in all, without what outlived its test");
    if !later.is_empty() {
        println!("   left to `make test-all`:");
        later.iter().for_each(|test| println!("      {}", test.full_name()));
    }
    if let Some(path) = file {
        let doing = |error| format!("{}: {error}", path.display());
        let mut file = OpenOptions::new().append(true).create(true).open(path).map_err(doing)?;
        failed.iter().try_for_each(|it| writeln!(file, "{}", it.test.full_name())).map_err(doing)?;
    }
    for outcome in &failed {
        println!("   failed: {}", outcome.test.full_name());
        cause(&outcome.end).for_each(|line| println!("      {line}"));
    }
    println!("{} passed, {} failed", results.len() - failed.len(), failed.len());
    Ok(failed.is_empty())
}
