//! Who may do what, by the configuration.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use strait_keying::PublicKey;
use strait_node::config::{BrokerSection, Config};
use strait_transfer::broker::message::{BrokerFault, FaultKind, LetterKind};

/// What a peer may do here.
#[derive(Clone, Debug)]
pub struct Rights {
    /// What people call it.
    pub name: String,
    put: bool,
    fetch: bool,
    /// To whom it may put; nothing for all.
    to: Option<BTreeSet<PublicKey>>,
    /// Bytes of it in the store at most.
    pub quota_sent: Option<u64>,
    /// Bytes for it in the store at most.
    pub quota_kept: Option<u64>,
}

/// All peers' rights, and the limits of objects.
#[derive(Clone, Debug, Default)]
pub struct Access {
    peers: BTreeMap<PublicKey, Rights>,
    /// Bytes of one object at most.
    pub largest: u64,
    /// How long an object stays at most.
    pub keep: Duration,
}

impl Access {
    /// What the configuration says; peers without a section of theirs have no rights, and are not in it.
    #[must_use]
    pub fn of(config: &Config, broker: &BrokerSection) -> Access {
        let keys: BTreeMap<&str, PublicKey> =
            config.peers.iter().filter_map(|peer| Some((&*peer.name, *peer.public_key()?))).collect();
        let rights = |(name, key): (&&str, &PublicKey)| {
            let access = broker.access_of(name)?;
            let to = access.to.as_ref();
            let to = to.map(|names| names.iter().filter_map(|name| keys.get(&**name).copied()).collect());
            let rights = Rights {
                name: (*name).to_owned(),
                put: access.put,
                fetch: access.fetch,
                to,
                quota_sent: access.quota_sent.or(broker.quota_sender),
                quota_kept: access.quota_kept.or(broker.quota_receiver),
            };
            Some((*key, rights))
        };
        let peers = keys.iter().filter_map(rights).collect();
        Access { peers, largest: broker.largest, keep: broker.keep }
    }

    /// What the node with this key may do; nothing if it may not even ask.
    #[must_use]
    pub fn rights(&self, key: &PublicKey) -> Option<&Rights> {
        self.peers.get(key)
    }

    /// The keys of all that may do something.
    pub fn keys(&self) -> impl Iterator<Item = &PublicKey> {
        self.peers.keys()
    }

    /// Whether `sender` may put an object of this kind here for all of `receivers`. Receipts go the way back: from who may fetch to who
    /// may put.
    ///
    /// # Errors
    /// Why not.
    pub fn may_put(
        &self,
        sender: &PublicKey,
        kind: LetterKind,
        receivers: &[PublicKey],
    ) -> Result<(), BrokerFault> {
        let is_receipt = kind == LetterKind::Receipt;
        let own = self.rights(sender).filter(|own| own.put || is_receipt && own.fetch);
        let own = own.ok_or(FaultKind::Forbidden)?;
        for receiver in receivers {
            let takes = self.rights(receiver).is_some_and(|rights| rights.fetch || is_receipt && rights.put);
            let given = is_receipt || own.to.as_ref().is_none_or(|to| to.contains(receiver));
            if !takes || !given {
                let whose =
                    self.rights(receiver).map_or_else(|| receiver.to_string(), |rights| rights.name.clone());
                return Err(BrokerFault::new(FaultKind::Receiver, whose));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn access(sections: &str) -> Access {
        let peer = |name: &str, key: u8| {
            format!("[[peer]]\nname = \"{name}\"\npublic_key = \"{}\"\n", PublicKey::from_bytes([key; 32]))
        };
        let text = format!(
            "[node]\nprivate_key_file = \"k\"\n{}{}{}[broker]\nstore = \"s\"\nquota_sender = \"9kB\"\n{sections}",
            peer("a", 1),
            peer("b", 2),
            peer("c", 3)
        );
        let config = Config::parse(&text, Path::new("x.toml")).unwrap();
        Access::of(&config, config.broker.as_ref().unwrap())
    }

    fn may(access: &Access, from: u8, kind: LetterKind, to: &[u8]) -> Result<(), FaultKind> {
        let key = |key: u8| PublicKey::from_bytes([key; 32]);
        let to: Vec<_> = to.iter().map(|to| key(*to)).collect();
        access.may_put(&key(from), kind, &to).map_err(|fault| fault.kind)
    }

    #[test]
    fn peers_have_the_rights_that_are_named_and_no_others() {
        use LetterKind::{Receipt, Transfer};
        let all = access("[[broker.access]]\npeer = \"*\"\n");
        assert_eq!(may(&all, 1, Transfer, &[2, 3]), Ok(()));
        assert_eq!(may(&all, 1, Transfer, &[2, 4]), Err(FaultKind::Receiver));
        assert_eq!(may(&all, 4, Transfer, &[2]), Err(FaultKind::Forbidden));
        assert_eq!(may(&access(""), 1, Transfer, &[2]), Err(FaultKind::Forbidden));
        let some = access(
            "[[broker.access]]\npeer = \"a\"\nfetch = false\nto = [\"b\"]\nquota_sent = \"1kB\"\n\
             [[broker.access]]\npeer = \"*\"\nput = false\n",
        );
        assert_eq!(may(&some, 1, Transfer, &[2]), Ok(()));
        assert_eq!(may(&some, 1, Transfer, &[3]), Err(FaultKind::Receiver));
        assert_eq!(may(&some, 2, Transfer, &[3]), Err(FaultKind::Forbidden));
        assert_eq!(may(&some, 2, Receipt, &[1]), Ok(()), "the way back");
        let quota = |key| some.rights(&PublicKey::from_bytes([key; 32])).unwrap().quota_sent;
        assert_eq!((quota(1), quota(2)), (Some(1000), Some(9000)));
    }
}
