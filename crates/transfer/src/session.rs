//! Both ends of a transfer, over the two halves of a stream of bytes.
//!
//! An end is a *sender* or a *receiver* of data, whichever end asked. The sender announces entries ahead, within windows; the receiver
//! answers each file with how it wants it; no round trip is needed for a file. `docs/design/files.md` has the flow.

mod client;
mod content;
mod desk;
mod disk;
mod driver;
mod ends;
mod event;
mod folders;
mod hang_up;
mod incoming;
mod kept;
mod outgoing;
mod pipe;
mod receiver;
mod root;
mod same;
mod sender;
mod serve;
mod units;

#[cfg(test)]
mod tests;

use std::time::Duration;

pub use client::{list, pull, push};
pub use disk::{DiskAside, DiskDestination, DiskOrigin};
pub use ends::{Aside, Content, ContentState, Destination, NotFound, Origin, Settlement, Standing};
pub use event::{Tally, TransferError, TransferEvent, Watch};
pub use kept::{SentCopies, ServedCopies};
pub use pipe::{PipeAside, PipeContent, PipeDestination, PipeOrigin};
pub use serve::{NO_DELETE, READ, ServedRequest, SharedFolder, WRITE, patterns, refuse, serve};
pub use units::StreamEnds;

/// How long a client waits for a server of which it hears nothing, or that takes nothing: its halves of the stream then fail with
/// `WouldBlock` or `TimedOut`. A path may be away for 15 minutes before its connection is given up; an end that has nothing to say says
/// so every minute. A client whose stream others may keep from being served at all (priority bulk) waits without end.
pub const SILENCE: Duration = Duration::from_secs(20 * 60);
/// The same of a server, which does not know the priority: a process and a lock of the peer's own share.
pub const SERVER_SILENCE: Duration = Duration::from_secs(24 * 3600);
