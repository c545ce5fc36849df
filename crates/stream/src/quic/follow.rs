//! A congestion controller that follows the pacer.
//!
//! Where the rate of the link is told or found, the pacer decides when a datagram leaves, and no network between has a queue to
//! fill. The window then only bounds what is in flight: the rate times the round trip, what acknowledgements may be late, and what
//! the queue holds. A loss is not a sign of congestion there. Where no rate is known, CUBIC (RFC 9438) decides.

use core::any::Any;
use core::time::Duration;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

use quinn_proto::RttEstimator;
use quinn_proto::congestion::{Controller, ControllerFactory, CubicConfig};
use strait_scheduler::Rate;

/// How much later than the round trip an acknowledgement may come: the peer's delay (RFC 9000 section 18.2, 25 ms by default)
/// and a timer's granularity.
const LATE: Duration = Duration::from_millis(30);
/// The round trip that is assumed before one is measured: that of a geostationary satellite, with what it takes to get there.
const UNMEASURED: Duration = Duration::from_millis(700);
/// Datagrams that may be in flight whatever the rate: as RFC 9002 section 7.2 begins with.
const LEAST: u64 = 10;
/// The least round trip of so long a time counts: a path that becomes longer is believed then.
const REMEMBERED: Duration = Duration::from_secs(10);
/// No window: a datagram leaves to find out whether the path carries again.
const OPEN: u64 = u64::MAX / 4;

/// What a connection's controller is told from outside.
#[derive(Debug, Default)]
pub(super) struct FollowedRate {
    /// In bit/s; 0 where none is known.
    bits: AtomicU64,
    /// Bytes that may wait in the queue of the link.
    ahead: AtomicU64,
    /// Whether a datagram may leave whatever is in flight.
    probing: AtomicBool,
    /// Whether nothing that waits may leave.
    shut: AtomicBool,
    /// QUIC looked at the window, which it does when it has something to send that is acknowledged.
    looked_at: AtomicBool,
}

impl FollowedRate {
    pub(super) fn set(&self, rate: Option<Rate>, ahead: u64) {
        self.bits.store(rate.map_or(0, Rate::bits), Ordering::Relaxed);
        self.ahead.store(ahead, Ordering::Relaxed);
    }

    pub(super) fn set_probing(&self, probing: bool) {
        self.probing.store(probing, Ordering::Relaxed);
    }

    /// QUIC probes the path's MTU only when nothing else may leave.
    pub(super) fn set_shut(&self, shut: bool) {
        self.shut.store(shut, Ordering::Relaxed);
    }

    pub(super) fn look_away(&self) {
        self.looked_at.store(false, Ordering::Relaxed);
    }

    /// True if QUIC had something to send since [`FollowedRate::look_away`].
    pub(super) fn was_looked_at(&self) -> bool {
        self.looked_at.load(Ordering::Relaxed)
    }

    pub(super) fn is_probing(&self) -> bool {
        self.probing.load(Ordering::Relaxed)
    }

    pub(super) fn rate(&self) -> Option<Rate> {
        Rate::from_bits(self.bits.load(Ordering::Relaxed))
    }
}

/// Makes controllers that follow this rate.
#[derive(Debug)]
pub(super) struct RateFollowers(pub(super) Arc<FollowedRate>);

impl ControllerFactory for RateFollowers {
    fn build(self: Arc<Self>, now: Instant, current_mtu: u16) -> Box<dyn Controller> {
        let unknown = Arc::new(CubicConfig::default()).build(now, current_mtu);
        let (followed, round_trips) = (Arc::clone(&self.0), LeastRoundTrip::default());
        Box::new(RateFollower { followed, unknown, round_trips, mtu: current_mtu })
    }
}

/// The least round trip of the last seconds, in two spans of time.
#[derive(Clone, Copy, Debug, Default)]
struct LeastRoundTrip {
    now: Option<Duration>,
    before: Option<Duration>,
    since: Option<Instant>,
}

impl LeastRoundTrip {
    fn note(&mut self, round_trip: Duration, at: Instant) {
        if self.since.is_none_or(|since| at.saturating_duration_since(since) >= REMEMBERED) {
            (self.before, self.now, self.since) = (self.now, None, Some(at));
        }
        self.now = Some(self.now.map_or(round_trip, |least| least.min(round_trip)));
    }

    fn get(&self) -> Option<Duration> {
        self.now.into_iter().chain(self.before).min()
    }
}

/// The controller of one path.
pub(super) struct RateFollower {
    pub(super) followed: Arc<FollowedRate>,
    /// Decides while no rate is known.
    unknown: Box<dyn Controller>,
    round_trips: LeastRoundTrip,
    mtu: u16,
}

