//! SAFER SK-128 with ten rounds: Massey's cipher (Fast Software Encryption, LNCS 809, 1994, pages 1 to 17)
//! with the key schedule that Knudsen strengthened ("A Detailed Analysis of SAFER K", Journal of Cryptology
//! 13, 2000).
//!
//! Written here from that specification, as no library that is looked after has it. Its two tables are
//! indexed with secrets, as in every software of its time: the cache tells something about the key.

use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing};

use super::cbc64::{BlockCipher64, Cbc64};

/// Rounds recommended for the strengthened 128-bit key schedule.
const ROUNDS: usize = 10;
/// Two subkeys a round, and one more for the transformation of the output.
const SUBKEYS: usize = 2 * ROUNDS + 1;

/// 45^i mod 257 for every byte i, where 256 counts as 0.
static EXP: [u8; 256] = exponentials();
/// The inverse of [`EXP`].
static LOG: [u8; 256] = logarithms();

/// SAFER SK-128 in CBC mode.
pub(crate) fn cbc(key: &[u8; 16]) -> Cbc64<SaferSk128> {
    Cbc64(SaferSk128 { subkeys: schedule(key) })
}

/// SAFER SK-128 with its key.
#[derive(Zeroize, ZeroizeOnDrop)]
pub(crate) struct SaferSk128 {
    subkeys: [[u8; 8]; SUBKEYS],
}

impl BlockCipher64 for SaferSk128 {
    fn encrypt_block(&self, block: u64) -> u64 {
        let mut block = block.to_be_bytes();
        let (rounds, output) = self.halves();
        for [first, second] in rounds {
            block = diffuse(substitute(mix(block, first), second));
        }
        u64::from_be_bytes(mix(block, output))
    }

    fn decrypt_block(&self, block: u64) -> u64 {
        let (rounds, output) = self.halves();
        let mut block = unmix(block.to_be_bytes(), output);
        for [first, second] in rounds.iter().rev() {
            block = unmix(unsubstitute(gather(block), second), first);
        }
        u64::from_be_bytes(block)
    }
}

impl SaferSk128 {
    /// The subkeys of the rounds in pairs, and that of the output.
    #[inline]
    fn halves(&self) -> (&[[[u8; 8]; 2]], &[u8; 8]) {
        let (rounds, _) = self.subkeys.as_chunks();
        (rounds, &self.subkeys[SUBKEYS - 1])
    }
}

/// Whether byte `place` is added to its key and its logarithm taken: the second, third, sixth and seventh.
/// The others are combined with theirs by exclusive or, and are exponents.
const fn is_inner(place: usize) -> bool {
    matches!(place, 1 | 2 | 5 | 6)
}

/// The first half of a round, which is the transformation of the output as well.
#[inline]
fn mix(block: [u8; 8], key: &[u8; 8]) -> [u8; 8] {
    core::array::from_fn(|i| if is_inner(i) { block[i].wrapping_add(key[i]) } else { block[i] ^ key[i] })
}

/// Takes back [`mix`].
#[inline]
fn unmix(block: [u8; 8], key: &[u8; 8]) -> [u8; 8] {
    core::array::from_fn(|i| if is_inner(i) { block[i].wrapping_sub(key[i]) } else { block[i] ^ key[i] })
}

/// The powers and logarithms, and the key after them.
#[inline]
fn substitute(block: [u8; 8], key: &[u8; 8]) -> [u8; 8] {
    core::array::from_fn(|i| {
        let byte = usize::from(block[i]);
        if is_inner(i) { LOG[byte] ^ key[i] } else { EXP[byte].wrapping_add(key[i]) }
    })
}

/// Takes back [`substitute`].
#[inline]
fn unsubstitute(block: [u8; 8], key: &[u8; 8]) -> [u8; 8] {
    core::array::from_fn(|i| {
        if is_inner(i) {
            EXP[usize::from(block[i] ^ key[i])]
        } else {
            LOG[usize::from(block[i].wrapping_sub(key[i]))]
        }
    })
}

/// Three levels of the pseudo-Hadamard transformation, which takes (x, y) to (2x + y, x + y); between them,
/// every second byte goes to the front.
#[inline]
fn diffuse(block: [u8; 8]) -> [u8; 8] {
    let level = |[a, b, c, d, e, f, g, h]: [u8; 8]| {
        let ([a, b], [c, d]) = (pht([a, b]), pht([c, d]));
        let ([e, f], [g, h]) = (pht([e, f]), pht([g, h]));
        [a, b, c, d, e, f, g, h]
    };
    let shuffle = |[a, b, c, d, e, f, g, h]: [u8; 8]| [a, c, e, g, b, d, f, h];
    level(shuffle(level(shuffle(level(block)))))
}

