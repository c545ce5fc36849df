//! How long a ping takes, by what both ends still have of each other.
//!
//! - `end`, `cards`: a node around the real state and real ESP; its cards on disk, and a directory;
//! - `pings`: round trips by tier.

mod cards;
mod end;
mod pings;
