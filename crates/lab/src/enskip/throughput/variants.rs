//! What the length of a key and the Kij algorithm change.

use std::sync::Arc;

use strait_crypto::Cipher;

use super::memory::{MemoryRun, in_turn};
use crate::enskip::algorithm::{Combination, Crypt};
use crate::enskip::keys::KIJ_ALGORITHMS;
use crate::enskip::packet::{PACKETS_A_KEY, SkipSettings};
use crate::enskip::printed::{ALGORITHMS, RC4};
use crate::error::Error;
use crate::measure::{RepeatTimer, RunValues};
use crate::steps::StepCounter;

/// Bits of keys.
pub(super) const BITS: [usize; 3] = [40, 64, 128];
/// Packets of a packet key, from a new one each time to the table's.
pub(super) const PACKETS: [u32; 3] = [1, 16, PACKETS_A_KEY];
/// The place of RC2 in [`ALGORITHMS`].
const RC2: usize = RC4 + 1;
/// Algorithms whose keys have several lengths.
const KEYED: [usize; 2] = [RC4, RC2];

/// A row of either table, in kbytes/s.
#[derive(Clone, Debug)]
pub(super) struct VariantRow {
    pub(super) name: String,
    /// By bits or by packets.
    pub(super) rates: Vec<RunValues>,
}

/// Both tables.
#[derive(Clone, Debug)]
pub(super) struct Variants {
    /// RC4 and RC2 with keys that are expanded to 128 bits, then RC2 with one that is not.
    pub(super) keys: Vec<VariantRow>,
    /// A row a Kij algorithm, of RC4: the fastest of the paper's, so that it shows most.
    pub(super) kij: Vec<VariantRow>,
}

impl Variants {
    /// Steps that it takes.
    pub(super) const STEPS: usize = 2;

    pub(super) fn measured(
        timer: RepeatTimer,
        file: &Arc<[u8]>,
        steps: &mut StepCounter<'_>,
    ) -> Result<Variants, Error> {
        steps.next("lengths of keys");
        let with = |crypt, bits| {
            let combination = Combination { crypt, md5: false };
            SkipSettings { bits, ..SkipSettings::of(combination) }
        };
        let expanded = |algorithm: usize| {
            let settings = BITS.map(|bits| with(Combination::of(algorithm, false).crypt, bits));
            (format!("{}, expanded", ALGORITHMS[algorithm]), settings.to_vec())
        };
        let short = ("RC2, as short as it is".to_owned(), vec![with(Crypt::Blocks(Cipher::Rc2_40Cbc), 128)]);
        let keys = rows(timer, file, KEYED.map(expanded).into_iter().chain([short]).collect())?;
        steps.next("Kij algorithms");
        let kij = KIJ_ALGORITHMS.map(|(name, kij)| {
            let settings = PACKETS.map(|packets_a_key| SkipSettings {
                kij,
                packets_a_key,
                ..SkipSettings::of(Combination::of(RC4, false))
            });
            (name.to_owned(), settings.to_vec())
        });
        Ok(Variants { keys, kij: rows(timer, file, kij.into())? })
    }
}

/// Measures all settings of all rows in turn.
fn rows(
    timer: RepeatTimer,
    file: &Arc<[u8]>,
    rows: Vec<(String, Vec<SkipSettings>)>,
) -> Result<Vec<VariantRow>, Error> {
    let settings = rows.iter().flat_map(|(_, settings)| settings);
    let runs: Result<Vec<MemoryRun>, Error> = settings.map(|it| MemoryRun::new(*it, file)).collect();
    let mut measured = in_turn(timer, &mut runs?, |_| ())?.into_iter();
    let row = |(name, settings): (String, Vec<SkipSettings>)| VariantRow {
        name,
        rates: measured.by_ref().take(settings.len()).collect(),
    };
    Ok(rows.into_iter().map(row).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::enskip::packet::PAYLOAD;
    use std::time::Duration;

    #[test]
    fn each_row_has_its_figures() {
        let file: Arc<[u8]> = vec![1; 3 * PAYLOAD].into();
        let timer = RepeatTimer { repeats: 2, least: Duration::from_micros(10) };
        let mut tell = |_: crate::StepNote<'_>| ();
        let made = Variants::measured(timer, &file, &mut StepCounter::new(2, &mut tell)).unwrap();
        let lens = |rows: &[VariantRow]| rows.iter().map(|row| row.rates.len()).collect::<Vec<_>>();
        assert_eq!(lens(&made.keys), [3, 3, 1]);
        assert_eq!(lens(&made.kij), [3; KIJ_ALGORITHMS.len()]);
        let all = made.keys.iter().chain(&made.kij).flat_map(|row| &row.rates);
        assert!(all.into_iter().all(|rates| rates.values().len() == 2));
    }
}
