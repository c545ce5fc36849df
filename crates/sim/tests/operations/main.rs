//! Operations in any order: whatever happens, the cores agree with the reference model.

#![allow(clippy::unwrap_used)]

mod data;
mod keys;
