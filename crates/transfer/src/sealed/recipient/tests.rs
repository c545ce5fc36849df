use proptest::prelude::*;

use super::*;

fn key() -> FileKey {
    FileKey(Zeroizing::new([7; FILE_KEY_LEN]))
}

/// A key of `age-keygen`, which nothing is encrypted to, and its public half.
const OF_AGE_KEYGEN: [&str; 2] = [
    "AGE-SECRET-KEY-1MU8HQLULA9359A7HZQNTMPQSDD26ZJR8JFFNKXNA87MKN5097F0QX0FQSQ",
    "age190v8g2ta6pk8x6vrwhhcqzjdl8tudpsgk7xkqkq226v60926jf2sygaa7l",
];

#[test]
fn keys_of_age_keygen_are_read_and_written() {
    let [secret, public] = OF_AGE_KEYGEN;
    let recipient: AgeRecipient = public.parse().unwrap();
    assert_eq!(recipient.to_string(), public);
    let AgeIdentity::X25519(secret) = AgeIdentity::x25519(secret).unwrap() else { panic!("another kind") };
    assert_eq!(AgeRecipient::X25519(x25519_public(&secret)), recipient);
}

#[test]
fn a_mistyped_key_is_refused_and_not_repeated() {
    let text = AgeRecipient::X25519([9; 32]).to_string();
    for at in 4..text.len() {
        let wrong = if text.as_bytes()[at] == b'q' { "p" } else { "q" };
        let text = format!("{}{wrong}{}", &text[..at], &text[at + 1..]);
        assert_eq!(text.parse::<AgeRecipient>(), Err(RecipientError::Bech32), "{text}");
    }
    let error = AgeIdentity::x25519("AGE-SECRET-KEY-1QQQQ").unwrap_err().to_string();
    assert!(!error.contains("QQQQ"), "{error}");
    assert!(AgeIdentity::x25519(&text).is_err(), "a public key is no secret one");
}

#[test]
fn a_key_that_every_secret_shares_is_refused() {
    // The neutral point, and a point of order 4 (y = 0), of Ed25519; zero of X25519.
    let mut neutral = [0; 32];
    neutral[0] = 1;
    for node in [neutral, [0; 32]] {
        let recipient = AgeRecipient::Node(PublicKey::from_bytes(node));
        assert_eq!(recipient.wrap(&key(), &[1; 32]), Err(RecipientError::Weak));
    }
    assert_eq!(AgeRecipient::X25519([0; 32]).wrap(&key(), &[1; 32]), Err(RecipientError::Weak));
    // y = 2 is on no point.
    let mut none = [0; 32];
    none[0] = 2;
    assert_eq!(
        AgeRecipient::Node(PublicKey::from_bytes(none)).wrap(&key(), &[1; 32]),
        Err(RecipientError::Weak)
    );
}

proptest! {
    #[test]
    fn what_is_wrapped_for_a_node_only_that_node_unwraps(seed: [u8; 32], other: [u8; 32], ephemeral: [u8; 32]) {
        prop_assume!(seed != other);
        let node = PrivateKey::generate(&seed);
        let stanza = AgeRecipient::Node(node.public()).wrap(&key(), &ephemeral).unwrap();
        prop_assert_eq!(AgeIdentity::Node(&node).unwrap(&stanza).map(|key| *key.0), Some(*key().0));
        prop_assert!(AgeIdentity::Node(&PrivateKey::generate(&other)).unwrap(&stanza).is_none());
        prop_assert!(AgeIdentity::X25519(node.x25519_scalar()).unwrap(&stanza).is_none());
    }

    #[test]
    fn what_is_wrapped_for_an_x25519_key_only_that_unwraps(secret: [u8; 32], other: [u8; 32], ephemeral: [u8; 32]) {
        let point = |secret| x25519_public(&secret);
        prop_assume!(point(secret) != point(other));
        let stanza = AgeRecipient::X25519(point(secret)).wrap(&key(), &ephemeral).unwrap();
        let open = |secret| AgeIdentity::X25519(Zeroizing::new(secret)).unwrap(&stanza).map(|key| *key.0);
        prop_assert_eq!(open(secret), Some(*key().0));
        prop_assert_eq!(open(other), None);
    }

    #[test]
    fn recipients_round_trip(bytes: [u8; 32], node: bool) {
        let recipient = if node { AgeRecipient::Node(PublicKey::from_bytes(bytes)) } else { AgeRecipient::X25519(bytes) };
        prop_assert_eq!(recipient.to_string().parse(), Ok(recipient));
    }
}
