//! What objects are called in a broker's store. Every name follows from what it names, so that brokers that share a store agree.
//!
//! ```text
//! contents/SENDER/ID/NNNNNNNNNNNN      a piece of the sealed contents, 5 MiB but for the last; joined in order they are the contents
//! inbox/RECEIVER/KIND-SENDER-ID-MADE-EXPIRES-MANIFEST-CONTENTS-COUNT    a letter
//! ```
//!
//! Keys and ids are hexadecimal. The numbers of a letter have 16 digits of hexadecimal each: two times in seconds since 1970 and two
//! lengths in bytes; the count of receivers has two. So names have one length, and a list of an inbox tells all that its receiver is
//! told. The content of a letter is the sealed manifest, or the receipt; behind the keys of all receivers, if they are more than one.

use std::fmt::Write;

use super::message::{Letter, LetterKind, MAX_RECIPIENTS, ObjectName};
use crate::transfer_id;
use strait_keying::PublicKey;

/// Bytes of a piece but the last: the least part of an upload that S3 takes in several (Amazon S3, "multipart upload limits").
pub const PIECE: u64 = 5 << 20;
/// Pieces at most: as many as twelve digits number.
const PIECES: u64 = 1_000_000_000_000;

const CONTENTS: &str = "contents";
const INBOX: &str = "inbox";

/// A letter, as its name tells it: what it is for every receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LetterName {
    /// What it is.
    pub kind: LetterKind,
    /// The object.
    pub object: ObjectName,
    /// When its sender made it, in seconds since 1970.
    pub made: i64,
    /// When it expires, in seconds since 1970.
    pub expires: i64,
    /// Bytes of the sealed manifest.
    pub manifest: u64,
    /// Bytes of the sealed contents.
    pub contents: u64,
    /// Receivers: 1 to [`MAX_RECIPIENTS`].
    pub count: u8,
}

impl LetterName {
    /// The letter in the inbox of `receiver`, as clients are told.
    #[must_use]
    pub const fn to(&self, receiver: PublicKey) -> Letter {
        let LetterName { kind, object, made, expires, manifest, contents, .. } = *self;
        Letter { object, receiver, kind, made, expires, manifest, contents }
    }

    /// Bytes of manifest and contents.
    #[must_use]
    pub const fn size(&self) -> u64 {
        self.manifest.saturating_add(self.contents)
    }

    /// Bytes before the manifest.
    #[must_use]
    pub fn head(&self) -> u64 {
        if self.count > 1 { u64::from(self.count) * 32 } else { 0 }
    }

    /// The name in an inbox.
    #[must_use]
    pub fn file(&self) -> String {
        let mut text = start(self.kind, &self.object);
        for number in [self.made.cast_unsigned(), self.expires.cast_unsigned(), self.manifest, self.contents]
        {
            let _ = write!(text, "{number:016x}-");
        }
        let _ = write!(text, "{:02x}", self.count);
        text
    }

    /// Reads what [`LetterName::file`] wrote, and nothing else.
    #[must_use]
    pub fn parse(file: &str) -> Option<LetterName> {
        let mut parts = file.split('-');
        let kind = match parts.next()? {
            "t" => LetterKind::Transfer,
            "r" => LetterKind::Receipt,
            _ => return None,
        };
        let object = ObjectName { sender: key(parts.next()?)?, id: parts.next()?.parse().ok()? };
        let mut next = |digits: usize| number(parts.next()?, digits);
        let (made, expires) = (next(16)?.cast_signed(), next(16)?.cast_signed());
        let (manifest, contents) = (next(16)?, next(16)?);
        let count = u8::try_from(next(2)?)
            .ok()
            .filter(|count| (1..=MAX_RECIPIENTS).contains(&usize::from(*count)))?;
        parts.next().is_none().then_some(LetterName {
            kind,
            object,
            made,
            expires,
            manifest,
            contents,
            count,
        })
    }
}

/// How all letters of an object begin.
#[must_use]
pub fn start(kind: LetterKind, object: &ObjectName) -> String {
    let kind = match kind {
        LetterKind::Transfer => 't',
        LetterKind::Receipt => 'r',
    };
    format!("{kind}-{}-{}-", hex(&object.sender), object.id)
}

/// The folder of all inboxes.
#[must_use]
pub fn inboxes() -> String {
    INBOX.to_owned()
}

/// The folder of one inbox.
#[must_use]
pub fn inbox(receiver: &PublicKey) -> String {
    format!("{INBOX}/{}", hex(receiver))
}

/// A letter in the inbox of `receiver`.
#[must_use]
pub fn letter(receiver: &PublicKey, name: &LetterName) -> String {
    format!("{INBOX}/{}/{}", hex(receiver), name.file())
}

/// Whose letter this is, if it is one.
#[must_use]
pub fn parse_letter(path: &str) -> Option<(PublicKey, LetterName)> {
    let mut parts = path.split('/');
    let (INBOX, receiver, file, None) = (parts.next()?, parts.next()?, parts.next()?, parts.next()) else {
        return None;
    };
    Some((key(receiver)?, LetterName::parse(file)?))
}

