//! Remote terminals and commands over a stream of bytes: both ends of a session, which outlives its streams.
//!
//! No I/O: bytes, time and secrets are arguments. A stream carries one *session* (a terminal or a command), or a list of sessions, or
//! one forwarded connection.
//!
//! - [`Request`]: a stream's first message, which [`RequestReader`] reads at the server.
//! - [`LoginClient`] and [`LoginServer`]: the ends of a session. Each keeps what the other has not acknowledged, so that nothing is lost
//!   with a stream.
//! - [`prediction`]: shows what keys will do before the session has said so.
//! - [`SaneTerminal`]: what has to be put back in a person's terminal.
//! - [`Forwarded`]: the bytes of one forwarded connection.
//!
//! `docs/design/login.md` has the messages and the limits.

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod answer;
mod client;
mod error;
mod forwarded;
mod history;
mod incoming;
mod intake;
mod log;
pub mod message;
mod outcome;
mod pace;
pub mod prediction;
mod request;
mod screen;
mod server;
mod signal;
mod size;
mod stream_end;
mod ticket;

pub use answer::{refusal, sessions};
pub use client::{ClientEvent, ClientOptions, LoginClient};
pub use error::LoginError;
pub use forwarded::{Forwarded, ForwardedEvent};
pub use intake::RequestReader;
pub use outcome::{Exit, ListedSession, OutputKind, Refusal, RefusedReason, TerminalModes};
pub use request::{Program, Request, ResumePoint, ResumeRequest, SessionRequest, Terminal};
pub use screen::SaneTerminal;
pub use server::{LoginServer, ServerEvent, ServerOptions};
pub use signal::SessionSignal;
pub use size::WindowSize;
pub use ticket::{SessionNumber, Ticket};

/// The first byte of a stream of this crate's: its service.
pub const SERVICE: u8 = 2;
/// The same for a stream that begins with an exchange of Kerberos: all else follows behind it (`docs/design/kerberos.md`).
pub const KERBEROS_SERVICE: u8 = 4;
/// The second: the version of what follows.
pub const VERSION: u8 = 1;

/// Input of a terminal that is kept, or waits for the program, at most: what a person pastes.
const TERMINAL_INPUT_WINDOW: u64 = 256 << 10;
/// The same of a command, whose input may be a file: what a connection has on the way at most (`docs/design/streams.md`), which is more
/// than three times 10 Mbit/s times 600 ms. Beside it and [`OUTPUT_WINDOW`], compression fits into 16 MiB for a session.
const COMMAND_INPUT_WINDOW: u64 = 5 << 19;
/// Output that is kept, or waits for the client, at most: 34 Mbit/s at a round trip of a second.
const OUTPUT_WINDOW: u64 = 4 << 20;
/// The window of a session's input.
const fn input_window(terminal: bool) -> u64 {
    if terminal { TERMINAL_INPUT_WINDOW } else { COMMAND_INPUT_WINDOW }
}
/// What is sent beside bytes of channels while a window is full, at most.
const SLACK: u64 = 64 << 10;
