//! Operations in any order: whatever happens, the cores agree with the reference model.

#![allow(clippy::unwrap_used)]

mod cases;
mod data;
mod keys;
