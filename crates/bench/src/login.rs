//! Remote logins: `strait login` and what runs over `strait ssh`, beside ssh, `ssh -C` and mosh.
//!
//! All of them log in to the same host over the same link in turn: Strait through its daemons, which are told the link's rate, the
//! others beside the tunnel, ssh to an sshd of their own. A person's terminal is one that `script` gives.

mod copies;
mod idle;
mod keystroke;
mod outage;
mod output;
mod stage;
mod terminal;
mod way;

pub(crate) use stage::{PROMPT, SHELL};
pub(crate) use terminal::PersonTerminal;

use crate::error::Error;
use crate::report::BenchSection;
use crate::stage::{BenchPart, BenchSetup, each_part};

/// A section for each part, given to `done` when it is measured.
pub(crate) fn run(setting: &BenchSetup, done: &mut dyn FnMut(BenchSection)) -> Result<(), Error> {
    let parts: [(&str, BenchPart); 5] = [
        ("keystroke", keystroke::run),
        ("output", output::run),
        ("copies", copies::run),
        ("outage", outage::run),
        ("idle", idle::run),
    ];
    each_part(&parts, setting, done)
}
