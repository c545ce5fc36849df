//! Sessions in virtual time.

mod bulk;
mod link;
mod program;
mod resume;
mod terminal;
mod tty;
mod world;
