//! A processor: fetches a multi-packet, encrypts it, writes it back, then the next.

use core::time::Duration;
use std::collections::VecDeque;

use strait_clock::Time;
use strait_scheduler::Price;

use super::bus::Bus;
use super::outcome::ProcessorUse;

/// A processor.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ProcessorSettings {
    /// What a job is said to take.
    pub price: Price,
    /// How many times that it does take: above 1 when other work is in its way.
    pub slowdown: f64,
    /// Whether its data crosses the bus, in and out.
    pub on_bus: bool,
}

/// A multi-packet.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct MultiPacketJob {
    /// Its place among all, as they were scheduled.
    pub(super) turn: u64,
    pub(super) packets: u64,
    pub(super) bytes: u64,
    /// With every packet padded.
    pub(super) padded: usize,
    /// Nanoseconds of the packets' beginnings, summed.
    pub(super) since: u64,
    /// The first of them.
    pub(super) first: Option<Time>,
}

impl MultiPacketJob {
    pub(super) fn add(&mut self, bytes: u32, since: Time) {
        self.packets += 1;
        self.bytes += u64::from(bytes);
        self.since = self.since.saturating_add(since.as_nanos());
        self.first.get_or_insert(since);
    }
}

/// A job that is done.
#[derive(Clone, Copy, Debug)]
pub(super) struct Done {
    pub(super) job: MultiPacketJob,
    /// How long it was worked on, without transfers.
    pub(super) took: Duration,
}

#[derive(Debug)]
pub(super) struct Processor {
    settings: ProcessorSettings,
    queue: VecDeque<MultiPacketJob>,
    at: ProcessorStage,
    share: ProcessorUse,
}

/// What it is at, and until when.
#[derive(Clone, Copy, Debug)]
enum ProcessorStage {
    Idle,
    Fetches(MultiPacketJob, Time),
    Encrypts(MultiPacketJob, Time),
    Stores(MultiPacketJob, Time),
}

impl Processor {
    pub(super) fn new(settings: ProcessorSettings) -> Processor {
        Processor {
            settings,
            queue: VecDeque::new(),
            at: ProcessorStage::Idle,
            share: ProcessorUse::default(),
        }
    }

    pub(super) fn queue(&mut self, job: MultiPacketJob) {
        self.queue.push_back(job);
    }

    /// Until when it is busy with what it is at.
    pub(super) const fn until(&self) -> Option<Time> {
        match self.at {
            ProcessorStage::Idle => None,
            ProcessorStage::Fetches(_, until)
            | ProcessorStage::Encrypts(_, until)
            | ProcessorStage::Stores(_, until) => Some(until),
        }
    }

    /// Goes on as far as it can at `now`, or to the end of a job.
    pub(super) fn step(&mut self, bus: &mut Bus, now: Time) -> Option<Done> {
        while self.until().is_none_or(|until| until <= now) {
            self.at = match self.at {
                ProcessorStage::Idle => {
                    let job = self.queue.pop_front()?;
                    ProcessorStage::Fetches(job, self.transfer(&job, bus, now))
                }
                ProcessorStage::Fetches(job, _) => ProcessorStage::Encrypts(job, now + self.takes(&job)),
                ProcessorStage::Encrypts(job, _) => {
                    ProcessorStage::Stores(job, self.transfer(&job, bus, now))
                }
                ProcessorStage::Stores(job, _) => {
                    self.at = ProcessorStage::Idle;
                    let took = self.takes(&job);
                    self.share.count(&job, took);
                    return Some(Done { job, took });
                }
            };
        }
        None
    }

    /// What it did.
    pub(super) const fn share(&self) -> ProcessorUse {
        self.share
    }

    fn transfer(&self, job: &MultiPacketJob, bus: &mut Bus, now: Time) -> Time {
        if self.settings.on_bus { bus.transfer(job.bytes, now) } else { now }
    }

    fn takes(&self, job: &MultiPacketJob) -> Duration {
        let nanos = self.settings.price.of(job.padded).0 * self.settings.slowdown * 1e9;
        Duration::from_nanos(nanos.round() as u64)
    }
}
