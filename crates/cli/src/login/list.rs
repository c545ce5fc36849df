//! `strait login --list`: sessions that run at peers.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use strait_login::{ClientEvent, ListedSession, LoginClient};
use strait_node::clock::Clock;
use strait_node::path_memory::unix_time;
use strait_node::poll;

use super::driver::{DrivenSession, LinkChange};
use super::road::{LoginRoad, OwnNode, user_and_peer};
use super::tickets;
use crate::failure::{CommandResult, Failure};
use crate::flags::Login;
use crate::output::{note, print};
use crate::silence::AnswerLine;
use crate::table::{Side, TextTable};

/// How long a peer may take to answer: a handshake and round trips of a satellite link.
const PATIENCE: Duration = Duration::from_secs(40);

/// Lists the sessions of a peer; without one, of all that this user has tickets of.
pub(super) fn list(flags: &Login) -> CommandResult {
    let places: BTreeSet<(String, String)> = match &flags.peer {
        Some(peer) => {
            let (user, peer) = user_and_peer(peer)?;
            BTreeSet::from([(peer.to_owned(), user.to_owned())])
        }
        None => tickets::all().into_iter().map(|kept| (kept.peer, kept.account)).collect(),
    };
    let kept: BTreeSet<_> = tickets::all().iter().map(|kept| kept.ticket.session()).collect();
    let mut rows = Vec::new();
    let mut failed = None;
    for (peer, account) in &places {
        let line = AnswerLine::new();
        match line.during(peer, || Duration::MAX, || ask(flags, peer, account)) {
            Ok(listed) => rows.extend(listed.into_iter().map(|one| (peer, one))),
            Err(failure) if places.len() > 1 => {
                note(format_args!("strait: {peer}: {failure}"));
                failed = Some(failure);
            }
            Err(failure) => return Err(failure),
        }
    }
    let now = unix_time();
    let text = if flags.json {
        let rows: Vec<_> = rows
            .iter()
            .map(|(peer, one)| {
                json!({
                    "session": one.number.to_string(), "peer": peer, "since": one.since, "idle_s": one.idle,
                    "attached": one.attached, "resumable": kept.contains(&one.number), "what": one.what,
                })
            })
            .collect();
        format!("{}\n", serde_json::Value::from(rows))
    } else {
        let mut table = TextTable::new(["session", "peer", "age", "idle", "client", "resume", "what"]);
        for column in [1, 4, 5, 6] {
            table = table.side(column, Side::Left);
        }
        for (peer, one) in &rows {
            let word = |yes: bool, word: &str| if yes { word.to_owned() } else { "-".to_owned() };
            table.row([
                one.number.to_string(),
                (*peer).clone(),
                span(now.saturating_sub(one.since)),
                span(one.idle),
                word(one.attached, "there"),
                word(kept.contains(&one.number), "yes"),
                one.what.clone(),
            ]);
        }
        if table.is_empty() { "no sessions\n".to_owned() } else { table.render(0) }
    };
    print(text.as_bytes())?;
    failed.map_or(Ok(()), |_| Err(Failure::new("not all peers answered")))
}

/// Seconds, as people say them.
pub(super) fn span(seconds: u64) -> String {
    match seconds {
        ..120 => format!("{seconds} s"),
        120..7_200 => format!("{} min", seconds / 60),
        7_200..172_800 => format!("{} h", seconds / 3600),
        _ => format!("{} d", seconds / 86_400),
    }
}

fn ask(flags: &Login, peer: &str, account: &str) -> Result<Vec<ListedSession>, Failure> {
    let road = Arc::new(LoginRoad::find(
        flags.tunnel.as_deref(),
        peer,
        account,
        OwnNode::Restarted,
        (&flags.kerberos).into(),
    )?);
    let clock = Clock::start();
    let stream = road.open()?;
    let mut session = DrivenSession::new(LoginClient::list(), stream, road, clock)?;
    let until = clock.now() + PATIENCE;
    while clock.now() < until {
        while session.turn() {}
        while let Some(event) = session.next_event() {
            match event {
                ClientEvent::Sessions(listed) => return Ok(listed),
                ClientEvent::Refused(refusal) => {
                    return Err(Failure::new(format!("the peer refuses: {}", refusal.text)));
                }
                _ => {}
            }
        }
        while let Some(change) = session.next_change() {
            if let LinkChange::Failed(failure) = change {
                return Err(failure);
            }
        }
        let due = session.deadline().unwrap_or(until).min(until);
        let waited = poll::wait(&mut session.interest(), Some(clock.until(due)));
        waited.map_err(Failure::doing("wait for the peer"))?;
    }
    Err(Failure::new(format!("{peer} does not answer")))
}
