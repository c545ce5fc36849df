//! What the cores of a site lead to: its host, its workers, and the network before it.

use std::io::IoSlice;
use std::net::SocketAddr;

use strait_clock::Time;
use strait_ipsec::inbound::{ExpandJob, Inlet};
use strait_ipsec::outbound::{self, CompressJob, Outlet, Train, TransmitRefused};
use strait_ipsec::{Notice, Place, Reason};
use strait_wire::{Tos, vnet};

use crate::SimDatagram;
use crate::host::{joined, split};

/// What the cores of a site lead to.
pub(super) struct SiteOutlets {
    pub(super) now: Time,
    pub(super) address: SocketAddr,
    workers: [usize; 2],
    /// What left for the network, and whether that took it.
    pub(super) sent: Vec<(SimDatagram, bool)>,
    /// Why the network does not take the next call.
    pub(super) refuses: Option<TransmitRefused>,
    /// What the host was given of what arrived.
    pub(super) host: Vec<Vec<u8>>,
    /// What the host was told.
    pub(super) told: Vec<Vec<u8>>,
    pub(super) orders: Vec<outbound::Order>,
    /// Datagrams for the control channel.
    pub(super) control: u64,
    /// What the workers of either half have to do.
    pub(super) compressions: Vec<CompressJob>,
    pub(super) expansions: Vec<ExpandJob>,
}

impl SiteOutlets {
    pub(super) fn new(address: SocketAddr, workers: [usize; 2], now: Time) -> SiteOutlets {
        SiteOutlets {
            now,
            address,
            workers,
            sent: Vec::new(),
            refuses: None,
            host: Vec::new(),
            told: Vec::new(),
            orders: Vec::new(),
            control: 0,
            compressions: Vec::new(),
            expansions: Vec::new(),
        }
    }
}

impl Outlet for SiteOutlets {
    fn transmit(&mut self, train: Train<'_>) -> Result<(), TransmitRefused> {
        let refused = self.refuses.take();
        for datagram in train.datagrams() {
            let bytes = datagram.to_vec();
            let (from, to, tos) = (self.address, train.to.remote, train.tos);
            let datagram = SimDatagram { at: self.now, from, to, tos, fragments: false, bytes };
            self.sent.push((datagram, refused.is_none()));
        }
        refused.map_or(Ok(()), Err)
    }

    /// A worker has room for two jobs.
    fn hand_over(&mut self, worker: usize, job: CompressJob) -> Option<CompressJob> {
        if worker > self.workers[0] || self.compressions.len() >= 2 * self.workers[0] {
            return Some(job);
        }
        self.compressions.push(job);
        None
    }

    fn to_host(&mut self, packet: &[u8]) {
        self.told.push(packet.to_vec());
    }

    fn notice(&mut self, _: Notice) {}
}

impl Inlet for SiteOutlets {
    fn deliver(&mut self, header: &vnet::Header, pieces: &[IoSlice<'_>]) -> Result<(), Reason> {
        let bytes: Vec<u8> = joined(pieces);
        self.host.extend(split(header, &bytes));
        Ok(())
    }

    fn control(&mut self, _: Place, _: Tos, _: &[u8]) {
        self.control += 1;
    }

    fn order(&mut self, order: outbound::Order) {
        self.orders.push(order);
    }

    fn notice(&mut self, _: Notice) {}

    fn hand_over(&mut self, worker: usize, job: ExpandJob) -> Option<ExpandJob> {
        if worker > self.workers[1] || self.expansions.len() >= 2 * self.workers[1] {
            return Some(job);
        }
        self.expansions.push(job);
        None
    }
}
