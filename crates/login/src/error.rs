//! Why a stream is given up.

use thiserror::Error;

/// What arrived is not what the other end writes. The stream is closed; the session may go on over another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum LoginError {
    /// A message ends inside a field.
    #[error("a message ends inside a field")]
    Short,
    /// A message goes on after its last field.
    #[error("a message goes on after its last field")]
    Long,
    /// A number is not LEB128 in its shortest form, or has more than 64 bits.
    #[error("a number in a message is malformed")]
    Number,
    /// A length, a count or a size is beyond what the protocol allows.
    #[error("a length, a count or a size in a message is out of bounds")]
    Bound,
    /// A kind, a flag or a name is not known.
    #[error("a message has an unknown kind, flag or name")]
    Unknown,
    /// A text is not printable UTF-8, or a string has a zero byte.
    #[error("a text in a message is malformed")]
    Text,
    /// Compressed bytes do not expand to what their message says.
    #[error("compressed bytes of a message are malformed")]
    Compressed,
    /// More was sent than there was room for.
    #[error("the peer sent more than there was room for")]
    Window,
    /// What was acknowledged was never sent.
    #[error("the peer acknowledged what was never sent")]
    Acknowledged,
    /// A message came where it has no place.
    #[error("a message came where it has no place")]
    Order,
}
