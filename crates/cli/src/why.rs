//! `why`: what is compressed, with what, and the figures that decided it.

mod text;

use std::collections::BTreeMap;
use std::io::Write;
use std::thread;
use std::time::{Duration, SystemTime};

use strait_node::client;
use strait_node::report::{DecisionReport, Report};

use crate::failure::{Failure, Outcome};
use crate::flags;
use crate::generate::print;
use crate::running::{self, refused};

pub(crate) use text::reason;

/// How often a tunnel is asked while it is followed: five times in the second that a change may take to show.
const EVERY: Duration = Duration::from_millis(200);

/// Says what stands decided, once or at every change.
pub(crate) fn run(flags: &flags::Why) -> Outcome {
    let interface = running::which(&flags::Which { tunnel: flags.tunnel.clone() })?;
    let first = ask(&interface, flags.peer.as_deref())?;
    if flags.follow {
        return follow(&interface, flags, first);
    }
    if flags.json {
        return print((json(&first)? + "\n").as_bytes());
    }
    print(text::render(&interface, &first).as_bytes())
}

/// The decisions on traffic to `peer`, or to anybody.
fn ask(interface: &str, peer: Option<&str>) -> Result<Vec<DecisionReport>, Failure> {
    let report = client::show(interface).map_err(refused)?;
    let Some(peer) = peer else { return Ok(report.decisions) };
    known(&report, peer)?;
    Ok(report.decisions.into_iter().filter(|it| it.peer.as_deref() == Some(peer)).collect())
}

fn known(report: &Report, peer: &str) -> Outcome {
    if report.peers.iter().any(|it| it.name == peer) {
        return Ok(());
    }
    let names: Vec<&str> = report.peers.iter().map(|it| it.name.as_str()).collect();
    Err(Failure::new(format!("{} has no peer {peer}", report.node.interface))
        .remedy(format!("its peers: {}", names.join(", "))))
}

/// A line for each class when it is first seen, and whenever its choice changes; until the tunnel ends, or this is interrupted.
fn follow(interface: &str, flags: &flags::Why, first: Vec<DecisionReport>) -> Outcome {
    let mut last: BTreeMap<String, (String, String)> = BTreeMap::new();
    let mut decisions = first;
    loop {
        // Classes that fell silent are news again when they return.
        let present = |class: &String| decisions.iter().any(|it| it.class == *class);
        last.retain(|class, _| present(class));
        for decision in &decisions {
            let now = (decision.choice.clone(), decision.reason.clone());
            let before = last.insert(decision.class.clone(), now.clone());
            if before.as_ref() != Some(&now) {
                let line = if flags.json {
                    json(decision)?
                } else {
                    text::change(
                        decision,
                        before.as_ref().map(|(choice, _)| choice.as_str()),
                        SystemTime::now(),
                    )
                };
                let mut out = std::io::stdout().lock();
                // Whoever read this may have gone, as `head` does.
                if writeln!(out, "{line}").and_then(|()| out.flush()).is_err() {
                    return Ok(());
                }
            }
        }
        thread::sleep(EVERY);
        decisions = ask(interface, flags.peer.as_deref())?;
    }
}

fn json(value: &impl serde::Serialize) -> Result<String, Failure> {
    serde_json::to_string(value).map_err(|error| Failure::new(format!("cannot write JSON: {error}")))
}
