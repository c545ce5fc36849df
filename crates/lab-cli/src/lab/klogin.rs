//! `lab klogin`: files over a modem that compresses, and packets of a keystroke.

use std::fmt::Write;

use strait_lab::klogin::{KeystrokeRow, KloginLab, OwnLine};
use strait_testbed::sandbox;

use super::{csv, measured, shown_with};
use crate::failure::CommandResult;
use crate::flags::LabKlogin;

/// Makes the tables and prints them, with each packet of a keystroke.
pub(super) fn run(flags: &LabKlogin) -> CommandResult {
    // Before any thread: it may start this program again.
    let hosts = sandbox::enter().map_err(|error| error.to_string());
    let made = measured(&flags.output, |effort, tell| {
        let strait = flags.program.path().ok();
        let own = OwnLine { rate: flags.line, round_trip: flags.rtt, file: flags.file.clone() };
        KloginLab { effort, hosts, strait, sshd: flags.sshd.clone(), own }.run(tell)
    })?;
    shown_with(
        &flags.output,
        &made,
        |made| csv::render(&made.report),
        &made.report,
        &traces(&made.keystrokes),
    )
}

/// The packets of each program's keystroke in the middle.
fn traces(rows: &[KeystrokeRow]) -> String {
    let mut out = String::new();
    for row in rows {
        let Some(middle) = row.median() else { continue };
        let _ = writeln!(
            out,
            "\n{}: {} packets of a keystroke, as the home machine sees them",
            row.program, middle.packets
        );
        for line in &middle.trace {
            let _ = writeln!(out, "  {line}");
        }
    }
    out
}
