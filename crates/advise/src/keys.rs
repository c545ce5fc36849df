//! Caches of keys as a hub without sessions has them: which peers the packets of a capture come from and go to, and how large the caches
//! have to be for that.
//!
//! - `order`: the peers, in the order in which packets need their keys;
//! - `reuse`: how many peers were needed meanwhile when one is needed again, which says what a cache of each size misses.

mod order;
mod reuse;

pub(crate) use order::PeerOrder;
pub(crate) use reuse::{Plan, Returns};

/// A peer, by its place in [`PeerOrder`].
pub(crate) type PeerIndex = u16;
