//! A packet that need not wait: its segments go straight into the datagrams they leave in.

use strait_compress::Codec;

use super::TxStages;
use super::compressor::Lead;
use super::context::{Lost, Outlet, TxContext};
use super::waiting::Waiting;
use crate::offload::SuperPacket;

/// Where a packet goes that need not wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Straight {
    /// It is on its way.
    Gone,
    /// It goes through the queue, so that a worker compresses it.
    Queue,
}

impl TxStages {
    /// Sends one packet that need not wait.
    pub(super) fn straight(
        &mut self,
        tx: &mut TxContext<'_, impl Outlet>,
        packet: &SuperPacket<'_>,
        waiting: &Waiting,
    ) -> Result<Straight, Lost> {
        let gone = |()| Straight::Gone;
        let TxStages { gatherer, compressor, transmitter } = self;
        let all = 0..packet.count();
        let Some(rule) = waiting.rule.filter(|_| waiting.group.compresses()) else {
            return transmitter.send_segments(tx, compressor, (packet, &waiting.group), all).map(gone);
        };
        let limit = tx.link.unit_size(tx.own).limit(gatherer.queueing.window, &waiting.group, waiting);
        let lead = Lead { flow: waiting.flow, rule, group: waiting.group, waited: false };
        let method = compressor.choose(tx, &lead, packet.total_len().min(limit));
        if method.codec == Codec::None && waiting.group.cache.is_none() {
            return transmitter.send_segments(tx, compressor, (packet, &waiting.group), all).map(gone);
        }
        // The thread that calls goes on with the next packet while workers compress this one.
        if compressor.pool.has_workers() && tx.link.association.takes_blocks() {
            return Ok(Straight::Queue);
        }
        let mut next = 0;
        while next < packet.count() {
            gatherer.plain.clear();
            let after = gatherer.plain.take(packet, next, limit);
            if after == next {
                let rest = next..packet.count();
                return transmitter.send_segments(tx, compressor, (packet, &waiting.group), rest).map(gone);
            }
            next = after;
            gatherer.plain.note_flow(waiting.flow, rule, gatherer.plain.len());
            let job = compressor.submit(tx, &mut gatherer.plain, &lead.group, method);
            let sent = job.map_or(Ok(()), |job| transmitter.send(tx, compressor, job));
            sent.map_err(|lost| lost.and(packet.count() - next))?;
        }
        Ok(Straight::Gone)
    }
}
