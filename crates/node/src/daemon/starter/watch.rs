//! When the tunnel's network is looked after: what another program removes is put back.

use std::time::Duration;

use strait_clock::Time;
use strait_scheduler::Budget;

use crate::daemon::host_watch::first_few;
use crate::network::{Network, NetworkChange, Plan, Repair};

/// Looks a second, and at once after a quiet time: programs that set up a network do it in a few steps. A program that
/// removes what is put back makes the node work, and log, no more often.
const LOOKS: (u64, u64) = (1, 5);
/// How long to wait for the rest of what a program does: flushing rules is one event for each, microseconds apart. Until the
/// rules of a full tunnel are back, packets leave in the clear, but for those of a node in lockdown.
const SETTLE: Duration = Duration::from_millis(5);
/// How often to look at what changes without an event.
const UNSEEN: Duration = Duration::from_secs(10);

/// What has changed and is to be looked at.
pub(super) struct TunnelWatch {
    change: NetworkChange,
    due: Time,
    budget: Budget,
}

impl TunnelWatch {
    /// Knows nothing yet, and looks at once.
    pub(super) fn new() -> TunnelWatch {
        let (per_second, burst) = LOOKS;
        TunnelWatch {
            change: NetworkChange { tunnel: true, outside: true },
            due: Time::ZERO,
            budget: Budget::new(per_second, burst),
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
        if network.must_look() {
            self.due = now + UNSEEN;
            self.change.tunnel = true;
        }
        if change.tunnel {
            match network.repair(plan) {
                Ok(repair) => log(interface, plan, &repair),
                // The device goes with the packet process, which ends and says why.
                Err(error) if !is_there(interface) => {
                    tracing::debug!(interface, %error, "the interface is gone");
                }
                Err(error) => tracing::error!("another program changed the tunnel's network: {error}"),
            }
        }
        change.outside
    }
}

/// Whether there is an interface of this name.
fn is_there(interface: &str) -> bool {
    std::path::Path::new("/proc/sys/net/ipv4/conf").join(interface).exists()
}

fn log(interface: &str, plan: &Plan, repair: &Repair) {
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
