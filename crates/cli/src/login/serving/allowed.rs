//! Sessions that may not go on: the configuration is not any more as it was when they began.

use strait_node::config::LoginSection;
use strait_node::login::RunningSession;
use strait_node::privileges;

use super::LoginService;

impl LoginService {
    /// Ends sessions and connections that would not begin any more: their peer is gone, or has another key, no section or no such account.
    pub(super) fn end_what_is_not_allowed(&self) {
        let section = |peer: &str| self.logins.iter().find(|section| section.peer == peer);
        self.workers.end(|head| !self.peers.opened(head) || section(&head.peer).is_none());
        let allows = |session: &RunningSession| {
            self.peers.is_one(&session.peer, &session.key)
                && section(&session.peer).is_some_and(|section| gives(section, session))
        };
        for session in self.sessions().filter(|session| !allows(session)) {
            if let Err(error) = session.end() {
                tracing::error!("{}: a session as {} goes on: {error}", session.peer, session.account);
            }
        }
    }

    /// Sessions that this node has begun, also before it was started again.
    pub(super) fn sessions(&self) -> impl Iterator<Item = RunningSession> {
        let all = RunningSession::all().inspect_err(|error| {
            tracing::error!("sessions of peers that may not log in any more go on: {error}");
        });
        all.unwrap_or_default().into_iter().filter(|session| session.interface == self.interface)
    }
}

/// True if a section gives the account that a session has; what rules of the system said of its principal stays.
fn gives(section: &LoginSection, session: &RunningSession) -> bool {
    let RunningSession { account, principal, .. } = session;
    match (&section.kerberos, principal) {
        (None, None) => !privileges::is_root() || section.accounts.contains(account),
        (Some(accounts), Some(principal)) => {
            let local = || Some(account.clone()).filter(|account| account != "root");
            accounts.account(principal, account, local).is_some()
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use strait_node::config::Config;

    use super::*;

    #[test]
    fn a_session_goes_on_as_long_as_the_file_gives_its_account() {
        let gives = |section: &str, principal: Option<&str>, account: &str| {
            let peer = format!("[[peer]]\nname = \"b\"\npublic_key = \"{}A=\"\n", "B".repeat(42));
            let text = format!(
                "[node]\nprivate_key_file = \"k\"\ntunnel = false\n{peer}[[login]]\npeer = \"b\"\n{section}"
            );
            let config = Config::parse(&text, Path::new("x.toml")).unwrap();
            let session = RunningSession {
                process: 0,
                interface: String::new(),
                peer: "b".to_owned(),
                key: String::new(),
                principal: principal.map(str::to_owned),
                account: account.to_owned(),
                since: 0,
            };
            super::gives(&config.logins[0], &session)
        };
        let listed = "accounts = [\"alice\"]";
        assert!(gives(listed, None, "alice") && !gives(listed, Some("alice@R"), "alice"));
        assert_eq!(gives(listed, None, "bob"), !privileges::is_root(), "a user's daemon has one account");
        let ticket = "kerberos = true\nprincipals = { \"eve@R\" = [\"mail\", \"root\"] }";
        assert!(gives(ticket, Some("eve@R"), "root") && gives(ticket, Some("eve@R"), "mail"));
        assert!(!gives(ticket, Some("eve@R"), "alice") && !gives(ticket, Some("alice@R"), "alice"));
        assert!(!gives(ticket, None, "mail"), "it began without a ticket");
        let rules = "kerberos = true\nauth_to_local = true";
        assert!(gives(rules, Some("alice@R"), "alice") && !gives(rules, Some("eve@R"), "root"));
    }
}
