//! The flows that have packets waiting, the fattest among them, and whose turn it is.

use std::collections::VecDeque;

use super::codel::Codel;

/// Queues that flows are hashed into (RFC 8290 section 5.2.2's default).
pub(super) const BUCKETS: usize = 1024;
/// No flow, no packet.
pub(super) const NONE: u32 = u32::MAX;
/// Weights by their powers of two; nothing in a queue is heavier than the last.
const WEIGHTS: usize = 32;

/// A flow with packets, or that had some until lately.
#[derive(Clone, Copy, Debug)]
pub(super) struct FlowQueue {
    pub(super) codel: Codel,
    /// Wire bytes that it may still send in this round; in debt by what the last packet took beyond them.
    pub(super) deficit: i64,
    /// Its first and its last packet.
    pub(super) head: u32,
    pub(super) tail: u32,
    /// Bytes that wait.
    pub(super) bytes: usize,
    /// Which of all flows that ever were it is: its place is used again.
    pub(super) born: u64,
    bucket: usize,
    lighter: u32,
    heavier: u32,
}

/// One flow of all that ever were.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FlowId {
    pub(super) at: u32,
    pub(super) born: u64,
}

/// The order of the flows of one tin: deficit round robin in which those that are new go first (RFC 8290 section 4.2, DRR++).
#[derive(Debug, Default)]
pub(super) struct Turns {
    /// Which flow each bucket holds; empty until there was one.
    buckets: Vec<u32>,
    new: VecDeque<u32>,
    old: VecDeque<u32>,
}

/// All flows of all tins. A place is made when one more flow is there at once than ever before.
#[derive(Debug)]
pub(super) struct FlowTable {
    flows: Vec<FlowQueue>,
    free: Vec<u32>,
    born: u64,
    /// The first flow of each weight; flows of one weight are chained.
    heaviest: [u32; WEIGHTS],
}

impl Turns {
    /// The flow in this bucket, made if there is none: with one quantum, and in front of all that are not new.
    pub(super) fn flow(&mut self, bucket: usize, quantum: i64, flows: &mut FlowTable) -> Option<u32> {
        if self.buckets.is_empty() {
            self.buckets = vec![NONE; BUCKETS];
        }
        let place = self.buckets.get_mut(bucket)?;
        if *place == NONE {
            *place = flows.open(bucket, quantum);
            self.new.push_back(*place);
        }
        Some(*place)
    }

    /// The flow in this bucket, if there is one.
    pub(super) fn find(&self, bucket: usize) -> Option<u32> {
        self.buckets.get(bucket).copied().filter(|flow| *flow != NONE)
    }

    /// Whose turn it is.
    pub(super) fn first(&self) -> Option<u32> {
        self.new.front().or_else(|| self.old.front()).copied()
    }

    /// Flows that were not there a round ago, since they send little or have just begun.
    pub(super) fn newcomers(&self) -> impl Iterator<Item = u32> {
        self.new.iter().copied()
    }

    /// The first has had its share of this round.
    pub(super) fn rotate(&mut self) {
        if let Some(flow) = self.new.pop_front().or_else(|| self.old.pop_front()) {
            self.old.push_back(flow);
        }
    }

    /// The first has nothing. One that was new waits a round before it may be new again, else it would never let others go
    /// (RFC 8290 section 4.2).
    pub(super) fn retire(&mut self, flows: &mut FlowTable) {
        if !self.new.is_empty() && !self.old.is_empty() {
            return self.rotate();
        }
        let Some(flow) = self.new.pop_front().or_else(|| self.old.pop_front()) else { return };
        let Some(bucket) = flows.close(flow) else { return };
        if let Some(place) = self.buckets.get_mut(bucket) {
            *place = NONE;
        }
    }
}

impl FlowTable {
    pub(super) fn new() -> FlowTable {
        FlowTable { flows: Vec::new(), free: Vec::new(), born: 0, heaviest: [NONE; WEIGHTS] }
    }

    pub(super) fn get(&self, at: u32) -> Option<&FlowQueue> {
        self.flows.get(at as usize)
    }

    pub(super) fn get_mut(&mut self, at: u32) -> Option<&mut FlowQueue> {
        self.flows.get_mut(at as usize)
    }

    /// The flow, if it is still there.
    pub(super) fn known(&mut self, id: FlowId) -> Option<&mut FlowQueue> {
        self.get_mut(id.at).filter(|flow| flow.born == id.born)
    }

    /// A flow that has more bytes than half of any other's; nothing when all are empty.
    pub(super) fn fattest(&self) -> Option<u32> {
        self.heaviest.iter().rev().copied().find(|flow| *flow != NONE)
    }

    /// Sets how many bytes wait in the flow.
    pub(super) fn weigh(&mut self, at: u32, bytes: usize) {
        let Some(flow) = self.get_mut(at) else { return };
        let (before, after) = (weight(flow.bytes), weight(bytes));
        flow.bytes = bytes;
        if before == after {
            return;
        }
        if let Some(before) = before {
            self.unchain(at, before);
        }
        if let Some(after) = after {
            self.chain(at, after);
        }
    }

    fn chain(&mut self, at: u32, weight: usize) {
        let Some(first) = self.heaviest.get_mut(weight) else { return };
        let next = core::mem::replace(first, at);
        if let Some(flow) = self.get_mut(at) {
            (flow.lighter, flow.heavier) = (next, NONE);
        }
        if let Some(next) = self.get_mut(next) {
            next.heavier = at;
        }
    }

    fn unchain(&mut self, at: u32, weight: usize) {
        let Some(&FlowQueue { lighter, heavier, .. }) = self.get(at) else { return };
        if let Some(before) = self.get_mut(heavier) {
            before.lighter = lighter;
        } else if let Some(first) = self.heaviest.get_mut(weight) {
            *first = lighter;
        }
        if let Some(after) = self.get_mut(lighter) {
            after.heavier = heavier;
        }
    }

    fn open(&mut self, bucket: usize, deficit: i64) -> u32 {
        self.born += 1;
        let flow = FlowQueue {
            codel: Codel::default(),
            deficit,
            head: NONE,
            tail: NONE,
            bytes: 0,
            born: self.born,
            bucket,
            lighter: NONE,
            heavier: NONE,
        };
        if let Some(at) = self.free.pop() {
            if let Some(place) = self.get_mut(at) {
                *place = flow;
            }
            return at;
        }
        self.flows.push(flow);
        u32::try_from(self.flows.len() - 1).unwrap_or(NONE)
    }

    /// Forgets an empty flow; its bucket.
    fn close(&mut self, at: u32) -> Option<usize> {
        let flow = self.get_mut(at)?;
        flow.born = 0;
        let bucket = flow.bucket;
        self.free.push(at);
        Some(bucket)
    }
}

/// The power of two below `bytes`; an empty flow has no weight.
fn weight(bytes: usize) -> Option<usize> {
    let power = bytes.checked_ilog2()?;
    usize::try_from(power).ok().map(|power| power.min(WEIGHTS - 1))
}
