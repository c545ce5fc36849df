//! What came of packets: how many a job, how fast, how late, and who worked.

use core::time::Duration;

use strait_clock::Time;

use super::processor::{MultiPacketJob, Processor};

/// What came of all packets.
#[derive(Clone, Debug, PartialEq)]
pub struct MachineOutcome {
    /// Packets.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Multi-packets.
    pub jobs: u64,
    /// From the beginning until the last was done.
    pub span: Duration,
    /// From when a packet is there until it is done, on average.
    pub latency: Duration,
    /// The same for the packet that took longest.
    pub worst: Duration,
    /// By processor, what it did.
    pub shares: Vec<ProcessorUse>,
}

/// What a processor did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProcessorUse {
    /// Multi-packets.
    pub jobs: u64,
    /// Packets.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Packets that were aggregated.
    pub merged: u64,
    /// Time spent on encryption, transfers left out.
    pub busy: Duration,
}

impl MachineOutcome {
    /// Bits a second, packets with their headers.
    #[must_use]
    pub fn throughput(&self) -> f64 {
        self.bytes as f64 * 8.0 / self.span.as_secs_f64()
    }

    /// Packets a multi-packet, on average.
    #[must_use]
    pub fn packets_a_bundle(&self) -> f64 {
        self.packets as f64 / self.jobs as f64
    }

    /// The share of all packets that a processor did.
    #[must_use]
    pub fn share_of_packets(&self, processor: usize) -> f64 {
        self.shares.get(processor).map_or(0.0, |share| share.packets as f64 / self.packets as f64)
    }
}

impl ProcessorUse {
    pub(super) fn count(&mut self, job: &MultiPacketJob, took: Duration) {
        self.jobs += 1;
        self.packets += job.packets;
        self.bytes += job.bytes;
        self.merged += if job.packets > 1 { job.packets } else { 0 };
        self.busy += took;
    }
}

/// All packets that are done.
#[derive(Debug, Default)]
pub(super) struct DonePackets {
    packets: u64,
    bytes: u64,
    jobs: u64,
}

impl DonePackets {
    pub(super) const fn count(&mut self, job: &MultiPacketJob) {
        self.packets += job.packets;
        self.bytes += job.bytes;
        self.jobs += 1;
    }
}

/// How late packets are.
#[derive(Debug, Default)]
pub(super) struct Latency {
    nanos: u128,
    worst: Duration,
}

impl Latency {
    pub(super) fn count(&mut self, job: &MultiPacketJob, now: Time) {
        self.nanos += u128::from(now.as_nanos()) * u128::from(job.packets) - u128::from(job.since);
        self.worst = self.worst.max(job.first.map_or(Duration::ZERO, |first| now.since(first)));
    }
}

pub(super) fn total(
    packets: DonePackets,
    latency: Latency,
    end: Time,
    processors: Vec<Processor>,
) -> MachineOutcome {
    let DonePackets { packets, bytes, jobs } = packets;
    let mean = latency.nanos / u128::from(packets.max(1));
    MachineOutcome {
        packets,
        bytes,
        jobs,
        span: end.since(Time::ZERO),
        latency: Duration::from_nanos(u64::try_from(mean).unwrap_or(u64::MAX)),
        worst: latency.worst,
        shares: processors.iter().map(Processor::share).collect(),
    }
}
