//! What a node says of itself to peers that it never shakes hands with: one line of text, signed by its key.
//!
//! ```text
//! strait-card BASE64      of      version u8 | field | field | .. | signature (64)
//! field = tag u8 | length u16 | value
//! ```
//!
//! The signature covers a label and all before it. Fields that a version does not know are skipped; each comes once at most. The X25519
//! key is not on it: it follows from the Ed25519 key.

use core::fmt;
use core::str::FromStr;

use super::clock::{EpochLength, WallTime};
use super::node_keys::{BadKemKey, KemPublic, key_name, text_name};
use crate::message::MessageError;
use crate::signed_fields::{self as fields, BadFields};
use crate::{Capabilities, PrivateKey, PublicKey, SIGNATURE_LEN, base64};
use strait_wire::sessionless::Name;

const PREFIX: &str = "strait-card ";
const VERSION: u8 = 1;
/// Most bytes of a card: what one message of the control channel may have.
const CARD_MAX: usize = 4096;
/// Most characters of a card as text.
pub const CARD_TEXT_MAX: usize = PREFIX.len() + CARD_MAX.div_ceil(3) * 4;
/// Most bytes of a name (RFC 1035 section 2.3.4: a label has at most 63).
const NAME_MAX: usize = 63;

const NAME: u8 = 1;
const KEY: u8 = 2;
const KEM: u8 = 3;
const VALID: u8 = 4;
const EPOCH: u8 = 5;
const CAPABILITIES: u8 = 6;
/// Tags below this one are known.
const TAGS: usize = 7;

/// A name for people: 1 to 63 letters, digits, `-`, `_` and `.`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CardName(String);

impl CardName {
    /// The name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for CardName {
    type Err = CardError;

    fn from_str(name: &str) -> Result<CardName, CardError> {
        let known = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
        if (1..=NAME_MAX).contains(&name.len()) && name.bytes().all(known) {
            Ok(CardName(name.to_owned()))
        } else {
            Err(CardError::Name)
        }
    }
}

/// A text that is no card, or one that is not to be trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CardError {
    /// It does not begin as a card does, or is too long.
    #[error("is not a key card: a card is one line that begins with `strait-card`")]
    NoCard,
    /// It is not base64.
    #[error("is a key card with a character that is mistyped or cut off")]
    Base64,
    /// It is of another version.
    #[error("is a key card of version {0}, of which this program knows only 1")]
    Version(u8),
    /// A field is cut off, comes twice, is missing, or has a value that it must not have.
    #[error("is a key card whose {0} is missing, comes twice or is wrong")]
    Field(&'static str),
    /// What it says that the node can is malformed.
    #[error("is a key card whose capabilities are malformed: {0}")]
    Capabilities(MessageError),
    /// The name is empty, too long, or has other characters.
    #[error("has to have 1 to 63 letters, digits, `-`, `_` and `.`")]
    Name,
    /// The holder of the key did not sign it.
    #[error("is a key card whose signature is wrong: it was changed")]
    Signature,
}

/// A node's card.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyCard {
    /// What people call it.
    pub name: CardName,
    /// Its key.
    pub key: PublicKey,
    /// Its ML-KEM-768 key, if it has one.
    pub kem: Option<KemPublic>,
    /// The first and the last second at which the card is valid, since 1970-01-01 0:00 UTC.
    pub valid: (u64, u64),
    /// How long its epochs are.
    pub epoch: EpochLength,
    /// What it can and wants: suites, codecs, the largest block, rates.
    pub capabilities: Capabilities,
}

impl KeyCard {
    /// The card of a node with typical capabilities and no ML-KEM key, that is valid for ever.
    #[must_use]
    pub fn plain(name: CardName, key: PublicKey) -> KeyCard {
        KeyCard {
            name,
            key,
            kem: None,
            valid: (0, u64::MAX),
            epoch: EpochLength::default(),
            capabilities: Capabilities::typical(),
        }
    }

    /// What is signed: this, then all of the card's bytes before the signature.
    pub const LABEL: &[u8] = b"strait key card v1\0";

    /// The card as a line of text, signed by the node itself; what `self.key` was is not regarded.
    #[must_use]
    pub fn sign(&self, own: &PrivateKey) -> String {
        format!("{PREFIX}{}", base64::encode(&self.to_bytes(own)).as_str())
    }

