//! What an attack on compression was measured to yield: the numbers of `docs/design/oracle.md`, as this version prints them.
//!
//! This is the one place for them. A policy without a line was not measured.

use super::{LeakPolicy, Mix, Padding};

/// Where the attacker's packets are, as the secret's block sees them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AttackerPlace {
    /// In the flow that carries the secret.
    SameFlow,
    /// In another flow of the trust domain.
    OtherFlow,
}

/// What the scripted client learned: bits for each 1,000 of its packets, beyond chance.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AttackYield {
    /// The mean over cookies, of the codec where it is largest.
    pub mean: f64,
    /// The upper limit of the 95 % confidence interval; the policy is called safe if it is at most 1.
    pub upper: f64,
}

/// A policy, where the attacker is, and what it yielded.
type MeasuredYield = (Padding, Mix, AttackerPlace, AttackYield);

/// Measured without `pause`, which ends the scripted attack early.
const MEASURED: &[MeasuredYield] = &[];

impl LeakPolicy {
    /// What an attacker in this place was measured to learn under this policy; nothing where that was not measured.
    #[must_use]
    pub fn measured(&self, place: AttackerPlace) -> Option<AttackYield> {
        let found = MEASURED
            .iter()
            .find(|(padding, mix, at, _)| (*padding, *mix, *at) == (self.padding, self.mix, place));
        found.map(|(.., measured)| *measured)
    }
}
