//! Three sites and the links between them, and what operations do to them.

use core::time::Duration;

use strait_clock::Time;
use strait_ipsec::inbound;
use strait_ipsec::outbound::{self, Queueing, TransmitRefused};
use strait_ipsec::{InboundSa, OutboundSa, Payloads, RepairTerms, Reserve};
use strait_scheduler::Pace;
use strait_wire::condition::Condition;
use strait_wire::{Spi, vnet};

use super::links::Links;
use super::model::ReferenceModel;
use super::opened::AllAgreed;
use super::operation::{Between, DataOperation, Oddity};
use super::site::DataSite;
use super::traffic::{HostTraffic, malformed, misaddressed};
use super::{DataSettings, Held, SITES, hold, pairs};
use crate::{NodeId, SimDatagram};

/// Where time begins: not at zero, which some timestamps keep for "never".
const BEGINNING: Time = Time::from_millis(1000);
/// Outer packets are no longer than what the interfaces take.
const LINK_MTU: u64 = 1500;
/// Most bytes that wait before one link: what the queue holds at the highest rate, and what its window holds.
const QUEUED_MAX: u64 = (4 << 20) + (1 << 20);
/// Datagrams of one call, and all calls, until everything is through.
const ALL: usize = usize::MAX;
const ROUNDS: usize = 20_000;

/// What a run came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DataSummary {
    /// Packets that hosts gave their senders.
    pub given: u64,
    /// Packets that left in datagrams.
    pub left: u64,
    /// Packets that hosts were given.
    pub received: u64,
    /// Packets that senders counted as dropped.
    pub dropped: u64,
    /// Packets that left and were lost with a datagram.
    pub missing: u64,
}

/// Three sites and the links between them.
pub(super) struct DataWorld {
    now: Time,
    settings: DataSettings,
    sites: [DataSite; SITES],
    links: Links,
    model: ReferenceModel,
    agreed: AllAgreed,
    traffic: HostTraffic,
}

impl DataWorld {
    pub(super) fn new(settings: DataSettings) -> DataWorld {
        let now = BEGINNING;
        let mut world = DataWorld {
            now,
            settings,
            sites: core::array::from_fn(|number| DataSite::new(number, settings, now)),
            links: Links::new(),
            model: ReferenceModel::default(),
            agreed: AllAgreed::default(),
            traffic: HostTraffic::default(),
        };
        for (from, to) in pairs() {
            world.add_peer(from, to);
        }
        // One link begins without an association.
        for (from, to) in pairs().filter(|pair| *pair != (2, 1)) {
            world.install((from, to), settings.payloads, None);
        }
        world
    }

    /// Does it, and sees whether everything is still as it has to be.
    pub(super) fn apply(&mut self, operation: DataOperation) -> Held {
        self.act(operation)?;
        self.collect_all()?;
        self.check()
    }

    pub(super) fn summary(&self) -> DataSummary {
        let [given, left, received] = self.model.totals();
        let dropped = self.sites.iter().map(DataSite::dropped).sum();
        // What leaves again may be dropped then.
        let given = given + self.sites.iter().map(DataSite::again).sum::<u64>();
        DataSummary { given, left, received, dropped, missing: self.model.missing() }
    }

    fn act(&mut self, operation: DataOperation) -> Held {
        match operation {
            DataOperation::Release => self.release()?,
            DataOperation::Send { between, flow, shape } => self.send(between, flow, shape)?,
            DataOperation::SendFragments { between, shape } => self.send_fragments(between, shape)?,
            DataOperation::SendOddity { between, oddity, form } => self.send_oddity(between, oddity, form),
            DataOperation::Advance(span) => self.advance(span)?,
            DataOperation::Deliver { between, count, settles } => {
                self.deliver(between, usize::from(count) + 1);
                if settles {
                    self.sites[between.to].settle(self.now);
                }
            }
            DataOperation::Befall { between, mishap, index, bit } => {
                self.links.befall(between, mishap, (index, bit), &mut self.model);
            }
            DataOperation::Compress { site, index } => {
                let jobs = self.sites[site].outlets.compressions.len().max(1);
                self.sites[site].compress(usize::from(index) % jobs, self.now);
            }
            DataOperation::Expand { site, index } => {
                let jobs = self.sites[site].outlets.expansions.len().max(1);
                self.sites[site].expand(usize::from(index) % jobs, self.now);
            }
            DataOperation::Settle => self.settle()?,
            other => self.change(other)?,
        }
        Ok(())
    }
}

mod change;
mod checks;
mod flow;
