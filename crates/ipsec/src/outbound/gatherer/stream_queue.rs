//! Step 3 for datagrams of streams.

use std::net::{Ipv4Addr, Ipv6Addr};

use strait_scheduler::Newcomer;
use strait_wire::flow::Flow;
use strait_wire::{Protocol, vnet};

use super::{Gatherer, hash_of, open_queue};
use crate::StreamTrain;
use crate::outbound::acks::AckRank;
use crate::outbound::context::{Outlet, TxContext};
use crate::outbound::group::Group;
use crate::outbound::waiting::Waiting;

impl Gatherer {
    /// Datagrams that have to wait, each by itself.
    pub(in crate::outbound) fn enqueue_stream(
        &self,
        tx: &mut TxContext<'_, impl Outlet>,
        train: &StreamTrain,
    ) {
        let (queue, _, mut owner) = open_queue(tx.link, tx.own, (&self.queueing, self.share), &self.counters);
        for datagram in train.bytes.chunks(train.segment.max(1)) {
            let waiting = Waiting::of_stream(train, datagram.len(), self.seed);
            let newcomer = Newcomer { tin: train.tin, ..waiting.newcomer(datagram.len(), tx.now) };
            queue.push(&newcomer, (waiting, None), &mut owner, |room| room.copy_from_slice(datagram));
        }
    }
}

impl Waiting {
    fn of_stream(train: &StreamTrain, len: usize, seed: u64) -> Waiting {
        let to = train.to;
        let src = if to.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
        let flow =
            Flow { src, dst: to.ip(), protocol: Protocol::UDP, src_port: train.flow, dst_port: to.port() };
        Waiting {
            offload: vnet::Header::PLAIN,
            flow,
            hash: hash_of(&flow, seed),
            rule: None,
            group: Group::STREAM,
            segments: 1,
            next_segment: 0,
            promoted: false,
            ack: AckRank::Kept,
            first: len,
            left: len,
        }
    }
}
