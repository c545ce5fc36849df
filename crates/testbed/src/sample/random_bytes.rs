//! Bytes that do not shrink, as archives, pictures and ciphertext do not.

use strait_clock::Random;

/// Exactly `size` random bytes.
pub(super) fn write(random: &mut Random, size: usize) -> Vec<u8> {
    let mut out = Vec::with_capacity(size + 8);
    while out.len() < size {
        out.extend_from_slice(&random.next_u64().to_le_bytes());
    }
    out.truncate(size);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_value_is_about_as_frequent() {
        let bytes = write(&mut Random::new(1), 256_000);
        let mut counts = [0_u32; 256];
        bytes.iter().for_each(|byte| counts[usize::from(*byte)] += 1);
        assert!(counts.iter().all(|count| (800..1200).contains(count)));
    }
}
