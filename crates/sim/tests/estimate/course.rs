//! A paced sender, a bottleneck and a receiver that reports, without packets.

use core::time::Duration;

use strait_clock::Time;
use strait_scheduler::{DeliveryCount, Estimate, Pacer, Path, Rate};
use strait_sim::{EventQueue, LinkSettings, LossModel, SimLink};
use strait_wire::Tos;

use crate::traffic::{Figures, Traffic};

/// Bytes of a datagram on the wire.
const DATAGRAM: u64 = 1400;
/// Bytes of it around the ESP packet.
const AROUND: u64 = 28;
/// Bytes of a report.
const REPORT: u64 = 130;
/// What the far end's clock shows when this one shows zero, in microseconds.
const THEIR_CLOCK: u64 = 7_000_000_000;
/// Datagrams that a greedy sender begins with (RFC 6928).
const WINDOW: u64 = 10;
/// How exactly it is known when a rate is found.
const STEP: Duration = Duration::from_millis(5);
/// How often it is looked what the estimate is.
const LOOK: Duration = Duration::from_millis(50);

pub(crate) fn mbit(mbit: f64) -> Rate {
    Rate::from_bits((mbit * 1e6) as u64).unwrap()
}

#[derive(Debug)]
enum Event {
    /// A number, and when it entered the bottleneck.
    Datagram(u64, Time),
    Report(DeliveryCount),
    /// The receiver's host says that a number arrived.
    Answer(u64),
    /// Other traffic enters the bottleneck.
    Cross,
}

/// What the receiver counts.
#[derive(Debug, Default)]
struct Received {
    datagrams: u64,
    highest: u64,
    highest_at: Time,
    reported_at: Time,
    waited: Duration,
}

/// A sender, a receiver and the link between them.
pub(crate) struct Course {
    now: Time,
    events: EventQueue<Event>,
    pub(crate) forth: SimLink,
    pub(crate) back: SimLink,
    path: Path,
    estimate: Estimate,
    /// Nothing while nothing is paced.
    pacer: Option<Pacer>,
    /// Datagrams that a greedy sender has on their way at most.
    window: u64,
    number: u64,
    received: Received,
    traffic: Traffic,
    /// The last number that was answered.
    answered: u64,
    /// When there is something to send again.
    next_at: Time,
    pub(crate) report_every: Duration,
    /// Other traffic that shares the bottleneck.
    cross: Option<Rate>,
    /// The receiver's host has no processor until then.
    stalled_until: Time,
}

impl Course {
    /// A link of `rate` each way, without an end to the queue before it.
    pub(crate) fn new(rate: Rate, round_trip: Duration) -> Course {
        let now = Time::from_millis(1000);
        let settings = LinkSettings { rate: Some(rate), delay: round_trip / 2, ..LinkSettings::default() };
        Course {
            now,
            events: EventQueue::default(),
            forth: SimLink::new(settings, 1),
            back: SimLink::new(settings, 2),
            path: Path::new(),
            pacer: None,
            window: WINDOW,
            estimate: Estimate::new(None, None, now),
            number: 0,
            received: Received::default(),
            traffic: Traffic::Greedy,
            answered: 0,
            next_at: now,
            report_every: LOOK,
            cross: None,
            stalled_until: now,
        }
    }

    /// The same with a rate that was found before a restart.
    pub(crate) fn remembering(mut self, rate: Rate) -> Course {
        self.estimate = Estimate::new(Some(rate), None, self.now);
        self.pacer = self.estimate.pacing().map(|rate| Pacer::new(rate, self.now));
        self
    }

    /// Bytes sent.
    pub(crate) const fn sent(&self) -> u64 {
        self.number * DATAGRAM
    }

    /// Whether packets go straight.
    pub(crate) const fn is_free(&self) -> bool {
        self.pacer.is_none()
    }

    /// Other traffic of this rate shares the bottleneck from now on.
    pub(crate) fn set_cross(&mut self, cross: Option<Rate>) {
        if self.cross.is_none() && cross.is_some() {
            self.events.push(self.now, Event::Cross);
        }
        self.cross = cross;
    }

    /// The receiver's host has no processor for `span`.
    pub(crate) fn stall(&mut self, span: Duration) {
        self.stalled_until = self.now + span;
    }

    /// Runs until the estimate is at least this share of the link's rate; after what time, if that is within `span`.
    pub(crate) fn reaches(&mut self, share: f64, span: Duration) -> Option<Duration> {
        let begin = self.now;
        while self.now < begin + span {
            if self.share() >= share {
                return Some(self.now.since(begin));
            }
            self.run_for(STEP);
        }
        None
    }

    pub(crate) const fn estimate(&self) -> &Estimate {
        &self.estimate
    }

    pub(crate) const fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn set_rate(&mut self, rate: Rate) {
        for link in [&mut self.forth, &mut self.back] {
            link.settings.rate = Some(rate);
        }
    }

    pub(crate) fn set_loss(&mut self, loss: LossModel) {
        for link in [&mut self.forth, &mut self.back] {
            link.settings.loss = loss;
        }
    }

    pub(crate) fn set_traffic(&mut self, traffic: Traffic) {
        (self.traffic, self.next_at) = (traffic, self.now);
    }

