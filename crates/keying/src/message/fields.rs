//! Fields of a message: tag, length, value.

use super::MessageError;

/// Bytes of tag and length before a value.
const HEAD: usize = 3;

/// The fields of one message that this version knows, at most one a tag.
pub(super) struct Fields<'a> {
    values: [Option<&'a [u8]>; Fields::TAGS],
}

impl<'a> Fields<'a> {
    /// Tags from 0 to here are known.
    const TAGS: usize = 18;

    /// Cuts `bytes`, which begin at byte `at` of the message, into fields.
    pub(super) fn parse(bytes: &'a [u8], at: usize) -> Result<Fields<'a>, MessageError> {
        let mut fields = Fields { values: [None; Fields::TAGS] };
        let mut rest = bytes;
        while !rest.is_empty() {
            let at = at + bytes.len() - rest.len();
            let &[tag, high, low, ref after @ ..] = rest else {
                return Err(MessageError::Truncated { at: at + rest.len(), need: HEAD - rest.len() });
            };
            let len = usize::from(u16::from_be_bytes([high, low]));
            let Some((value, next)) = after.split_at_checked(len) else {
                return Err(MessageError::Truncated { at: at + rest.len(), need: len - after.len() });
            };
            fields.put(tag, value)?;
            rest = next;
        }
        Ok(fields)
    }

    fn put(&mut self, tag: u8, value: &'a [u8]) -> Result<(), MessageError> {
        let Some(place) = self.values.get_mut(usize::from(tag)) else { return Ok(()) };
        if place.replace(value).is_some() {
            return Err(MessageError::Twice { field: name(tag) });
        }
        Ok(())
    }

    /// The value of `tag`, if it came.
    pub(super) fn get(&self, tag: u8) -> Option<&'a [u8]> {
        self.values.get(usize::from(tag)).copied().flatten()
    }

    /// The value of `tag` as exactly `N` bytes.
    pub(super) fn array<const N: usize>(
        &self,
        tag: u8,
        field: &'static str,
    ) -> Result<[u8; N], MessageError> {
        let value = self.get(tag).ok_or(MessageError::Missing { field })?;
        value.try_into().map_err(|_| MessageError::Length { field, given: value.len() })
    }

    pub(super) fn u8(&self, tag: u8, field: &'static str) -> Result<u8, MessageError> {
        self.array(tag, field).map(|[byte]| byte)
    }

    pub(super) fn u16(&self, tag: u8, field: &'static str) -> Result<u16, MessageError> {
        self.array(tag, field).map(u16::from_be_bytes)
    }

    pub(super) fn u32(&self, tag: u8, field: &'static str) -> Result<u32, MessageError> {
        self.array(tag, field).map(u32::from_be_bytes)
    }

    pub(super) fn u64(&self, tag: u8, field: &'static str) -> Result<u64, MessageError> {
        self.array(tag, field).map(u64::from_be_bytes)
    }

    /// The value of `tag` as entries of `N` bytes; empty when it did not come.
    pub(super) fn entries<const N: usize>(
        &self,
        tag: u8,
        field: &'static str,
        most: usize,
    ) -> Result<impl Iterator<Item = [u8; N]> + use<'a, N>, MessageError> {
        let value = self.get(tag).unwrap_or_default();
        let (entries, rest) = value.as_chunks::<N>();
        if !rest.is_empty() || entries.len() > most {
            return Err(MessageError::Length { field, given: value.len() });
        }
        Ok(entries.iter().copied())
    }
}

/// What the field `tag` is called in errors.
fn name(tag: u8) -> &'static str {
    use super::capabilities as c;
    match tag {
        super::SPI => "spi",
        c::SUITES => "suites",
        c::COSTS => "costs",
        c::CODECS => "codecs",
        c::BLOCK_CAP => "block cap",
        c::IV => "iv",
        c::FORMAT => "format",
        c::INNER_MTU => "inner mtu",
        c::DOWN => "down",
        c::DELIVERY => "delivery",
        c::REPORTS => "reports",
        c::REPAIR => "repair",
        c::HISTORY => "history",
        c::DIRECT => "direct",
        c::CACHES => "caches",
        c::LANES => "lanes",
        c::EXPANSION => "expansion",
        _ => "reserved",
    }
}

/// A message being written.
pub(super) struct FieldWriter(Vec<u8>);

impl FieldWriter {
    pub(super) fn new(kind: u8, version: u8) -> FieldWriter {
        FieldWriter(vec![0, 0, kind, version])
    }

    /// Appends a field; what does not fit a message is left out whole, which no message of ours comes near.
    pub(super) fn field(&mut self, tag: u8, value: &[u8]) {
        let Ok(len) = u16::try_from(value.len()) else { return };
        if self.0.len() + HEAD + value.len() > super::MAX_LEN + 2 {
            return;
        }
        self.0.push(tag);
        self.0.extend_from_slice(&len.to_be_bytes());
        self.0.extend_from_slice(value);
    }

    /// The message with its length before it.
    pub(super) fn finish(mut self) -> Vec<u8> {
        let len = u16::try_from(self.0.len() - 2).unwrap_or(u16::MAX);
        if let Some(head) = self.0.first_chunk_mut() {
            *head = len.to_be_bytes();
        }
        self.0
    }
}
