//! Suites that encrypt and authenticate in one.

use strait_crypto::{Icv, Key, KeyMaterial, NonceCounter, Suite};

use super::on_a_copy;
use crate::error::Error;
use crate::measure::{RepeatTimer, RunValues};

/// Bytes of associated data: SPI and extended sequence number (RFC 4303 section 3.3.2.2).
const AAD_LEN: usize = 12;

/// Sealing and opening packets with this text.
///
/// # Errors
/// [`Error::Refused`] when the suite does not seal, or does not open what it sealed.
pub fn aead(stopwatch: RepeatTimer, suite: Suite, text: &[u8]) -> Result<[RunValues; 2], Error> {
    let key = key(suite)?;
    let aad = [0; AAD_LEN];
    let mut nonces = NonceCounter::new();
    let mut seal = |text: &mut [u8]| -> Result<(u64, Icv), Error> {
        let nonce = nonces.next().map_err(|error| Error::refused(suite, "seal")(error.into()))?;
        let iv = nonce.value();
        let icv = key.seal(nonce, &aad, text).map_err(|error| Error::refused(suite, "seal")(error.into()))?;
        Ok((iv, icv))
    };
    let mut packet = text.to_vec();
    let (iv, icv) = seal(&mut packet)?;
    packet.extend_from_slice(&icv);
    let mut work = text.to_vec();
    let sealing = stopwatch.nanos_per_unit(|| {
        std::hint::black_box(seal(&mut work)?);
        Ok::<_, Error>(text.len() as u64)
    })?;
    let opening = on_a_copy(stopwatch, &packet, |copy| {
        let opened = key.open(iv, &aad, copy).map(|text| std::hint::black_box(text).len());
        opened.map(|_| ()).map_err(|error| Error::refused(suite, "open")(error.into()))
    })?;
    // The copy is longer than the text by the ICV.
    let share = packet.len() as f64 / text.len().max(1) as f64;
    Ok([sealing, opening.map(|nanos| nanos * share)])
}

/// A key for measuring; not a secret.
fn key(suite: Suite) -> Result<Key, Error> {
    let bytes = vec![7; suite.key_material_len()];
    let material = KeyMaterial::new(suite, &bytes);
    let material = material.map_err(|error| Error::refused(suite, "take a key")(error.into()))?;
    Ok(Key::new(&material))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn every_suite_has_both_figures() {
        let stopwatch = RepeatTimer { repeats: 2, least: Duration::from_micros(100) };
        for suite in Suite::ALL {
            let figures = aead(stopwatch, suite, &[0x5a; 1024]).unwrap();
            assert!(figures.iter().all(|it| it.values().len() == 2), "{suite}: {figures:?}");
        }
    }
}
