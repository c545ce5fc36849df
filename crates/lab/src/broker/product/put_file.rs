//! The file that is put in the place of each combination.

use strait_crypto::Suite;

use super::super::chain::{Chain, Encryption};
use super::COLUMNS;

/// A file that is put.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PutFile {
    /// The payload as it is. `put` compresses it.
    Payload,
    /// Random bytes, as many as the payload has: `put` compresses what shrinks, and has no flag against it.
    Random,
    /// The payload as the lab's own layers make it.
    Layers(Chain),
}

impl PutFile {
    /// The files of the post's combinations, in the order of its table, and the payload behind them.
    pub(super) fn columns() -> [PutFile; COLUMNS] {
        let papers = Chain::papers().map(PutFile::of);
        core::array::from_fn(|column| papers.get(column).copied().unwrap_or(PutFile::Payload))
    }

    /// The post's TLS is the connection's here, which all files go through. Its AES leaves equal blocks equal, which `put` would
    /// compress, so that a suite without equal blocks stands for it.
    fn of(chain: Chain) -> PutFile {
        let encryption = match chain.encryption {
            Encryption::Aes(..) => Encryption::Suite(Suite::Aes128Gcm),
            other => other,
        };
        let inside = Chain { encryption, records: None, ..chain };
        if inside == Chain::BARE { PutFile::Random } else { PutFile::Layers(inside) }
    }
}
