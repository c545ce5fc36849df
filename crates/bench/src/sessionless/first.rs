//! The first packet to a peer that was never heard of, beside a packet of a session that is up.

use std::time::Duration;

use strait_lab::measure::{RunValues, settle};

use super::stage::{Keying, KeyingStage};
use crate::echo::{Echoes, within};
use crate::error::Error;
use crate::report::{BenchSection, progress};
use crate::stage::BenchSetup;
use crate::target::Target;

/// Milliseconds above a session that is up.
const ABOVE: Target = Target::AtMost(5.0);
/// Round trips once keys are in use.
const ROUNDS: usize = 50;

pub(super) fn run(setting: &BenchSetup) -> Result<BenchSection, Error> {
    let runs = setting.effort.pick(9, 2);
    let title = format!(
        "round trip of one UDP datagram of 56 bytes, unshaped, {runs} runs, median (min-max); without sessions, both daemons are \
         new in each run and have not heard of each other"
    );
    let mut section = BenchSection::new("sessionless: first", title, &Keying::ALL.map(Keying::name));
    let session = KeyingStage::set(&setting.program, Keying::Session)?;
    // What a session finds out after its handshake is found out.
    Echoes::idle(&session.hosts, session.inside(), ROUNDS).run()?;
    let mut first: [RunValues; 2] = Default::default();
    let mut later: [RunValues; 2] = Default::default();
    for run in 1..=runs {
        let new = KeyingStage::set(&setting.program, Keying::Sessionless)?;
        for (at, stage) in [&session, &new].into_iter().enumerate() {
            // Neighbours on the link have found each other.
            one(stage, stage.outside())?;
            section.before.push(settle()?);
            let millis = one(stage, stage.inside())?;
            progress(section.name, run, Keying::ALL[at].name(), millis, "ms");
            first[at].push(millis);
            let mut times = Echoes::idle(&stage.hosts, stage.inside(), ROUNDS).run()?;
            later[at].push(within(&mut times, 50));
        }
    }
    let above = first[1].minus(&first[0]);
    section.row("one datagram, ms", first);
    section.row("the median of those that follow, ms", later);
    section.judge("first packet without a session, above one of a session, ms", above, ABOVE);
    section.notes.push(
        "marks of both ends are written to disk before the first packet is sent, and before it is delivered"
            .to_owned(),
    );
    Ok(section)
}

/// Milliseconds of one round trip, the first that is tried.
fn one(stage: &KeyingStage, address: std::net::SocketAddr) -> Result<f64, Error> {
    let mut times = Echoes::beside(&stage.hosts, address, Duration::ZERO, Duration::ZERO).run()?;
    Ok(within(&mut times, 50))
}
