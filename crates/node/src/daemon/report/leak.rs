//! What lengths of a rule's blocks tell, as it is shown.

use strait_ipsec::{AttackerPlace, LeakPolicy, Mix, RuleCounters};

use crate::report::{AttackerReport, LeakReport};

pub(super) fn report(policy: &LeakPolicy, counters: &RuleCounters) -> LeakReport {
    let bound = counters.leak_bound();
    let apart = policy.mix == Mix::Flow;
    LeakReport {
        padding: policy.padding.name().to_owned(),
        mix: policy.mix.name().to_owned(),
        blocks: counters.tried.get(),
        same_flow: attacker(policy, AttackerPlace::SameFlow, bound),
        other_flow: attacker(policy, AttackerPlace::OtherFlow, if apart { Some(0.0) } else { bound }),
    }
}

fn attacker(policy: &LeakPolicy, place: AttackerPlace, bound: Option<f64>) -> AttackerReport {
    let measured = policy.measured(place);
    AttackerReport {
        bound_bits_per_block: bound,
        measured_yield: measured.map(|it| it.mean),
        measured_yield_upper: measured.map(|it| it.upper),
    }
}
