//! What is decided on traffic, as it is shown and logged.

use strait_clock::Time;
use strait_compress::{Decision, Reason, Weighed};
use strait_ipsec::PeerId;
use strait_model::{BitRate, BreakEven, Seconds, Stages};

use super::Daemon;
use crate::report::{DecisionReport, StagesReport, WeighedReport};

impl Daemon {
    /// A decision in words and figures.
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
            since_seconds: now.since(decision.since).as_secs_f64(),
            weighed: decision.weighed.as_ref().map(weighed),
        }
    }

    /// Writes a decision that changed to the log.
    pub(in crate::daemon) fn log_decision(&self, decision: &Decision) {
        let report = self.decision_report(decision, self.clock.now());
        let weighed = report.weighed.as_ref();
        tracing::info!(
            class = report.class,
            peer = report.peer,
            choice = report.choice,
            reason = report.reason,
            ratio = weighed.map(|it| it.ratio),
            limit = weighed.map(|it| it.limit.as_str()),
            speedup = decision.weighed.as_ref().map(Weighed::speedup),
            runner_up = weighed.and_then(|it| it.runner_up.as_deref()),
            "decided otherwise"
        );
    }
}

const fn reason(reason: Reason) -> &'static str {
    match reason {
        Reason::Pays => "pays",
        Reason::Ordered => "ordered",
        Reason::LooksRandom => "looks-random",
        Reason::DoesNotShrink => "does-not-shrink",
        Reason::TooSlow => "too-slow",
        Reason::PeerLacks => "peer-lacks",
    }
}

fn weighed(weighed: &Weighed) -> WeighedReport {
    let bytes = |rate: BitRate| rate.as_bits() / 8.0;
    let (pays, up_to) = match weighed.pays_up_to() {
        BreakEven::Always => ("always", None),
        BreakEven::Never => ("never", None),
        BreakEven::At(rate) => ("up-to", Some(rate.as_bits())),
    };
    WeighedReport {
        by: if weighed.throughput { "throughput" } else { "arrival" }.to_owned(),
        unit_bytes: weighed.unit.0,
        method: weighed.method.to_string(),
        ratio: weighed.ratio.get(),
        compress_bytes_per_second: weighed.compress.map(bytes),
        expand_bytes_per_second: weighed.decompress.map(bytes),
        link_bits_per_second: weighed.link.map(BitRate::as_bits),
        pays_up_to_bits_per_second: up_to,
        pays: pays.to_owned(),
        without: stages(&weighed.without),
        with: stages(&weighed.with),
        limit: weighed.limit.name().to_owned(),
        serial_speedup: weighed.serial,
        pipelined_speedup: weighed.pipelined,
        runner_up: weighed.runner_up.map(|it| it.method.to_string()),
        runner_up_percent_longer: weighed.runner_up.map(|it| it.longer * 100.0),
    }
}

fn stages(stages: &Stages) -> StagesReport {
    let micros = |time: Seconds| time.0 * 1e6;
    StagesReport {
        compress: micros(stages.compress),
        seal: micros(stages.encrypt),
        send: micros(stages.sender),
        link: micros(stages.transmit),
        receive: micros(stages.receiver),
        open: micros(stages.decrypt),
        expand: micros(stages.decompress),
    }
}
