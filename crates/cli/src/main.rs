//! `strait`, the one binary: flags and words in one place, work in the crates below.
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod advise;
mod configuration;
mod demo;
mod failure;
mod flags;
mod generate;
mod keys;
mod lab;
mod progress;
mod running;
mod show;
mod table;
mod units;
mod why;

use std::process::ExitCode;

use clap::Parser;

use failure::Outcome;
use flags::{Command, Flags};

fn main() -> ExitCode {
    match run(&Flags::parse().command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
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
        Command::Demo(flags) => demo::run(flags),
        Command::Advise(flags) => advise::run(flags),
        Command::Lab(flags) => lab::run(flags),
        Command::Completions(flags) => generate::completions(flags),
        Command::Man(flags) => generate::man(flags),
    }
}
