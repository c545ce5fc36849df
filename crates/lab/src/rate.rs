//! How fast algorithms are on this machine, in nanoseconds a byte of what they are given.

mod aead;
mod cipher;
mod codec;

use std::time::Instant;

use strait_crypto::Ranking;

pub use aead::aead;
pub use cipher::{cipher, integrity};
pub use codec::{compress, compressed, expand};

/// Has suites computed by whichever library is the faster here, as daemons do, and says what each costs.
pub fn calibrate() -> Ranking {
    let start = Instant::now();
    strait_crypto::calibrate(|| u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use crate::measure::RunValues;

    /// Returns true for two values, each a time that a rate can be made of.
    pub(super) fn are_two_rates(sample: &RunValues) -> bool {
        sample.values().len() == 2 && sample.values().iter().all(|nanos| *nanos > 0.0 && nanos.is_finite())
    }
}
