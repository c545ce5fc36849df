//! Remote terminals and commands over a stream of bytes: both ends of a session, which outlives its streams.
//!
//! No I/O: bytes, time and secrets are arguments. A stream carries one *session* (a terminal or a command), or a list of sessions, or
//! one forwarded connection.
//!
//! - [`Request`]: a stream's first message, which [`RequestReader`] reads at the server.
//! - [`LoginClient`] and [`LoginServer`]: the ends of a session. Each keeps what the other has not acknowledged, so that nothing is lost
//!   with a stream.
//! - [`prediction`]: shows what keys will do before the session has said so.
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
pub use server::{LoginServer, ServerEvent, ServerOptions};
pub use signal::SessionSignal;
pub use size::WindowSize;
pub use ticket::{SessionNumber, Ticket};

/// The first byte of a stream of this crate's: its service.
pub const SERVICE: u8 = 2;
/// The second: the version of what follows.
pub const VERSION: u8 = 1;

/// Input that is kept, or waits for the program, at most: what a person pastes, and a link of 10 Mbit/s for 0.2 s.
const INPUT_WINDOW: u64 = 256 << 10;
/// Output that is kept, or waits for the client, at most: 34 Mbit/s at a round trip of a second.
const OUTPUT_WINDOW: u64 = 4 << 20;
/// What is sent beside bytes of channels while a window is full, at most.
const SLACK: u64 = 64 << 10;
