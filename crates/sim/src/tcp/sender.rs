//! The end that sends.

use core::time::Duration;
use std::sync::Arc;

use strait_clock::Time;
use strait_wire::tcp::{Segment, TcpFlags};

use super::flight::TcpFlight;
use super::window::CubicWindow;
use super::{TcpSettings, options, timestamp, unwrapped};
use crate::FlowShape;
use crate::packet::TcpFields;

/// Between which the timer is before anything was acknowledged, and at most (RFC 6298 section 2, Linux's `TCP_RTO_MAX`).
const TIMER: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(120)];
/// What the timer has beyond the smoothed round-trip time at least: Linux's `TCP_RTO_MIN`.
const TIMER_LEAST: Duration = Duration::from_millis(200);

/// Counts of a sender.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TcpTally {
    /// Segments sent, those that were sent again as well.
    pub sent: u64,
    /// Segments sent again.
    pub again: u64,
    /// How often the window shrank for loss.
    pub shrunk: u64,
    /// How often the timer ran out.
    pub timeouts: u64,
}

/// What round trips are like.
#[derive(Clone, Copy, Debug)]
struct TcpRounds {
    least: Duration,
    smoothed: Duration,
    varies: Duration,
}

/// The end that sends: which segments are on their way, and when one is sent again.
#[derive(Debug)]
pub struct TcpSender {
    shape: FlowShape,
    settings: TcpSettings,
    /// What it carries in the place of the settings' filler.
    content: Option<Arc<[u8]>>,
    window: CubicWindow,
    flight: TcpFlight,
    rounds: Option<TcpRounds>,
    /// Until this segment is acknowledged, what is lost was lost by the same congestion.
    recovers_until: Option<u64>,
    /// The timer, as often doubled as it ran out in a row, and when it runs out.
    timer: (u32, Option<Time>),
    tally: TcpTally,
}

impl TcpSender {
    /// An end that sends packets of `shape`, and has sent nothing.
    #[must_use]
    pub fn new(shape: FlowShape, settings: TcpSettings) -> TcpSender {
        TcpSender {
            shape,
            settings,
            content: None,
            window: CubicWindow::new(),
            flight: TcpFlight::default(),
            rounds: None,
            recovers_until: None,
            timer: (0, None),
            tally: TcpTally::default(),
        }
    }

    /// An end that carries this content, whatever the settings say of segments and filler.
    #[must_use]
    pub fn carrying(shape: FlowShape, settings: TcpSettings, content: Arc<[u8]>) -> TcpSender {
        let segments = Some(content.len().div_ceil(settings.step) as u64);
        let settings = TcpSettings { segments, ..settings };
        TcpSender { content: Some(content), ..TcpSender::new(shape, settings) }
    }

    /// Bytes that were acknowledged.
    #[must_use]
    pub fn acknowledged(&self) -> u64 {
        let bytes = self.flight.first() * self.settings.step as u64;
        self.content.as_ref().map_or(bytes, |content| bytes.min(content.len() as u64))
    }

    /// Counts so far.
    #[must_use]
    pub const fn tally(&self) -> TcpTally {
        self.tally
    }

    /// Segments that may be on their way.
    #[must_use]
    pub fn window(&self) -> usize {
        self.window.size()
    }

    /// The smoothed round-trip time.
    #[must_use]
    pub fn round_trip(&self) -> Option<Duration> {
        self.rounds.map(|rounds| rounds.smoothed)
    }

