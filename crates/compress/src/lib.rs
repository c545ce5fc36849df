//! Codecs behind one object, the choice of when to use them, and the caps that stop bombs.
//!
//! A block enters at [`Codecs::compress`] and comes back out of [`Codecs::expand`]; both write
//! into a slice of the caller's and allocate nothing once their contexts exist. Whether a unit is
//! worth trying at all is a [`Chooser`]'s to say; [`probe::shrinkable`] gives it a first guess, and
//! [`calibrate()`] says what each codec costs here.
//!
//! [`Blocks`] makes blocks of packets that way and expands them, with [`headers`] before it where both ends know that: the
//! headers of the packets of a bundle are set against each other.
//!
//! IP payload compression, whose streams must suit other implementations, has a home of its own in
//! [`Ipcomp`].
//!
//! Packets that leave alone have a [`history`] of earlier packets that the other end has acknowledged.
//!
//! What this crate refuses: dictionaries shared between blocks (each stands alone, so that no block tells on another), growing a block, and output beyond the slice it was given.

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod blocks;
pub mod calibrate;
pub mod chooser;
mod codec;
mod codecs;
mod gauge;
pub mod headers;
pub mod history;
mod ipcomp;
mod lzs;
mod method;
pub mod probe;

pub use blocks::{BlockError, Blocks, Made};
pub use calibrate::{Calibration, MethodFigures, calibrate};
pub use chooser::{
    Allowed, BadAllowed, Chooser, Class, Decision, DecisionReason, EndpointCosts, LiveChooser, Outcome,
    PathCost, PeerCosts, PerByteCost, RuleId, RunnerUp, Unit, Weighed,
};
pub use codec::{Codec, CodecSet, Coding};
pub use codecs::{Codecs, ExpandError};
pub use gauge::Gauge;
pub use ipcomp::{Ipcomp, IpcompAlgorithm};
pub use method::{BadMethod, Method};

/// Bytes under which compressing is not tried (RFC 3173 section 2.2 asks for such a threshold).
///
/// 90 is what RFC 2395 section 2.5 advises for LZS and what Linux uses for DEFLATE (`calg_list` in
/// `net/xfrm/xfrm_algo.c`), so both ends of an IPComp pair agree on what travels bare.
pub const THRESHOLD: usize = 90;
