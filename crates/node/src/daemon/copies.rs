//! Keys and numbers that another copy of this machine may use too, since it was restored from a snapshot or cloned: nothing is sealed with
//! them any more.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use strait_clock::Time;
use strait_ipsec::outbound;
use tokio::io::unix::AsyncFd;

use super::{Daemon, start};
use crate::clock::booted_at;
use crate::generation::GenerationWatch;

/// The least step ahead of the time of day that may come from a restored snapshot. Programs that keep the time step it by less while the
/// node runs: systemd-timesyncd from 0.4 s on, ntpd from 0.128 s, chronyd by what its file says, often 1 s.
const STEP: Duration = Duration::from_secs(10);
/// The least time between two such renewals of keys: whoever can set the time of day cuts no more sessions.
const STEP_EVERY: Duration = Duration::from_secs(3600);

/// The signs that this machine is another copy.
#[derive(Debug)]
pub(super) struct Copies {
    watch: Arc<GenerationWatch>,
    /// The copy that keys were made for.
    followed: u64,
    booted_at: Duration,
    /// Steps of the clock before then are not followed.
    steps_from: Time,
}

impl Copies {
    pub(super) fn new(watch: Arc<GenerationWatch>) -> Copies {
        Copies { watch, followed: 0, booted_at: booted_at(), steps_from: Time::ZERO }
    }

    /// Returns a descriptor that is readable when there is something to look at; nothing where the system does not tell.
    pub(super) fn watched(&self) -> io::Result<Option<AsyncFd<OwnedFd>>> {
        self.watch.watched()
    }

    /// Returns the step ahead of the time of day since the last call, if a restored snapshot may be its cause.
    fn step(&mut self, booted_at: Duration, now: Time) -> Option<Duration> {
        let before = core::mem::replace(&mut self.booted_at, booted_at);
        let step = booted_at.saturating_sub(before);
        let follows = step >= STEP && now >= self.steps_from;
        follows.then(|| {
            self.steps_from = now + STEP_EVERY;
            step
        })
    }
}

/// Waits until there is something to look at.
pub(super) async fn ready(watched: Option<&AsyncFd<OwnedFd>>) {
    let Some(watched) = watched else { return std::future::pending().await };
    // Another thread may read what is there, so that it is looked at once.
    if let Ok(mut ready) = watched.readable().await {
        ready.clear_ready();
    }
}

impl Daemon {
    /// Looks whether this machine is another copy, and follows that.
    pub(super) fn look_for_copies(&mut self) {
        self.copies.watch.look();
        self.follow_copies();
    }

    /// Has all keys made anew if this machine is another copy than the one that they were made for.
    pub(super) fn follow_copies(&mut self) {
        let generation = self.counters.generations.get();
        if core::mem::replace(&mut self.copies.followed, generation) == generation {
            return;
        }
        tracing::warn!(
            "this machine was restored from a snapshot or cloned: keys and sessions are made anew, and streams are cut"
        );
        self.manual.stop();
        self.renew();
    }

    /// The same if the time of day was set ahead by much, as it is after a snapshot was restored. That may have other reasons, and comes too
    /// late for what was sent before, so that manual keys stay in use.
    pub(super) fn follow_clocks(&mut self) {
        if let Some(step) = self.copies.step(booted_at(), self.clock.now()) {
            let seconds = step.as_secs();
            tracing::warn!(
                "the time of day was set ahead by {seconds} s, as after a snapshot is restored: keys and sessions are made anew, \
                 and streams are cut"
            );
            self.renew();
        }
    }

    fn renew(&mut self) {
        // What is ordered already is for the copy before.
        self.act();
        let seed = match start::seed() {
            Ok(seed) => seed,
            // The sender takes no keys then.
            Err(error) => {
                return tracing::error!("no keys are made, as the system has no random numbers: {error}");
            }
        };
        self.order_out(outbound::Order::Renewed(self.copies.followed));
        self.streams.renew();
        self.control.renew(&seed, self.clock.now());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_is_followed_when_it_is_set_ahead_by_much_and_once_an_hour() {
        let mut copies = Copies::new(Arc::new(GenerationWatch::open(Arc::default())));
        let booted = Duration::from_secs(1_000_000);
        copies.booted_at = booted;
        let at = |minutes: u64| Time::ZERO + Duration::from_secs(60 * minutes);
        let mut step = |ahead: u64, minutes| copies.step(booted + Duration::from_secs(ahead), at(minutes));
        assert_eq!(step(0, 1), None);
        assert_eq!(step(9, 2), None, "a correction");
        assert_eq!(step(18, 3), None, "another");
        assert_eq!(step(48, 4), Some(Duration::from_secs(30)));
        assert_eq!(step(0, 5), None, "set back");
        assert_eq!(step(48, 6), None, "and ahead again, too soon");
        assert_eq!(step(48, 64), None, "not seen later");
        assert_eq!(step(86_448, 65), Some(Duration::from_secs(86_400)));
    }
}
