//! Fields as cards have them: tag u8 | length u16 | value; then the signature of what is before it.

use crate::{PublicKey, SIGNATURE_LEN};

/// Bytes in front of a field's value.
const HEAD: usize = 3;

/// Appends a field. Values are shorter than 64 KiB.
pub(super) fn put(bytes: &mut Vec<u8>, tag: u8, value: &[u8]) {
    bytes.push(tag);
    bytes.extend_from_slice(&u16::try_from(value.len()).unwrap_or(u16::MAX).to_be_bytes());
    bytes.extend_from_slice(value);
}

/// What is wrong with fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BadFields {
    /// One is cut off.
    Cut,
    /// One comes twice.
    Twice(u8),
}

/// The fields whose tags are below `TAGS`, each once at most; others are skipped.
pub(super) fn split<const TAGS: usize>(mut rest: &[u8]) -> Result<[Option<&[u8]>; TAGS], BadFields> {
    let mut fields = [None; TAGS];
    while !rest.is_empty() {
        let (&[tag, high, low], after) = rest.split_first_chunk::<HEAD>().ok_or(BadFields::Cut)?;
        let len = usize::from(u16::from_be_bytes([high, low]));
        let (value, next) = after.split_at_checked(len).ok_or(BadFields::Cut)?;
        if let Some(place) = fields.get_mut(usize::from(tag))
            && place.replace(value).is_some()
        {
            return Err(BadFields::Twice(tag));
        }
        rest = next;
    }
    Ok(fields)
}

/// What is before the signature of `signer`, if it is that.
pub(super) fn verified<'a>(bytes: &'a [u8], label: &[u8], signer: &PublicKey) -> Option<&'a [u8]> {
    let (signed, signature) = bytes.split_last_chunk::<SIGNATURE_LEN>()?;
    signer.verifies(&[label, signed].concat(), signature).then_some(signed)
}

/// The number that a field of eight bytes is.
pub(super) fn number(value: &[u8]) -> Option<u64> {
    value.try_into().ok().map(u64::from_be_bytes)
}
