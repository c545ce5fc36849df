//! What a session's program is to get.

use crate::{SessionSignal, WindowSize};

/// What the session's program is to get.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServerEvent {
    /// Input, 1 byte to 64 KiB. As it is written, [`LoginServer::input_written`](crate::LoginServer::input_written) is told.
    Input(Vec<u8>),
    /// There is no more input.
    InputEnded,
    /// The window has this size, which is clamped.
    Resize(WindowSize),
    /// A signal for the program.
    Signal(SessionSignal),
    /// The client leaves the session running.
    Detach,
    /// The client ends the session.
    HangUp,
}
