//! Every integrity algorithm against published vectors and against tampering.

use super::*;
use crate::published::{file, unhex};

fn key(integrity: Integrity, bytes: &[u8]) -> MacKey {
    MacKey::new(&KeyMaterial::new(integrity, bytes).unwrap())
}

/// The check value of `parts`, which [`MacKey::verify`] has to accept.
fn icv(key: &MacKey, parts: &[&[u8]]) -> Vec<u8> {
    let mut icv = vec![0; key.integrity().icv_len()];
    key.sign(parts, &mut icv);
    assert_eq!(key.verify(parts, &icv), Ok(()));
    icv
}

/// RFC 4868 section 2.7.2 (AUTH256-1, AUTH384-1, AUTH512-1) and RFC 2202 (case 1 of each).
#[test]
fn published_cases() {
    let cases = [
        (Integrity::HmacSha256_128, "198a607eb44bfbc69903a0f1cf2bbdc5"),
        (Integrity::HmacSha384_192, "b6a8d5636f5c6a7224f9977dcf7ee6c7fb6d0c48cbdee973"),
        (Integrity::HmacSha512_256, "637edc6e01dce7e6742a99451aae82df23da3e92439e590e43e761b33e910fb8"),
        (Integrity::HmacSha1_96, "b617318655057264e28bc0b6"),
        (Integrity::HmacMd5_96, "9294727a3638bb1c13f48ef8"),
    ];
    assert_eq!(cases.map(|(integrity, _)| integrity), Integrity::ALL);
    for (integrity, expected) in cases {
        let key = key(integrity, &vec![0x0b; integrity.key_len()]);
        assert_eq!(icv(&key, &[b"Hi There"]), unhex(expected), "{integrity}");
    }
}

/// The whole code of `text` by `integrity` under a key of any length.
fn code(integrity: Integrity, key: &[u8], text: &[u8], len: usize) -> Vec<u8> {
    let mut code = vec![0; len];
    keyed(integrity, key).sign(&[text], &mut code);
    code
}

/// A value of RFC 2202: hexadecimal, a string in quotes over one line or two, or `repeated` bytes.
fn rfc2202_field(case: &str, name: &str) -> Vec<u8> {
    let (_, value) = case.split_once(name).unwrap();
    let value = value.trim_start().trim_start_matches('=').trim_start();
    if let Some(quoted) = value.strip_prefix('"') {
        let (text, _) = quoted.split_once('"').unwrap();
        return text.split_whitespace().collect::<Vec<_>>().join(" ").into();
    }
    let words: Vec<&str> = value.split_whitespace().collect();
    let bytes = unhex(words[0].trim_start_matches("0x"));
    match words[1..] {
        ["repeated", times, ..] => bytes.repeat(times.parse().unwrap()),
        _ => bytes,
    }
}

#[test]
fn every_case_of_rfc_2202() {
    let Some(file) = file("rfc2202-hmac-md5-sha1.txt") else { return };
    let mut cases = [0; 2];
    for case in file.split("test_case =").skip(1) {
        let [key, text, digest] = ["key =", "data =", "digest ="].map(|name| rfc2202_field(case, name));
        let is_sha1 = digest.len() == 20;
        let integrity = if is_sha1 { Integrity::HmacSha1_96 } else { Integrity::HmacMd5_96 };
        assert_eq!(code(integrity, &key, &text, digest.len()), digest, "{integrity}");
        cases[usize::from(is_sha1)] += 1;
    }
    assert!(cases.iter().all(|cases| *cases >= 7), "{cases:?}");
}

/// A value of RFC 4868: the first word of each line after `name` that is hexadecimal, up to an empty line.
fn rfc4868_field(case: &str, name: &str) -> Option<Vec<u8>> {
    let (_, value) = case.split_once(name)?;
    let words = value
        .lines()
        .take_while(|line| !line.trim().is_empty())
        .filter_map(|line| line.trim_start_matches([' ', '=']).split_whitespace().next());
    Some(unhex(&words.collect::<String>()))
}

