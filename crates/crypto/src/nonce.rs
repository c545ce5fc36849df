//! Nonces that cannot repeat: each exists once, and sealing consumes it.

/// A counter that has issued [`NonceCounter::LAST`]: the key must be replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("all {} nonces of this key are used up: rekey before sending more", NonceCounter::LAST)]
pub struct Exhausted;

/// A number that no other seal under the same counter has used or will use.
///
/// Only [`NonceCounter::next`] makes one, it cannot be copied, and [`crate::Key::seal`] takes it by
/// value: using a nonce twice does not compile.
///
/// ```compile_fail
/// let mut counter = strait_crypto::NonceCounter::new();
/// let nonce = counter.next().unwrap();
/// let again = nonce.clone();
/// ```
#[derive(Debug)]
#[must_use = "a nonce that is not used leaves a gap in the sequence numbers"]
pub struct FreshNonce(u64);

impl FreshNonce {
    /// The number itself: the 64-bit sequence number, and the IV of RFC 8750.
    #[must_use]
    pub const fn value(&self) -> u64 {
        self.0
    }

    /// A published vector's nonce, which no counter would reach.
    #[cfg(test)]
    pub(crate) const fn of_vector(value: u64) -> FreshNonce {
        FreshNonce(value)
    }
}

/// The one source of nonces of a key; a key has one counter, which is why it cannot be copied.
#[derive(Debug)]
pub struct NonceCounter {
    last: u64,
    /// The last number that may be issued.
    end: u64,
}

impl NonceCounter {
    /// The last number a key may seal with, 2^36.
    ///
    /// draft-irtf-cfrg-aead-limits-11 section 5.1.1 bounds what an attacker gains against AES-GCM by
    /// (q (L + 1))^2 / 2^129, for q messages of L 16-byte blocks. 2^36 messages of 64 KiB, the longest
    /// this system seals (L = 2^12), give 2^-33; of 1,400 bytes, 2^-44. 2^48 of them would give 2^-9,
    /// which does not exist. `ChaCha20-Poly1305` has no such bound and shares the number. At a
    /// million packets a second it lasts 19 hours; sessions rekey long before that.
    pub const LAST: u64 = 1 << 36;

    /// A counter whose first nonce is 1 (RFC 4303 section 3.3.3: the first packet has number 1).
    #[must_use]
    pub const fn new() -> NonceCounter {
        NonceCounter::starting_at(1)
    }

    /// A counter whose first nonce is `first`, or 1 when `first` is 0.
    ///
    /// For keys that continue an earlier run; the caller vouches that nothing from `first` on was used.
    #[must_use]
    pub const fn starting_at(first: u64) -> NonceCounter {
        NonceCounter { last: first.saturating_sub(1), end: NonceCounter::LAST }
    }

    /// A counter for a new key whose first nonce is `first`, or 1 when `first` is 0: it issues as many as one that begins with 1.
    ///
    /// For keys whose numbers begin with the time. What [`NonceCounter::LAST`] limits is how many packets one key seals; nothing
    /// was sealed with this one.
    #[must_use]
    pub const fn new_at(first: u64) -> NonceCounter {
        let last = first.saturating_sub(1);
        NonceCounter { last, end: last.saturating_add(NonceCounter::LAST) }
    }

    /// The next nonce.
    ///
    /// # Errors
    /// [`Exhausted`] once [`NonceCounter::LAST`] has been issued, or as many as that of a key that began elsewhere; from then on
    /// always.
    pub const fn next(&mut self) -> Result<FreshNonce, Exhausted> {
        if self.last >= self.end {
            return Err(Exhausted);
        }
        self.last += 1;
        Ok(FreshNonce(self.last))
    }

    /// The last nonce issued; before the first, the number before it.
    #[must_use]
    pub const fn last(&self) -> u64 {
        self.last
    }
}

impl Default for NonceCounter {
    fn default() -> NonceCounter {
        NonceCounter::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_packet_is_number_one() {
        for mut counter in [NonceCounter::new(), NonceCounter::default(), NonceCounter::starting_at(0)] {
            assert_eq!(counter.last(), 0);
            assert_eq!(counter.next().unwrap().value(), 1);
            assert_eq!(counter.next().unwrap().value(), 2);
            assert_eq!(counter.last(), 2);
        }
    }

    #[test]
    fn numbers_cross_the_32_bit_boundary() {
        let mut counter = NonceCounter::starting_at(u64::from(u32::MAX));
        assert_eq!(counter.next().unwrap().value(), 0xffff_ffff);
        assert_eq!(counter.next().unwrap().value(), 0x1_0000_0000);
    }

    #[test]
    fn the_counter_stops_for_good_at_its_last() {
        let mut counter = NonceCounter::starting_at(NonceCounter::LAST - 1);
        assert_eq!(counter.next().unwrap().value(), NonceCounter::LAST - 1);
        assert_eq!(counter.next().unwrap().value(), NonceCounter::LAST);
        for _ in 0..3 {
            assert_eq!(counter.next().unwrap_err(), Exhausted);
            assert_eq!(counter.last(), NonceCounter::LAST);
        }
    }

    #[test]
    fn a_new_key_that_begins_elsewhere_has_as_many_numbers() {
        for first in [0, 1, 1 << 50] {
            let mut counter = NonceCounter::new_at(first);
            assert_eq!(counter.next().unwrap().value(), first.max(1));
            let last = first.saturating_sub(1) + NonceCounter::LAST;
            counter.last = last - 1;
            assert_eq!(counter.next().unwrap().value(), last);
            assert_eq!(counter.next().unwrap_err(), Exhausted);
        }
        let mut end = NonceCounter::new_at(u64::MAX);
        assert_eq!(end.next().unwrap().value(), u64::MAX);
        assert_eq!(end.next().unwrap_err(), Exhausted);
    }

    #[test]
    fn a_start_past_the_last_issues_nothing() {
        for first in [NonceCounter::LAST + 1, u64::MAX] {
            assert_eq!(NonceCounter::starting_at(first).next().unwrap_err(), Exhausted);
        }
    }
}
