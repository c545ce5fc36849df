//! What one would take today: suites that authenticate, newer codecs, and sealed objects as Strait's own broker has them.

use strait_crypto::Suite;

use super::chain::{BEST_SPEED, Chain, Compression, Encryption};

/// What plain data, DEFLATE at `BEST_SPEED` and today's codecs are.
const CODECS: [Compression; 5] = [
    Compression::None,
    Compression::Deflate(BEST_SPEED),
    Compression::Zstd(1),
    Compression::Zstd(3),
    Compression::Lz4,
];

/// The combinations of today, with age over zstd 3 last.
pub(super) fn chains() -> Vec<Chain> {
    let suites = [Suite::Aes128Gcm, Suite::ChaCha20Poly1305].map(Encryption::Suite);
    let with = |encryption| CODECS.map(|compression| Chain { compression, encryption, records: None });
    // The first two without encryption are in the post's own table.
    let unencrypted = with(Encryption::None).into_iter().skip(2);
    let sealed = [Compression::Zstd(1), Compression::Zstd(3)];
    let sealed = sealed.map(|compression| Chain { compression, encryption: Encryption::Age, records: None });
    unencrypted.chain(suites.into_iter().flat_map(with)).chain(sealed).collect()
}
