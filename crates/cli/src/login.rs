//! `login`: a terminal or a command at a peer, over a stream that may be lost and replaced.
//!
//! ```text
//! start     which session, and how it is shown      road     streams to a peer's login service
//! terminal  keys, screen, window, the link          driver   a session over its streams
//! escape    keys that are for this program          wire     one stream
//! output    standard output and error               tickets  sessions that may be resumed
//! kerberos  a ticket before all else of a stream
//! list      sessions that run at peers
//! serving   the other end, for a node               here     sessions of peers that run here
//! ```

mod driver;
mod escape;
mod here;
pub(crate) mod kerberos;
mod list;
mod output;
pub(crate) mod road;
mod serving;
mod start;
mod terminal;
mod tickets;
pub(crate) mod wire;

pub(crate) use escape::{EscapeCharacter, escape_character};
pub(crate) use serving::{serve_one, service};
pub(crate) use start::login;
pub(crate) use tickets::new_ticket;