    /// The same as bytes.
    #[must_use]
    pub fn to_bytes(&self, own: &PrivateKey) -> Vec<u8> {
        let mut bytes = vec![VERSION];
        fields::put(&mut bytes, NAME, self.name.0.as_bytes());
        fields::put(&mut bytes, KEY, own.public().as_bytes());
        if let Some(kem) = &self.kem {
            fields::put(&mut bytes, KEM, kem.as_bytes());
        }
        fields::put_validity(&mut bytes, VALID, self.valid);
        fields::put(&mut bytes, EPOCH, &self.epoch.seconds().to_be_bytes());
        fields::put(&mut bytes, CAPABILITIES, &self.capabilities.to_bytes());
        let signature = own.sign(&[KeyCard::LABEL, &bytes].concat());
        bytes.extend_from_slice(&signature);
        bytes
    }

    /// Whether it is valid at `wall`, as a pair of times: for a receiver's state.
    #[must_use]
    pub fn valid_wall(&self) -> (WallTime, WallTime) {
        let wall = |seconds| WallTime::from_unix(core::time::Duration::from_secs(seconds));
        (wall(self.valid.0), wall(self.valid.1.saturating_add(1)))
    }

    /// The names that its holder may have in headers: those of its key and of what people call it.
    #[must_use]
    pub fn header_names(&self) -> [Name; 2] {
        [key_name(&self.key), text_name(self.name.as_str())]
    }

    /// The bytes that a line of text stands for, not verified yet.
    pub(crate) fn bytes_of(text: &str) -> Result<Vec<u8>, CardError> {
        let text = text.trim();
        if text.len() > CARD_TEXT_MAX {
            return Err(CardError::NoCard);
        }
        let encoded = text.strip_prefix(PREFIX).ok_or(CardError::NoCard)?;
        let bytes = base64::decode_any(encoded.trim_start()).map_err(|_| CardError::Base64)?;
        Ok(bytes.to_vec())
    }

    /// Reads a card's bytes, and verifies that the holder of its key signed them.
    ///
    /// # Errors
    /// [`CardError`]; of bytes that are not signed, nothing but the version and the key is looked at.
    pub fn from_bytes(bytes: &[u8]) -> Result<KeyCard, CardError> {
        let (signed, signature) =
            bytes.split_last_chunk::<SIGNATURE_LEN>().ok_or(CardError::Field("signature"))?;
        let (version, rest) = signed.split_first().ok_or(CardError::Field("version"))?;
        if *version != VERSION {
            return Err(CardError::Version(*version));
        }
        let split = fields::split::<TAGS>(rest).map_err(|bad| match bad {
            BadFields::Cut => CardError::Field("last field"),
            BadFields::Twice(tag) => CardError::Field(field_name(tag)),
        })?;
        let optional = |tag: u8| split.get(usize::from(tag)).copied().flatten();
        let value = |tag: u8| optional(tag).ok_or(CardError::Field(field_name(tag)));
        let wrong = |tag| move |_| CardError::Field(field_name(tag));
        let key = PublicKey::from_bytes(value(KEY)?.try_into().map_err(wrong(KEY))?);
        // What is not signed is not read any further.
        if !key.verifies(&[KeyCard::LABEL, signed].concat(), signature) {
            return Err(CardError::Signature);
        }
        let kem = optional(KEM).map(KemPublic::from_bytes).transpose();
        let valid = fields::validity(value(VALID)?).ok_or(CardError::Field(field_name(VALID)))?;
        let seconds = u32::from_be_bytes(value(EPOCH)?.try_into().map_err(wrong(EPOCH))?);
        Ok(KeyCard {
            name: core::str::from_utf8(value(NAME)?).map_err(|_| CardError::Name)?.parse()?,
            key,
            kem: kem.map_err(|BadKemKey| CardError::Field(field_name(KEM)))?,
            valid,
            epoch: EpochLength::from_seconds(seconds).ok_or(CardError::Field(field_name(EPOCH)))?,
            capabilities: Capabilities::from_bytes(value(CAPABILITIES)?).map_err(CardError::Capabilities)?,
        })
    }
}

const fn field_name(tag: u8) -> &'static str {
    match tag {
        NAME => "name",
        KEY => "key",
        KEM => "ML-KEM key",
        VALID => "validity",
        EPOCH => "epoch",
        CAPABILITIES => "list of capabilities",
        _ => "reserved field",
    }
}

impl FromStr for KeyCard {
    type Err = CardError;

    /// Reads a line, and verifies that the holder of its key signed it. White space around it is not part of it.
    fn from_str(text: &str) -> Result<KeyCard, CardError> {
        KeyCard::from_bytes(&KeyCard::bytes_of(text)?)
    }
}

impl fmt::Display for KeyCard {
    /// What a person wants to see of it: the name and the key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.name.as_str(), self.key)
    }
}

#[cfg(test)]
mod tests;
