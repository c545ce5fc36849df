//! What two nodes tell each other on the control stream.
//!
//! A message on the stream is its length (u16, big-endian, [`MAX_LEN`] at most) and then that many bytes:
//!
//! ```text
//! kind u8 | version u8 | field | field | ...      field = tag u8 | length u16 | value
//! ```
//!
//! Unknown fields are skipped, so either end may learn new ones first; a known field that is missing,
//! comes twice or has another length than it must is refused. The bytes as sent are also what the keys
//! are bound to, so nothing here has to be canonical.

mod capabilities;
mod expansion;
mod fields;

use strait_wire::Spi;

pub use capabilities::{Capabilities, DeliveryReporting, DirectEsp, LossRepair, PayloadFormat};
pub use expansion::Expansion;
use fields::{FieldWriter, Fields};

/// The version of these messages, that of the ALPN name.
const VERSION: u8 = 1;
/// Most bytes of a message, its length field not counted: ten times what the largest of ours takes.
pub(crate) const MAX_LEN: usize = 4096;
/// Bytes of the length before a message.
pub(crate) const HEAD: usize = 2;
/// SPIs handed out begin with 0x04 to 0x0F, which tells ESP from QUIC on one port (RFC 9443).
pub(crate) const SPIS: core::ops::RangeInclusive<u32> = 0x0400_0000..=0x0fff_ffff;

const OFFER: u8 = 1;
const ACCEPT: u8 = 2;
const CONFIRM: u8 = 3;

/// Tag of the SPI.
const SPI: u8 = 1;

/// One message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message {
    /// The initiator's terms.
    Offer(SessionTerms),
    /// The responder's terms; it receives on its association already.
    Accept(SessionTerms),
    /// The initiator uses the pair; the responder may too.
    Confirm,
}

/// What one end brings to a pair of associations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionTerms {
    /// What the other end is to send with.
    pub spi: Spi,
    /// What this end can and wants.
    pub capabilities: Capabilities,
}

/// A message that is not one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MessageError {
    /// The length before it is beyond the limit.
    #[error("it announces {given} bytes, {MAX_LEN} are the most")]
    TooLong {
        /// The announced length.
        given: usize,
    },
    /// It ends within a field or before its head.
    #[error("it ends at byte {at} where {need} more bytes should follow")]
    Truncated {
        /// Where it ends.
        at: usize,
        /// How many bytes are missing at least.
        need: usize,
    },
    /// An undefined kind.
    #[error("its kind {0} is unknown")]
    Kind(u8),
    /// A version this node does not speak.
    #[error("its version is {0}, this node speaks {VERSION}")]
    Version(u8),
    /// A field it must have is not there.
    #[error("its field `{field}` is missing")]
    Missing {
        /// Which.
        field: &'static str,
    },
    /// A field comes twice.
    #[error("its field `{field}` comes twice")]
    Twice {
        /// Which.
        field: &'static str,
    },
    /// A field has a length that it cannot have.
    #[error("its field `{field}` has {given} bytes")]
    Length {
        /// Which.
        field: &'static str,
        /// How many bytes it has.
        given: usize,
    },
    /// A field has a value that it cannot have.
    #[error("its field `{field}` has the value {given}, which is not allowed")]
    Value {
        /// Which.
        field: &'static str,
        /// The value.
        given: u64,
    },
}

impl Message {
    /// What it is called in errors.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Message::Offer(_) => "an offer",
            Message::Accept(_) => "an accept",
            Message::Confirm => "a confirm",
        }
    }

    /// Reads a message without the length before it.
    ///
    /// # Errors
    /// [`MessageError`] says which field is wrong and how.
    pub fn parse(bytes: &[u8]) -> Result<Message, MessageError> {
        if bytes.len() > MAX_LEN {
            return Err(MessageError::TooLong { given: bytes.len() });
        }
        let &[kind, version, ref rest @ ..] = bytes else {
            return Err(MessageError::Truncated { at: bytes.len(), need: 2 - bytes.len() });
        };
        if version != VERSION {
            return Err(MessageError::Version(version));
        }
        let fields = Fields::parse(rest, 2)?;
        match kind {
            OFFER => Ok(Message::Offer(SessionTerms::read(&fields)?)),
            ACCEPT => Ok(Message::Accept(SessionTerms::read(&fields)?)),
            CONFIRM => Ok(Message::Confirm),
            unknown => Err(MessageError::Kind(unknown)),
        }
    }

    /// Takes the first message out of `inbox`, which holds what the stream brought so far, with the bytes that it took;
    /// nothing while it is not whole.
    ///
    /// # Errors
    /// [`MessageError`]; a length beyond the limit is refused before its bytes come.
    pub fn take_first(inbox: &mut Vec<u8>) -> Result<Option<(Message, Vec<u8>)>, MessageError> {
        let Some((head, rest)) = inbox.split_first_chunk::<HEAD>() else { return Ok(None) };
        let len = usize::from(u16::from_be_bytes(*head));
        if len > MAX_LEN {
            return Err(MessageError::TooLong { given: len });
        }
        let Some(bytes) = rest.get(..len) else { return Ok(None) };
        let message = Message::parse(bytes)?;
        Ok(Some((message, inbox.drain(..HEAD + len).collect())))
    }

    /// The message with the length before it, as it goes on the stream.
    #[must_use]
    pub fn emit(&self) -> Vec<u8> {
        let (kind, terms) = match self {
            Message::Offer(terms) => (OFFER, Some(terms)),
            Message::Accept(terms) => (ACCEPT, Some(terms)),
            Message::Confirm => (CONFIRM, None),
        };
        let mut writer = FieldWriter::new(kind, VERSION);
        if let Some(terms) = terms {
            writer.field(SPI, &terms.spi.0.to_be_bytes());
            terms.capabilities.write(&mut writer);
        }
        writer.finish()
    }
}

impl SessionTerms {
    fn read(fields: &Fields<'_>) -> Result<SessionTerms, MessageError> {
        let spi = fields.u32(SPI, "spi")?;
        if !SPIS.contains(&spi) {
            return Err(MessageError::Value { field: "spi", given: spi.into() });
        }
        Ok(SessionTerms { spi: Spi(spi), capabilities: Capabilities::read(fields)? })
    }
}

#[cfg(test)]
mod tests;
