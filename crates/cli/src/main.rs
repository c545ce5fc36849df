//! `strait`, what a tunnel and its users need: flags and words in one place, work in the crates below.
#![cfg_attr(test, allow(clippy::unwrap_used))]

#[cfg(feature = "advise")]
mod advise;
mod authority;
mod broker;
mod carry;
mod configuration;
mod files;
mod flags;
mod keys;
mod login;
mod other;
mod outbox;
mod pace;
mod restart;
mod running;
mod saved;
mod served;
mod show;
mod silence;
mod ssh;
mod status_line;
mod stopping;
#[cfg(feature = "top")]
mod top;
mod why;

use std::process::ExitCode;

use clap::{CommandFactory, Parser};
#[cfg(feature = "advise")]
use strait_terminal::progress;
use strait_terminal::{failure, output, pages, table, units};

use failure::CommandResult;
use flags::{StraitCommand, StraitFlags};

fn main() -> ExitCode {
    // A process of a node that serves one stream.
    if let Some(status) = files::serve_one().or_else(login::serve_one) {
        std::process::exit(status);
    }
    let command = StraitFlags::parse().command;
    if let StraitCommand::Login(flags) = &command {
        return login::login(flags);
    }
    match run(&command).and_then(|()| output::all_told()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report("strait"),
    }
}

fn run(command: &StraitCommand) -> CommandResult {
    match command {
        StraitCommand::Keygen(flags) => keys::keygen(flags),
        StraitCommand::Pubkey(flags) => keys::pubkey(flags),
        StraitCommand::Init(flags) => configuration::init(flags),
        StraitCommand::Check(flags) => configuration::check(flags),
        StraitCommand::Up(flags) => running::up(flags),
        StraitCommand::Down(flags) => running::down(flags),
        StraitCommand::Show(flags) => show::show(flags),
        StraitCommand::Why(flags) => why::run(flags),
        StraitCommand::Saved(flags) => saved::run(flags),
        #[cfg(feature = "top")]
        StraitCommand::Top(flags) => top::run(flags),
        StraitCommand::Reload(flags) => running::reload(flags),
        StraitCommand::Restart(flags) => restart::restart(flags),
        StraitCommand::Send(flags) => files::send(flags),
        StraitCommand::Get(flags) => files::get(flags),
        StraitCommand::Ls(flags) => files::ls(flags),
        StraitCommand::Sync(flags) => files::sync(flags),
        StraitCommand::Put(flags) => broker::put(flags),
        StraitCommand::Rm(flags) => broker::rm(flags),
        StraitCommand::Fetch(flags) => broker::fetch(flags),
        // Its exit code is another program's.
        StraitCommand::Login(_) => Ok(()),
        StraitCommand::Ssh(flags) => ssh::run(flags),
        #[cfg(feature = "advise")]
        StraitCommand::Advise(flags) => advise::run(flags),
        StraitCommand::Demo(flags) => other::demo(flags),
        StraitCommand::Lab(flags) => other::lab(flags),
        StraitCommand::Authority(flags) => authority::run(flags),
        StraitCommand::Directory(flags) => other::directory(flags),
        StraitCommand::Broker(flags) => other::broker(flags),
        StraitCommand::Carry(flags) => carry::run(flags),
        StraitCommand::Outbox(flags) => outbox::run(flags),
        StraitCommand::Keys(flags) => keys::run(flags),
        StraitCommand::Completions(flags) => pages::completions(flags, StraitFlags::command()),
        StraitCommand::Man(flags) => pages::man(flags, StraitFlags::command()),
    }
}
