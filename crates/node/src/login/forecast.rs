//! A forecast of what would keep logins from being given if a daemon of root started now.

use super::pam::has_service;
use super::{Account, PamError};
use crate::config::LoginSection;

/// Returns what keeps `logins` from being given by a daemon of root, a sentence each.
#[must_use]
pub fn lacking_for_logins(logins: &[LoginSection]) -> Vec<String> {
    let mut lacking = Vec::new();
    if !logins.is_empty() && !has_service() {
        lacking.push(format!("[[login]]: {}", PamError::NoService));
    }
    for login in logins.iter().filter(|login| login.kerberos.is_none()) {
        let peer = &login.peer;
        if login.accounts.is_empty() {
            lacking.push(format!("[[login]] of {peer}: no account is given, as `accounts` names none"));
        }
        let unknown = login.accounts.iter().filter(|name| Account::named(name).is_none());
        lacking.extend(unknown.map(|name| format!("[[login]] of {peer}: there is no account `{name}` here")));
    }
    lacking
}

#[cfg(test)]
mod tests {
    use core::time::Duration;

    use super::*;

    #[test]
    fn accounts_that_are_not_there_are_named() {
        let login = |accounts: &[&str]| LoginSection {
            peer: "office".to_owned(),
            accounts: accounts.iter().map(|name| (*name).to_owned()).collect(),
            kerberos: None,
            environment: Vec::new(),
            detached: Duration::ZERO,
            sessions: 1,
            forward: Vec::new(),
            agent: false,
        };
        let lacking = |logins: &[LoginSection]| {
            let mut lacking = lacking_for_logins(logins);
            lacking.retain(|words| words.contains("office"));
            lacking
        };
        assert_eq!(lacking(&[login(&["root"])]), Vec::<String>::new());
        assert!(lacking(&[login(&[])])[0].contains("`accounts` names none"));
        assert!(lacking(&[login(&["root", "no-such-account"])])[0].contains("`no-such-account`"));
    }
}