/// Takes back [`diffuse`].
#[inline]
fn gather(block: [u8; 8]) -> [u8; 8] {
    let level = |[a, b, c, d, e, f, g, h]: [u8; 8]| {
        let ([a, b], [c, d]) = (inverse_pht([a, b]), inverse_pht([c, d]));
        let ([e, f], [g, h]) = (inverse_pht([e, f]), inverse_pht([g, h]));
        [a, b, c, d, e, f, g, h]
    };
    let unshuffle = |[a, c, e, g, b, d, f, h]: [u8; 8]| [a, b, c, d, e, f, g, h];
    level(unshuffle(level(unshuffle(level(block)))))
}

#[inline]
const fn pht([x, y]: [u8; 2]) -> [u8; 2] {
    let sum = x.wrapping_add(y);
    [x.wrapping_add(sum), sum]
}

#[inline]
const fn inverse_pht([x, y]: [u8; 2]) -> [u8; 2] {
    let first = x.wrapping_sub(y);
    [first, y.wrapping_sub(first)]
}

/// The strengthened schedule. Subkeys come in turn from the second and the first half of the key, each
/// lengthened by the exclusive or of its bytes. From one subkey to the next they are read one byte further on
/// and turned by three bits more, and a bias is added that is the same for all keys; the first has none.
fn schedule(key: &[u8; 16]) -> [[u8; 8]; SUBKEYS] {
    let lengthened = |half: &[u8]| {
        let mut register = Zeroizing::new([0; 9]);
        register[..8].copy_from_slice(half);
        register[8] = half.iter().fold(0, |sum, byte| sum ^ byte);
        register
    };
    let registers = [lengthened(&key[8..]), lengthened(&key[..8])];
    let mut turn = 0;
    core::array::from_fn(|nth| {
        let register = &registers[nth % 2];
        let subkey = core::array::from_fn(|place| {
            register[(nth + place) % 9].rotate_left(turn).wrapping_add(bias(nth, place))
        });
        turn += 3;
        subkey
    })
}

/// Byte `place` of the bias of subkey `nth`, both counted from 0.
fn bias(nth: usize, place: usize) -> u8 {
    match nth {
        0 => 0,
        _ => EXP[usize::from(EXP[9 * (nth + 1) + place + 1])],
    }
}

#[expect(clippy::cast_possible_truncation, reason = "256, which no byte is, counts as 0")]
const fn exponentials() -> [u8; 256] {
    let mut table = [0; 256];
    let (mut power, mut place) = (1_u32, 0);
    while place < 256 {
        table[place] = power as u8;
        power = power * 45 % 257;
        place += 1;
    }
    table
}

#[expect(clippy::cast_possible_truncation, reason = "the place is a byte")]
const fn logarithms() -> [u8; 256] {
    let mut table = [0; 256];
    let mut place = 0;
    while place < 256 {
        table[exponentials()[place] as usize] = place as u8;
        place += 1;
    }
    table
}

#[cfg(test)]
mod tests {
    use super::super::tomcrypt::check_chain;
    use super::*;
    use crate::Cipher;
    use crate::published::{check_hex, file};

    /// LibTomCrypt 1.18.2, `safer.c`.
    #[test]
    fn published_case() {
        let (key, text) = ("01020304050607080000000000000000", "0102030405060708");
        check_hex(Cipher::SaferSk128Cbc, [key, "0000000000000000", text, "ff7811e4b3a72e71"]);
    }

    #[test]
    fn chain_of_libtomcrypt() {
        check_chain("safer-sk128", 16, |key| cbc(key.try_into().unwrap()).0);
    }

    #[test]
    fn the_case_in_the_file_is_the_one_above() {
        let Some(file) = file("safer-libtomcrypt.json") else { return };
        let line = file.lines().find(|line| line.contains("SAFER SK-128\", \"rounds\": 10")).unwrap();
        assert!(line.contains("\"key\": [1,2,3,4,5,6,7,8,0,0,0,0,0,0,0,0]"));
        assert!(line.contains("\"plaintext\": [1,2,3,4,5,6,7,8]"));
        assert!(line.contains("\"ciphertext\": [255,120,17,228,179,167,46,113]"));
    }
}