/// The folder of all contents.
#[must_use]
pub fn all_contents() -> String {
    CONTENTS.to_owned()
}

/// The folder of an object's contents.
#[must_use]
pub fn contents(object: &ObjectName) -> String {
    format!("{CONTENTS}/{}/{}", hex(&object.sender), object.id)
}

/// A piece of an object's contents.
#[must_use]
pub fn piece(object: &ObjectName, number: u64) -> String {
    format!("{CONTENTS}/{}/{}/{number:012}", hex(&object.sender), object.id)
}

/// Which piece this is, if it is one.
#[must_use]
pub fn parse_piece(path: &str) -> Option<(ObjectName, u64)> {
    let mut parts = path.split('/');
    if parts.next()? != CONTENTS {
        return None;
    }
    let object = ObjectName { sender: key(parts.next()?)?, id: parts.next()?.parse().ok()? };
    let digits = parts
        .next()
        .filter(|digits| digits.len() == 12 && digits.bytes().all(|digit| digit.is_ascii_digit()))?;
    let number = digits.parse().ok()?;
    parts.next().is_none().then_some((object, number))
}

/// How many pieces contents have, and how long the last is; nothing beyond what names can number.
#[must_use]
pub const fn pieces(contents: u64) -> Option<u64> {
    let count = contents.div_ceil(PIECE);
    if count <= PIECES { Some(count) } else { None }
}

/// Bytes of a piece of contents of this length.
#[must_use]
pub const fn piece_length(contents: u64, number: u64) -> u64 {
    let rest = contents.saturating_sub(number.saturating_mul(PIECE));
    if rest < PIECE { rest } else { PIECE }
}

/// A key in lower-case hexadecimal.
#[must_use]
pub fn hex(key: &PublicKey) -> String {
    transfer_id::hex(key.as_bytes())
}

/// Reads what [`hex`] wrote.
#[must_use]
pub fn key(text: &str) -> Option<PublicKey> {
    let mut bytes = [0; 32];
    if text.len() != 64 || !text.is_ascii() {
        return None;
    }
    for (byte, digits) in bytes.iter_mut().zip(text.as_bytes().chunks_exact(2)) {
        *byte = u8::try_from(number(str::from_utf8(digits).ok()?, 2)?).ok()?;
    }
    Some(PublicKey::from_bytes(bytes))
}

/// A number with exactly so many lower-case digits.
fn number(text: &str, digits: usize) -> Option<u64> {
    let fits = text.len() == digits && text.bytes().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f'));
    if fits { u64::from_str_radix(text, 16).ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TransferId;
    use proptest::prelude::*;

    fn any_name() -> impl Strategy<Value = LetterName> {
        let times = (any::<i64>(), any::<i64>());
        (any::<bool>(), any::<[u8; 32]>(), any::<[u8; 16]>(), times, any::<(u64, u64)>(), 1..=64_u8).prop_map(
            |(transfer, sender, id, (made, expires), (manifest, contents), count)| LetterName {
                kind: if transfer { LetterKind::Transfer } else { LetterKind::Receipt },
                object: ObjectName { sender: PublicKey::from_bytes(sender), id: TransferId::from_bytes(id) },
                made,
                expires,
                manifest,
                contents,
                count,
            },
        )
    }

    proptest! {
        #[test]
        fn letters_are_read_as_they_were_written(name in any_name(), receiver in any::<[u8; 32]>()) {
            let receiver = PublicKey::from_bytes(receiver);
            let file = name.file();
            prop_assert_eq!(file.len(), 170);
            prop_assert_eq!(LetterName::parse(&file), Some(name));
            prop_assert_eq!(parse_letter(&letter(&receiver, &name)), Some((receiver, name)));
            prop_assert!(file.starts_with(&start(name.kind, &name.object)));
            for cut in 0..file.len() {
                prop_assert_eq!(LetterName::parse(&file[..cut]), None);
            }
        }

        #[test]
        fn what_is_read_has_one_spelling(file in "[tr]-[0-9a-fA-F]{62,64}-[0-9a-f]{32}(-[0-9a-f]{15,16}){4}-[0-9a-f]{2}") {
            if let Some(name) = LetterName::parse(&file) {
                prop_assert_eq!(name.file(), file);
            }
        }

        #[test]
        fn pieces_are_read_as_they_were_written(name in any_name(), number in 0..PIECES) {
            prop_assert_eq!(parse_piece(&piece(&name.object, number)), Some((name.object, number)));
        }

        #[test]
        fn pieces_add_up(contents in 0_u64..1 << 40) {
            let count = pieces(contents).unwrap();
            let last = count.checked_sub(1).map_or(0, |last| last * PIECE + piece_length(contents, last));
            prop_assert_eq!(last, contents);
            prop_assert_eq!(piece_length(contents, count), 0);
        }
    }

    #[test]
    fn other_names_are_none() {
        for other in ["", "inbox", "inbox/x/y", "contents/a/b/000000000000", "inbox/a/b/c", "probe/x"] {
            assert_eq!(parse_letter(other), None, "{other}");
            assert_eq!(parse_piece(other), None, "{other}");
        }
        assert_eq!(pieces(u64::MAX), None);
    }
}
