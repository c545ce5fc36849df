//! Whole sessions over a socket pair, and single messages of a hostile sender.

mod changed;
mod hidden;
mod hostile;
mod kept;
mod many_names;
mod memory;
mod pair;
mod real;
mod resume;
mod same;
mod silent;
mod snapshot;
mod whole;
