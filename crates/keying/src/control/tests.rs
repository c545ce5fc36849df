//! Two and more key managers in virtual time, on links that lose, reorder, repeat and delay.

mod addresses;
mod condition;
mod copies;
mod flood;
mod half_dead;
mod handshake;
mod lifetime;
mod look_ups;
mod misbehaviour;
pub(crate) mod node;
mod outside;
mod processes;
mod reload;
mod simultaneous;
mod sources;
mod storm;
mod streams;
mod token;
mod unlisted;
mod world;
