//! The thread that carries packets from the host to the network: TUN -> [`Outbound`] -> UDP, or IP itself.

use std::io::{self, IoSlice};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use strait_clock::Time;
use strait_ipsec::outbound::{CompressJob, Order, Outlet, Train, TransmitRefused, Via};
use strait_ipsec::{Counters, Notice, Outbound, Place, Reason};
use strait_wire::vnet;

use crate::channels::{ControlSender, NextOrder, OrderQueue};
use crate::clock::Clock;
use crate::cpu_time;
use crate::direct::Direct;
use crate::engines::Workers;
use crate::generation::GenerationWatch;
use crate::packet_errors::{ErrorMeaning, PacketCall, RefusalLog, meaning};
use crate::poll::{PollFd, sleep_exactly, wait};
use crate::tun::Tun;
use crate::udp::{UdpSocket, has_no_source};

/// A super-packet of the TUN's and its header.
const TUN_READ: usize = vnet::LEN + 65_535;
/// Packets taken before what they made is sent: enough to fill a train of small ones.
const DRAIN: usize = 64;
/// Orders taken before the device is read again: as many as packets, since the answer to an order is one datagram at most.
const ORDERS: usize = 64;
/// How long a full socket buffer holds the thread back; then the datagrams are lost, as in any queue.
const PATIENCE: Duration = Duration::from_millis(100);
/// The thread's name; its workers have a number behind it.
pub const NAME: &str = "strait-out";
/// No recursion and no large locals on this thread.
const STACK: usize = 256 * 1024;

/// The state of the sending thread.
#[derive(Debug)]
pub struct Outward {
    /// Where packets come from, and ICMP answers go.
    pub tun: Arc<Tun>,
    /// Where datagrams go.
    pub socket: Arc<UdpSocket>,
    /// Where packets directly behind IP go, if there are any.
    pub direct: Option<Arc<Direct>>,
    /// What happens between.
    pub outbound: Outbound,
    /// Who compresses beside this thread.
    pub workers: Workers<CompressJob>,
    /// What it is told.
    pub orders: OrderQueue<Order>,
    /// Whom it tells.
    pub control: ControlSender,
    /// Where it counts what it drops.
    pub counters: Arc<Counters>,
    /// The watch that says that this machine is another copy.
    pub generations: Arc<GenerationWatch>,
    /// The node's clock.
    pub clock: Clock,
}

impl Outward {
    /// Starts the thread; it ends when all givers of orders are gone.
    ///
    /// # Errors
    /// When the system has no thread left.
    pub fn spawn(self) -> io::Result<JoinHandle<()>> {
        thread::Builder::new().name(NAME.into()).stack_size(STACK).spawn(|| self.run())
    }

    fn run(mut self) {
        cpu_time::count(NAME);
        sleep_exactly();
        let (tun, socket, direct, control) = (&self.tun, &self.socket, self.direct.as_deref(), &self.control);
        let (workers, refused) = (&self.workers, RefusalLog::default());
        let mut world = OutwardIo { tun, socket, direct, control, workers, refused, clock: self.clock };
        let mut buffer = vec![0; TUN_READ].into_boxed_slice();
        loop {
            self.outbound.follow_generation();
            if !take_orders(&self.orders, &mut self.outbound, &self.clock, &mut world) {
                return;
            }
            while let Some(job) = self.workers.done() {
                self.outbound.finished(job, self.clock.now());
            }
            match drain(&self.tun, &mut buffer, (&mut self.outbound, &self.counters), &self.clock, &mut world)
            {
                Ok(more) => {
                    self.outbound.release(self.clock.now(), &mut world);
                    if more {
                        continue;
                    }
                }
                Err(error) => return self.control.failed("the tunnel device", self.tun.explain(error)),
            }
            let timeout = self.outbound.poll_timeout().map(|deadline| self.clock.until(deadline.at));
            let events = self.generations.events().map_or(PollFd::ignored(), PollFd::readable);
            let mut fds = [PollFd::readable(self.tun.as_fd()), PollFd::readable(self.orders.as_fd()), events];
            if let Err(error) = wait(&mut fds, timeout) {
                return self.control.failed("waiting for packets", error);
            }
            // Before anything is sealed with keys that another copy has.
            if fds[2].is_ready() {
                self.generations.look();
            }
        }
    }
}

