//! IDEA (Lai and Massey, "A Proposal for a New Block Encryption Standard", 1990; in ESP RFC 2451) by
//! `RustCrypto`.

use cipher::KeyInit;
use idea::Idea;

use super::cbc64::Cbc64;

/// IDEA in CBC mode.
pub(crate) fn cbc(key: &[u8; 16]) -> Cbc64<Idea> {
    Cbc64(Idea::new(key.into()))
}

#[cfg(test)]
mod tests {
    use super::super::cbc64::BlockCipher64;
    use super::*;
    use crate::Cipher;
    use crate::published::{cases, check_hex, check_responses, file};

    /// NESSIE's first vector, and the second CBC vector of pyca/cryptography, which Botan made as well.
    #[test]
    fn published_cases() {
        let (key, zeros) = ("80000000000000000000000000000000", "0000000000000000");
        check_hex(Cipher::IdeaCbc, [key, zeros, zeros, "b1f5f7f87901370f"]);
        check_hex(
            Cipher::IdeaCbc,
            [
                "0700d603a1c514e46b6191ba430a3a0c",
                "aad1583cd91365e3",
                "068b25c7bfb1f8bdd4cfc908f69dffc5ddc726a197f0e5f720f730393279be91",
                "4af8370c69ae4e45cc5a395e790272d5a5a0895dee1f336f0067963bd9ed55c7",
            ],
        );
    }

    #[test]
    fn cbc_file() {
        check_responses(Cipher::IdeaCbc, "idea-cbc.txt", &["KEY"], 20);
    }

    #[test]
    fn nessie_once_a_hundred_and_a_thousand_times() {
        let Some(file) = file("idea-ecb-nessie.txt") else { return };
        let cases = cases(&file);
        assert!(cases.len() > 100);
        for case in cases {
            let keyed = cbc(case["KEY"].as_slice().try_into().unwrap()).0;
            let word = |name: &str| u64::from_be_bytes(case[name].as_slice().try_into().unwrap());
            let again = |text, _| BlockCipher64::encrypt_block(&keyed, text);
            for (field, times) in [("CIPHERTEXT", 1), ("CIPHERTEXT100", 100), ("CIPHERTEXT1000", 1000)] {
                assert_eq!((0..times).fold(word("PLAINTEXT"), again), word(field), "{field}");
            }
        }
    }
}