    /// Runs for `span`; since when the estimate has been within `near` of the link's rate then.
    pub(crate) fn settles(&mut self, span: Duration, near: f64) -> Option<Duration> {
        let (begin, mut since) = (self.now, None);
        while self.now < begin + span {
            self.run_for(LOOK);
            let now = self.now.since(begin);
            since = if (self.share() - 1.0).abs() <= near { since.or(Some(now)) } else { None };
        }
        since
    }

    /// What the estimate is like during `span`.
    pub(crate) fn watch(&mut self, span: Duration) -> Figures {
        let end = self.now + span;
        let (entered, datagrams) = (self.forth.counters(), self.received.datagrams);
        self.received.waited = Duration::ZERO;
        let (mut sum, mut count, mut worst) = (0.0, 0.0, 0.0_f64);
        while self.now < end {
            self.run_for(LOOK);
            let share = self.share();
            (sum, count, worst) = (sum + share, count + 1.0, worst.max((share - 1.0).abs()));
        }
        let bytes = self.forth.counters().bytes - entered.bytes;
        let arrived = u32::try_from(self.received.datagrams - datagrams).unwrap().max(1);
        Figures {
            mean: sum / count,
            worst,
            carried: bytes as f64 / self.rate().bytes_in(span) as f64,
            queued: self.received.waited / arrived,
        }
    }

    pub(crate) fn run_for(&mut self, span: Duration) {
        let end = self.now + span;
        loop {
            let send_at = match self.traffic {
                Traffic::Nothing => Time::MAX,
                Traffic::Window(window) if self.number >= self.answered + window => Time::MAX,
                Traffic::Greedy if self.number >= self.answered + self.window => Time::MAX,
                _ => self.pacer.as_ref().map_or(self.now, Pacer::room_at).max(self.next_at).max(self.now),
            };
            let event_at = self.events.next_at().unwrap_or(Time::MAX);
            if send_at.min(event_at) >= end {
                self.now = end;
                return;
            }
            self.now = send_at.min(event_at);
            match self.events.pop_if(|at, _| at <= send_at) {
                Some((_, Event::Datagram(number, entered))) if self.now < self.stalled_until => {
                    self.events.push(self.stalled_until, Event::Datagram(number, entered));
                }
                Some((_, Event::Datagram(number, entered))) => self.arrive(number, entered),
                Some((_, Event::Cross)) => self.cross(),
                Some((_, Event::Report(report))) => self.reported(&report),
                Some((_, Event::Answer(number))) => {
                    self.answered = self.answered.max(number);
                    self.window += 1;
                }
                None => self.send(),
            }
        }
    }

    fn rate(&self) -> Rate {
        self.forth.settings.rate.unwrap()
    }

    fn share(&self) -> f64 {
        self.estimate.rate().map_or(0, Rate::bits) as f64 / self.rate().bits() as f64
    }

    fn send(&mut self) {
        if let Traffic::Steady(rate) = self.traffic {
            self.next_at = self.now + rate.time_for(DATAGRAM);
        }
        self.number += 1;
        if let Some(pacer) = &mut self.pacer {
            pacer.charge(DATAGRAM, self.now);
        }
        let limit = self.pacer.as_ref().map(Pacer::rate);
        self.path.sent(self.number, DATAGRAM - AROUND, limit, self.now);
        for (at, _) in self.forth.carry(DATAGRAM, Tos(0), self.now).into_iter().flatten() {
            self.events.push(at, Event::Datagram(self.number, self.now));
        }
    }

    fn cross(&mut self) {
        let Some(rate) = self.cross else { return };
        self.forth.carry(DATAGRAM, Tos(0), self.now);
        self.events.push(self.now + rate.time_for(DATAGRAM), Event::Cross);
    }

    fn arrive(&mut self, number: u64, entered: Time) {
        let takes = self.forth.settings.rate.map_or(Duration::ZERO, |rate| rate.time_for(DATAGRAM));
        let least = self.forth.settings.delay + takes;
        let received = &mut self.received;
        received.waited += self.now.since(entered).saturating_sub(least + self.forth.settings.jitter / 2);
        received.datagrams += 1;
        if number > received.highest {
            (received.highest, received.highest_at) = (number, self.now);
        }
        self.events.push(self.now + self.back.settings.delay, Event::Answer(number));
        if self.now.since(received.reported_at) < self.report_every {
            return;
        }
        received.reported_at = self.now;
        let report = DeliveryCount {
            datagrams: received.datagrams,
            bytes: received.datagrams * (DATAGRAM - AROUND),
            highest: received.highest,
            received_at: THEIR_CLOCK + received.highest_at.as_nanos() / 1000,
            held: self.now.since(received.highest_at),
        };
        for (at, _) in self.back.carry(REPORT, Tos(0), self.now).into_iter().flatten() {
            self.events.push(at, Event::Report(report));
        }
    }

    fn reported(&mut self, report: &DeliveryCount) {
        if let Ok(Some(sample)) = self.path.report(report, AROUND as usize, self.now) {
            self.estimate.sample(&sample, self.now);
            match (&mut self.pacer, self.estimate.pacing()) {
                (Some(pacer), Some(rate)) => pacer.set_rate(rate, self.now),
                (_, rate) => self.pacer = rate.map(|rate| Pacer::new(rate, self.now)),
            }
        }
    }
}
