//! Multi-packets that are done, until they may leave.

use std::collections::VecDeque;

use super::processor::MultiPacketJob;

/// Those under way, the first one first, or only those that are done where each leaves as soon as it is.
#[derive(Debug)]
pub(super) struct MachineOrder {
    /// The number of those that may be under way; nothing where there is no order.
    most: Option<usize>,
    /// The turn of the first of `jobs`, and of the next to be scheduled.
    first: u64,
    next: u64,
    /// By turn; nothing for one that is not done.
    jobs: VecDeque<Option<MultiPacketJob>>,
}

impl MachineOrder {
    pub(super) const fn new(most: Option<usize>) -> MachineOrder {
        MachineOrder { most, first: 0, next: 0, jobs: VecDeque::new() }
    }

    /// Returns true if another one may be scheduled.
    pub(super) fn takes(&self) -> bool {
        self.most.is_none_or(|most| self.jobs.len() < most)
    }

    /// The turn of one that is scheduled now.
    pub(super) fn next(&mut self) -> u64 {
        if self.most.is_some() {
            self.jobs.push_back(None);
        }
        self.next += 1;
        self.next - 1
    }

    pub(super) fn put(&mut self, job: MultiPacketJob) {
        if self.most.is_none() {
            return self.jobs.push_back(Some(job));
        }
        let place = usize::try_from(job.turn - self.first).ok();
        if let Some(place) = place.and_then(|place| self.jobs.get_mut(place)) {
            *place = Some(job);
        }
    }

    /// The next that leaves, if it may.
    pub(super) fn pop(&mut self) -> Option<MultiPacketJob> {
        let job = self.jobs.pop_front_if(|job| job.is_some())?;
        self.first += 1;
        job
    }
}
