//! Letters that are asked for together.

use crate::broker::message::Letter;

/// Letters of a batch at most: what is asked for ahead, some 2 kB of questions.
const LETTERS: usize = 32;
/// Bytes of manifests and small contents of a batch, if it has more than one letter: they may all be on their way at once.
const BYTES: u64 = 4 << 20;
/// Contents that are asked for with those of others, as they come.
pub(super) const SMALL: u64 = 256 << 10;

/// Letters in their order, some at a time.
pub(super) fn batches(letters: &[Letter]) -> impl Iterator<Item = &[Letter]> {
    let mut rest = letters;
    std::iter::from_fn(move || {
        let mut bytes = 0_u64;
        let fits = |letter: &&Letter| {
            let contents = if letter.contents <= SMALL { letter.contents } else { 0 };
            bytes = bytes.saturating_add(letter.manifest).saturating_add(contents);
            bytes <= BYTES
        };
        let count = rest.iter().take(LETTERS).take_while(fits).count().max(1);
        let (batch, behind) = rest.split_at_checked(count)?;
        rest = behind;
        Some(batch)
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use strait_keying::PrivateKey;

    use super::*;
    use crate::TransferId;
    use crate::broker::message::{LetterKind, ObjectName};

    proptest! {
        #[test]
        fn every_letter_is_in_one_batch_and_none_is_too_large(
            sizes in proptest::collection::vec((0..8_u64 << 20, 0..400_u64 << 10), 0..100)
        ) {
            let key = PrivateKey::generate(&[1; 32]).public();
            let object = ObjectName { sender: key, id: TransferId::from_bytes([1; 16]) };
            let letter = |&(manifest, contents): &(u64, u64)| Letter {
                object, receiver: key, kind: LetterKind::Transfer, made: 0, expires: 0, manifest, contents,
            };
            let letters: Vec<Letter> = sizes.iter().map(letter).collect();
            let all: Vec<&[Letter]> = batches(&letters).collect();
            prop_assert!(all.concat() == letters);
            for batch in all {
                prop_assert!((1..=LETTERS).contains(&batch.len()));
                let small = |letter: &Letter| Some(letter.contents).filter(|len| *len <= SMALL).unwrap_or(0);
                let bytes: u64 = batch.iter().map(|letter| letter.manifest + small(letter)).sum();
                prop_assert!(batch.len() == 1 || bytes <= BYTES);
            }
        }
    }
}
