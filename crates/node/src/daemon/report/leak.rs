//! What lengths of a rule's blocks tell, as it is shown.

use strait_ipsec::{AttackerPlace, LeakPolicy, Mix, RuleCounters};

use crate::report::{AttackerReport, LeakReport};

pub(super) fn report(policy: &LeakPolicy, counters: &RuleCounters) -> LeakReport {
    LeakReport {
        padding: policy.padding.name().to_owned(),
        mix: policy.mix.name().to_owned(),
        pause: policy.pause,
        pauses: counters.pauses.get(),
        paused_packets: counters.paused.get(),
        blocks: counters.tried.get(),
        same_flow: attacker(policy, AttackerPlace::SameFlow, counters),
        other_flow: attacker(policy, AttackerPlace::OtherFlow, counters),
    }
}

fn attacker(policy: &LeakPolicy, place: AttackerPlace, counters: &RuleCounters) -> AttackerReport {
    let measured = policy.measured(place);
    let (block, packets) = match (policy.mix, place) {
        (Mix::Flow, AttackerPlace::OtherFlow) => (Some(0.0), Some(0.0)),
        _ => (counters.leak_bound(), counters.leak_bound_of_1000_packets()),
    };
    let most = policy.most_per_1000_packets().unwrap_or(f64::INFINITY);
    AttackerReport {
        bound_bits_per_block: block,
        bound_bits_per_1000_packets: packets.map(|bits| bits.min(most)),
        measured_yield: measured.map(|it| it.mean),
        measured_yield_upper: measured.map(|it| it.upper),
    }
}
