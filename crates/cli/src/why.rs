//! `why`: what is compressed, with what, and the figures that decided it.

mod text;

use std::collections::BTreeMap;
use std::io::Write;
use std::thread;
use std::time::{Duration, SystemTime};

use strait_node::client;
use strait_node::report::{DecisionReport, PeerReport, Report};

use crate::failure::{Failure, Outcome};
use crate::flags;
use crate::output::print;
use crate::running::{self, refused};

/// How often a tunnel is asked while it is followed: five times in the second that a change may take to show.
const EVERY: Duration = Duration::from_millis(200);

/// Says what stands decided, once or at every change.
pub(crate) fn run(flags: &flags::Why) -> Outcome {
    let interface = running::which(&flags::Which { tunnel: flags.tunnel.clone() })?;
    if flags.follow {
        return follow(&interface, flags);
    }
    let said = ask(&interface, flags.peer.as_deref())?;
    let Some(first) = said.decisions else {
        return Err(Failure::new(format!("{interface} is too busy to explain itself")).remedy("ask again"));
    };
    if flags.json {
        return print((json(&first)? + "\n").as_bytes());
    }
    print((text::render(&interface, &first) + &text::queues(&said.peers)).as_bytes())
}

/// What a tunnel said.
struct Said {
    /// The decisions on traffic; none when the tunnel is too busy to say.
    decisions: Option<Vec<DecisionReport>>,
    peers: Vec<PeerReport>,
}

/// Asks about `peer`, or about all.
fn ask(interface: &str, peer: Option<&str>) -> Result<Said, Failure> {
    let mut report = client::show(interface).map_err(refused)?;
    if let Some(peer) = peer {
        known(&report, peer)?;
        report.peers.retain(|it| it.name == peer);
    }
    let all = report.decisions.map(Vec::into_iter);
    let ours = |it: &DecisionReport| peer.is_none_or(|peer| it.peer.as_deref() == Some(peer));
    Ok(Said { decisions: all.map(|all| all.filter(ours).collect()), peers: report.peers })
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
fn follow(interface: &str, flags: &flags::Why) -> Outcome {
    let mut last: BTreeMap<Who, (String, String)> = BTreeMap::new();
    loop {
        let Some(decisions) = ask(interface, flags.peer.as_deref())?.decisions else { continue };
        // Classes that fell silent are news again when they return.
        last.retain(|known, _| decisions.iter().any(|it| who(it) == *known));
        for decision in &decisions {
            let now = (decision.choice.clone(), decision.reason.clone());
            let before = last.insert(who(decision), now.clone());
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
    }
}

/// What tells decisions apart: the class, and what was said of it in the configuration.
type Who = (String, Option<String>);

fn who(decision: &DecisionReport) -> Who {
    (decision.class.clone(), decision.domain.clone())
}

fn json(value: &impl serde::Serialize) -> Result<String, Failure> {
    serde_json::to_string(value).map_err(|error| Failure::new(format!("cannot write JSON: {error}")))
}
