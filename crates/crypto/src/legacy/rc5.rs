//! RC5 (RFC 2040) with words of 32 bits and a key of 16 bytes, by `RustCrypto`.

use cipher::KeyInit;
use cipher::consts::{U12, U16};
use rc5::RC5;

use super::cbc64::Cbc64;

/// RC5-32/12/16 in CBC mode.
pub(crate) fn twelve_rounds_cbc(key: &[u8; 16]) -> Cbc64<RC5<u32, U12, U16>> {
    Cbc64(RC5::new(key.into()))
}

/// RC5-32/16/16 in CBC mode: what RFC 2451 section 2.5 has by default.
pub(crate) fn sixteen_rounds_cbc(key: &[u8; 16]) -> Cbc64<RC5<u32, U16, U16>> {
    Cbc64(RC5::new(key.into()))
}

#[cfg(test)]
mod tests {
    use cipher::consts::{U1, U4, U5, U8};

    use super::super::tomcrypt::check_chain;
    use super::*;
    use crate::Cipher;
    use crate::cipher_key::Keyed;
    use crate::published::{check_hex, file, unhex};

    /// RFC 2040 section 9.3.
    #[test]
    fn published_cases() {
        let key = "01020304050607081020304050607080";
        let (iv, text) = ("0102030405060708", "1020304050607080");
        check_hex(Cipher::Rc5R12Cbc, [key, iv, text, "294ddb46b3278d60"]);
        check_hex(Cipher::Rc5R16Cbc, [key, iv, text, "dad6bda9dfe8f7e8"]);
    }

    fn keyed(rounds: &str, key: &[u8]) -> Option<Box<dyn Keyed>> {
        Some(match (rounds, key.len()) {
            ("12", 1) => Box::new(Cbc64(RC5::<u32, U12, U1>::new_from_slice(key).unwrap())),
            ("12", 4) => Box::new(Cbc64(RC5::<u32, U12, U4>::new_from_slice(key).unwrap())),
            ("12", 5) => Box::new(Cbc64(RC5::<u32, U12, U5>::new_from_slice(key).unwrap())),
            ("12", 8) => Box::new(Cbc64(RC5::<u32, U12, U8>::new_from_slice(key).unwrap())),
            ("12", 16) => Box::new(twelve_rounds_cbc(key.try_into().unwrap())),
            ("16", 1) => Box::new(Cbc64(RC5::<u32, U16, U1>::new_from_slice(key).unwrap())),
            ("16", 4) => Box::new(Cbc64(RC5::<u32, U16, U4>::new_from_slice(key).unwrap())),
            ("16", 8) => Box::new(Cbc64(RC5::<u32, U16, U8>::new_from_slice(key).unwrap())),
            ("16", 16) => Box::new(sixteen_rounds_cbc(key.try_into().unwrap())),
            _ => return None,
        })
    }

    #[test]
    fn every_case_of_rfc_2040_with_our_rounds() {
        let Some(file) = file("rfc2040-rc5-cbc.txt") else { return };
        let mut cases = 0;
        for case in file.split("RC5_CBC ").skip(1) {
            let words: Vec<&str> = case.split_whitespace().collect();
            let field = |name| words.windows(3).find(|three| three[..2] == [name, "="]).map(|three| three[2]);
            let (Some(rounds), Some(key)) = (field("R"), field("Key")) else { continue };
            let Some(keyed) = keyed(rounds, &unhex(key)) else { continue };
            let [iv, text, sealed] = ["IV", "P", "C"].map(|name| unhex(field(name).unwrap()));
            let mut packet = text.clone();
            assert!(keyed.encrypt(&iv, &mut packet).is_ok());
            assert_eq!(packet, sealed, "{rounds} rounds, key {key}");
            assert!(keyed.decrypt(&iv, &mut packet).is_ok());
            assert_eq!(packet, text, "{rounds} rounds, key {key}");
            cases += 1;
        }
        assert_eq!(cases, 10);
    }

    #[test]
    fn chain_of_libtomcrypt() {
        check_chain("rc5", 8, |key| RC5::<u32, U12, U8>::new_from_slice(key).unwrap());
    }
}
