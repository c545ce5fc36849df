//! `strait`, what a tunnel and its users need: flags and words in one place, work in the crates below.
#![cfg_attr(test, allow(clippy::unwrap_used))]

#[cfg(feature = "advise")]
mod advise;
mod configuration;
mod flags;
mod keys;
mod other;
mod running;
mod show;
mod why;

use std::process::ExitCode;

use clap::{CommandFactory, Parser};
#[cfg(feature = "advise")]
use strait_terminal::progress;
use strait_terminal::{failure, output, pages, table, units};

use failure::Outcome;
use flags::{Command, Flags};

fn main() -> ExitCode {
    match run(&Flags::parse().command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report("strait"),
    }
}

fn run(command: &Command) -> Outcome {
    match command {
        Command::Keygen(flags) => keys::keygen(flags),
        Command::Pubkey(flags) => keys::pubkey(flags),
        Command::Init(flags) => configuration::init(flags),
        Command::Check(flags) => configuration::check(flags),
        Command::Up(flags) => running::up(flags),
        Command::Down(flags) => running::down(flags),
        Command::Show(flags) => show::show(flags),
        Command::Why(flags) => why::run(flags),
        Command::Reload(flags) => running::reload(flags),
        #[cfg(feature = "advise")]
        Command::Advise(flags) => advise::run(flags),
        Command::Demo(flags) => other::run("demo", flags),
        Command::Lab(flags) => other::run("lab", flags),
        Command::Completions(flags) => pages::completions(flags, Flags::command()),
        Command::Man(flags) => pages::man(flags, Flags::command()),
    }
}
