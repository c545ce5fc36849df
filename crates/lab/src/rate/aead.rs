//! Suites that encrypt and authenticate in one.

use strait_crypto::{Icv, Key, KeyMaterial, NonceCounter, Suite};

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
    let opening = on_a_copy(stopwatch, &packet, text.len(), |copy| {
        let opened = key.open(iv, &aad, copy).map(|text| std::hint::black_box(text).len());
        opened.map(|_| ()).map_err(|error| Error::refused(suite, "open")(error.into()))
    })?;
    Ok([sealing, opening])
}

/// Measures work that changes `original`, on a fresh copy for each call, and takes off the time of copying: the least
/// of all repeats, since a machine that was busy while it copied alone would leave no time for the work, or less.
/// `units` are done in a call.
fn on_a_copy<E>(
    stopwatch: RepeatTimer,
    original: &[u8],
    units: usize,
    mut work: impl FnMut(&mut [u8]) -> Result<(), E>,
) -> Result<RunValues, E> {
    let mut copy = original.to_vec();
    let mut timed = |work: &mut dyn FnMut(&mut [u8]) -> Result<(), E>| {
        stopwatch.nanos_per_unit(|| {
            copy.copy_from_slice(std::hint::black_box(original));
            work(std::hint::black_box(&mut copy)).map(|()| units as u64)
        })
    };
    let copying = timed(&mut |_| Ok(()))?;
    Ok(timed(&mut work)?.minus_least(&copying))
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
    use crate::rate::tests::are_two_rates;
    use std::time::Duration;

    #[test]
    fn every_suite_has_both_figures() {
        let stopwatch = RepeatTimer { repeats: 2, least: Duration::from_micros(100) };
        for suite in Suite::ALL {
            let figures = aead(stopwatch, suite, &[0x5a; 1024]).unwrap();
            assert!(figures.iter().all(are_two_rates), "{suite}: {figures:?}");
        }
    }

    #[test]
    fn every_call_gets_the_original_and_copying_does_not_count() {
        let stopwatch = RepeatTimer { repeats: 3, least: Duration::from_millis(1) };
        let original = vec![7; 1 << 16];
        let sample = on_a_copy(stopwatch, &original, original.len(), |copy| {
            assert!(copy.iter().step_by(4096).all(|byte| *byte == 7));
            copy.fill(1);
            Ok::<_, ()>(())
        });
        assert_eq!(sample.unwrap().values().len(), 3);
        assert_eq!(on_a_copy(stopwatch, &original, 1, |_| Err("refused")), Err("refused"));
    }
}