    /// Whether every segment was acknowledged.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.settings.segments.is_some_and(|count| self.flight.first() >= count)
    }

    /// Segments that may be sent now.
    pub fn poll(&mut self, now: Time) -> Vec<Vec<u8>> {
        if self.timer.1.is_some_and(|due| due <= now) {
            self.time_out();
        }
        self.find_lost(now);
        let mut packets = Vec::new();
        while self.flight.under_way() < self.window.size() {
            let Some(number) = self.next() else { break };
            packets.push(self.segment(number, now));
        }
        if self.timer.1.is_none() && self.flight.under_way() > 0 {
            self.timer.1 = Some(now + self.patience());
        }
        packets
    }

    /// Takes an acknowledgement.
    pub fn take(&mut self, segment: &[u8], now: Time) {
        let Ok(segment) = Segment::parse(segment) else { return };
        let step = self.settings.step as u64;
        let was_full = self.flight.under_way() + 1 >= self.window.size();
        let base = self.flight.first() * step;
        let first = self.segments_before(unwrapped(segment.ack(), base));
        let before = (self.flight.first(), self.flight.arrived());
        for (from, to) in options::blocks(segment.options()) {
            let numbers = unwrapped(from, base).div_ceil(step)..self.segments_before(unwrapped(to, base));
            numbers.for_each(|number| self.arrived(number, now));
        }
        (before.0..first).for_each(|number| self.arrived(number, now));
        self.flight.drop_before(first);
        if self.flight.first() > before.0 {
            self.timer = (0, None);
            if self.recovers_until.is_some_and(|until| self.flight.first() >= until) {
                self.recovers_until = None;
            }
        }
        self.find_lost(now);
        // As many as arrived, in order or not.
        let more = (self.flight.first() - before.0) as usize + self.flight.arrived();
        let more = more.saturating_sub(before.1);
        if let Some(rounds) = self.rounds.filter(|_| was_full && self.recovers_until.is_none()) {
            self.window.grow(more as f64, rounds.smoothed, now);
        }
    }

    /// Segments that end at this byte or before; the last of a content may be short.
    fn segments_before(&self, byte: u64) -> u64 {
        match (&self.content, self.settings.segments) {
            (Some(content), Some(segments)) if byte >= content.len() as u64 => segments,
            _ => byte / self.settings.step as u64,
        }
    }

    /// The segment to send next, if there is one and the receiver has room.
    fn next(&mut self) -> Option<u64> {
        if let Some(number) = self.flight.first_lost() {
            return Some(number);
        }
        let number = self.flight.end();
        let has_room = (self.flight.len() + 1) * self.settings.step as u64 <= self.settings.room;
        let has_more = self.settings.segments.is_none_or(|count| number < count);
        (has_room && has_more).then_some(number)
    }

    fn segment(&mut self, number: u64, now: Time) -> Vec<u8> {
        let again = self.flight.sent(number, now);
        self.tally.sent += 1;
        self.tally.again += u64::from(again);
        let stamps = self.settings.timestamps.then(|| (timestamp(now), 0));
        let options = options::written(stamps, &[]);
        let step = self.settings.step;
        let seq = number.wrapping_mul(step as u64) as u32;
        let fields = TcpFields { seq, flags: TcpFlags::PSH, options: &options, ..TcpFields::default() };
        if let Some(content) = &self.content {
            let from = (number as usize * step).min(content.len());
            return self.shape.tcp_with(&fields, &content[from..content.len().min(from + step)]);
        }
        let mut payload = Vec::with_capacity(step + 100);
        self.settings.filler.fill(&mut payload, number, self.shape.src.port(), step);
        self.shape.tcp_with(&fields, &payload)
    }

    fn arrived(&mut self, number: u64, now: Time) {
        let least = self.rounds.map_or(Duration::ZERO, |rounds| rounds.least);
        let Some(took) = self.flight.arrives(number, least, now) else { return };
        let rounds = self.rounds.get_or_insert(TcpRounds { least: took, smoothed: took, varies: took / 2 });
        rounds.least = rounds.least.min(took);
        // RFC 6298 section 2.3; an eighth and a quarter are meant for one sample a round trip, as Linux takes more.
        rounds.varies = (rounds.varies * 3 + rounds.smoothed.abs_diff(took)) / 4;
        rounds.smoothed = (rounds.smoothed * 7 + took) / 8;
        self.window.round_trip(took, rounds.least, (self.flight.first(), self.flight.end()));
    }

    /// Marks what is lost by now (RFC 8985 section 6.2), and has the window shrink once for all that was on its way.
    fn find_lost(&mut self, now: Time) {
        let Some(rounds) = self.rounds else { return };
        let recovers = self.recovers_until.is_some();
        if self.flight.find_lost(rounds.least / 4, recovers, now) && !recovers {
            self.recovers_until = Some(self.flight.end());
            self.window.shrink();
            self.tally.shrunk += 1;
        }
    }

    fn time_out(&mut self) {
        self.flight.lose_all();
        self.window.restart();
        self.tally.timeouts += 1;
        self.timer = (self.timer.0 + 1, None);
        self.recovers_until = None;
    }

    fn patience(&self) -> Duration {
        let first =
            self.rounds.map_or(TIMER[0], |rounds| rounds.smoothed + (rounds.varies * 4).max(TIMER_LEAST));
        first.saturating_mul(1 << self.timer.0.min(16)).min(TIMER[1])
    }
}
