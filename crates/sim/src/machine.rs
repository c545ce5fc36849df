//! A gateway's processors as queues and delays: the discrete-event model of A. V. Taddeo, A. Ferrante and V. Piuri, *Scheduling
//! Small Packets in IPSec-based Systems*, section IV-A.
//!
//! ```text
//! packets -> Window -> Dispatcher -> FIFO -> processor: in by the bus, encrypt, out by the bus
//!                               \--> FIFO -> processor: the same
//! ```
//!
//! Window and dispatcher are the tunnel's own, and with the latter its rule for a full queue ([`WhenFull`]); here it is a setting. The
//! queues in front of processors are short, so an overloaded machine holds a bounded number of packets, and the source waits with
//! the others. Beyond the paper, packets leave in order ([`MachineSettings::in_order`]), as those of one peer do in the tunnel.

mod bus;
mod order;
mod outcome;
mod processor;

use core::time::Duration;

use strait_clock::Time;
use strait_scheduler::{AlgorithmIndex, Dispatcher, Engine, Limits, Tuned, WhenFull, Window};

pub use bus::BusSettings;
pub use outcome::{MachineOutcome, ProcessorUse};
pub use processor::ProcessorSettings;

use bus::Bus;
use order::MachineOrder;
use processor::{MultiPacketJob, Processor};

/// The only one there is.
const ALGORITHM: AlgorithmIndex = AlgorithmIndex(0);

/// A machine, and how it schedules.
#[derive(Clone, Debug)]
pub struct MachineSettings {
    /// What data takes from memory to processors and back.
    pub bus: BusSettings,
    /// The processors.
    pub processors: Vec<ProcessorSettings>,
    /// Multi-packets with which the queue in front of a processor is full.
    pub depth: usize,
    /// The rule for a multi-packet that a processor with a full queue would finish first.
    pub when_full: WhenFull,
    /// Given if multi-packets leave in the order in which they were scheduled: the number of those that are under way at most,
    /// with those that are done and wait for one before them. Else each leaves when it is done.
    pub in_order: Option<usize>,
    /// The window; with one packet there is none.
    pub window: Limits,
    /// Whether the window's packets follow the load, up to those of `window`.
    pub tuned: bool,
    /// Bytes that a packet is padded to a multiple of, by itself, in a multi-packet too.
    pub block: usize,
    /// Whether the source waits until there is room for a packet. Then a packet's latency begins when it is taken in, else when
    /// it comes.
    pub source_waits: bool,
    /// Whether what jobs took corrects what later ones are expected to take.
    pub learns: bool,
}

/// A packet that comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketArrival {
    /// When: never before the one before it.
    pub at: Time,
    /// Its bytes, headers included.
    pub bytes: u32,
    /// Its security association.
    pub association: u32,
}

/// Sends these packets through a machine; what came of it.
pub fn simulate(
    settings: &MachineSettings,
    arrivals: impl IntoIterator<Item = PacketArrival>,
) -> MachineOutcome {
    let mut machine = GatewayMachine::new(settings, arrivals.into_iter());
    machine.run();
    let GatewayMachine { packets, latency, now, processors, .. } = machine;
    outcome::total(packets, latency, now, processors)
}

/// A packet in the window: its bytes, and when its latency began.
type WindowPacket = (u32, Time);

#[derive(Debug)]
struct GatewayMachine<'a, A: Iterator<Item = PacketArrival>> {
    settings: &'a MachineSettings,
    arrivals: core::iter::Peekable<A>,
    window: Window<u32, WindowPacket>,
    tuned: Option<Tuned>,
    dispatcher: Dispatcher,
    processors: Vec<Processor>,
    bus: Bus,
    order: MachineOrder,
    now: Time,
    packets: outcome::DonePackets,
    latency: outcome::Latency,
}

