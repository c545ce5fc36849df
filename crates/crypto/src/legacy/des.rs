//! DES (FIPS 46-3) and triple DES (ANSI X9.52, NIST SP 800-67), with two keys and with three.
//!
//! Written here because the speed of 3DES is what measurements with it are about: `RustCrypto`'s takes 2.7
//! times as long as OpenSSL's, this as long as that, and slowness would flatter whatever is set against it.
//! Weak keys are taken like any other. Tables indexed with secrets leak through the cache, one more reason
//! to protect nothing with it.

mod tables;

use zeroize::{Zeroize, ZeroizeOnDrop};

use super::cbc64::{BlockCipher64, Cbc64};
use tables::{PC1, PC2, SHIFTS, SP};

/// Rounds of one DES.
const ROUNDS: usize = 16;

/// The 48 bits of one round, six at the low end of each byte: those of S1, S3, S5 and S7 in the first word,
/// those of S2, S4, S6 and S8 in the second.
type RoundKey = [u32; 2];

/// DES with one key, or with several one after another: every second one deciphers (`EDE`).
#[derive(Zeroize, ZeroizeOnDrop)]
pub(crate) struct Des<const STAGES: usize> {
    stages: [[RoundKey; ROUNDS]; STAGES],
}

/// DES in CBC mode with `key`, whose parity bits do not matter.
pub(crate) fn single_cbc(key: &[u8; 8]) -> Cbc64<Des<1>> {
    Cbc64(Des { stages: [schedule(key)] })
}

/// Triple DES in CBC mode with three keys, one after another.
pub(crate) fn triple_cbc(keys: &[u8; 24]) -> Cbc64<Des<3>> {
    triple(keys, [0, 1, 2])
}

/// Triple DES in CBC mode with two keys, one after another; the first is also the third.
pub(crate) fn two_key_triple_cbc(keys: &[u8; 16]) -> Cbc64<Des<3>> {
    triple(keys, [0, 1, 0])
}

fn triple(keys: &[u8], order: [usize; 3]) -> Cbc64<Des<3>> {
    let (keys, _) = keys.as_chunks();
    let mut stages = order.map(|nth| schedule(&keys[nth]));
    stages[1].reverse();
    Cbc64(Des { stages })
}

impl<const STAGES: usize> BlockCipher64 for Des<STAGES> {
    fn encrypt_block(&self, block: u64) -> u64 {
        let stages = self.stages.iter();
        final_permutation(stages.fold(initial_permutation(block), |halves, keys| stage(halves, keys.iter())))
    }

    fn decrypt_block(&self, block: u64) -> u64 {
        let stages = self.stages.iter().rev();
        final_permutation(
            stages.fold(initial_permutation(block), |halves, keys| stage(halves, keys.iter().rev())),
        )
    }
}

/// The sixteen rounds between the permutations, and the exchange of the halves that ends them.
#[inline]
fn stage<'a>((left, right): (u32, u32), keys: impl Iterator<Item = &'a RoundKey>) -> (u32, u32) {
    let (left, right) =
        keys.fold((left, right), |(left, right), key| (right, left ^ cipher_function(right, *key)));
    (right, left)
}

/// The function f(R, K): expansion, the eight S-boxes and the permutation P.
#[inline]
fn cipher_function(half: u32, [odd, even]: RoundKey) -> u32 {
    // The expansion E: turned like this, the six bits that go to each box end a byte.
    let [s1, s3, s5, s7] = (half.rotate_right(3) ^ odd).to_be_bytes();
    let [s2, s4, s6, s8] = (half.rotate_left(1) ^ even).to_be_bytes();
    let boxes = [s1, s2, s3, s4, s5, s6, s7, s8];
    SP.iter().zip(boxes).fold(0, |sum, (table, input)| sum | table[usize::from(input & 0x3f)])
}

/// The permutation IP, as exchanges of bits between the halves.
#[inline]
fn initial_permutation(block: u64) -> (u32, u32) {
    let (mut left, mut right) = halves(block);
    exchange(&mut left, &mut right, 4, 0x0f0f_0f0f);
    exchange(&mut left, &mut right, 16, 0x0000_ffff);
    exchange(&mut right, &mut left, 2, 0x3333_3333);
    exchange(&mut right, &mut left, 8, 0x00ff_00ff);
    exchange(&mut left, &mut right, 1, 0x5555_5555);
    (left, right)
}

/// The inverse of IP.
#[inline]
fn final_permutation((mut left, mut right): (u32, u32)) -> u64 {
    exchange(&mut left, &mut right, 1, 0x5555_5555);
    exchange(&mut right, &mut left, 8, 0x00ff_00ff);
    exchange(&mut right, &mut left, 2, 0x3333_3333);
    exchange(&mut left, &mut right, 16, 0x0000_ffff);
    exchange(&mut left, &mut right, 4, 0x0f0f_0f0f);
    u64::from(left) << 32 | u64::from(right)
}

