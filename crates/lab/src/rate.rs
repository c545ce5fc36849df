//! How fast algorithms are on this machine, in nanoseconds a byte of what they are given.

mod aead;
mod cipher;
mod codec;

use std::convert::Infallible;
use std::time::Instant;

use strait_crypto::Ranking;

pub use aead::aead;
pub use cipher::{cipher, integrity};
pub use codec::{compress, compressed, expand};

use crate::measure::{RepeatTimer, RunValues};

/// Has suites computed by whichever library is the faster here, as daemons do, and says what each costs.
pub fn calibrate() -> Ranking {
    let start = Instant::now();
    strait_crypto::calibrate(|| u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX))
}

/// What work on a fresh copy of `text` takes without the copying: `work` may change the copy, so each call gets a new
/// one.
fn on_a_copy<E>(
    stopwatch: RepeatTimer,
    text: &[u8],
    mut work: impl FnMut(&mut [u8]) -> Result<(), E>,
) -> Result<RunValues, E> {
    let mut copy = text.to_vec();
    let len = text.len() as u64;
    let copying = stopwatch.nanos_per_unit(|| {
        copy.copy_from_slice(std::hint::black_box(text));
        std::hint::black_box(&mut copy);
        Ok::<_, Infallible>(len)
    });
    let Ok(copying) = copying;
    let both = stopwatch.nanos_per_unit(|| {
        copy.copy_from_slice(std::hint::black_box(text));
        work(std::hint::black_box(&mut copy))?;
        Ok(len)
    })?;
    Ok(both.minus(&copying))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn every_call_gets_the_text_and_copying_does_not_count() {
        let stopwatch = RepeatTimer { repeats: 3, least: Duration::from_millis(1) };
        let text = vec![7; 1 << 16];
        let sample = on_a_copy(stopwatch, &text, |copy| {
            assert!(copy.iter().step_by(4096).all(|byte| *byte == 7));
            copy.fill(1);
            Ok::<_, ()>(())
        });
        assert_eq!(sample.unwrap().values().len(), 3);
        assert_eq!(on_a_copy(stopwatch, &text, |_| Err("refused")), Err("refused"));
    }
}
