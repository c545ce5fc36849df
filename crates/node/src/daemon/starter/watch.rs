//! When the tunnel's network is looked after: what another program removes is put back.

use std::time::Duration;

use strait_clock::Time;
use strait_scheduler::Budget;

use crate::daemon::host_watch::first_few;
use crate::network::{Network, NetworkChange, NetworkError, Plan, Repair};

/// Looks a second, and at once after a quiet time: programs that set up a network do it in a few steps. A program that
/// removes what is put back makes the node work, and log, no more often.
const LOOKS: (u64, u64) = (1, 5);
/// How long to wait for the rest of what a program does: flushing rules is one event for each, microseconds apart. Until the
/// rules of a full tunnel are back, packets leave in the clear, but for those of a node in lockdown.
const SETTLE: Duration = Duration::from_millis(5);
/// The time after which a node without its interface is not about to end.
const ENDING: Duration = Duration::from_secs(10);
/// The time to wait where the budget says nothing.
const UNSEEN: Duration = Duration::from_secs(10);

/// What has changed and is to be looked at.
pub(super) struct TunnelWatch {
    change: NetworkChange,
    due: Time,
    budget: Budget,
    /// The time of the first look that found no interface, and true once that was said.
    gone: Option<(Time, bool)>,
}

impl TunnelWatch {
    /// Knows nothing yet, and looks at once.
    pub(super) fn new() -> TunnelWatch {
        let (per_second, burst) = LOOKS;
        TunnelWatch {
            change: NetworkChange { tunnel: true, outside: true },
            due: Time::ZERO,
            budget: Budget::new(per_second, burst),
            gone: None,
        }
    }

    /// When there is something to look at.
    pub(super) const fn poll_timeout(&self) -> Time {
        self.due
    }

    /// The kernel said that something changed: to be looked at in a moment.
    pub(super) fn changed(&mut self, change: NetworkChange, now: Time) {
        if change != NetworkChange::default() {
            self.change = self.change | change;
            self.due = self.due.min(now + SETTLE);
        }
    }

    /// Looks at what changed, if it is time; whether the ways outside may have. A node without a tunnel has no network to repair.
    pub(super) fn look(
        &mut self,
        network: Option<&mut Network>,
        plan: &Plan,
        interface: &str,
        now: Time,
    ) -> bool {
        if now < self.due {
            return false;
        }
        if !self.budget.take(1, now) {
            self.due = self.budget.room_at(1).unwrap_or(now + UNSEEN);
            return false;
        }
        let change = std::mem::take(&mut self.change);
        self.due = Time::MAX;
        let Some(network) = network else { return change.outside };
        let mut again = None;
        if change.tunnel {
            let repaired = network.repair(plan).map(|repair| log(interface, plan, &repair));
            again = self.say(repaired.err(), now);
        }
        if let Some(span) = again.or_else(|| network.look_again()) {
            self.due = now + span;
            self.change.tunnel = true;
        }
        change.outside
    }

    /// Says why nothing was repaired, once where nothing can be. An interface that is gone is looked at again after a while, which it
    /// returns: where this node ends, it is gone, too.
    fn say(&mut self, error: Option<NetworkError>, now: Time) -> Option<Duration> {
        let Some(error) = error else {
            self.gone = None;
            return None;
        };
        if !matches!(error, NetworkError::Gone { .. }) {
            self.gone = None;
            tracing::error!("another program changed the tunnel's network: {error}");
            return None;
        }
        let (since, said) = self.gone.get_or_insert((now, false));
        let left = ENDING.saturating_sub(now.since(*since));
        if left.is_zero() && !std::mem::replace(said, true) {
            tracing::error!("{error}");
        }
        (!left.is_zero()).then_some(left)
    }
}

fn log(interface: &str, plan: &Plan, repair: &Repair) {
    match &repair.renamed {
        Some(name) if name == interface => tracing::info!(interface, "the interface has its name again"),
        Some(name) => {
            tracing::warn!(
                interface,
                name,
                "another program renamed the interface; routes and filters go on with it"
            );
        }
        None => {}
    }
    if repair.went_down {
        let traffic = match plan.rules.is_empty() {
            true => "its traffic takes other routes",
            false => "what goes into a full tunnel is refused until it is up",
        };
        tracing::warn!(interface, "another program set the interface down; {traffic}");
    }
    if repair.came_up {
        tracing::info!(interface, "the interface is up again");
    }
    if !repair.put_back.is_empty() {
        let (what, more) = first_few(&repair.put_back);
        tracing::warn!(interface, "another program removed, and it is put back: {what}{more}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_interface_is_said_once_after_a_while_however_often_it_is_looked_for() {
        let gone = || Some(NetworkError::Gone { interface: "strait0".to_owned() });
        let mut watch = TunnelWatch::new();
        let mut waits = |millis| watch.say(gone(), Time::from_millis(millis));
        assert_eq!(waits(1_000), Some(ENDING));
        assert_eq!(
            waits(1_005),
            Some(ENDING - Duration::from_millis(5)),
            "it may still be the end of this node"
        );
        assert_eq!((waits(11_000), waits(11_001)), (None, None));
        assert!(watch.gone.is_some_and(|(_, said)| said));
        assert_eq!(watch.say(None, Time::from_millis(12_000)), None);
        assert_eq!(watch.say(gone(), Time::from_millis(13_000)), Some(ENDING));
    }
}
