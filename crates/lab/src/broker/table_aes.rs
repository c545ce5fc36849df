//! AES by tables, as Java's own provider had it in 2011: no instructions for AES, four tables of 1 KiB.
//!
//! It is here to be measured. Its time depends on the key and the data through the cache, so it protects nothing.

/// The forward S-box by its definition (FIPS 197 section 5.1.1): the inverse in GF(2^8), then the affine map.
const SBOX: [u8; 256] = sbox();
/// A table for each row of a column: the S-box and `MixColumns` in one look (Daemen and Rijmen, *AES proposal: Rijndael*,
/// section 5.2.1).
static TABLES: [[u32; 256]; 4] = [table(0), table(8), table(16), table(24)];

/// Bytes of a block.
pub(super) const BLOCK: usize = 16;
/// Words of the longest key schedule: 15 round keys of four (FIPS 197 section 5.2).
const WORDS_MAX: usize = 60;

/// A key of AES.
pub(super) struct TableAes {
    words: [u32; WORDS_MAX],
    rounds: usize,
}

impl TableAes {
    /// A key of 16, 24 or 32 bytes; nothing for any other length.
    pub(super) fn new(key: &[u8]) -> Option<TableAes> {
        if !matches!(key.len(), 16 | 24 | 32) {
            return None;
        }
        let given = key.len() / 4;
        let rounds = given + 6;
        let mut words = [0; WORDS_MAX];
        for (word, bytes) in words.iter_mut().zip(key.chunks_exact(4)) {
            *word = bytes.iter().fold(0, |word, byte| word << 8 | u32::from(*byte));
        }
        let mut constant = 1_u8;
        for at in given..4 * (rounds + 1) {
            let mut last = words[at - 1];
            if at % given == 0 {
                last = substituted(last.rotate_left(8)) ^ u32::from(constant) << 24;
                constant = doubled(constant);
            } else if given > 6 && at % given == 4 {
                last = substituted(last);
            }
            words[at] = words[at - given] ^ last;
        }
        Some(TableAes { words, rounds })
    }

    /// Encrypts whole blocks in place, each by itself (ECB, NIST SP 800-38A section 6.1).
    pub(super) fn encrypt(&self, text: &mut [u8]) {
        for block in text.chunks_exact_mut(BLOCK) {
            let mut state = [0; 4];
            for ((word, bytes), key) in state.iter_mut().zip(block.chunks_exact(4)).zip(&self.words) {
                *word = bytes.iter().fold(0, |word, byte| word << 8 | u32::from(*byte)) ^ key;
            }
            for keys in self.words[4..4 * self.rounds].chunks_exact(4) {
                state = core::array::from_fn(|at| {
                    // ShiftRows: row r of a column comes from r columns further.
                    let look = |row: usize| TABLES[row][place(state[(at + row) % 4], row)];
                    look(0) ^ look(1) ^ look(2) ^ look(3) ^ keys[at]
                });
            }
            let keys = &self.words[4 * self.rounds..];
            for (at, bytes) in block.chunks_exact_mut(4).enumerate() {
                let look = |row: usize| u32::from(SBOX[place(state[(at + row) % 4], row)]) << (24 - 8 * row);
                let word = (look(0) | look(1) | look(2) | look(3)) ^ keys[at];
                bytes.copy_from_slice(&word.to_be_bytes());
            }
        }
    }
}

/// The byte of a row, as a place in a table.
const fn place(word: u32, row: usize) -> usize {
    (word >> (24 - 8 * row)) as usize & 0xff
}

const fn substituted(word: u32) -> u32 {
    let [a, b, c, d] = word.to_be_bytes();
    u32::from_be_bytes([SBOX[a as usize], SBOX[b as usize], SBOX[c as usize], SBOX[d as usize]])
}

/// Twice a byte in GF(2^8) (FIPS 197 section 4.2.1).
const fn doubled(byte: u8) -> u8 {
    byte << 1 ^ if byte & 0x80 == 0 { 0 } else { 0x1b }
}

const fn sbox() -> [u8; 256] {
    let mut sbox = [0; 256];
    // Powers of 3 reach every byte but 0, those of its inverse the inverses.
    let (mut power, mut inverse) = (1_u8, 1_u8);
    loop {
        power ^= doubled(power);
        inverse ^= inverse << 1;
        inverse ^= inverse << 2;
        inverse ^= inverse << 4;
        if inverse & 0x80 != 0 {
            inverse ^= 0x09;
        }
        let turned = inverse
            ^ inverse.rotate_left(1)
            ^ inverse.rotate_left(2)
            ^ inverse.rotate_left(3)
            ^ inverse.rotate_left(4);
        sbox[power as usize] = turned ^ 0x63;
        if power == 1 {
            break;
        }
    }
    sbox[0] = 0x63;
    sbox
}

/// The first table, turned by so many bits.
const fn table(turned: u32) -> [u32; 256] {
    let mut table = [0; 256];
    let mut at = 0;
    while at < 256 {
        let (once, twice) = (SBOX[at], doubled(SBOX[at]));
        table[at] = u32::from_be_bytes([twice, once, once, once ^ twice]).rotate_right(turned);
        at += 1;
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use aws_lc_rs::cipher::{AES_128, AES_192, AES_256, EncryptingKey, UnboundCipherKey};

    #[test]
    fn the_examples_of_fips_197() {
        // Appendix C.1 to C.3.
        let text: [u8; BLOCK] = core::array::from_fn(|at| at as u8 * 0x11);
        for (len, first) in
            [(16, [0x69, 0xc4, 0xe0, 0xd8]), (24, [0xdd, 0xa9, 0x7c, 0xa4]), (32, [0x8e, 0xa2, 0xb7, 0xca])]
        {
            let key: Vec<u8> = (0..len).collect();
            let mut block = text;
            TableAes::new(&key).unwrap().encrypt(&mut block);
            assert_eq!(block[..4], first, "{len}");
        }
        assert!(TableAes::new(&[0; 17]).is_none());
    }

    #[test]
    fn it_is_what_the_library_computes() {
        let text: Vec<u8> = (0..64 * BLOCK).map(|at| (at * at / 7) as u8).collect();
        for (algorithm, len) in [(&AES_128, 16), (&AES_192, 24), (&AES_256, 32)] {
            let key: Vec<u8> = (0..len).map(|at: u8| at.wrapping_mul(31)).collect();
            let (mut ours, mut theirs) = (text.clone(), text.clone());
            TableAes::new(&key).unwrap().encrypt(&mut ours);
            let library = EncryptingKey::ecb(UnboundCipherKey::new(algorithm, &key).unwrap()).unwrap();
            library.encrypt(&mut theirs).unwrap();
            assert!(ours == theirs, "{len}");
        }
    }
}