/// Exchanges the bits of `low` under `mask` with those of `high` that are `distance` above them.
#[inline]
const fn exchange(high: &mut u32, low: &mut u32, distance: u32, mask: u32) {
    let differing = (*high >> distance ^ *low) & mask;
    *low ^= differing;
    *high ^= differing << distance;
}

#[inline]
#[expect(clippy::cast_possible_truncation, reason = "the halves of a block")]
const fn halves(block: u64) -> (u32, u32) {
    ((block >> 32) as u32, block as u32)
}

/// The key schedule KS.
fn schedule(key: &[u8; 8]) -> [RoundKey; ROUNDS] {
    let key = u64::from_be_bytes(*key);
    let (mut c, mut d) = (permute(key, 64, &PC1[..28]), permute(key, 64, &PC1[28..]));
    SHIFTS.map(|shift| {
        (c, d) = (rotate_28(c, shift), rotate_28(d, shift));
        let chosen = permute(c << 28 | d, 56, &PC2);
        let six = |nth: u32| (chosen >> (42 - 6 * nth) & 0x3f) as u32;
        let word = |first| (0..4).fold(0, |word, pair: u32| word << 8 | six(first + 2 * pair));
        [word(0), word(1)]
    })
}

const fn rotate_28(half: u64, by: u32) -> u64 {
    (half << by | half >> (28 - by)) & 0x0fff_ffff
}

/// The bits of a `width`-bit `word` that `places` names, counted from 1 at the most significant, in that order.
fn permute(word: u64, width: u32, places: &[u8]) -> u64 {
    places.iter().fold(0, |chosen, place| chosen << 1 | word >> (width - u32::from(*place)) & 1)
}

#[cfg(test)]
mod tests {
    use super::super::tomcrypt::check_chain;
    use super::*;
    use crate::published::{check_hex, check_responses};
    use crate::{Cipher, CipherKey, KeyMaterial};

    /// NIST's multi-block message tests TCBCMMT1 and TCBCMMT3, each the first case.
    #[test]
    fn nist_cbc_first_cases() {
        let [single, triple] = [
            ["a4e319510bef76ea", "679fdbee166c2e0a", "36926e3a2720ea9f", "c108c0e25ee81ea3"],
            [
                "b5cb1504802326c73df186e3e352a20de643b0d63ee30e37",
                "43f791134c5647ba",
                "dcc153cef81d6f24",
                "92538bd8af18d3ba",
            ],
        ];
        check_hex(Cipher::DesCbc, single);
        check_hex(Cipher::TripleDesCbc, triple);
    }

    #[test]
    fn nist_cbc_files() {
        check_responses(Cipher::DesCbc, "nist-des-cbc-TCBCMMT1.rsp", &["KEY1"], 20);
        let (file, keys) = ("nist-3des-cbc-TCBCMMT3.rsp", ["KEY1", "KEY2", "KEY3"]);
        check_responses(Cipher::TripleDesCbc, file, &keys, 20);
    }

    /// OpenSSL 3.0.19, `enc -des-ede-cbc -nopad`.
    #[test]
    fn two_keys_as_openssl_takes_them() {
        let key = "000102030405060708090a0b0c0d0e0f";
        let sealed = "0d8719fa45fb37b71f79859d96dea49e";
        check_hex(Cipher::TwoKeyTripleDesCbc, [key, "1112131415161718", key, sealed]);
    }

    #[test]
    fn chains_of_libtomcrypt() {
        check_chain("des", 8, |key| single_cbc(key.try_into().unwrap()).0);
        check_chain("3des", 16, |keys| two_key_triple_cbc(keys.try_into().unwrap()).0);
        check_chain("3des", 24, |keys| triple_cbc(keys.try_into().unwrap()).0);
    }

    fn encrypted(cipher: Cipher, key: &[u8]) -> [u8; 24] {
        let mut text = [0x5a; 24];
        CipherKey::new(&KeyMaterial::new(cipher, key).unwrap()).encrypt(&[1; 8], &mut text).unwrap();
        text
    }

    #[test]
    fn two_keys_are_three_of_which_the_last_is_the_first() {
        let keys: Vec<u8> = (0..16).map(|byte| byte * 13 + 7).collect();
        let three = [&keys, &keys[..8]].concat();
        assert_eq!(encrypted(Cipher::TwoKeyTripleDesCbc, &keys), encrypted(Cipher::TripleDesCbc, &three));
    }

    #[test]
    fn three_times_the_same_key_is_single_des() {
        let key = *b"8 bytes!";
        assert_eq!(encrypted(Cipher::TripleDesCbc, &[key; 3].concat()), encrypted(Cipher::DesCbc, &key));
    }

    #[test]
    fn parity_bits_do_not_matter_and_every_other_does() {
        let key = *b"\x13\x34\x57\x79\x9b\xbc\xdf\xf1";
        for bit in 0..64 {
            let mut other = key;
            other[bit / 8] ^= 1 << (bit % 8);
            let same = encrypted(Cipher::DesCbc, &other) == encrypted(Cipher::DesCbc, &key);
            assert_eq!(same, bit % 8 == 0, "bit {bit}");
        }
    }
}
