//! Attackers: strangers who have no keys, and a peer who has.
//!
//! - [`AttackRoute`] makes frames from any source address and sends them at a steady rate, past every queue of its own;
//! - [`stranger`] makes what can be sent without keys, [`ForgedHeader`] what keys without sessions have in front;
//! - [`HostilePeer`] seals whatever it likes with the keys of a real session, and [`hostile`] makes what it seals;
//! - [`open_many_files`] makes room for strangers with thousands of connections, [`connect_from`](crate::connect_from) says from where
//!   one comes;
//! - [`Hoard`] is what a sender fills a broker's store with;
//! - [`listen`] keeps what a host receives, for those who send it again; [`WireTap`] shows it as it comes.
//!
//! Attacks go from one namespace of this program to another, and end with the value that stands for them.

mod crowd;
mod headers;
mod hoard;
pub mod hostile;
mod peer;
mod route;
pub mod stranger;
mod tap;

pub use crowd::open_many_files;
pub use headers::ForgedHeader;
pub use hoard::Hoard;
pub use peer::HostilePeer;
pub use route::{AttackRoute, RunningAttack, SentFrames};
pub use tap::{WireTap, esp_of, listen, sessionless_of};
