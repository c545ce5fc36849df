//! The thread that carries datagrams from the network to the host: UDP, or IP itself -> [`Inbound`] -> TUN.

use std::io::{self, IoSlice};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use strait_ipsec::inbound::{Batch, ExpandJob, Inlet, Order};
use strait_ipsec::{Inbound, Notice, Place, Reason, outbound};
use strait_wire::{Tos, ip, vnet};

use crate::channels::{ControlSender, NextOrder, ORDERS, OrderQueue, Orders};
use crate::clock::Clock;
use crate::cpu_time;
use crate::direct::{self, Direct};
use crate::engines::Workers;
use crate::packet_errors::{ErrorMeaning, PacketCall, meaning};
use crate::poll::{PollFd, wait};
use crate::tun::Tun;
use crate::udp::{RECEIVE_BYTES, ReceivedBatch, UdpSocket};

/// Trains taken before orders are looked at again.
const DRAIN: usize = 32;
/// The thread's name; its workers have a number behind it.
pub const NAME: &str = "strait-in";
/// No recursion and no large locals on this thread.
const STACK: usize = 256 * 1024;

/// The state of the receiving thread.
#[derive(Debug)]
pub struct Inward {
    /// Where datagrams come from.
    pub socket: Arc<UdpSocket>,
    /// Where packets directly behind IP come from, if there are any.
    pub direct: Option<Arc<Direct>>,
    /// Where packets go.
    pub tun: Arc<Tun>,
    /// What happens between.
    pub inbound: Inbound,
    /// Who expands beside this thread.
    pub workers: Workers<ExpandJob>,
    /// What it is told.
    pub orders: OrderQueue<Order>,
    /// Its channel to the sender.
    pub outward: Orders<outbound::Order>,
    /// Whom it tells everything else.
    pub control: ControlSender,
    /// The node's clock.
    pub clock: Clock,
}

impl Inward {
    /// Starts the thread; it ends when all givers of orders are gone.
    ///
    /// # Errors
    /// When the system has no thread left.
    pub fn spawn(self) -> io::Result<JoinHandle<()>> {
        thread::Builder::new().name(NAME.into()).stack_size(STACK).spawn(|| self.run())
    }

    fn run(mut self) {
        cpu_time::count(NAME);
        let mut train = ReceivedTrain::new();
        let mut packets = self.direct.as_ref().map(|_| direct::Buffer::new());
        while self.take_orders() {
            let drained = match self.drain(&mut train) {
                Ok(drained) => drained,
                Err(error) => return self.control.failed("the UDP socket", error),
            };
            let direct = match self.drain_direct(packets.as_mut()) {
                Ok(direct) => direct,
                Err(error) => return self.control.failed("a packet socket", error),
            };
            let paused = match (drained, direct) {
                (Drained::End, _) => return,
                (Drained::More, _) | (_, Drained::More) => continue,
                (Drained::Paused, _) | (_, Drained::Paused) => true,
                _ => {
                    self.inbound.caught_up();
                    false
                }
            };
            if let Err(error) = self.wait(paused) {
                return self.control.failed("waiting for datagrams", error);
            }
        }
    }

    /// Until there is something to do; while reading is paused, until a worker or an order wakes this thread.
    fn wait(&mut self, paused: bool) -> io::Result<()> {
        let mut world = world(&self.tun, &self.outward, &self.control, &self.workers);
        self.inbound.timeout(self.clock.now(), &mut world);
        let deadline = self.inbound.poll_timeout();
        let timeout = deadline.map(|deadline| self.clock.until(deadline.at));
        let orders = PollFd::readable(self.orders.as_fd());
        if paused {
            return wait(&mut [orders], timeout).map(|_| ());
        }
        let tap = |version| {
            let tap = self.direct.as_ref().and_then(|direct| direct.tap(version));
            tap.map_or(PollFd::ignored(), PollFd::readable)
        };
        let socket = PollFd::readable(self.socket.as_fd());
        wait(&mut [socket, orders, tap(ip::Version::V4), tap(ip::Version::V6)], timeout).map(|_| ())
    }

    /// Takes what workers have done and makes the changes that were ordered; false when the order channel is closed.
    fn take_orders(&mut self) -> bool {
        // All that are in the queue now: one of them may install the association of the next datagram.
        self.orders.begin_turn(ORDERS);
        while let Some(job) = self.workers.done() {
            let mut world = world(&self.tun, &self.outward, &self.control, &self.workers);
            self.inbound.finished(job, self.clock.now(), &mut world);
        }
        loop {
            match self.orders.next() {
                NextOrder::Order(order) => self.inbound.handle(order),
                NextOrder::Nothing => return true,
                NextOrder::End => return false,
            }
        }
    }

    /// Takes what waits in the UDP socket, a few trains at a time.
    fn drain(&mut self, train: &mut ReceivedTrain) -> io::Result<Drained> {
        let drained = self.trains(train);
        let mut world = world(&self.tun, &self.outward, &self.control, &self.workers);
        self.inbound.release(self.clock.now(), &mut world);
        drained
    }

