//! Published vectors, in the form of NIST's response files: `Name = hex` lines, `Tag` last of a case.

use super::*;
use crate::published::unhex;

const NIST_128: &str = include_str!("../../../tests/vectors/nist-gcm-128.rsp");
const NIST_256: &str = include_str!("../../../tests/vectors/nist-gcm-256.rsp");
const MCGREW: &str = include_str!("../../../tests/vectors/mcgrew-esp-gcm.rsp");
const RFC8439: &str = include_str!("../../../tests/vectors/rfc8439.rsp");
const RFC7634: &str = include_str!("../../../tests/vectors/rfc7634.rsp");

#[derive(Clone, Default)]
struct Case {
    key: Vec<u8>,
    iv: Vec<u8>,
    text: Vec<u8>,
    aad: Vec<u8>,
    sealed: Vec<u8>,
    tag: Vec<u8>,
}

fn cases(file: &str) -> Vec<Case> {
    let mut cases = Vec::new();
    let mut case = Case::default();
    for line in file.lines().filter(|line| !line.starts_with(['#', '['])) {
        let Some((name, value)) = line.split_once('=') else { continue };
        let value = value.trim();
        match name.trim() {
            "Key" => case.key = unhex(value),
            "IV" => case.iv = unhex(value),
            "PT" => case.text = unhex(value),
            "AAD" => case.aad = unhex(value),
            "CT" => case.sealed = unhex(value),
            "Tag" => {
                case.tag = unhex(value);
                cases.push(std::mem::take(&mut case));
            }
            "Count" => {}
            other => panic!("unknown field {other}"),
        }
    }
    cases
}

/// Seals and opens one case; a tag shorter than ours must be the front of ours (SP 800-38D section 7.1).
fn check(suite: Suite, case: &Case) {
    let Case { key, iv, text, aad, sealed, tag } = case;
    let (salt, iv) = iv.split_at(SALT_LEN);
    let iv = u64::from_be_bytes(iv.try_into().unwrap());
    let key = Key::new(&KeyMaterial::new(suite, &[key, salt].concat()).unwrap());

    let mut packet = text.clone();
    let made = key.seal(FreshNonce::of_vector(iv), aad, &mut packet).unwrap();
    assert_eq!(&packet, sealed);
    let len = tag.len().min(suite.icv_len());
    assert_eq!(&made[..len], &tag[..len]);

    packet.extend_from_slice(&made);
    assert_eq!(key.open(iv, aad, &mut packet).unwrap(), text);
}

#[test]
fn every_published_case() {
    use Suite::{Aes128Gcm, Aes128Gcm12, Aes256Gcm, ChaCha20Poly1305};
    let files = [
        (NIST_128, 16, Aes128Gcm, 100),
        (NIST_128, 16, Aes128Gcm12, 100),
        (NIST_256, 32, Aes256Gcm, 100),
        (MCGREW, 16, Aes128Gcm, 1),
        (MCGREW, 16, Aes128Gcm12, 1),
        (MCGREW, 32, Aes256Gcm, 1),
        (RFC8439, 32, ChaCha20Poly1305, 1),
        (RFC7634, 32, ChaCha20Poly1305, 2),
    ];
    for (file, key_len, suite, expected) in files {
        let cases: Vec<Case> = cases(file).into_iter().filter(|case| case.key.len() == key_len).collect();
        assert_eq!(cases.len(), expected, "{suite}");
        cases.iter().for_each(|case| check(suite, case));
    }
}
