//! Keys from the file: every way to protect and to carry packets between two daemons, across their starts and
//! crashes, and what is refused.

pub(crate) mod case;
mod counter;
mod family;
mod refusals;
mod reload;
mod replay;
