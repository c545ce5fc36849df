//! What Strait's programs share on a terminal: how a command fails, tables, numbers with units, progress, what was decided in
//! words, manual pages and completions, how one program finds another, and how one begins that serves.
//!
//! A command returns an [`CommandResult`]; its [`Failure`] says the cause, what to do about it, and the exit code.
#![cfg_attr(test, allow(clippy::unwrap_used))]

pub mod decision;
pub mod failure;
pub mod output;
pub mod pages;
pub mod program;
#[cfg(feature = "progress")]
pub mod progress;
pub mod service;
pub mod table;

pub use failure::{Code, CommandResult, Failure, colours};
pub use strait_node::units;
