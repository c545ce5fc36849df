//! What a receiver sends back for what comes, reckoned without a receiver: for tools that replay traffic through a sender alone.

use core::time::Duration;

use strait_clock::Time;
use strait_wire::{Ecn, Esn, Spi};

use crate::inbound::reception::ArrivalCount;
use crate::outbound::return_budget::ReturnBudget;

/// A peer whose packets nothing answered for this long hears that they arrive, before it probes after 10 s; two ticks of a second and
/// a round trip are left (`WireGuard`'s passive keepalive comes after 10 s).
pub const UNANSWERED: Duration = Duration::from_secs(7);
/// How often the key manager looks.
const TICK: Duration = Duration::from_secs(1);
/// Wire bytes of a delivery report alone, of one that rides, and of a packet without content, over IPv4 and UDP.
const ALONE: usize = 120;
const RIDING: usize = 64;
const EMPTY: usize = 56;
/// How long a report waits for a datagram that takes it along.
const RIDE_WITHIN: Duration = Duration::from_millis(200);

/// What goes back unasked for one direction of traffic of which nothing is lost, to a sender with a given rate.
#[derive(Debug, Default)]
pub struct ReturnTraffic {
    arrivals: ArrivalCount,
    budget: ReturnBudget,
    number: u64,
    /// Wire bytes that came.
    came: u64,
    unanswered: Option<Time>,
    wire: u64,
}

impl ReturnTraffic {
    /// Datagrams of so many wire bytes together came at `now`; a packet last went the other way at `answered`, if one did.
    pub fn note(&mut self, datagrams: u64, wire: u64, answered: Option<Time>, now: Time) {
        self.came += wire;
        for _ in 0..datagrams {
            self.number += 1;
            self.arrivals.note(Esn(self.number), wire / datagrams, Ecn::NotEct, now);
        }
        self.answer(answered, now);
        if !self.arrivals.is_due(now) {
            return;
        }
        let Some(reception) = self.arrivals.look(Spi(0), now) else { return };
        self.budget.note(self.came, reception.pressing);
        let rides = answered.is_some_and(|at| now.since(at) <= RIDE_WITHIN);
        let bytes = if rides { RIDING } else { ALONE };
        if self.budget.take(bytes, reception.pressing) {
            self.wire += bytes as u64;
            self.unanswered = None;
        }
    }

    /// The empty packet that was due before `now`.
    fn answer(&mut self, answered: Option<Time>, now: Time) {
        let since = self.unanswered.filter(|since| answered.is_none_or(|at| at < *since)).unwrap_or(now);
        let due = since + UNANSWERED + TICK <= now;
        self.wire += if due { EMPTY as u64 } else { 0 };
        self.unanswered = Some(if due { now } else { since });
    }

    /// Wire bytes that went back so far.
    #[must_use]
    pub const fn wire(&self) -> u64 {
        self.wire
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What goes back for a datagram of `len` wire bytes every `millis` for an hour.
    fn hour(len: u64, millis: u64, answered: bool) -> u64 {
        let mut back = ReturnTraffic::default();
        for at in (0..3_600_000).step_by(usize::try_from(millis).unwrap()) {
            let now = Time::from_millis(1_000_000 + at);
            back.note(1, len, answered.then_some(now), now);
        }
        back.wire()
    }

    #[test]
    fn polls_cost_what_two_whole_nodes_in_virtual_time_send_back() {
        // 26,085 bytes in sim/tests/conversations/sparse_traffic.rs, 4,400 of which are handshakes.
        let back = hour(120, 200, false);
        assert!((20_000..28_000).contains(&back), "{back}");
        let answered = hour(120, 200, true);
        assert!(answered < 2_000, "{answered}");
        assert!((18_000..22_000).contains(&hour(184, 5_000, false)));
    }
}
