use proptest::prelude::*;

use super::*;
use crate::sessionless::KemKey;

fn card(own: &PrivateKey) -> KeyCard {
    KeyCard {
        valid: (1_767_225_600, 1_798_761_600),
        ..KeyCard::plain("north-gate.1".parse().unwrap(), own.public())
    }
}

fn bytes_of(text: &str) -> Vec<u8> {
    base64::decode_any(text.strip_prefix(PREFIX).unwrap()).unwrap().to_vec()
}

fn text_of(bytes: &[u8]) -> String {
    format!("{PREFIX}{}", base64::encode(bytes).as_str())
}

#[test]
fn round_trip_with_and_without_a_kem_key() {
    let own = PrivateKey::generate(&[3; 32]);
    let with = KeyCard { kem: Some(KemKey::generate().unwrap().public().clone()), ..card(&own) };
    for card in [card(&own), with] {
        let text = card.sign(&own);
        assert!(text.len() <= CARD_TEXT_MAX && !text.contains('\n'));
        assert_eq!(text.parse(), Ok(card.clone()));
        assert_eq!(format!(" {text}\n").parse(), Ok(card));
    }
}

#[test]
fn a_card_that_was_changed_anywhere_is_refused() {
    let own = PrivateKey::generate(&[3; 32]);
    let good = bytes_of(&card(&own).sign(&own));
    for at in 0..good.len() {
        let mut bad = good.clone();
        bad[at] ^= 1;
        assert!(text_of(&bad).parse::<KeyCard>().is_err(), "byte {at}");
        assert!(text_of(&good[..at]).parse::<KeyCard>().is_err(), "{at} bytes");
    }
    let other = PrivateKey::generate(&[4; 32]);
    let mut resigned = good[..good.len() - SIGNATURE_LEN].to_vec();
    let signature = other.sign(&[KeyCard::LABEL, &resigned].concat());
    resigned.extend_from_slice(&signature);
    assert_eq!(text_of(&resigned).parse::<KeyCard>(), Err(CardError::Signature));
}

#[test]
fn unknown_fields_are_skipped_and_known_ones_come_once() {
    let own = PrivateKey::generate(&[3; 32]);
    let good = bytes_of(&card(&own).sign(&own));
    let with = |more: &[u8]| {
        let mut bytes = [&good[..good.len() - SIGNATURE_LEN], more].concat();
        let signature = own.sign(&[KeyCard::LABEL, &bytes].concat());
        bytes.extend_from_slice(&signature);
        text_of(&bytes).parse::<KeyCard>()
    };
    assert_eq!(with(&[200, 0, 2, 1, 2]), Ok(card(&own)));
    assert_eq!(with(&[NAME, 0, 1, b'a']), Err(CardError::Field("name")));
    assert_eq!(with(&[200, 0, 3, 1, 2]), Err(CardError::Field("last field")));
    assert_eq!("ssh-ed25519 AAAA".parse::<KeyCard>(), Err(CardError::NoCard));
    assert_eq!(text_of(&[2; 100]).parse::<KeyCard>(), Err(CardError::Version(2)));
    assert_eq!(format!("{PREFIX}{}", "A".repeat(CARD_TEXT_MAX)).parse::<KeyCard>(), Err(CardError::NoCard));
}

#[test]
fn names_are_words() {
    for (name, good) in [
        ("a", true),
        ("", false),
        ("a b", false),
        ("ä", false),
        (&"x".repeat(63), true),
        (&"x".repeat(64), false),
    ] {
        assert_eq!(name.parse::<CardName>().is_ok(), good, "{name}");
    }
}

proptest! {
    #[test]
    fn never_panics_on_any_input(bytes: Vec<u8>, text: String) {
        let _ = (text_of(&bytes).parse::<KeyCard>(), text.parse::<KeyCard>(), KeyCard::from_bytes(&bytes));
    }

    #[test]
    fn any_card_round_trips(from: u64, length: u32, seconds in 60..=2_592_000_u32, mtu: u16, seed: [u8; 32]) {
        let own = PrivateKey::generate(&seed);
        let card = KeyCard {
            valid: (from, from.saturating_add(length.into())),
            epoch: EpochLength::from_seconds(seconds).unwrap(),
            capabilities: Capabilities { inner_mtu: mtu, ..Capabilities::typical() },
            ..card(&own)
        };
        prop_assert_eq!(card.sign(&own).parse(), Ok(card));
    }
}
