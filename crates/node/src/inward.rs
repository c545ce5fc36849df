//! The thread that carries datagrams from the network to the host: UDP, or IP itself -> [`Inbound`] -> TUN.

use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use strait_ipsec::inbound::{Batch, Inlet, Job, Order};
use strait_ipsec::{Inbound, Notice, Reason, outbound};
use strait_wire::{Tos, ip, vnet};

use crate::channels::{ControlSender, Next, OrderQueue, Orders};
use crate::clock::Clock;
use crate::direct::{self, Direct};
use crate::engines::Workers;
use crate::poll::{PollFd, wait};
use crate::tun::Tun;
use crate::udp::{RECEIVE_BYTES, UdpSocket};

/// Trains taken before orders are looked at again.
const DRAIN: usize = 32;
/// Most pieces of one delivery, and the header before them.
const PIECES: usize = 65;
/// The thread's name; its workers have a number behind it.
pub const NAME: &str = "strait-in";
/// No recursion and no large locals on this thread.
const STACK: usize = 256 * 1024;

/// What the thread works with.
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
    pub workers: Workers<Job>,
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
        let mut buffer = vec![0; RECEIVE_BYTES].into_boxed_slice();
        let mut packets = self.direct.as_ref().map(|_| direct::Buffer::new());
        while self.take_orders() {
            let drained = match self.drain(&mut buffer) {
                Ok(drained) => drained,
                Err(error) => return self.control.failed("the UDP socket", error),
            };
            let direct = match self.drain_direct(packets.as_mut()) {
                Ok(direct) => direct,
                Err(error) => return self.control.failed("a packet socket", error),
            };
            match (drained, direct) {
                (Drained::Dry, Drained::Dry) => {}
                (Drained::End, _) | (_, Drained::End) => return,
                _ => continue,
            }
            if let Err(error) = self.wait() {
                return self.control.failed("waiting for datagrams", error);
            }
        }
    }

    /// Until there is something to do.
    fn wait(&self) -> io::Result<()> {
        let tap = |version| {
            let tap = self.direct.as_ref().and_then(|direct| direct.tap(version));
            tap.map_or(PollFd::ignored(), PollFd::readable)
        };
        let (socket, orders) = (PollFd::readable(self.socket.as_fd()), PollFd::readable(self.orders.as_fd()));
        wait(&mut [socket, orders, tap(ip::Version::V4), tap(ip::Version::V6)], None).map(|_| ())
    }

    /// Makes the changes that were ordered; false when the order channel is closed.
    fn take_orders(&mut self) -> bool {
        self.orders.clear();
        loop {
            match self.orders.next() {
                Next::Order(order) => self.inbound.handle(order),
                Next::Nothing => return true,
                Next::End => return false,
            }
        }
    }

    /// Takes what waits in the UDP socket, a few trains at a time.
    fn drain(&mut self, buffer: &mut [u8]) -> io::Result<Drained> {
        let drained = self.trains(buffer);
        let mut world = world(&self.tun, &self.outward, &self.control, &self.workers);
        self.inbound.settle(self.clock.now(), &mut world);
        drained
    }

    /// The trains themselves.
    fn trains(&mut self, buffer: &mut [u8]) -> io::Result<Drained> {
        for _ in 0..DRAIN {
            let received = match self.socket.recv(buffer) {
                Ok(received) => received,
                Err(error) if is_dry(&error) => return Ok(Drained::Dry),
                // An ICMP error of an earlier datagram; it says nothing of the next.
                Err(error)
                    if matches!(error.raw_os_error(), Some(libc::ECONNREFUSED | libc::EHOSTUNREACH)) =>
                {
                    continue;
                }
                Err(error) => return Err(error),
            };
            // The peer uses an association only after it was ordered here, so once a datagram is in hand
            // the order is in the queue: taken first, no packet meets an SPI that is about to be known.
            if self.orders.has_news() {
                // What came on an association that is about to go is delivered.
                let mut world = world(&self.tun, &self.outward, &self.control, &self.workers);
                self.inbound.settle(self.clock.now(), &mut world);
                if !self.take_orders() {
                    return Ok(Drained::End);
                }
            }
            let bytes = buffer.get_mut(..received.len).unwrap_or_default();
            let batch =
                Batch { from: received.from, tos: Tos(received.tos), segment: received.segment, bytes };
            let mut world = world(&self.tun, &self.outward, &self.control, &self.workers);
            self.inbound.datagrams(batch, self.clock.now(), &mut world);
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
                match direct.receive(version, buffer, |packet| inbound.ip_packet(packet, now, &mut world)) {
                    Ok(()) if left == 0 => drained = Drained::More,
                    Ok(()) => {}
                    Err(error) if is_dry(&error) => break,
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(drained)
    }
}

/// How a look at a socket ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Drained {
    Dry,
    More,
    End,
}

fn is_dry(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}

struct World<'a> {
    tun: &'a Tun,
    outward: &'a Orders<outbound::Order>,
    control: &'a ControlSender,
    workers: &'a Workers<Job>,
}

const fn world<'a>(
    tun: &'a Tun,
    outward: &'a Orders<outbound::Order>,
    control: &'a ControlSender,
    workers: &'a Workers<Job>,
) -> World<'a> {
    World { tun, outward, control, workers }
}

impl Inlet for World<'_> {
    fn deliver(&mut self, header: &vnet::Header, pieces: &[IoSlice<'_>]) -> Result<(), Reason> {
        let mut first = [0; vnet::LEN];
        header.emit(&mut first);
        let mut slices = [IoSlice::new(&[]); PIECES];
        let (head, rest) = slices.split_at_mut(1);
        head.fill(IoSlice::new(&first));
        for (slice, piece) in rest.iter_mut().zip(pieces) {
            *slice = *piece;
        }
        let all = slices.get(..=pieces.len()).ok_or(Reason::HostRefused)?;
        self.tun.writev(all).map(|_| ()).map_err(|_| Reason::HostRefused)
    }

    fn control(&mut self, from: SocketAddr, tos: Tos, datagram: &[u8]) {
        self.control.datagram(from, tos.ecn(), datagram);
    }

    fn order(&mut self, order: outbound::Order) {
        // The sender is behind by a thousand orders: it is being flooded, and a probe more or
        // less does not matter; an endpoint is announced again by the next change.
        let _ = self.outward.offer(order);
    }

    fn notice(&mut self, notice: Notice) {
        self.control.notice(notice);
    }

    fn expand(&mut self, worker: usize, job: Job) -> Option<Job> {
        self.workers.hand_over(worker, job)
    }

    fn expanded(&mut self) -> Option<Job> {
        self.workers.wait()
    }
}
