//! RC2 (RFC 2268) by `RustCrypto`.

use rc2::Rc2;

use super::cbc64::Cbc64;

/// RC2 in CBC mode with an effective key of as many bits as `key` has.
pub(crate) fn cbc<const LEN: usize>(key: &[u8; LEN]) -> Cbc64<Rc2> {
    Cbc64(Rc2::new_with_eff_key_len(key, 8 * LEN))
}

#[cfg(test)]
mod tests {
    use super::super::cbc64::BlockCipher64;
    use super::super::tomcrypt::check_chain;
    use super::*;
    use crate::Cipher;
    use crate::published::{check_hex, check_responses, file, unhex};

    /// RFC 2268 section 5; OpenSSL 3.0.19, `enc -rc2-40-cbc` and `enc -rc2-cbc` with `-nopad`.
    #[test]
    fn published_cases() {
        let vector =
            ["88bca90e90875a7f0f79c384627bafb2", "0000000000000000", "0000000000000000", "2269552ab0f85ca6"];
        check_hex(Cipher::Rc2_128Cbc, vector);
        let (text, iv) = ("000102030405060708090a0b0c0d0e0f", "1112131415161718");
        check_hex(Cipher::Rc2_40Cbc, ["0102030405", iv, text, "5370df31a126679c4028fb4cbb87bcc1"]);
        check_hex(Cipher::Rc2_128Cbc, [text, iv, text, "880fa0882942530bfa39a051960145b3"]);
    }

    #[test]
    fn cbc_file() {
        check_responses(Cipher::Rc2_128Cbc, "rc2-cbc.txt", &["KEY"], 1);
    }

    #[test]
    fn every_case_of_rfc_2268() {
        let Some(file) = file("rfc2268-rc2.txt") else { return };
        let mut cases = 0;
        for case in file.split("Key length (bytes)").skip(1) {
            let field = |name: &str| {
                let (_, rest) = case.split_once(name).unwrap();
                let lines = rest.lines().take_while(|line| !line.trim().is_empty());
                lines.take_while(|line| !line.contains("text")).collect::<Vec<_>>().join("\n")
            };
            let bits = field("(bits) =").lines().next().unwrap().trim().parse().unwrap();
            let cipher = Rc2::new_with_eff_key_len(&unhex(&field("  Key =")), bits);
            let block = |name| u64::from_be_bytes(unhex(&field(name)).try_into().unwrap());
            assert_eq!(BlockCipher64::encrypt_block(&cipher, block("Plaintext =")), block("Ciphertext ="));
            assert_eq!(BlockCipher64::decrypt_block(&cipher, block("Ciphertext =")), block("Plaintext ="));
            cases += 1;
        }
        assert_eq!(cases, 8);
    }

    #[test]
    fn chains_of_libtomcrypt() {
        for key_len in [8, 68, 128] {
            check_chain("rc2", key_len, |key| Rc2::new_with_eff_key_len(key, 8 * key_len));
        }
    }
}
