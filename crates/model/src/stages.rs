//! How long each stage of a transaction takes, and what that comes to.

use crate::security::Hash;
use crate::{Bytes, Seconds};

/// How long a packet spends in each stage (section 2 of the paper); zero for what is not done.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Stages {
    /// `T_COMP`.
    pub compress: Seconds,
    /// `T_E`, or `C_E` of what was compressed; and so on.
    pub encrypt: Seconds,
    /// `T_HC`.
    pub compute: Seconds,
    /// `T_SECNET`.
    pub transmit: Seconds,
    /// `T_HV`.
    pub verify: Seconds,
    /// `T_D`.
    pub decrypt: Seconds,
    /// `T_DECOMP`.
    pub decompress: Seconds,
    /// What else the sender does: protocol processing, bus, disk (the remark at the end of section 6.2).
    pub sender: Seconds,
    /// What else the receiver does.
    pub receiver: Seconds,
}

impl Stages {
    /// From the first byte prepared to the last one interpreted, one stage after the other.
    #[must_use]
    pub fn total(&self) -> Seconds {
        self.at_sender() + self.transmit + self.at_receiver()
    }

    /// *Prepare packet*.
    #[must_use]
    pub fn at_sender(&self) -> Seconds {
        self.compress + self.encrypt + self.compute + self.sender
    }

    /// *Interpret packet*.
    #[must_use]
    pub fn at_receiver(&self) -> Seconds {
        self.verify + self.decrypt + self.decompress + self.receiver
    }

    pub(crate) fn hashed(&mut self, hash: Hash, covered: Bytes) {
        self.compute = self.compute + covered / hash.compute;
        self.verify = self.verify + covered / hash.verify;
    }
}