#[test]
fn every_case_of_rfc_4868() {
    let Some(file) = file("rfc4868-hmac-sha2.txt") else { return };
    let mut cases = 0;
    for case in file.split("Test Case ").skip(1) {
        let (mut key, text) = (rfc4868_field(case, " Key").unwrap(), rfc4868_field(case, " Data").unwrap());
        if case.starts_with("AUTH512-4") {
            // The RFC prints a line too many before the 64 bytes it speaks of.
            key.drain(..16);
        }
        for (integrity, name) in [
            (Integrity::HmacSha256_128, "PRF-HMAC-SHA-256"),
            (Integrity::HmacSha384_192, "PRF-HMAC-SHA-384"),
            (Integrity::HmacSha512_256, "PRF-HMAC-SHA-512"),
        ] {
            let Some(expected) = rfc4868_field(case, name) else { continue };
            assert_eq!(code(integrity, &key, &text, expected.len()), expected, "{}", &case[..10]);
            cases += 1;
        }
    }
    assert_eq!(cases, 6 * 3 + 3 * 4);
}

#[test]
fn parts_count_as_one_after_another() {
    let text: Vec<u8> = (0..=255).collect();
    for integrity in Integrity::ALL {
        let key = key(integrity, &vec![5; integrity.key_len()]);
        let whole = icv(&key, &[&text]);
        for cut in 0..text.len() {
            let (front, back) = text.split_at(cut);
            assert_eq!(icv(&key, &[front, back]), whole, "{integrity} cut at {cut}");
            assert_eq!(icv(&key, &[&[], front, &[], back, &[]]), whole, "{integrity} cut at {cut}");
        }
    }
}

#[test]
fn any_flipped_bit_is_a_forgery() {
    for integrity in Integrity::ALL {
        let key_bytes = vec![6; integrity.key_len()];
        let parts = [b"a canonical header".as_slice(), b"a packet", &[0, 0, 0, 1]];
        let icv = icv(&key(integrity, &key_bytes), &parts);
        for bit in 0..8 * icv.len() {
            let mut other = icv.clone();
            other[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(
                key(integrity, &key_bytes).verify(&parts, &other),
                Err(Forged),
                "{integrity} ICV {bit}"
            );
        }
        for bit in 0..8 * key_bytes.len() {
            let mut other = key_bytes.clone();
            other[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(key(integrity, &other).verify(&parts, &icv), Err(Forged), "{integrity} key {bit}");
        }
        for part in 0..parts.len() {
            for bit in 0..8 * parts[part].len() {
                let mut changed = parts[part].to_vec();
                changed[bit / 8] ^= 1 << (bit % 8);
                let mut parts = parts;
                parts[part] = &changed;
                assert_eq!(
                    key(integrity, &key_bytes).verify(&parts, &icv),
                    Err(Forged),
                    "{integrity} {part}"
                );
            }
        }
    }
}

#[test]
fn a_check_value_of_another_length_is_a_forgery() {
    for integrity in Integrity::ALL {
        let key = key(integrity, &vec![7; integrity.key_len()]);
        let mut icv = icv(&key, &[b"text"]);
        for len in 0..icv.len() {
            assert_eq!(key.verify(&[b"text"], &icv[..len]), Err(Forged), "{integrity} cut to {len}");
        }
        icv.push(0);
        assert_eq!(key.verify(&[b"text"], &icv), Err(Forged), "{integrity}");
    }
}

#[test]
#[should_panic(expected = "the check value of hmac-sha-256-128")]
fn a_check_value_has_its_own_length() {
    key(Integrity::HmacSha256_128, &[1; 32]).sign(&[], &mut [0; 12]);
}

#[test]
fn keys_never_print_and_cross_threads() {
    const fn shared<T: Send + Sync>(_: &T) {}
    for integrity in Integrity::ALL {
        let key = key(integrity, &vec![8; integrity.key_len()]);
        shared(&key);
        assert_eq!(format!("{key:?}"), "[key]");
        assert_eq!(key.integrity(), integrity);
    }
}
