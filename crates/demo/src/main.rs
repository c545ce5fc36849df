//! `strait-demo`: two hosts, a thin link, real files; first beside a tunnel, then through one, then with compression. The tunnels
//! are run by `strait`.
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod files;
mod flags;
mod link;
mod path;
mod progress;
mod result;
mod stage;

use std::process::ExitCode;

use clap::Parser;
use strait_terminal::output::{note, print};
use strait_terminal::{Code, CommandResult, Failure};
use strait_testbed::sample::SampleFile;
use strait_testbed::{Error, interrupt, sandbox};

use flags::DemoFlags;
use progress::DemoProgress;
use result::{Measured, Summary};
use stage::{DemoHosts, DemoVariant};

fn main() -> ExitCode {
    match run(&DemoFlags::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report("strait-demo"),
    }
}

/// Runs the demonstration and prints its table.
fn run(flags: &DemoFlags) -> CommandResult {
    if let Some(folder) = &flags.save_sample {
        return files::save_sample(folder);
    }
    // Before any thread is started: this may start the program again inside a user namespace.
    sandbox::enter().map_err(failed)?;
    interrupt::watch();
    let path = flags.path()?;
    let files = files::load(&flags.files)?;
    let files: Vec<SampleFile> = path.link.enough_of(&files);
    let mut stage = DemoHosts::set(path, &flags.program.path()?).map_err(failed)?;
    if flags.keep_logs {
        stage.keep();
        note(format_args!("configurations, keys and logs: {}", stage.folder().display()));
    }
    let mut progress = DemoProgress::new(&files, path);
    let mut passes = Vec::new();
    for _ in 0..path.link.passes() {
        let pass = DemoVariant::ALL.into_iter().map(|way| measure(&mut stage, way, &files, &mut progress));
        passes.push(pass.collect::<Result<Vec<Measured>, Failure>>()?);
    }
    progress.finish();
    let measured = result::middle(passes);
    let summary = Summary { path, files: &files, measured: &measured };
    print(if flags.json { summary.json() } else { summary.text() }.as_bytes())
}

/// Moves every file one way.
fn measure(
    stage: &mut DemoHosts,
    way: DemoVariant,
    files: &[SampleFile],
    progress: &mut DemoProgress,
) -> Result<Measured, Failure> {
    progress.prepare(way);
    let before = stage.traffic().map_err(failed)?;
    stage.start(way).map_err(failed)?;
    let setup = stage.traffic().map_err(failed)?.since(before).bytes();
    let lost = stage.lost();
    let mut moved = Vec::with_capacity(files.len());
    let mut chosen = Vec::new();
    for file in files {
        progress.begin(way, file);
        let one = stage.transfer(way, file, &mut |bytes| progress.at(bytes));
        let one = one.map_err(|error| explain(stage, error))?;
        progress.end(file, &one);
        moved.push(one);
        chosen.push(stage.chosen(way)?);
    }
    let tunnels = stage.finish()?;
    Ok(Measured {
        way,
        setup,
        moved,
        chosen,
        lost: stage.lost().zip(lost).map(|(now, then)| now - then),
        tunnels,
    })
}

/// A transfer that fails through the tunnel is best explained by what the daemons said.
fn explain(stage: &DemoHosts, error: Error) -> Failure {
    let interrupted = matches!(error, Error::Interrupted(_));
    let failure = failed(error);
    if interrupted { failure } else { failure.remedy(stage.last_words()) }
}

/// The words and the exit code for an error of the testbed.
fn failed(error: Error) -> Failure {
    let code = match &error {
        Error::Forbidden(_) => Code::Environment,
        Error::Interrupted(signal) => Code::Signal(*signal),
        _ => Code::Failed,
    };
    Failure::new(error).code(code)
}
