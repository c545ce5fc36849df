//! Compression decisions, as they are shown and logged.

use strait_clock::Time;
use strait_compress::{Decision, DecisionReason, Weighed};
use strait_ipsec::PeerId;
use strait_model::{BitRate, BreakEven, Seconds, Stages};

use super::Daemon;
use crate::report::{DecisionReport, EstimateReport, StagesReport};

impl Daemon {
    /// A decision with its names and figures.
    pub(in crate::daemon) fn decision_report(&self, decision: &Decision, now: Time) -> DecisionReport {
        let rule = self.rules.rules().get(usize::from(decision.rule.place));
        let domain = rule.and_then(|rule| self.config.domains.get(usize::from(rule.domain.0)));
        let peer = self.roster.whose(PeerId(decision.to), &self.config.peers);
        DecisionReport {
            class: decision.class.to_string(),
            peer: peer.map(|peer| peer.name.clone()),
            domain: domain.cloned(),
            bytes_per_second: decision.recent,
            choice: decision.method.to_string(),
            reason: reason(decision.reason).to_owned(),
            age_seconds: now.since(decision.since).as_secs_f64(),
            estimate: decision.weighed.as_ref().map(estimate),
        }
    }

    /// Writes a decision that changed to the log.
    pub(in crate::daemon) fn log_decision(&self, decision: &Decision) {
        let report = self.decision_report(decision, self.clock.now());
        let estimate = report.estimate.as_ref();
        tracing::info!(
            class = report.class,
            peer = report.peer,
            choice = report.choice,
            reason = report.reason,
            ratio = estimate.map(|it| it.ratio),
            bottleneck = estimate.map(|it| it.bottleneck.as_str()),
            speedup = decision.weighed.as_ref().map(Weighed::speedup),
            runner_up = estimate.and_then(|it| it.runner_up.as_deref()),
            "compression choice changed"
        );
    }
}

const fn reason(reason: DecisionReason) -> &'static str {
    match reason {
        DecisionReason::Pays => "pays",
        DecisionReason::Ordered => "fixed-by-rule",
        DecisionReason::LooksRandom => "entropy-probe",
        DecisionReason::DoesNotShrink => "incompressible",
        DecisionReason::TooSlow => "too-slow",
        DecisionReason::PeerLacks => "unsupported-by-peer",
    }
}

fn estimate(weighed: &Weighed) -> EstimateReport {
    let bytes = |rate: BitRate| rate.as_bits() / 8.0;
    let (pays, up_to) = match weighed.pays_up_to() {
        BreakEven::Always => ("always", None),
        BreakEven::Never => ("never", None),
        BreakEven::At(rate) => ("below-break-even", Some(rate.as_bits())),
    };
    EstimateReport {
        objective: if weighed.throughput { "throughput" } else { "latency" }.to_owned(),
        block_bytes: weighed.unit.0,
        method: weighed.method.to_string(),
        ratio: weighed.ratio.get(),
        compress_bytes_per_second: weighed.compress.map(bytes),
        decompress_bytes_per_second: weighed.decompress.map(bytes),
        link_rate_bits_per_second: weighed.link.map(BitRate::as_bits),
        break_even_bits_per_second: up_to,
        pays: pays.to_owned(),
        uncompressed: stages(&weighed.without),
        compressed: stages(&weighed.with),
        bottleneck: weighed.limit.name().to_owned(),
        serial_speedup: weighed.serial,
        pipelined_speedup: weighed.pipelined,
        runner_up: weighed.runner_up.map(|it| it.method.to_string()),
        runner_up_slower_percent: weighed.runner_up.map(|it| it.longer * 100.0),
    }
}

fn stages(stages: &Stages) -> StagesReport {
    let micros = |time: Seconds| time.0 * 1e6;
    StagesReport {
        compress_us: micros(stages.compress),
        encrypt_us: micros(stages.encrypt),
        sender_us: micros(stages.sender),
        link_us: micros(stages.transmit),
        receiver_us: micros(stages.receiver),
        decrypt_us: micros(stages.decrypt),
        decompress_us: micros(stages.decompress),
    }
}