/// Makes the changes that were ordered, as many as a turn has; false when the order channel is closed.
fn take_orders(
    orders: &OrderQueue<Order>,
    outbound: &mut Outbound,
    clock: &Clock,
    world: &mut OutwardIo<'_>,
) -> bool {
    orders.begin_turn(ORDERS);
    loop {
        match orders.next() {
            NextOrder::Order(order) => outbound.handle(order, clock.now(), world),
            NextOrder::Nothing => return true,
            NextOrder::End => return false,
        }
    }
}

/// Takes the packets that wait in the device, a few at a time; true when there may be more.
fn drain(
    tun: &Tun,
    buffer: &mut [u8],
    (outbound, counters): (&mut Outbound, &Counters),
    clock: &Clock,
    world: &mut OutwardIo<'_>,
) -> io::Result<bool> {
    for _ in 0..DRAIN {
        let len = match tun.read(buffer) {
            Ok(len) => len,
            Err(error) => match meaning(PacketCall::ReadTun, &error) {
                ErrorMeaning::Lasting => return Err(error),
                ErrorMeaning::Wait => return Ok(false),
                _ => {
                    counters.drops.count(Reason::MalformedOffload, 1);
                    return Ok(false);
                }
            },
        };
        let read = buffer.get_mut(..len).unwrap_or_default();
        take(read, (outbound, counters), clock.now(), world);
    }
    Ok(true)
}

/// What one read brought: the device's header, then a packet.
fn take(
    read: &mut [u8],
    (outbound, counters): (&mut Outbound, &Counters),
    now: Time,
    outlet: &mut impl Outlet,
) {
    match vnet::Header::parse(read).map(|(header, _)| header) {
        Ok(header) => {
            outbound.packet(read.get_mut(vnet::LEN..).unwrap_or_default(), &header, now, outlet);
        }
        Err(_) => counters.drops.count(Reason::MalformedOffload, 1),
    }
}

struct OutwardIo<'a> {
    tun: &'a Tun,
    socket: &'a UdpSocket,
    direct: Option<&'a Direct>,
    control: &'a ControlSender,
    workers: &'a Workers<CompressJob>,
    refused: RefusalLog,
    clock: Clock,
}

impl OutwardIo<'_> {
    /// In UDP datagrams.
    fn send_datagrams(&self, train: Train<'_>) -> io::Result<()> {
        let (socket, to, tos) = (self.socket, train.to, train.tos.0);
        let room = || wait(&mut [PollFd::writable(socket.as_fd())], Some(PATIENCE)).map(|_| ());
        match train.via {
            // Each for itself: none that has left is sent again when the next one finds no room.
            Via::UdpInFragments => train
                .datagrams()
                .try_for_each(|datagram| patiently(|| socket.send_in_fragments(to, tos, datagram), room)),
            _ => patiently(|| socket.send_train(to, tos, train.segment, train.bytes), room),
        }
    }

    /// As ESP, behind an IP header of the system's.
    fn send_esp(&self, train: Train<'_>) -> io::Result<()> {
        let direct = self.direct.ok_or(io::ErrorKind::Unsupported)?;
        let Place { remote, local } = train.to;
        let send = || direct.send_esp((remote.ip(), local), train.tos.0, train.segment, train.bytes);
        patiently(send, || direct.wait_esp_writable(remote.ip(), PATIENCE))
    }

    /// As they are.
    fn send_packets(&self, train: Train<'_>) -> io::Result<()> {
        // A peer that is reached so is only in use where there are sockets for it.
        let direct = self.direct.ok_or(io::ErrorKind::Unsupported)?;
        let to = train.to.remote.ip();
        patiently(|| direct.send_train(to, train.segment, train.bytes), || direct.wait_writable(to, PATIENCE))
    }

    /// The meaning of a refused train for the sender; the log has it once.
    fn refused(&self, to: Place, error: &io::Error) -> TransmitRefused {
        let Place { remote: to, local } = to;
        match meaning(PacketCall::Send, error) {
            ErrorMeaning::TooBig => return TransmitRefused::TooBig,
            ErrorMeaning::Wait => {}
            _ if self.refused.is_news(self.clock.now()) => {
                let advice = "drops say how many (network-refused)";
                tracing::warn!("the system does not send datagrams to {to} ({error}); {advice}");
            }
            _ => tracing::trace!(%to, %error, "not sent"),
        }
        // Another of the host's addresses may do.
        match local.is_some() && has_no_source(error) {
            true => TransmitRefused::NoSource,
            false => TransmitRefused::Failed,
        }
    }
}

