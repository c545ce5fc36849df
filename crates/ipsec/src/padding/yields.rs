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
    /// Its 95 % upper limit; the policy is called safe if it is at most 1.
    pub upper: f64,
}

/// A policy, where the attacker is, and what it yielded.
type MeasuredYield = (Padding, Mix, AttackerPlace, AttackYield);

/// Measured without `pause`, which a client that sends other bytes with each guess does not meet.
const MEASURED: &[MeasuredYield] = &[
    (Padding::None, Mix::Domain, AttackerPlace::SameFlow, AttackYield { mean: 393.7, upper: 393.7 }),
    (Padding::None, Mix::Domain, AttackerPlace::OtherFlow, AttackYield { mean: 189.1, upper: 190.1 }),
    (Padding::None, Mix::Flow, AttackerPlace::SameFlow, AttackYield { mean: 394.4, upper: 394.6 }),
    (Padding::None, Mix::Flow, AttackerPlace::OtherFlow, AttackYield { mean: 0.3, upper: 0.7 }),
    (Padding::Padme, Mix::Domain, AttackerPlace::SameFlow, AttackYield { mean: 375.5, upper: 375.8 }),
    (Padding::Padme, Mix::Domain, AttackerPlace::OtherFlow, AttackYield { mean: 190.4, upper: 191.5 }),
    (Padding::Padme, Mix::Flow, AttackerPlace::SameFlow, AttackYield { mean: 371.9, upper: 372.3 }),
    (Padding::Padme, Mix::Flow, AttackerPlace::OtherFlow, AttackYield { mean: 0.1, upper: 0.4 }),
    (Padding::Buckets, Mix::Domain, AttackerPlace::SameFlow, AttackYield { mean: 228.8, upper: 230.6 }),
    (Padding::Buckets, Mix::Domain, AttackerPlace::OtherFlow, AttackYield { mean: 118.7, upper: 119.7 }),
    (Padding::Buckets, Mix::Flow, AttackerPlace::SameFlow, AttackYield { mean: 237.3, upper: 238.0 }),
    (Padding::Buckets, Mix::Flow, AttackerPlace::OtherFlow, AttackYield { mean: 0.1, upper: 0.3 }),
    (Padding::Constant, Mix::Domain, AttackerPlace::SameFlow, AttackYield { mean: 0.2, upper: 0.4 }),
    (Padding::Constant, Mix::Domain, AttackerPlace::OtherFlow, AttackYield { mean: 0.2, upper: 0.4 }),
    (Padding::Constant, Mix::Flow, AttackerPlace::SameFlow, AttackYield { mean: 0.0, upper: 0.4 }),
    (Padding::Constant, Mix::Flow, AttackerPlace::OtherFlow, AttackYield { mean: 0.3, upper: 0.6 }),
];

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
