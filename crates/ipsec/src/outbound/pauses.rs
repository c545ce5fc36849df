//! When compressing the traffic of a trust domain pauses: with blocks of constant size, after a unit that did not become one; under rules
//! with `pause`, after many blocks that are nearly equal (alike.rs).

mod alike;

use alike::AlikeBlocks;

use crate::padding::PAUSE_PACKETS;
use crate::{Domain, LeakPolicy, Padding, RuleSet};

/// The pauses of all trust domains; without memory while no rule asks for any.
#[derive(Debug, Default)]
pub(super) struct CompressionPauses {
    domains: Vec<DomainPause>,
}

/// The pause of one trust domain.
#[derive(Clone, Debug, Default)]
struct DomainPause {
    /// Packets until it ends.
    left: u64,
    alike: AlikeBlocks,
}

impl LeakPolicy {
    /// Whether compressing may pause.
    pub(super) fn may_pause(&self) -> bool {
        self.pause || self.padding == Padding::Constant
    }
}

impl CompressionPauses {
    /// Other rules from now on.
    pub(super) fn obey(&mut self, rules: &RuleSet) {
        let pausing = rules.rules().iter().filter(|rule| rule.policy.may_pause());
        let count = pausing.map(|rule| usize::from(rule.domain.0) + 1).max().unwrap_or(0);
        self.domains.clear();
        self.domains.resize(count, DomainPause::default());
    }

    /// Whether these packets of the domain, which have just come, are in a pause.
    pub(super) fn pass(&mut self, domain: Domain, packets: u64) -> bool {
        let Some(pause) = self.domain(Some(domain)) else { return false };
        let paused = pause.left > 0;
        pause.left = pause.left.saturating_sub(packets);
        paused
    }

    /// Whether compressing pauses now.
    pub(super) fn is_paused(&mut self, domain: Option<Domain>) -> bool {
        self.domain(domain).is_some_and(|pause| pause.left > 0)
    }

    /// Begins a pause, unless there is one; true if it begins.
    pub(super) fn begin(&mut self, domain: Option<Domain>) -> bool {
        let Some(pause) = self.domain(domain).filter(|pause| pause.left == 0) else { return false };
        pause.left = PAUSE_PACKETS;
        true
    }

    /// Whether too many blocks were nearly equal, this one among them: these packets, which became `after` bytes.
    pub(super) fn looks_like_guesses(
        &mut self,
        domain: Option<Domain>,
        packets: &[u8],
        after: usize,
    ) -> bool {
        self.domain(domain).is_some_and(|pause| pause.alike.note(packets, after))
    }

    fn domain(&mut self, domain: Option<Domain>) -> Option<&mut DomainPause> {
        self.domains.get_mut(usize::from(domain?.0))
    }
}
