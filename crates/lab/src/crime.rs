//! Rizzo and Duong, *The CRIME attack* (ekoparty 2012), and Nafeez, *Compression oracle attacks on VPN networks* (VORACLE, 2018): a
//! scripted client that guesses a cookie from the lengths of datagrams, and how much it learns by a packet.
//!
//! - [`CrimeVictim`] has a cookie that its requests hold, and [`CrimePlace`] says where the client's packets are beside these;
//! - [`CrimeClient`] chooses what it sends and decides from what an observer of the wire sees, in one of the ways of [`CrimePlay`];
//! - [`LengthOracle`] is a tunnel that carries both: [`SimulatedTunnel`] here, a live one in `crates/cli/tests/crime`;
//! - [`lone_digits`] has victim and client send packets that leave alone, coded against earlier ones;
//! - [`CrimeGrid`] runs the client against each policy of a rule, codec and place, and gives a [`CrimeTable`].
//!
//! The client is told the right digit after each that it decided, so that one error does not end it: it is stronger than a real one,
//! and each digit is a trial of its own.

mod client;
mod grid;
mod limit;
mod lone;
mod simulated;
mod tally;
mod victim;

pub use client::{CrimeClient, CrimePlay, CrimeScene, LengthOracle};
pub use grid::{CrimeCell, CrimeGrid, CrimeTable, policies};
pub use lone::{LoneDigits, LoneHistory, lone_digits};
pub use simulated::{SimulatedTunnel, sections};
pub use tally::CrimeTally;
pub use victim::{CrimePlace, CrimeVictim, GuessLetters};

/// Digits that a place of a cookie may have.
pub(crate) const DIGITS: &[u8; 16] = b"0123456789abcdef";
