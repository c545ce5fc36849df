//! Sessions in virtual time.

#![allow(clippy::unwrap_used)]

mod bulk;
mod link;
mod program;
mod resume;
mod terminal;
mod tty;
mod world;