impl RateFollower {
    /// The window for this rate.
    fn follow(&self, rate: Rate) -> u64 {
        let round_trip = self.round_trips.get().unwrap_or(UNMEASURED);
        // A quarter more, or what one round trip measures too little would be too little for good.
        let flight = rate.bytes_in(round_trip + round_trip / 4 + LATE);
        let ahead = self.followed.ahead.load(Ordering::Relaxed);
        flight.saturating_add(ahead).max(LEAST * u64::from(self.mtu))
    }
}

impl Controller for RateFollower {
    fn on_sent(&mut self, now: Instant, bytes: u64, last_packet_number: u64) {
        self.unknown.on_sent(now, bytes, last_packet_number);
    }

    fn on_ack(&mut self, now: Instant, sent: Instant, bytes: u64, app_limited: bool, rtt: &RttEstimator) {
        // What QUIC says before the first measurement is a guess.
        self.round_trips.note(now.saturating_duration_since(sent), now);
        // Growth while the pacer decides is none that CUBIC has tried.
        let app_limited = app_limited || self.followed.rate().is_some();
        self.unknown.on_ack(now, sent, bytes, app_limited, rtt);
    }

    fn on_end_acks(&mut self, now: Instant, in_flight: u64, app_limited: bool, largest: Option<u64>) {
        let app_limited = app_limited || self.followed.rate().is_some();
        self.unknown.on_end_acks(now, in_flight, app_limited, largest);
    }

    fn on_congestion_event(&mut self, now: Instant, sent: Instant, persistent: bool, lost_bytes: u64) {
        if self.followed.rate().is_none() {
            self.unknown.on_congestion_event(now, sent, persistent, lost_bytes);
        }
    }

    fn on_mtu_update(&mut self, new_mtu: u16) {
        self.mtu = new_mtu;
        self.unknown.on_mtu_update(new_mtu);
    }

    fn window(&self) -> u64 {
        self.followed.looked_at.store(true, Ordering::Relaxed);
        if self.followed.is_probing() {
            return OPEN;
        }
        if self.followed.shut.load(Ordering::Relaxed) {
            return 0;
        }
        self.followed.rate().map_or_else(|| self.unknown.window(), |rate| self.follow(rate))
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(RateFollower {
            followed: Arc::clone(&self.followed),
            unknown: self.unknown.clone_box(),
            // Another path has a round trip of its own.
            round_trips: LeastRoundTrip::default(),
            mtu: self.mtu,
        })
    }

    fn initial_window(&self) -> u64 {
        self.unknown.initial_window()
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[expect(clippy::disallowed_methods, reason = "QUIC counts from some instant; which one has no effect")]
    fn controller(followed: &Arc<FollowedRate>) -> (Box<dyn Controller>, Instant) {
        let now = Instant::now();
        (Arc::new(RateFollowers(Arc::clone(followed))).build(now, 1200), now)
    }

    #[test]
    fn loss_halves_the_window_only_where_no_rate_is_known() {
        let followed = Arc::new(FollowedRate::default());
        let (mut controller, now) = controller(&followed);
        let begun = controller.window();
        followed.set(Rate::from_bits(10_000_000), 0);
        let followed_window = controller.window();
        assert_eq!(followed_window, 10_000_000 / 8 * 905 / 1000, "1.25 of what is assumed, and 30 ms");
        controller.on_congestion_event(now, now, true, 12_000);
        assert_eq!(controller.window(), followed_window);
        followed.set(None, 0);
        assert_eq!(controller.window(), begun);
        controller.on_congestion_event(now, now + Duration::from_millis(1), false, 12_000);
        assert!(controller.window() < begun);
    }

    #[test]
    fn the_window_grows_with_what_the_queue_holds_and_is_never_too_small() {
        let followed = Arc::new(FollowedRate::default());
        let (controller, _) = controller(&followed);
        followed.set(Rate::from_bits(500), 0);
        assert_eq!(controller.window(), LEAST * 1200);
        followed.set(Rate::from_bits(10_000_000), 100_000);
        let with_queue = controller.window();
        followed.set(Rate::from_bits(10_000_000), 0);
        assert_eq!(with_queue, controller.window() + 100_000);
    }

    #[test]
    fn a_path_that_becomes_longer_is_believed_within_two_spans() {
        let mut least = LeastRoundTrip::default();
        let (_, base) = controller(&Arc::default());
        let [short, long] = [20, 600].map(Duration::from_millis);
        least.note(short, base);
        least.note(long, base + Duration::from_secs(1));
        assert_eq!(least.get(), Some(short));
        least.note(long, base + REMEMBERED);
        assert_eq!(least.get(), Some(short));
        least.note(long, base + 2 * REMEMBERED);
        assert_eq!(least.get(), Some(long));
    }
}
