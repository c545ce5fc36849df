//! Which account a principal may use.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::ServiceName;
use crate::objects::Name;

/// The account that `auth_to_local` of the system's `krb5.conf` gives `principal`, if it gives one. The library and its modules may ask
/// the system's records of accounts.
#[must_use]
pub fn local_account(principal: &str) -> Option<String> {
    Name::of(&ServiceName::Principal(principal.to_owned())).ok()?.account()
}

/// The accounts of principals: those that the configuration names, and those that `auth_to_local` of the system's `krb5.conf` names.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Accounts {
    /// Accounts by principal, such as `alice@EXAMPLE.ORG`.
    pub named: BTreeMap<String, Vec<String>>,
    /// Whether `auth_to_local` counts for a principal that is not in `named`.
    pub auth_to_local: bool,
}

impl Accounts {
    /// True if the configuration says itself which accounts `principal` gets.
    #[must_use]
    pub fn names(&self, principal: &str) -> bool {
        self.named.contains_key(principal)
    }

    /// The account that `principal` gets when it asks for `asked`, or for its own if that is empty; `local` is [`local_account`], asked
    /// where it counts. None: it may not.
    #[must_use]
    pub fn account(
        &self,
        principal: &str,
        asked: &str,
        local: impl FnOnce() -> Option<String>,
    ) -> Option<String> {
        let allowed = match self.named.get(principal) {
            Some(accounts) => accounts.clone(),
            None if self.auth_to_local => Vec::from_iter(local()),
            None => Vec::new(),
        };
        // Its own is the first one that is named.
        allowed.into_iter().find(|account| asked.is_empty() || account == asked)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_allowed_by_default() {
        let local = || Some("alice".to_owned());
        assert_eq!(Accounts::default().account("alice@A", "", local), None);
        assert_eq!(Accounts::default().account("alice@A", "alice", local), None);
    }

    #[test]
    fn what_is_named_counts_before_the_rules_of_the_system() {
        let named = BTreeMap::from([("eve@A".to_owned(), vec!["guest".to_owned(), "mail".to_owned()])]);
        let accounts = Accounts { named, auth_to_local: true };
        let account = |principal: &str, asked: &str| {
            accounts.account(principal, asked, || principal.strip_suffix("@A").map(str::to_owned))
        };
        let is = |account: &str| Some(account.to_owned());
        assert_eq!(account("alice@A", ""), is("alice"));
        assert_eq!(account("alice@A", "alice"), is("alice"));
        assert_eq!(account("alice@A", "root"), None);
        assert_eq!(account("eve@A", ""), is("guest"));
        assert_eq!(account("eve@A", "mail"), is("mail"));
        assert_eq!(account("eve@A", "eve"), None);
        assert!(accounts.names("eve@A") && !accounts.names("alice@A"));
        assert_eq!(account("x@B", ""), None);
    }
}
