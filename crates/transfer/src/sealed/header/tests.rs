use proptest::prelude::*;
use strait_keying::PrivateKey;

use super::*;

fn node(seed: u8) -> PrivateKey {
    PrivateKey::generate(&[seed; 32])
}

fn header(recipients: &[AgeRecipient]) -> (Vec<u8>, [u8; 32]) {
    let mut bytes = Vec::new();
    let key = write(&mut bytes, recipients, ObjectSeed::new([3; 32])).unwrap();
    (bytes, *key)
}

#[test]
fn each_recipient_reads_the_key_and_others_are_told_that_it_is_not_for_them() {
    let recipients = [1, 2].map(|seed| AgeRecipient::Node(node(seed).public()));
    let (bytes, key) = header(&recipients);
    for seed in [1, 2] {
        let mut input = &bytes[..];
        assert_eq!(*read(&mut input, &AgeIdentity::Node(&node(seed))).unwrap(), key);
        assert!(input.is_empty(), "the chunks follow at once");
    }
    assert!(matches!(read(&mut &bytes[..], &AgeIdentity::Node(&node(3))), Err(HeaderError::NotForUs)));
}

#[test]
fn every_cut_and_every_changed_byte_is_refused() {
    let (bytes, _) = header(&[AgeRecipient::Node(node(1).public()), AgeRecipient::X25519([9; 32])]);
    for len in 0..bytes.len() {
        assert!(read(&mut &bytes[..len], &AgeIdentity::Node(&node(1))).is_err(), "{len}");
    }
    for at in 0..bytes.len() - NONCE_LEN {
        let mut changed = bytes.clone();
        changed[at] ^= 1;
        assert!(read(&mut &changed[..], &AgeIdentity::Node(&node(1))).is_err(), "{at}");
    }
}

#[test]
fn a_body_of_whole_lines_ends_with_an_empty_one() {
    // 48 bytes are 64 characters.
    for (len, lines) in [(0, 2), (47, 2), (48, 3), (96, 4), (100, 4)] {
        let stanza = Stanza { words: vec!["x".to_owned()], body: vec![5; len] };
        let mut bytes = Vec::new();
        stanza.append(&mut bytes);
        assert_eq!(bytes.iter().filter(|byte| **byte == b'\n').count(), lines, "{len}");
        let mut input = &bytes[..];
        let mut seen = Vec::new();
        let first = line(&mut input, &mut seen).unwrap();
        assert_eq!(super::stanza(&first, &mut input, &mut seen).unwrap(), stanza);
        assert_eq!(seen, bytes);
    }
}

#[test]
fn a_header_without_end_is_given_up_after_some_kilobytes() {
    let endless = |part: &'static [u8]| {
        let repeated = std::iter::repeat_n(part, 2_000_000 / part.len()).flatten().copied();
        [b"age-encryption.org/v1\n".to_vec(), repeated.collect()].concat()
    };
    for part in [&b"x"[..], b"-> X25519 a\n\n", &[b'A'; 64], b"-> a "] {
        let bytes = endless(part);
        let mut input = &bytes[..];
        assert!(read(&mut input, &AgeIdentity::Node(&node(1))).is_err());
        assert!(bytes.len() - input.len() < 100_000);
    }
}

#[test]
fn an_object_for_none_and_for_too_many_is_refused() {
    for count in [0, RECIPIENTS_MAX + 1] {
        let recipients = vec![AgeRecipient::X25519([9; 32]); count];
        let error = write(&mut Vec::new(), &recipients, ObjectSeed::new([3; 32])).unwrap_err();
        assert!(matches!(error, HeaderError::Recipients));
    }
}

proptest! {
    #[test]
    fn any_input_is_read_or_refused(bytes: Vec<u8>, lines in proptest::collection::vec("[-> A-Za-z0-9+/]{0,70}", 0..6)) {
        let text = format!("{VERSION}\n{}\n", lines.join("\n"));
        for input in [&bytes[..], text.as_bytes()] {
            let _ = read(&mut &input[..], &AgeIdentity::Node(&node(1)));
        }
    }
}
