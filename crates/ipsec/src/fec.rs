//! Forward error correction (FEC): repair symbols over the last payloads, with which the receiver recovers those that were lost
//! without asking for them again.
//!
//! It is a sliding-window code as in RFC 8681: each symbol is a linear combination, over GF(2^8), of the payloads in a window that
//! ends with the last one. Lost payloads are the unknowns, symbols the equations. Against blocks of a Reed-Solomon code with the
//! same number of symbols, and with the same longest time to a recovery, it recovers more, and in half the time on average
//! (docs/design/repair.md has the figures).
//!
//! Nothing here sends or delivers: the sender asks for symbols, the receiver takes what is recovered.

mod amount;
mod decoder;
mod encoder;
mod galois;
mod loss;
mod sender;
#[cfg(test)]
mod tests;
mod window;

use core::time::Duration;

#[cfg(test)]
use strait_wire::symbol::SOURCE_HEADER_LEN;

/// How long packets behind a missing one wait for its repair at most: what the sender of a window knows of the receiver.
pub(crate) const HOLD_MAX: Duration = Duration::from_millis(150);
/// Numbers that a window spans at most, as many as the map of a symbol has bits.
const SPAN: usize = u128::BITS as usize;
/// The longest source symbol, larger than any payload on an Ethernet path. It bounds a window to 256 KiB.
pub(crate) const SOURCE_MAX: usize = 2048;
/// The longest payload that can be a source.
#[cfg(test)]
const PAYLOAD_MAX: usize = SOURCE_MAX - SOURCE_HEADER_LEN;
/// Bytes that a decoder takes at most: a window, and an equation for every other number of it with factors and a sum.
pub(crate) const DECODER_MEMORY: usize = SPAN * SOURCE_MAX + SPAN / 2 * (SOURCE_MAX + 512);

pub use amount::LossPattern;
pub(crate) use decoder::{SymbolDecoder, SymbolRefused};
pub(crate) use encoder::PlannedSymbol;
pub use loss::CORRECTED_LOSS_MIN;
pub(crate) use loss::{LossCount, LossEstimate};
pub(crate) use sender::SymbolSender;