    /// The trains themselves, first the rest of the last one.
    fn trains(&mut self, train: &mut ReceivedTrain) -> io::Result<Drained> {
        for _ in 0..DRAIN {
            if train.is_taken() {
                match self.socket.recv(&mut train.buffer) {
                    Ok(received) => train.begin(received),
                    Err(error) => match meaning(PacketCall::Receive, &error) {
                        ErrorMeaning::Wait => return Ok(Drained::Dry),
                        ErrorMeaning::Lasting => return Err(error),
                        _ => continue,
                    },
                }
            }
            // The peer uses an association only after it was ordered here, so once a datagram is in hand
            // the order is in the queue: taken first, no packet meets an SPI that is about to be known.
            if self.orders.has_news() && !self.take_orders() {
                return Ok(Drained::End);
            }
            let mut world = world(&self.tun, &self.outward, &self.control, &self.workers);
            if let Some(batch) = train.rest() {
                train.taken += self.inbound.datagrams(batch, self.clock.now(), &mut world);
            }
            if !train.is_taken() {
                return Ok(Drained::Paused);
            }
        }
        Ok(Drained::More)
    }

    /// Takes what waits in the packet sockets, a few packets of each version at a time.
    fn drain_direct(&mut self, buffer: Option<&mut direct::Buffer>) -> io::Result<Drained> {
        let (Some(direct), Some(buffer)) = (&self.direct, buffer) else { return Ok(Drained::Dry) };
        let mut drained = Drained::Dry;
        for version in [ip::Version::V4, ip::Version::V6] {
            for left in (0..DRAIN).rev() {
                let mut world = world(&self.tun, &self.outward, &self.control, &self.workers);
                let (inbound, now) = (&mut self.inbound, self.clock.now());
                if !inbound.make_room(now, &mut world) {
                    return Ok(Drained::Paused);
                }
                match direct.receive(version, buffer, |packet| inbound.ip_packet(packet, now, &mut world)) {
                    Ok(()) if left == 0 => drained = Drained::More,
                    Ok(()) => {}
                    Err(error) => match meaning(PacketCall::Receive, &error) {
                        ErrorMeaning::Wait => break,
                        ErrorMeaning::Lasting => return Err(error),
                        _ => {}
                    },
                }
            }
        }
        Ok(drained)
    }
}

/// How a look at a socket ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Drained {
    /// There is nothing to read.
    Dry,
    /// There may be more.
    More,
    /// Workers have every job, so what is there stays in the socket until one is done.
    Paused,
    /// No giver of orders is left.
    End,
}

/// The datagrams that one call brought, and how far they were taken.
struct ReceivedTrain {
    buffer: Box<[u8]>,
    received: Option<ReceivedBatch>,
    taken: usize,
}

impl ReceivedTrain {
    fn new() -> ReceivedTrain {
        ReceivedTrain { buffer: vec![0; RECEIVE_BYTES].into_boxed_slice(), received: None, taken: 0 }
    }

    fn begin(&mut self, received: ReceivedBatch) {
        (self.received, self.taken) = (Some(received), 0);
    }

    fn is_taken(&self) -> bool {
        self.received.as_ref().is_none_or(|received| self.taken >= received.len)
    }

    /// What is left of it.
    fn rest(&mut self) -> Option<Batch<'_>> {
        let ReceivedBatch { from, tos, segment, len } = *self.received.as_ref()?;
        let bytes = self.buffer.get_mut(self.taken..len)?;
        Some(Batch { from, tos: Tos(tos), segment, bytes })
    }
}

struct InwardIo<'a> {
    tun: &'a Tun,
    outward: &'a Orders<outbound::Order>,
    control: &'a ControlSender,
    workers: &'a Workers<ExpandJob>,
}

const fn world<'a>(
    tun: &'a Tun,
    outward: &'a Orders<outbound::Order>,
    control: &'a ControlSender,
    workers: &'a Workers<ExpandJob>,
) -> InwardIo<'a> {
    InwardIo { tun, outward, control, workers }
}

impl Inlet for InwardIo<'_> {
    fn deliver(&mut self, header: &vnet::Header, pieces: &[IoSlice<'_>]) -> Result<(), Reason> {
        self.tun.deliver(header, pieces).map_err(|_| Reason::HostRefused)
    }

    fn control(&mut self, from: Place, tos: Tos, datagram: &[u8]) {
        self.control.datagram(from, tos.ecn(), datagram);
    }

    fn stranger(&mut self, from: Place, tos: Tos, datagram: &[u8]) {
        self.control.stranger(from, tos.ecn(), datagram);
    }

    fn stream(&mut self, from: Place, tos: Tos, datagram: &[u8]) {
        self.control.stream(from, tos.ecn(), datagram);
    }

    fn sessionless(&mut self, from: Place, tos: Tos, datagram: &[u8]) -> bool {
        self.control.sessionless(from, tos, datagram)
    }

    fn order(&mut self, order: outbound::Order) {
        // The sender is behind by a thousand orders, although each peer has a budget for those that it causes: a probe more or
        // less does not matter; where a peer moved to is no order.
        let _ = self.outward.offer(order);
    }

    fn notice(&mut self, notice: Notice) {
        self.control.notice(notice);
    }

    fn hand_over(&mut self, worker: usize, job: ExpandJob) -> Option<ExpandJob> {
        self.workers.hand_over(worker, job)
    }
}

#[cfg(test)]
mod tests;
