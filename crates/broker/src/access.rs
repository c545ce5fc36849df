//! Who may do what, by the configuration.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use strait_keying::PublicKey;
use strait_node::config::{BrokerSection, Config};
use strait_transfer::broker::message::{BrokerFault, FaultKind, LetterKind};

use crate::usage::{Quota, Side};

/// Parts of an inbox: one sender has one of them at most, so that three who mean ill leave room for others.
const SHARES: usize = 4;

/// What a peer may do here.
#[derive(Clone, Debug)]
pub struct Rights {
    /// What people call it.
    pub name: String,
    put: bool,
    fetch: bool,
    /// To whom it may put; nothing for all.
    to: Option<BTreeSet<PublicKey>>,
    /// The quota of the objects that it sent.
    sent: Quota,
    /// The quota of the objects that are kept for it.
    kept: Quota,
    /// The number of peers that may put objects for it.
    senders: usize,
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
                sent: Quota {
                    bytes: access.quota_sent.or(broker.quota_sender),
                    letters: access.letters_sent.unwrap_or(broker.letters_sender),
                },
                kept: Quota {
                    bytes: access.quota_kept.or(broker.quota_receiver),
                    letters: access.letters_kept.unwrap_or(broker.letters_receiver),
                },
                senders: 0,
            };
            Some((*key, rights))
        };
        let mut peers = keys.iter().filter_map(rights).collect();
        count_senders(&mut peers);
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

    /// The quota of a peer.
    #[must_use]
    pub fn quota(&self, side: Side, peer: &PublicKey) -> Quota {
        let of = |rights: &Rights| if side == Side::Sent { rights.sent } else { rights.kept };
        self.rights(peer).map_or(Quota { bytes: Some(0), letters: 0 }, of)
    }

    /// Letters of one sender in the inbox of `receiver` at most. Where fewer than four may put for it, each has an equal part: a sender
    /// who is alone has all of it.
    #[must_use]
    pub fn share(&self, receiver: &PublicKey) -> u64 {
        let rights = self.rights(receiver);
        rights.map_or(0, |rights| rights.kept.letters.div_ceil(rights.senders.clamp(1, SHARES) as u64))
    }

    /// The name of a peer; its key, if it has none.
    #[must_use]
    pub fn name(&self, peer: &PublicKey) -> String {
        self.rights(peer).map_or_else(|| peer.to_string(), |rights| rights.name.clone())
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
                return Err(BrokerFault::new(FaultKind::Receiver, self.name(receiver)));
            }
        }
        Ok(())
    }
}

/// Counts for each peer who else may put objects for it.
fn count_senders(peers: &mut BTreeMap<PublicKey, Rights>) {
    let (mut for_all, mut named) = (BTreeSet::new(), BTreeMap::<PublicKey, usize>::new());
    for (sender, rights) in peers.iter().filter(|(_, rights)| rights.put) {
        match &rights.to {
            None => drop(for_all.insert(*sender)),
            Some(to) => to.iter().for_each(|receiver| *named.entry(*receiver).or_default() += 1),
        }
    }
    for (receiver, rights) in peers {
        let own = usize::from(for_all.contains(receiver));
        rights.senders = for_all.len() - own + named.get(receiver).copied().unwrap_or(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    impl Access {
        /// Peers 1 and 2, who may have so much each, sent and kept.
        pub(crate) fn limited(bytes: u64, letters: u64) -> Access {
            let quota = Quota { bytes: Some(bytes), letters };
            let rights = |number: u8| Rights {
                name: format!("peer-{number}"),
                put: true,
                fetch: true,
                to: None,
                sent: quota,
                kept: quota,
                senders: 1,
            };
            let peers = [1, 2].map(|number| (PublicKey::from_bytes([number; 32]), rights(number)));
            Access { peers: peers.into(), ..Access::default() }
        }
    }

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
        let quota = |key| some.quota(Side::Sent, &PublicKey::from_bytes([key; 32])).bytes;
        assert_eq!((quota(1), quota(2)), (Some(1000), Some(9000)));
    }

    #[test]
    fn an_inbox_has_as_many_parts_as_senders_and_four_at_most() {
        let share =
            |sections: &str, receiver: u8| access(sections).share(&PublicKey::from_bytes([receiver; 32]));
        let all = "[[broker.access]]\npeer = \"*\"\nletters_kept = 10\n";
        assert_eq!(share(all, 1), 5, "of two others");
        let one = "[[broker.access]]\npeer = \"b\"\nput = false\n[[broker.access]]\npeer = \"c\"\nto = []\n";
        assert_eq!(share(&format!("{one}{all}"), 2), 10_000, "of one");
        assert_eq!(share(&format!("{one}{all}"), 1), 10, "of none");
        let own = "[[broker.access]]\npeer = \"c\"\nto = [\"a\"]\n";
        assert_eq!((share(&format!("{own}{all}"), 1), share(&format!("{own}{all}"), 2)), (5, 10));
        let five = Rights { senders: 5, ..Access::limited(1, 10).peers.into_values().next().unwrap() };
        let many = Access { peers: [(PublicKey::from_bytes([1; 32]), five)].into(), ..Access::default() };
        assert_eq!(many.share(&PublicKey::from_bytes([1; 32])), 3);
    }
}
