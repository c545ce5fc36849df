//! Sessions in virtual time.

mod bulk;
mod link;
mod program;
mod resume;
mod world;
