//! Reading and writing one field of a header whose length is not known at compile time.

use crate::Malformed;

/// The `N` bytes from `at`, if they are all there.
pub(crate) fn array_at<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..)?.first_chunk().copied()
}

/// The big-endian 16-bit field at `at`.
pub(crate) fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    array_at(bytes, at).map(u16::from_be_bytes)
}

/// Writes `value` at `at`; `None` when it does not fit there.
pub(crate) fn put<const N: usize>(bytes: &mut [u8], at: usize, value: [u8; N]) -> Option<()> {
    *bytes.get_mut(at..)?.first_chunk_mut()? = value;
    Some(())
}

/// Writes a fixed header at the start of `buf`.
pub(crate) fn emit_header<const N: usize>(
    what: &'static str,
    buf: &mut [u8],
    header: [u8; N],
) -> Result<(), Malformed> {
    match buf.first_chunk_mut::<N>() {
        Some(place) => {
            *place = header;
            Ok(())
        }
        None => Err(Malformed::new(what, buf)),
    }
}

/// The fixed header at the start of `bytes`, and what follows it.
pub(crate) fn split_header<'a, const N: usize>(
    what: &'static str,
    bytes: &'a [u8],
) -> Result<(&'a [u8; N], &'a [u8]), Malformed> {
    bytes.split_first_chunk::<N>().ok_or(Malformed::new(what, bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_past_the_end_are_none() {
        let bytes = [1, 2, 3];
        assert_eq!(u16_at(&bytes, 1), Some(0x0203));
        assert_eq!(u16_at(&bytes, 2), None);
        assert_eq!(u16_at(&bytes, 3), None);
        assert_eq!(u16_at(&bytes, usize::MAX), None);
        assert_eq!(array_at::<0>(&bytes, 3), Some([]));
        assert_eq!(array_at::<0>(&bytes, 4), None);
        let mut bytes = bytes;
        assert_eq!((put(&mut bytes, 2, [8, 9]), put(&mut bytes, usize::MAX, [8])), (None, None));
        assert_eq!((put(&mut bytes, 1, [8, 9]), bytes), (Some(()), [1, 8, 9]));
    }
}
