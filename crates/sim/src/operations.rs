//! Operations in any order against the cores, beside a reference model that knows what must come of them.
//!
//! [`data::run`] drives the data plane: three sites, each an `Outbound` and an `Inbound`, joined by links that do with
//! datagrams what the operations say; [`keys::run`] drives three key managers. Both are read from bytes, so that a property test and a fuzzer share the
//! driver, and a failing input is short enough to be read.
//!
//! ```text
//! bytes -> settings, operations -> sites and links -> after each: does the model agree?
//! ```

pub mod data;
pub mod keys;

use core::fmt;

/// What the cores did that the reference model does not allow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// Operations that went before.
    pub after: usize,
    /// The operation, in text.
    pub operation: String,
    /// What came of it.
    pub what: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "operation {} ({}): {}", self.after, self.operation, self.what)
    }
}

impl core::error::Error for Violation {}

/// Whether an invariant holds, and else what does not.
type Held = Result<(), String>;

fn hold(holds: bool, what: impl FnOnce() -> String) -> Held {
    if holds { Ok(()) } else { Err(what()) }
}
