//! ESP packets made by RFC 4303 alone, under a public key: what no sender of the project's would send.

use strait_crypto::{Key, KeyMaterial, NonceCounter, Suite};
use strait_ipsec::IvMode;
use strait_wire::{Esn, Protocol, Spi, esp};

/// The keying material: everybody's.
const MATERIAL: [u8; 36] = *b"a key that everybody knows, and salt";

/// Keying material for `suite`.
pub(crate) fn material(suite: Suite) -> Option<KeyMaterial> {
    KeyMaterial::new(suite, MATERIAL.get(..suite.key_material_len())?).ok()
}

/// Makes ESP packets by RFC 4303 alone.
pub(crate) struct Sealer {
    spi: Spi,
    key: Option<Key>,
    nonces: NonceCounter,
    iv: IvMode,
}

impl core::fmt::Debug for Sealer {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("[key]")
    }
}

impl Sealer {
    pub(crate) fn new(suite: Suite, iv: IvMode, spi: Spi) -> Sealer {
        Sealer {
            spi,
            key: material(suite).map(|material| Key::new(&material)),
            nonces: NonceCounter::new(),
            iv,
        }
    }

    /// A payload under the next number.
    pub(crate) fn seal(&mut self, next: Protocol, payload: &[u8]) -> Vec<u8> {
        let (Some(key), Ok(nonce)) = (&self.key, self.nonces.next()) else { return Vec::new() };
        let esn = Esn(nonce.value());
        let mut packet = vec![0; esp::HEADER_LEN];
        let _ = esp::Header { spi: self.spi, seq: esn.low() }.emit(&mut packet);
        if self.iv == IvMode::Explicit {
            packet.extend_from_slice(&esn.0.to_be_bytes());
        }
        let pad = esp::pad_len(payload.len(), 4);
        let mut text = payload.to_vec();
        text.resize(payload.len() + pad + 2, 0);
        let _ = esp::emit_trailer(text.get_mut(payload.len()..).unwrap_or_default(), next);
        let aad = [&self.spi.0.to_be_bytes()[..], &esn.0.to_be_bytes()].concat();
        let Ok(icv) = key.seal(nonce, &aad, &mut text) else { return Vec::new() };
        [packet, text, icv.to_vec()].concat()
    }
}
