//! `why`: compression decisions and the estimates behind them.

pub(crate) mod text;

use std::collections::BTreeMap;
use std::thread;
use std::time::{Duration, SystemTime};

use strait_node::client;
use strait_node::report::{DaemonReport, DecisionReport, PeerReport, RuleReport};

use crate::failure::{CommandResult, Failure};
use crate::flags;
use crate::output::{print, still_read};
use crate::running::{self, refused};

/// How often a tunnel is asked while it is followed: five times in the second that a change may take to show.
const EVERY: Duration = Duration::from_millis(200);

/// Prints the current decisions, or with `--follow` every change.
pub(crate) fn run(flags: &flags::Why) -> CommandResult {
    let interface = match &flags.peer {
        Some(peer) => running::which_with(flags.tunnel.as_deref(), peer)?,
        None => running::which(&flags::Which { tunnel: flags.tunnel.clone() })?,
    };
    if flags.follow {
        return follow(&interface, flags);
    }
    let answer = ask(&interface, flags.peer.as_deref())?;
    let Some(first) = answer.decisions else {
        return Err(Failure::new(format!("{interface} has not answered in time: the sender is busy"))
            .remedy("try again"));
    };
    if flags.json {
        return print((json(&first)? + "\n").as_bytes());
    }
    let beside = text::queues(&answer.peers)
        + &text::repairs(&answer.peers)
        + &text::histories(&answer.peers)
        + &text::leaks(&answer.rules);
    print((text::render(&interface, &first) + &beside).as_bytes())
}

/// The answer of a tunnel.
struct Explained {
    /// The decisions on traffic; none when the sender did not answer in time.
    decisions: Option<Vec<DecisionReport>>,
    peers: Vec<PeerReport>,
    rules: Vec<RuleReport>,
}

/// Asks about `peer`, or about all.
fn ask(interface: &str, peer: Option<&str>) -> Result<Explained, Failure> {
    let mut report = client::show(interface).map_err(refused)?;
    if let Some(peer) = peer {
        known(&report, peer)?;
        report.peers.retain(|it| it.name == peer);
    }
    let all = report.decisions.map(Vec::into_iter);
    let ours = |it: &DecisionReport| peer.is_none_or(|peer| it.peer.as_deref() == Some(peer));
    Ok(Explained {
        decisions: all.map(|all| all.filter(ours).collect()),
        peers: report.peers,
        rules: report.rules,
    })
}

fn known(report: &DaemonReport, peer: &str) -> CommandResult {
    if report.peers.iter().any(|it| it.name == peer) {
        return Ok(());
    }
    let names: Vec<&str> = report.peers.iter().map(|it| it.name.as_str()).collect();
    Err(Failure::new(format!("{} has no peer {peer}", report.node.interface))
        .remedy(format!("peers: {}", names.join(", "))))
}

/// A line for each class when it is first seen, and whenever its choice changes; until the tunnel ends, or this is interrupted.
fn follow(interface: &str, flags: &flags::Why) -> CommandResult {
    let mut last: BTreeMap<DecisionKey, (String, String)> = BTreeMap::new();
    loop {
        let Some(decisions) = ask(interface, flags.peer.as_deref())?.decisions else { continue };
        // A class that had no traffic for some seconds is printed again when it returns.
        last.retain(|known, _| decisions.iter().any(|it| key(it) == *known));
        for decision in &decisions {
            let now = (decision.choice.clone(), decision.reason.clone());
            let before = last.insert(key(decision), now.clone());
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
                if !still_read(format!("{line}\n").as_bytes())? {
                    return Ok(());
                }
            }
        }
        thread::sleep(EVERY);
    }
}

/// What identifies a decision: its class and its trust domain.
type DecisionKey = (String, Option<String>);

fn key(decision: &DecisionReport) -> DecisionKey {
    (decision.class.clone(), decision.domain.clone())
}

fn json(value: &impl serde::Serialize) -> Result<String, Failure> {
    serde_json::to_string(value).map_err(|error| Failure::new(format!("cannot write JSON: {error}")))
}
