//! A broker beside what people use instead: `zstd | age | curl` to an S3-compatible store.
//!
//! The sender, the broker with the store, and the receiver are on hosts of their own. `strait put` ends when the broker has stored the
//! object, `strait fetch` when the files are durable at the receiver; the pipes do the same with the server of `strait-bucket`. What
//! arrived is compared with what was sent.

mod bucket;
mod clients;
mod small;
mod stage;
mod table;
mod thin;
mod unshaped;
mod way;

use crate::error::Error;
use crate::report::BenchSection;
use crate::stage::{BenchPart, BenchSetup, each_part};

/// A section for each part, given to `done` when it is measured.
pub(crate) fn run(setting: &BenchSetup, done: &mut dyn FnMut(BenchSection)) -> Result<(), Error> {
    let parts: [(&str, BenchPart); 4] =
        [("thin", thin::run), ("unshaped", unshaped::run), ("small", small::run), ("clients", clients::run)];
    each_part(&parts, setting, done)
}
