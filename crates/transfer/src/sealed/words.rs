//! The fields of manifests and receipts: numbers in network order, and bytes behind their length.

use super::ManifestError::{self, Malformed};

/// What is left to read.
pub(super) struct Words<'a>(pub(super) &'a [u8]);

impl<'a> Words<'a> {
    /// The next `N` bytes.
    pub(super) fn array<const N: usize>(&mut self) -> Result<[u8; N], ManifestError> {
        let (array, rest) = self.0.split_first_chunk::<N>().ok_or(Malformed("it is cut off"))?;
        self.0 = rest;
        Ok(*array)
    }

    pub(super) fn u8(&mut self) -> Result<u8, ManifestError> {
        Ok(u8::from_be_bytes(self.array()?))
    }

    pub(super) fn u16(&mut self) -> Result<u16, ManifestError> {
        Ok(u16::from_be_bytes(self.array()?))
    }

    pub(super) fn u32(&mut self) -> Result<u32, ManifestError> {
        Ok(u32::from_be_bytes(self.array()?))
    }

    pub(super) fn u64(&mut self) -> Result<u64, ManifestError> {
        Ok(u64::from_be_bytes(self.array()?))
    }

    pub(super) fn i64(&mut self) -> Result<i64, ManifestError> {
        Ok(i64::from_be_bytes(self.array()?))
    }

    /// Bytes behind a length of two bytes, at most `max` of them.
    pub(super) fn bytes(&mut self, max: usize) -> Result<&'a [u8], ManifestError> {
        let len = usize::from(self.u16()?);
        if len > max {
            return Err(Malformed("a field is too long"));
        }
        let (bytes, rest) = self.0.split_at_checked(len).ok_or(Malformed("it is cut off"))?;
        self.0 = rest;
        Ok(bytes)
    }

    /// There is nothing left.
    pub(super) fn end(&self) -> Result<(), ManifestError> {
        if self.0.is_empty() { Ok(()) } else { Err(Malformed("something follows its end")) }
    }
}

/// Appends bytes with their length; `None` where they are longer than a field can be.
pub(super) fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) -> Option<()> {
    out.extend(u16::try_from(bytes.len()).ok()?.to_be_bytes());
    out.extend_from_slice(bytes);
    Some(())
}
