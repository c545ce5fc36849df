//! How fast the machines at both ends compute.

use strait_compress::{Calibration, EndpointCosts};
use strait_model::Seconds;

/// What is done to bytes, and how long it takes.
#[derive(Clone, Debug)]
pub struct MachineModel {
    /// Codecs, at either end.
    pub codecs: Calibration,
    /// Everything else that is done with a packet.
    pub ends: EndpointCosts,
}

impl MachineModel {
    /// Figures of the project's first machine, for runs that must not measure.
    #[must_use]
    pub fn assumed() -> MachineModel {
        MachineModel { codecs: Calibration::assumed(), ends: EndpointCosts::ALIKE }
    }

    /// What a byte of a datagram takes both ends together, sealed, sent, received and opened: what is saved of each byte
    /// that compression saves.
    pub(crate) fn handling(&self) -> Seconds {
        let EndpointCosts { here, there } = self.ends;
        here.crypto + here.outer + there.handling.outer + there.handling.crypto
    }
}