/// Sends, and once more when there was no room for the first of it and there may be some now.
fn patiently(
    mut send: impl FnMut() -> io::Result<()>,
    room: impl FnOnce() -> io::Result<()>,
) -> io::Result<()> {
    match send() {
        Err(error) if meaning(PacketCall::Send, &error) == ErrorMeaning::Wait => room().and_then(|()| send()),
        sent => sent,
    }
}

impl Outlet for OutwardIo<'_> {
    fn transmit(&mut self, train: Train<'_>) -> Result<(), TransmitRefused> {
        // Packets that are sent as they are have their source in them.
        let source = train.to.local.filter(|_| train.via != Via::Ip);
        if source.is_some_and(|source| source.is_unspecified()) {
            return Err(TransmitRefused::NoSource);
        }
        let sent = match train.via {
            Via::Udp | Via::UdpInFragments => self.send_datagrams(train),
            Via::Esp => self.send_esp(train),
            Via::Ip => self.send_packets(train),
        };
        sent.map_err(|error| self.refused(Place { local: source, ..train.to }, &error))
    }

    fn hand_over(&mut self, worker: usize, job: CompressJob) -> Option<CompressJob> {
        self.workers.hand_over(worker, job)
    }

    fn to_host(&mut self, packet: &[u8]) {
        if let Err(error) = self.tun.deliver(&vnet::Header::PLAIN, &[IoSlice::new(packet)]) {
            tracing::trace!(%error, "the host did not accept an ICMP error");
        }
    }

    fn stream_left(&mut self) {
        self.control.stream_room();
    }

    fn notice(&mut self, notice: Notice) {
        self.control.notice(notice);
    }
}

#[cfg(test)]
mod tests {
    use strait_clock::Stopwatch;
    use strait_compress::{Calibration, LiveChooser};
    use strait_ipsec::{Forwarding, outbound};

    use super::*;

    /// Where nothing comes out.
    struct Nowhere;

    impl Outlet for Nowhere {
        fn transmit(&mut self, _: Train<'_>) -> Result<(), TransmitRefused> {
            Err(TransmitRefused::Failed)
        }

        fn to_host(&mut self, _: &[u8]) {}

        fn notice(&mut self, _: Notice) {}
    }

    #[test]
    fn a_read_without_a_whole_header_is_counted() {
        let counters = Arc::new(Counters::default());
        let settings = outbound::OutboundSettings {
            up: None,
            overhead: 0,
            link_mtu: 1500,
            forwarding: Forwarding::None,
        };
        let chooser = Box::new(LiveChooser::new(Calibration::assumed(), 1));
        let mut outbound =
            Outbound::new(settings, chooser, Stopwatch::NONE, Arc::clone(&counters), Time::ZERO);
        for len in 0..=vnet::LEN {
            take(&mut vec![0; len], (&mut outbound, &counters), Time::ZERO, &mut Nowhere);
        }
        let drops = |reason| counters.drops.get(reason);
        // With the whole header it is a packet, though an empty one.
        assert_eq!((drops(Reason::MalformedOffload), drops(Reason::MalformedPacket)), (vnet::LEN as u64, 1));
    }
}
