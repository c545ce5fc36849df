//! Units: a stream of bytes in pieces, each with a flag that says how it is compressed.
//!
//! [`UnitWriter`] collects what is written, chooses for each unit a rung of the ladder from stored to Zstandard level 19
//! by the equations of the tunnel's chooser (the slowest of compressing, sending and expanding sets the pace), and writes
//! units to any [`std::io::Write`]. [`UnitReader`] gives the bytes back from any [`std::io::Read`].
//!
//! A unit is a header of 8 bytes ([`UnitHeader`]) and its payload. Each [`UnitContext`] has a history: Zstandard units of
//! a context are parts of one frame (RFC 8878, without magic number), flushed at the unit's end, so that each refers to
//! those before it. A unit may begin the history anew: at the beginning of a file, after a unit that did not shrink, and
//! where the level changes. Measured on a tar of 27 MB, on a busy machine: to take the history over to another level, as
//! a prefix, costs some 1.2 s at level 15 (4 MiB of history), and to begin anew costs 16 kB of 3.7 MB.
//!
//! What this module refuses: units of more than [`UNIT_MAX`] bytes, a window of more than 4 MiB, and any unit
//! that does not expand to exactly the length in its header; the header is checked before memory is taken.

mod choice;
mod decoder;
mod drain;
mod encoder;
mod header;
mod ladder;
mod reader;
#[cfg(test)]
mod tests;
mod worker;
mod writer;

pub use decoder::UnitDecoder;
pub use header::{BadUnit, UNIT_HEADER_LEN, UnitCoding, UnitContext, UnitHeader};
pub use reader::UnitReader;
pub use worker::{UnitClock, UnitWorker};
pub use writer::{UnitTotals, UnitWriter};

/// Bytes of a unit at most, before compression: the reader takes so much memory for one.
pub const UNIT_MAX: usize = 1 << 20;
