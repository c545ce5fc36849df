//! What one end gets, and what it tells of that.

use std::collections::VecDeque;

use core::time::Duration;

use strait_clock::Time;

use crate::LoginError;

/// When what was taken is told, if nothing is sent that tells it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AckPolicy {
    /// At once, after so much.
    pub(crate) every: u64,
    /// If it is at least so much, [`AckPolicy::delay`] after the last time or after it came.
    pub(crate) least: u64,
    /// How long.
    pub(crate) delay: Duration,
    /// Whether the delay counts from the last time: what comes after a silence is told at once.
    pub(crate) spaced: bool,
}

/// Bytes that the caller has, and what they stand for.
#[derive(Debug)]
struct Part {
    /// What the caller gets, and has not said to have taken.
    given: u64,
    /// What it counts.
    cost: u64,
    /// Whether a byte counts one, so that a part of it counts.
    plain: bool,
}

/// What one end gets.
#[derive(Debug)]
pub(crate) struct Incoming {
    policy: AckPolicy,
    window: u64,
    received: u64,
    taken: u64,
    told: u64,
    parts: VecDeque<Part>,
    /// Since when there is so much to tell that it does not wait for company.
    since: Option<Time>,
    /// When it was told last.
    last: Option<Time>,
    urgent: bool,
    /// Whether what was told may be lost.
    again: bool,
}

impl Incoming {
    pub(crate) fn new(position: u64, window: u64, policy: AckPolicy) -> Incoming {
        Incoming {
            policy,
            window,
            received: position,
            taken: position,
            told: position,
            parts: VecDeque::new(),
            since: None,
            last: None,
            urgent: false,
            again: false,
        }
    }

    /// Something that counts so much arrived, of which the caller gets `given` bytes.
    pub(crate) fn arrived(&mut self, cost: u64, given: u64, now: Time) -> Result<(), LoginError> {
        if !self.has_room(cost) {
            return Err(LoginError::Window);
        }
        self.received += cost;
        let plain = cost == given;
        match self.parts.back_mut() {
            Some(last) if plain && last.plain => {
                last.given += given;
                last.cost += cost;
            }
            _ => self.parts.push_back(Part { given, cost, plain }),
        }
        self.settle(now);
        Ok(())
    }

    /// Whether the other end may send so much.
    pub(crate) fn has_room(&self, cost: u64) -> bool {
        self.received + cost - self.taken <= self.window
    }

    /// The caller has taken so many bytes of those that it got.
    pub(crate) fn take(&mut self, mut bytes: u64, now: Time) {
        while let Some(part) = self.parts.front_mut()
            && bytes > 0
        {
            let now_taken = bytes.min(part.given);
            part.given -= now_taken;
            bytes -= now_taken;
            if part.plain {
                part.cost -= now_taken;
                self.taken += now_taken;
            }
            if part.given > 0 {
                break;
            }
            self.taken += part.cost;
            self.parts.pop_front();
        }
        self.settle(now);
    }

    /// All that there is counts as taken, and what comes too: the caller has no use for it.
    pub(crate) fn take_all(&mut self, now: Time) {
        self.parts.clear();
        self.taken = self.received;
        self.settle(now);
    }

    fn settle(&mut self, now: Time) {
        while let Some(part) = self.parts.front()
            && part.given == 0
        {
            self.taken += part.cost;
            self.parts.pop_front();
        }
        if self.since.is_none() && self.untold() >= self.policy.least {
            let last = self.last.filter(|_| self.policy.spaced);
            self.since = Some(if self.policy.spaced { last.unwrap_or(Time::ZERO) } else { now });
        }
    }

    /// What was taken is to be told without waiting.
    pub(crate) fn hurry(&mut self) {
        self.urgent = true;
    }

    /// Whether the caller has taken all that arrived.
    pub(crate) fn is_taken(&self) -> bool {
        self.taken == self.received
    }

    pub(crate) fn untold(&self) -> u64 {
        self.taken - self.told
    }

    /// Whether it is time to tell, even alone.
    pub(crate) fn due(&self, now: Time) -> bool {
        let untold = self.untold();
        let due = untold > 0
            && (self.urgent || untold >= self.policy.every || self.deadline().is_some_and(|at| at <= now));
        due || self.again
    }

    pub(crate) fn deadline(&self) -> Option<Time> {
        self.since.map(|since| since + self.policy.delay)
    }

    /// A message that tells it leaves.
    pub(crate) fn tell(&mut self, now: Time) -> u64 {
        if self.told < self.taken {
            self.last = Some(now);
        }
        self.told = self.taken;
        (self.since, self.again) = (None, false);
        // What was hurried for may still wait for the caller.
        self.urgent &= self.taken < self.received;
        self.taken
    }

    /// There is another stream: what was told may be lost.
    pub(crate) fn restart(&mut self) {
        self.since = None;
        self.again = self.taken > 0;
    }

    pub(crate) fn window(&self) -> u64 {
        self.window
    }

    pub(crate) fn policy(&self) -> AckPolicy {
        self.policy
    }

    pub(crate) fn received(&self) -> u64 {
        self.received
    }

    pub(crate) fn taken(&self) -> u64 {
        self.taken
    }
}
