//! Key cards: read or refused, with a signature that is right and with one that is not.

use strait_keying::PrivateKey;
use strait_keying::sessionless::KeyCard;

/// A card as text, and one whose bytes these are, without the signature.
pub fn check(data: &[u8]) {
    if let Ok(text) = core::str::from_utf8(data) {
        let _ = text.parse::<KeyCard>().map_err(|error| assert!(!error.to_string().is_empty()));
    }
    assert!(KeyCard::from_bytes(data).is_err(), "a signature was guessed");
    let own = PrivateKey::generate(&[3; 32]);
    let signature = own.sign(&[KeyCard::LABEL, data].concat());
    if let Ok(card) = KeyCard::from_bytes(&[data, &signature].concat()) {
        assert_eq!(card.key, own.public());
        assert!(card.valid.0 <= card.valid.1 && !card.name.as_str().is_empty());
        assert_eq!(card.sign(&own).parse(), Ok(card));
    }
}
