//! Strings, numbers and lists in packets (RFC 4251 section 5).

use crate::error::SshError;

/// What remains of a packet.
#[derive(Clone, Copy, Debug)]
pub struct Fields<'a>(&'a [u8]);

/// The packet ends too early.
const SHORT: SshError = SshError::Protocol("it ends too early");

impl<'a> Fields<'a> {
    /// All fields of `bytes`.
    #[must_use]
    pub const fn new(bytes: &'a [u8]) -> Fields<'a> {
        Fields(bytes)
    }

    /// That many bytes.
    ///
    /// # Errors
    /// [`SshError::Protocol`] if there are less; so do all that follow.
    pub fn bytes(&mut self, count: usize) -> Result<&'a [u8], SshError> {
        let (head, rest) = self.0.split_at_checked(count).ok_or(SHORT)?;
        self.0 = rest;
        Ok(head)
    }

    /// A byte.
    ///
    /// # Errors
    /// As [`Fields::bytes`].
    pub fn byte(&mut self) -> Result<u8, SshError> {
        self.bytes(1).map(|byte| byte[0])
    }

    /// A truth value: every byte but 0 is true.
    ///
    /// # Errors
    /// As [`Fields::bytes`].
    pub fn boolean(&mut self) -> Result<bool, SshError> {
        self.byte().map(|byte| byte != 0)
    }

    /// A number of 32 bits.
    ///
    /// # Errors
    /// As [`Fields::bytes`].
    pub fn number(&mut self) -> Result<u32, SshError> {
        let bytes = self.bytes(4)?;
        Ok(bytes.iter().fold(0, |number, byte| number << 8 | u32::from(*byte)))
    }

    /// A string: bytes behind their length.
    ///
    /// # Errors
    /// As [`Fields::bytes`].
    pub fn string(&mut self) -> Result<&'a [u8], SshError> {
        let length = self.number()?;
        self.bytes(usize::try_from(length).unwrap_or(usize::MAX))
    }

    /// Names with commas between them.
    ///
    /// # Errors
    /// As [`Fields::bytes`].
    pub fn names(&mut self) -> Result<Vec<&'a [u8]>, SshError> {
        Ok(self.string()?.split(|byte| *byte == b',').filter(|name| !name.is_empty()).collect())
    }
}

/// Writes fields behind each other.
pub trait PutFields {
    /// A truth value.
    fn put_boolean(&mut self, value: bool);
    /// A number of 32 bits.
    fn put_number(&mut self, number: u32);
    /// Bytes behind their length, which fits 32 bits.
    fn put_string(&mut self, bytes: &[u8]);
    /// Bytes as one non-negative number of any length, the most significant first (`mpint`).
    fn put_integer(&mut self, bytes: &[u8]);
}

impl PutFields for Vec<u8> {
    fn put_boolean(&mut self, value: bool) {
        self.push(u8::from(value));
    }

    fn put_number(&mut self, number: u32) {
        self.extend_from_slice(&number.to_be_bytes());
    }

    fn put_string(&mut self, bytes: &[u8]) {
        self.put_number(u32::try_from(bytes.len()).unwrap_or(u32::MAX));
        self.extend_from_slice(bytes);
    }

    fn put_integer(&mut self, bytes: &[u8]) {
        let first = bytes.iter().position(|byte| *byte != 0).unwrap_or(bytes.len());
        let digits = &bytes[first..];
        // A first bit that is set would make it negative.
        let zero = digits.first().is_some_and(|byte| byte & 0x80 != 0);
        self.put_number(u32::try_from(digits.len() + usize::from(zero)).unwrap_or(u32::MAX));
        self.extend(zero.then_some(0));
        self.extend_from_slice(digits);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn integers_are_as_in_rfc_4251() {
        for (bytes, encoded) in [
            (&[0_u8, 0][..], &[0_u8, 0, 0, 0][..]),
            (&[0x09, 0xa3, 0x78], &[0, 0, 0, 3, 0x09, 0xa3, 0x78]),
            (&[0, 0x80], &[0, 0, 0, 2, 0, 0x80]),
        ] {
            let mut written = Vec::new();
            written.put_integer(bytes);
            assert_eq!(written, encoded);
        }
    }

    #[test]
    fn names_are_split_and_nothing_is_no_name() {
        let mut bytes = Vec::new();
        bytes.put_string(b"a,b@c");
        bytes.put_string(b"");
        let mut fields = Fields::new(&bytes);
        assert_eq!(fields.names().unwrap(), [&b"a"[..], b"b@c"]);
        assert!(fields.names().unwrap().is_empty());
        assert!(fields.byte().is_err());
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_and_no_part_of_it_is_enough(text: Vec<u8>, number: u32, truth: bool) {
            let mut bytes = Vec::new();
            bytes.put_string(&text);
            bytes.put_number(number);
            bytes.put_boolean(truth);
            let read = |bytes: &[u8]| {
                let mut fields = Fields::new(bytes);
                Ok::<_, SshError>((fields.string()?.to_vec(), fields.number()?, fields.boolean()?))
            };
            prop_assert_eq!(read(&bytes).unwrap(), (text, number, truth));
            for end in 0..bytes.len() {
                prop_assert!(read(&bytes[..end]).is_err());
            }
        }
    }
}
