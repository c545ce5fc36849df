//! `[[login]]`: which peers may log in here, and as whom.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use strait_kerberos::Accounts;

use super::checks::FoundPeer;
use super::folder::one_of_the_peers;
use super::kerberos;
use super::problem::Problem;
use super::reader::{Placed, Section};
use super::sections::{span, words};
use super::target::{self, ForwardTarget};
use crate::services::UNLISTED;

pub(super) const KEYS: &[&str] = &[
    "peer",
    "unlisted",
    "accounts",
    "kerberos",
    "principals",
    "auth_to_local",
    "environment",
    "detached",
    "sessions",
    "forward",
    "agent",
];

/// Most sessions of one peer that the file may allow: each takes processes and up to 16 MiB.
const SESSIONS_MAX: u16 = 256;
/// Sessions of one peer at once where the file says nothing: more than a person has windows, fewer than hurt a small host.
const SESSIONS: u16 = 32;
/// How long a session that no client is attached to goes on where the file says nothing.
const DETACHED: Duration = Duration::from_secs(7 * 24 * 3600);
const DETACHED_RANGE: [Duration; 2] = [Duration::from_secs(60), Duration::from_secs(365 * 24 * 3600)];
/// What a client's environment may set where the file says nothing: the language, as packages of sshd have it.
const ENVIRONMENT: [&str; 2] = ["LANG", "LC_*"];

/// `[[login]]`: a peer that may log in. Who is not named may not.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoginSection {
    /// The peer's name, or [`UNLISTED`] for nodes that are no peers.
    pub peer: String,
    /// Accounts of this host that it may use, the first where it names none. A daemon of an ordinary user has its user's own
    /// account only, which need not be named.
    pub accounts: Vec<String>,
    /// Where it has to show a ticket, the accounts of principals, which count in place of these.
    pub kerberos: Option<Accounts>,
    /// Names of variables that its clients may set; an asterisk at the end stands for anything.
    pub environment: Vec<String>,
    /// How long a session goes on that no client is attached to.
    pub detached: Duration,
    /// Sessions at once, at most.
    pub sessions: u16,
    /// The targets that its clients may connect to from this host, as the account.
    pub forward: Vec<ForwardTarget>,
    /// True if programs of its sessions may ask its clients' agents.
    pub agent: bool,
}

impl LoginSection {
    /// Whether it is for nodes that are no peers.
    #[must_use]
    pub fn is_for_unlisted(&self) -> bool {
        self.peer == UNLISTED
    }

    /// Whether a client may set the variable called `name`.
    #[must_use]
    pub fn takes(&self, name: &[u8]) -> bool {
        self.environment.iter().any(|pattern| match pattern.strip_suffix('*') {
            Some(start) => name.starts_with(start.as_bytes()),
            None => name == pattern.as_bytes(),
        })
    }
}

pub(super) fn logins(sections: &[Section<'_>], peers: &[FoundPeer]) -> Vec<LoginSection> {
    let mut seen: Vec<(String, usize)> = Vec::new();
    sections.iter().filter_map(|section| login(section, peers, &mut seen)).collect()
}

fn login(
    section: &Section<'_>,
    peers: &[FoundPeer],
    seen: &mut Vec<(String, usize)>,
) -> Option<LoginSection> {
    let peer = whose(section, peers);
    if let Some(Placed { value, span }) = &peer {
        match seen.iter().find(|(other, _)| other == value) {
            Some((name, line)) => {
                section.note(span.clone(), Problem::DuplicateLogin { name: name.clone(), line: *line });
            }
            None => seen.push((value.clone(), section.line())),
        }
    }
    let accounts = section.list("accounts", "a list of accounts, as [\"alice\"]", account);
    let environment = section.list("environment", "a list of names, as [\"LANG\", \"LC_*\"]", variable);
    let environment = match section.value("environment") {
        None => ENVIRONMENT.map(str::to_owned).to_vec(),
        Some(_) => environment.into_iter().map(|name| name.value).collect(),
    };
    let [least, most] = DETACHED_RANGE;
    Some(LoginSection {
        accounts: accounts.into_iter().map(|account| account.value).collect(),
        kerberos: kerberos::accounts(section),
        environment,
        detached: span(section, "detached", least, most, ["1m", "365d"]).unwrap_or(DETACHED),
        sessions: section.short("sessions", 1..=SESSIONS_MAX).unwrap_or(SESSIONS),
        forward: target::targets(section),
        agent: section.boolean("agent").unwrap_or(false),
        peer: peer?.value,
    })
}

/// The peer that may log in, or [`UNLISTED`].
fn whose(section: &Section<'_>, peers: &[FoundPeer]) -> Option<Placed<String>> {
    if !section.boolean("unlisted").unwrap_or(false) {
        section.require("peer", "peer = \"site-b\"");
        return section.parsed("peer", "a peer's name in quotes", |name| one_of_the_peers(name, peers));
    }
    if let Some(value) = section.value("peer") {
        section.note(value.span(), Problem::PeerAndUnlisted);
    }
    if !section.boolean("kerberos").unwrap_or(false) {
        section.note(section.span(), Problem::UnlistedWithoutKerberos);
    }
    Some(Placed { value: UNLISTED.to_owned(), span: section.span() })
}

/// An account as `passwd(5)` can have it.
pub(super) fn account(text: &str) -> Result<String, Problem> {
    let name = words("accounts", text)?;
    if name.contains([':', '/']) || name.starts_with('-') {
        return Err(Problem::AccountName { name });
    }
    Ok(name)
}

/// The name of a variable, or the beginning of one before an asterisk. Those by which a program that is started becomes another
/// may come from no peer.
fn variable(text: &str) -> Result<String, Problem> {
    let name = words("environment", text)?;
    let stem = name.strip_suffix('*').unwrap_or(&name);
    let fits = stem.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    let loads = stem.is_empty() || stem.starts_with("LD_") || "LD_".starts_with(stem) && name.ends_with('*');
    if fits && !loads { Ok(name) } else { Err(Problem::VariableName { name }) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_taken_by_name_or_by_how_they_begin() {
        let environment = ["LANG", "LC_*"].map(str::to_owned).to_vec();
        let section = LoginSection {
            peer: "b".to_owned(),
            accounts: Vec::new(),
            kerberos: None,
            environment,
            detached: DETACHED,
            sessions: 1,
            forward: Vec::new(),
            agent: false,
        };
        assert!(section.takes(b"LANG") && section.takes(b"LC_ALL") && section.takes(b"LC_"));
        assert!(!section.takes(b"LANGUAGE") && !section.takes(b"PATH") && !section.takes(b""));
        for wrong in ["*", "LD_PRELOAD", "LD_*", "L*", "A=B", "A B", ""] {
            assert!(variable(wrong).is_err(), "{wrong}");
        }
        for wrong in ["a:b", "-x", "a/b", ""] {
            assert!(account(wrong).is_err(), "{wrong}");
        }
    }
}
