//! How fast the machines at both ends compute.

use strait_compress::{Calibration, Ends};
use strait_model::Seconds;

/// What is done to bytes, and how long it takes.
#[derive(Clone, Debug)]
pub struct Machine {
    /// Codecs, at either end.
    pub codecs: Calibration,
    /// Everything else that is done with a packet.
    pub ends: Ends,
}

impl Machine {
    /// Figures of the project's first machine, for runs that must not measure.
    #[must_use]
    pub fn assumed() -> Machine {
        Machine { codecs: Calibration::assumed(), ends: Ends::ALIKE }
    }

    /// What a byte of a datagram takes both ends together, sealed, sent, received and opened: what is saved of each byte
    /// that compression saves.
    pub(crate) fn handling(&self) -> Seconds {
        let Ends { here, there } = self.ends;
        here.crypto + here.outer + there.handling.outer + there.handling.crypto
    }
}
