//! Letters at a broker as a person names them.

use strait_keying::PublicKey;
use strait_node::config::{Config, PeerKeys};
use strait_transfer::TransferId;
use strait_transfer::broker::client::{BrokerClient, BrokerError};
use strait_transfer::broker::message::{Letter, LetterBox};

/// Letters that are listed at most; a broker that has more is no use to list. Each takes some 150 bytes.
const LETTERS_MAX: usize = 1_000_000;
/// Digits that are shown of an id at least: as the outbox does.
const DIGITS: usize = 8;

/// All letters of a box.
pub(super) fn letters<R: std::io::Read, W: std::io::Write>(
    client: &mut BrokerClient<R, W>,
    which: LetterBox,
) -> Result<Vec<Letter>, BrokerError> {
    let (mut all, mut more) = (Vec::new(), false);
    client.list(which, |letter| if all.len() < LETTERS_MAX { all.push(letter) } else { more = true })?;
    if more { Err(BrokerError::Protocol("it lists more than a million letters")) } else { Ok(all) }
}

/// So many digits tell all of these ids apart.
pub(super) fn digits(ids: impl Iterator<Item = TransferId>) -> usize {
    let mut ids: Vec<String> = ids.map(|id| id.to_string()).collect();
    ids.sort_unstable();
    ids.dedup();
    let shared = |pair: &[String]| pair[0].bytes().zip(pair[1].bytes()).take_while(|(a, b)| a == b).count();
    ids.windows(2).map(shared).max().map_or(DIGITS, |shared| DIGITS.max(shared + 1))
}

/// What peers are called.
pub(super) struct PeerNames(std::collections::BTreeMap<PublicKey, String>);

impl PeerNames {
    pub(super) fn of(config: &Config) -> PeerNames {
        let named = config.peers.iter().filter_map(|peer| match &peer.keys {
            PeerKeys::Session { public_key, .. } => Some((*public_key, peer.name.clone())),
            PeerKeys::Manual(_) => None,
        });
        PeerNames(named.collect())
    }

    /// A peer's name, or its key.
    pub(super) fn name(&self, key: &PublicKey) -> String {
        self.0.get(key).cloned().unwrap_or_else(|| key.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_digits_are_shown_as_tell_ids_apart() {
        let ids = |last: &[u8]| {
            let id =
                |last: &u8| TransferId::from_bytes(std::array::from_fn(|at| if at == 7 { *last } else { 1 }));
            digits(last.iter().map(id).collect::<Vec<_>>().into_iter())
        };
        assert_eq!(ids(&[]), 8);
        assert_eq!(ids(&[1, 1]), 8);
        assert_eq!(ids(&[0x10, 0x20]), 15);
        assert_eq!(ids(&[0x10, 0x11]), 16);
    }
}
