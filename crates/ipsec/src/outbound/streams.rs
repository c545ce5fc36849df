//! Datagrams of streams: QUIC has sealed them already, so that they only wait for their turn and for the link.

use strait_clock::Time;
use strait_scheduler::{Queued, Tin};
use strait_wire::Tos;

use super::context::{CONTROL_TOS, Lost, Outlet, TxContext};
use super::train::{Heading, Train};
use super::transmitter::Transmitter;
use super::waiting::Waiting;
use super::{Outbound, TxStages};
use crate::{Notice, Place, Reason, StreamTrain};

/// Marks of what carries them: QUIC numbers and acknowledges by itself, and the queue here marks nothing of it.
const TOS: Tos = CONTROL_TOS;

impl Outbound {
    /// Datagrams of a stream: they leave at once where nothing waits, or where there are no keys and they need none. Else they wait as
    /// packets do.
    pub(super) fn stream(&mut self, train: &StreamTrain, now: Time, outlet: &mut impl Outlet) {
        let Some(link) = self.links.get_mut(&train.peer) else { return self.counters.refuse(Reason::NoPeer) };
        link.refresh(now);
        let tx = &mut self.stages.context(link, now, outlet);
        if train.inside {
            let sent = self.stages.transmitter.send_piece(tx, &train.bytes);
            return sent.unwrap_or_else(|reason| self.counters.refuse(reason));
        }
        // What is urgent, logins among it, waits among ordinary packets: it is what people wait for.
        if train.tin == Tin::Bulk && !tx.admits(Tin::Bulk) {
            let datagrams = train.bytes.len().div_ceil(train.segment.max(1));
            self.counters.drops.count(Reason::Metered, datagrams as u64);
            tx.link.spec.counters.stream.note_left(train.bytes.len());
            return tx.outlet.stream_left();
        }
        let early = train.early.filter(|_| !tx.link.association.can_send());
        if early.is_none() && tx.link.must_wait() {
            self.stages.enqueue_stream(tx, train);
            self.scheduler.list(tx.link);
        } else {
            let place = early.unwrap_or_else(|| tx.link.association.place_at(train.to));
            self.stages.transmitter.stream_straight(tx, train, place);
        }
    }
}

impl TxStages {
    fn enqueue_stream(&self, tx: &mut TxContext<'_, impl Outlet>, train: &StreamTrain) {
        if tx.link.association.asks(tx.now) {
            tx.outlet.notice(Notice::NeedsSa(tx.link.spec.id));
        }
        self.gatherer.enqueue_stream(tx, train);
    }
}

impl Transmitter {
    /// One datagram, from where it waited, into the train.
    pub(super) fn send_stream(
        &mut self,
        tx: &mut TxContext<'_, impl Outlet>,
        queued: Queued<Waiting>,
    ) -> Result<(), Lost> {
        let to = tx.link.association.place_at((queued.note.flow.dst, queued.note.flow.dst_port).into());
        let len = queued.bytes().len();
        let heading = Heading { via: tx.link.association.via_of_quic(to.remote, len), to, tos: TOS };
        if !self.departure.train.takes(heading, len) {
            self.departure.depart(tx);
        }
        let fits = self.departure.train.room(len).map(|room| room.copy_from_slice(queued.bytes())).is_some();
        if fits {
            self.departure.add(heading, len);
        }
        tx.link.spec.counters.stream.note_left(len);
        tx.outlet.stream_left();
        let outer = len + tx.link.association.outer_len_by(heading.via);
        let tin = queued.receipt().tin();
        if let Some(queue) = &mut tx.link.backlog.queue {
            queue.settle_one(queued, outer + tx.own.overhead);
        }
        if !fits {
            return Err(Lost { reason: Reason::TooBig, packets: 1 });
        }
        self.departure.note_streams(tx.link, tin, 1, len, outer as u64);
        Ok(())
    }

    /// Datagrams that need not wait, in one call.
    fn stream_straight(&mut self, tx: &mut TxContext<'_, impl Outlet>, train: &StreamTrain, to: Place) {
        let StreamTrain { tin, segment, bytes, .. } = train;
        let via = tx.link.association.via_of_quic(to.remote, *segment);
        let datagrams = Train { via, to, tos: TOS, segment: *segment, bytes };
        self.departure.send_streams(tx, *tin, datagrams);
        tx.link.spec.counters.stream.note_left(bytes.len());
        tx.outlet.stream_left();
    }
}
