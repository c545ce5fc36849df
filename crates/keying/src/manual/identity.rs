//! What a counter belongs to: one association's keys, told apart without giving them away.

use aws_lc_rs::digest::{Context, SHA256};
use strait_crypto::{KeyMaterial, KeyedAlgorithm};
use strait_ipsec::{EspKeys, SaSpec};
use strait_wire::Spi;

/// Bytes of a fingerprint: half of SHA-256's, enough for no two keys to share one by chance.
pub(super) const FINGERPRINT_LEN: usize = 16;

/// What tells keys apart without giving them away.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Fingerprint(pub(super) [u8; FINGERPRINT_LEN]);

impl Fingerprint {
    /// The fingerprint of one key.
    #[must_use]
    pub fn of<A: KeyedAlgorithm>(key: &KeyMaterial<A>) -> Fingerprint {
        let mut context = Context::new(&SHA256);
        add(&mut context, key);
        Fingerprint::finish(context)
    }

    fn finish(context: Context) -> Fingerprint {
        let mut fingerprint = [0; FINGERPRINT_LEN];
        let digest = context.finish();
        fingerprint.iter_mut().zip(digest.as_ref()).for_each(|(to, from)| *to = *from);
        Fingerprint(fingerprint)
    }
}

/// The keys of an outbound association, as far as a counter has to know them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    pub(super) spi: Spi,
    pub(super) fingerprint: Fingerprint,
}

impl Identity {
    /// What the association `outbound` numbers its packets under.
    #[must_use]
    pub fn of(outbound: &SaSpec) -> Identity {
        let mut context = Context::new(&SHA256);
        if let Some(esp) = &outbound.esp {
            context.update(&esp.spi.0.to_be_bytes());
            match &esp.keys {
                EspKeys::Aead { key, .. } => add(&mut context, key),
                EspKeys::Separate { cipher, integrity, .. } => {
                    add(&mut context, cipher);
                    if let Some(integrity) = integrity {
                        add(&mut context, integrity);
                    }
                }
            }
        }
        if let Some(ah) = &outbound.ah {
            context.update(&ah.spi.0.to_be_bytes());
            add(&mut context, &ah.integrity);
        }
        Identity { spi: outbound.spi(), fingerprint: Fingerprint::finish(context) }
    }
}

/// The algorithm's name with its length in front, so that no two lists of keys are hashed alike, and the key.
fn add<A: KeyedAlgorithm>(context: &mut Context, key: &KeyMaterial<A>) {
    let name = key.algorithm().name().as_bytes();
    context.update(&[u8::try_from(name.len()).unwrap_or(u8::MAX)]);
    context.update(name);
    context.update(key.expose());
}
