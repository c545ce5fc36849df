//! Which account a principal may use.

use std::collections::BTreeMap;

use crate::KerberosPeer;

/// The accounts of principals: those that the configuration names, and those that `auth_to_local` of the system's `krb5.conf` names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Accounts {
    /// Accounts by principal, such as `alice@EXAMPLE.ORG`.
    pub named: BTreeMap<String, Vec<String>>,
    /// Whether `auth_to_local` counts for a principal that is not in `named`.
    pub auth_to_local: bool,
}

impl Accounts {
    /// Whether the configuration says itself which accounts `peer` gets.
    #[must_use]
    pub fn names(&self, peer: &KerberosPeer) -> bool {
        self.named.contains_key(&peer.principal)
    }

    /// The account that `peer` gets when it asks for `asked`, or for its own if that is empty. None: it may not.
    #[must_use]
    pub fn account<'a>(&'a self, peer: &'a KerberosPeer, asked: &str) -> Option<&'a str> {
        let local = peer.account.as_deref();
        let allowed = match self.named.get(&peer.principal) {
            Some(accounts) => accounts.iter().map(String::as_str).collect(),
            None if self.auth_to_local => Vec::from_iter(local),
            None => Vec::new(),
        };
        if asked.is_empty() {
            // Its own is the first one that is named.
            return allowed.first().copied();
        }
        allowed.into_iter().find(|account| *account == asked)
    }
}

#[cfg(test)]
mod tests {
    use core::time::Duration;

    use super::*;

    fn peer(principal: &str, account: Option<&str>) -> KerberosPeer {
        KerberosPeer {
            principal: principal.to_owned(),
            account: account.map(str::to_owned),
            lifetime: Duration::from_secs(60),
            delegated: None,
        }
    }

    #[test]
    fn nothing_is_allowed_by_default() {
        let alice = peer("alice@A", Some("alice"));
        assert_eq!(Accounts::default().account(&alice, ""), None);
        assert_eq!(Accounts::default().account(&alice, "alice"), None);
    }

    #[test]
    fn what_is_named_counts_before_the_rules_of_the_system() {
        let named = BTreeMap::from([("eve@A".to_owned(), vec!["guest".to_owned(), "mail".to_owned()])]);
        let accounts = Accounts { named, auth_to_local: true };
        let alice = peer("alice@A", Some("alice"));
        assert_eq!(accounts.account(&alice, ""), Some("alice"));
        assert_eq!(accounts.account(&alice, "alice"), Some("alice"));
        assert_eq!(accounts.account(&alice, "root"), None);
        let eve = peer("eve@A", Some("eve"));
        assert_eq!(accounts.account(&eve, ""), Some("guest"));
        assert_eq!(accounts.account(&eve, "mail"), Some("mail"));
        assert_eq!(accounts.account(&eve, "eve"), None);
        assert!(accounts.names(&eve) && !accounts.names(&alice));
        assert_eq!(accounts.account(&peer("x@B", None), ""), None);
    }
}
