//! What a counter belongs to: one association's keys, told apart without giving them away.

use aws_lc_rs::digest::{Context, SHA256};
use strait_crypto::{Algorithm, KeyMaterial};
use strait_ipsec::{EspKeys, SaSpec};
use strait_wire::Spi;

/// Bytes of a fingerprint: half of SHA-256's, enough for no two keys to share one by chance.
pub(super) const FINGERPRINT_LEN: usize = 16;
/// Keeps these fingerprints apart from every other use of the hash.
const CONTEXT: &[u8] = b"strait manual counter 1";

/// The keys of an outbound association, as far as a counter has to know them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    pub(super) spi: Spi,
    pub(super) fingerprint: [u8; FINGERPRINT_LEN],
}

impl Identity {
    /// What the association `outbound` numbers its packets under.
    #[must_use]
    pub fn of(outbound: &SaSpec) -> Identity {
        let mut context = Context::new(&SHA256);
        context.update(CONTEXT);
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
        let mut fingerprint = [0; FINGERPRINT_LEN];
        let digest = context.finish();
        fingerprint.iter_mut().zip(digest.as_ref()).for_each(|(to, from)| *to = *from);
        Identity { spi: outbound.spi(), fingerprint }
    }
}

/// The algorithm's name with its length in front, so that no two lists of keys are hashed alike, and the key.
fn add<A: Algorithm>(context: &mut Context, key: &KeyMaterial<A>) {
    let name = key.algorithm().name().as_bytes();
    context.update(&[u8::try_from(name.len()).unwrap_or(u8::MAX)]);
    context.update(name);
    context.update(key.expose());
}
