//! Whole conversations between node cores in virtual time, one behaviour a file.
//!
//! Everything follows from the seed that a failing test prints.

#![allow(clippy::unwrap_used)]

mod establish_and_exchange;
mod stage;
