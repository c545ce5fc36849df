//! What lengths of a rule's blocks tell, as it is shown.

use strait_ipsec::{AttackerPlace, LeakPolicy, Mix, Rule, RuleCounters};

use crate::report::{AttackerReport, LeakReport};

pub(super) fn report(rule: &Rule, counters: &RuleCounters) -> LeakReport {
    let policy = &rule.policy;
    let cache = rule.cache.is_some() && policy.shows_lengths();
    let attacker = |place| attacker(policy, cache, place, counters);
    LeakReport {
        padding: policy.padding.name().to_owned(),
        mix: policy.mix.name().to_owned(),
        cache,
        pause: policy.pause,
        pauses: counters.pauses.get(),
        paused_packets: counters.paused.get(),
        blocks: counters.tried.get(),
        same_flow: attacker(AttackerPlace::SameFlow),
        other_flow: attacker(AttackerPlace::OtherFlow),
    }
}

fn attacker(
    policy: &LeakPolicy,
    cache: bool,
    place: AttackerPlace,
    counters: &RuleCounters,
) -> AttackerReport {
    // The yields were measured without a cache.
    let measured = policy.measured(place).filter(|_| !cache);
    let (block, packets) = match (policy.mix, place) {
        (Mix::Flow, AttackerPlace::OtherFlow) if !cache => (Some(0.0), Some(0.0)),
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
