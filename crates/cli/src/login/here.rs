//! `strait login --here`: sessions that peers have at this host.

use serde_json::json;
use strait_node::login::RunningSession;
use strait_node::path_memory::unix_time;
use strait_node::services::printable;

use super::list::span;
use super::road::user_and_peer;
use crate::failure::{CommandResult, Failure};
use crate::flags::{Login, Which};
use crate::output::{print, tell};
use crate::running::which;
use crate::table::{Side, TextTable};

/// Lists sessions of peers, or ends them.
pub(super) fn here(flags: &Login) -> CommandResult {
    let named = flags.peer.as_deref().map(user_and_peer).transpose()?;
    let interface =
        flags.tunnel.as_ref().map(|_| which(&Which { tunnel: flags.tunnel.clone() })).transpose()?;
    let mut found = RunningSession::all().map_err(Failure::doing("read which sessions run"))?;
    found.retain(|it| {
        named.is_none_or(|(user, peer)| it.peer == peer && (user.is_empty() || it.account == user))
            && interface.as_ref().is_none_or(|interface| it.interface == *interface)
    });
    found.sort_by_key(|session| session.since);
    if !flags.end {
        return print(listed(&found, flags.json).as_bytes());
    }
    if found.is_empty() {
        return Err(Failure::new("there is no such session").remedy("`strait login --here` lists them"));
    }
    for session in &found {
        session.end().map_err(Failure::doing("end a session"))?;
        let RunningSession { process, peer, account, .. } = session;
        tell(format_args!("{peer}: the session as {account} (process {process}) is to end"));
    }
    Ok(())
}

fn listed(sessions: &[RunningSession], as_json: bool) -> String {
    if as_json {
        let row = |it: &RunningSession| {
            json!({
                "process": it.process, "interface": it.interface, "peer": it.peer, "principal": it.principal,
                "account": it.account, "since": it.since,
            })
        };
        return format!("{}\n", serde_json::Value::from_iter(sessions.iter().map(row)));
    }
    let mut table = TextTable::new(["process", "interface", "peer", "account", "principal", "age"]);
    for column in 1..5 {
        table = table.side(column, Side::Left);
    }
    for it in sessions {
        table.row([
            it.process.to_string(),
            it.interface.clone(),
            it.peer.clone(),
            it.account.clone(),
            it.principal.as_deref().map_or_else(|| "-".to_owned(), printable),
            span(unix_time().saturating_sub(it.since)),
        ]);
    }
    if table.is_empty() { "no sessions\n".to_owned() } else { table.render(0) }
}
