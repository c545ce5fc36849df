//! Ciphers and integrity algorithms, which ESP pairs and AH has the latter of.

use strait_crypto::{
    Cipher, CipherKey, ICV_MAX, IV_MAX, Integrity, KeyMaterial, KeyedAlgorithm, MacKey, WrongBlocks,
};

use crate::error::Error;
use crate::measure::{RepeatTimer, RunValues};

/// Encrypting and decrypting this text, whole blocks of the cipher.
///
/// # Errors
/// [`Error::Refused`] when the cipher does not take the text.
pub fn cipher(stopwatch: RepeatTimer, cipher: Cipher, text: &[u8]) -> Result<[RunValues; 2], Error> {
    let key = CipherKey::new(&material(cipher)?);
    let iv = &[0x5a; IV_MAX][..cipher.iv_len()];
    let refused = |doing| move |error: WrongBlocks| Error::refused(cipher, doing)(error.into());
    // What one call leaves is as good a text for the next: no time of a copy has to be taken off.
    let mut work = text.to_vec();
    let len = text.len() as u64;
    let encrypting = stopwatch.nanos_per_unit(|| {
        key.encrypt(iv, std::hint::black_box(&mut work)).map_err(refused("encrypt")).map(|()| len)
    })?;
    let decrypting = stopwatch.nanos_per_unit(|| {
        key.decrypt(iv, std::hint::black_box(&mut work)).map_err(refused("decrypt")).map(|()| len)
    })?;
    Ok([encrypting, decrypting])
}

/// Signing a text; verifying computes the same.
///
/// # Errors
/// [`Error::Refused`] when the algorithm takes no key.
pub fn integrity(stopwatch: RepeatTimer, integrity: Integrity, text: &[u8]) -> Result<RunValues, Error> {
    let key = MacKey::new(&material(integrity)?);
    let mut icv = [0; ICV_MAX];
    stopwatch.nanos_per_unit(|| {
        key.sign(&[std::hint::black_box(text)], &mut icv[..integrity.icv_len()]);
        std::hint::black_box(&mut icv);
        Ok(text.len() as u64)
    })
}

/// A key for measuring; not a secret.
fn material<A: KeyedAlgorithm>(algorithm: A) -> Result<KeyMaterial<A>, Error> {
    let bytes = vec![7; algorithm.key_material_len()];
    let material = KeyMaterial::new(algorithm, &bytes);
    material.map_err(|error| Error::refused(algorithm, "take a key")(error.to_string().into()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rate::tests::are_two_rates;
    use std::time::Duration;

    const STOPWATCH: RepeatTimer = RepeatTimer { repeats: 2, least: Duration::from_micros(100) };

    #[test]
    fn every_cipher_has_both_figures_and_refuses_part_of_a_block() {
        for algorithm in Cipher::ALL {
            let figures = cipher(STOPWATCH, algorithm, &[0x5a; 1024]).unwrap();
            assert!(figures.iter().all(are_two_rates), "{algorithm}: {figures:?}");
            let part = cipher(STOPWATCH, algorithm, &[0x5a; 1023]);
            assert_eq!(part.is_err(), algorithm.block_len() > 1, "{algorithm}");
        }
    }

    #[test]
    fn every_integrity_algorithm_has_a_figure() {
        for algorithm in Integrity::ALL {
            assert_eq!(integrity(STOPWATCH, algorithm, &[0x5a; 1024]).unwrap().values().len(), 2);
        }
    }
}
