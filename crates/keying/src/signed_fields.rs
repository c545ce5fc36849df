//! Fields of cards and certificates: tag u8 | length u16 | value; then the signature of what is before it.

use crate::{PublicKey, SIGNATURE_LEN};

/// Bytes in front of a field's value.
const HEAD: usize = 3;

/// Appends a field. Values are shorter than 64 KiB.
pub(crate) fn put(bytes: &mut Vec<u8>, tag: u8, value: &[u8]) {
    bytes.push(tag);
    bytes.extend_from_slice(&u16::try_from(value.len()).unwrap_or(u16::MAX).to_be_bytes());
    bytes.extend_from_slice(value);
}

/// Appends the field with the first and the last second at which something is valid, since 1970-01-01 0:00 UTC.
pub(crate) fn put_validity(bytes: &mut Vec<u8>, tag: u8, valid: (u64, u64)) {
    put(bytes, tag, [valid.0.to_be_bytes(), valid.1.to_be_bytes()].as_flattened());
}

/// The same read; the first is not after the last.
pub(crate) fn validity(value: &[u8]) -> Option<(u64, u64)> {
    let (from, until) = value.split_first_chunk::<8>()?;
    let valid = (u64::from_be_bytes(*from), number(until)?);
    (valid.0 <= valid.1).then_some(valid)
}

/// What is wrong with fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BadFields {
    /// One is cut off.
    Cut,
    /// One comes twice.
    Twice(u8),
}

/// The fields whose tags are below `TAGS`, each once at most; others are skipped.
pub(crate) fn split<const TAGS: usize>(mut rest: &[u8]) -> Result<[Option<&[u8]>; TAGS], BadFields> {
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
pub(crate) fn verified<'a>(bytes: &'a [u8], label: &[u8], signer: &PublicKey) -> Option<&'a [u8]> {
    let (signed, signature) = bytes.split_last_chunk::<SIGNATURE_LEN>()?;
    signer.verifies(&[label, signed].concat(), signature).then_some(signed)
}

/// The number that a field of eight bytes is.
pub(crate) fn number(value: &[u8]) -> Option<u64> {
    value.try_into().ok().map(u64::from_be_bytes)
}