impl<'a, A: Iterator<Item = PacketArrival>> GatewayMachine<'a, A> {
    fn new(settings: &'a MachineSettings, arrivals: A) -> GatewayMachine<'a, A> {
        // One that it is at, and those that wait.
        let jobs = settings.depth + 1;
        let engine = |it: &ProcessorSettings| Engine {
            prices: vec![Some(it.price)],
            // The rule of the paper knows of no transfers.
            bringing: Duration::ZERO,
            jobs,
        };
        let tuned = settings.tuned.then(|| Tuned::new(settings.window.packets));
        let packets = tuned.map_or(settings.window.packets, |tuned| tuned.packets());
        let mut window = Window::new(settings.window);
        window.set_limits(Limits { packets, ..settings.window });
        GatewayMachine {
            settings,
            arrivals: arrivals.peekable(),
            window,
            tuned,
            dispatcher: Dispatcher::new(settings.processors.iter().map(engine).collect(), settings.when_full),
            processors: settings.processors.iter().map(|it| Processor::new(*it)).collect(),
            bus: Bus::new(settings.bus),
            order: MachineOrder::new(settings.in_order),
            now: Time::ZERO,
            packets: outcome::DonePackets::default(),
            latency: outcome::Latency::default(),
        }
    }

    fn run(&mut self) {
        loop {
            self.take_in();
            while self.schedule() {
                self.take_in();
            }
            let Some(next) = self.next() else { break };
            self.now = next;
            self.work();
        }
    }

    /// What has come goes into the window while that has room.
    fn take_in(&mut self) {
        while !self.window.is_full()
            && let Some(packet) = self.arrivals.next_if(|packet| packet.at <= self.now)
        {
            let since = if self.settings.source_waits { self.now } else { packet.at };
            let bytes = packet.bytes as usize;
            // It has room, as was just asked.
            let _ = self.window.push(packet.association, (packet.bytes, since), bytes, self.now);
        }
    }

    /// Returns false while the scheduler waits: at a queue, or for packets to leave.
    fn goes_on(&self) -> bool {
        self.dispatcher.takes() && self.order.takes()
    }

    /// Sends a multi-packet to a processor, if one is due and the scheduler does not wait.
    fn schedule(&mut self) -> bool {
        let ended = self.arrivals.peek().is_none() && !self.window.is_empty();
        if !self.goes_on() || !(ended || self.window.is_due(self.now)) {
            return false;
        }
        let block = self.settings.block.max(1);
        let padded = self.window.aggregate().map(|(_, bytes)| bytes.next_multiple_of(block)).sum();
        let Some(ticket) = self.dispatcher.dispatch(ALGORITHM, padded, self.now) else { return false };
        let Some(processor) = self.processors.get_mut(ticket.engine) else { return false };
        let mut job = MultiPacketJob { turn: self.order.next(), padded, ..MultiPacketJob::default() };
        let packets = self.window.take(usize::MAX, |(bytes, since), _| {
            job.add(bytes, since);
            None
        });
        processor.queue(job);
        self.work();
        if let Some(tuned) = &mut self.tuned {
            tuned.sent(u32::try_from(packets).unwrap_or(u32::MAX), ticket.waits, ticket.takes);
            self.window.set_limits(Limits { packets: tuned.packets(), ..self.settings.window });
        }
        true
    }

    /// Does all that processors can do at this time, in their order; what may leave then leaves.
    fn work(&mut self) {
        for (place, processor) in self.processors.iter_mut().enumerate() {
            while let Some(done) = processor.step(&mut self.bus, self.now) {
                let took = self.settings.learns.then_some(done.took);
                self.dispatcher.finished(place, took, self.now);
                self.order.put(done.job);
                while let Some(job) = self.order.pop() {
                    self.packets.count(&job);
                    self.latency.count(&job, self.now);
                }
            }
        }
    }

    /// When something happens next.
    fn next(&mut self) -> Option<Time> {
        let comes = if self.window.is_full() { None } else { self.arrivals.peek().map(|packet| packet.at) };
        let waits = self.window.waits_until().filter(|_| self.goes_on());
        let works = self.processors.iter().filter_map(Processor::until);
        // What has no end is not waited for.
        works.chain(comes).chain(waits).filter(|at| *at < Time::MAX).min()
    }
}

#[cfg(test)]
mod tests;
