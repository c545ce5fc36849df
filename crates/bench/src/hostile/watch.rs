//! An honest site's traffic, with an attack beside it or without: what arrives, how long pings take, what the machine does.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use strait_lab::measure::BusyWatch;
use strait_testbed::attack::{RunningAttack, SentFrames};
use strait_testbed::{Namespace, PingTrain, RunningStream, Stream, WireLink, interrupt};

use crate::echo::within;
use crate::error::Error;

/// Between two pings.
pub(super) const PINGS: Duration = Duration::from_millis(10);
/// Until slow start is over: as long as the window, and at most this.
const WARM_UP: Duration = Duration::from_millis(1500);
/// How long a first byte may take.
const BEGIN: Duration = Duration::from_secs(20);
/// How long is watched after an attack, at least,
const AFTER: Duration = Duration::from_millis(700);
/// and until the tunnel is back, at most.
const BACK: Duration = Duration::from_secs(10);
/// How often is looked for that.
const TICK: Duration = Duration::from_millis(20);

/// An honest site's traffic: a TCP stream each way and a train of pings, all at once.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HonestTraffic<'a> {
    /// The site and its hub, each with its address inside the tunnel.
    pub(crate) ends: [(&'a Namespace, Ipv4Addr); 2],
    /// The wire from which strangers come to the hub.
    pub(crate) stranger: &'a WireLink,
    /// What both streams carry.
    pub(crate) content: &'a Arc<[u8]>,
    pub(crate) window: Duration,
}

/// What was seen of it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Disturbance {
    /// Mbit/s from the hub to the site, and back.
    pub(crate) goodput: [f64; 2],
    /// Milliseconds without an answer, at most, in the window and after it.
    pub(crate) silence: f64,
    /// Milliseconds of a round trip: the median, and what 95 of 100 stay within; those without an answer took for ever.
    pub(crate) round_trip: [f64; 2],
    /// Milliseconds from the end of the attack to the first answer to a ping that was sent after it; not-a-number for none.
    pub(crate) back: f64,
    /// Share of the processors that was in use.
    pub(crate) busy: f64,
    /// Bytes that the hub sent to the stranger.
    pub(crate) answers: u64,
    /// What the attacker sent.
    pub(crate) sent: SentFrames,
}

impl HonestTraffic<'_> {
    /// Measures for two windows, one after the other: undisturbed, and beside an attack that begins and ends with the second.
    pub(crate) fn watch(
        &self,
        attack: impl FnOnce() -> Result<Option<RunningAttack>, Error>,
    ) -> Result<[Disturbance; 2], Error> {
        let [site, hub] = self.ends;
        let streams = [self.stream(hub, site)?, self.stream(site, hub)?];
        let train = PingTrain::start(site.0, hub.0, SocketAddr::new(hub.1.into(), 0), PINGS)?;
        let measured = self.both(&streams, &train, attack);
        // Both are asked, whatever the first says.
        let ended = streams.map(RunningStream::stop);
        train.stop()?;
        let measured = measured?;
        ended.into_iter().try_for_each(|ended| ended)?;
        Ok(measured)
    }

    fn stream(
        &self,
        (from, _): (&Namespace, Ipv4Addr),
        (to, address): (&Namespace, Ipv4Addr),
    ) -> Result<RunningStream, Error> {
        let (address, content) = (SocketAddr::new(address.into(), 0), self.content);
        let (warm_up, window) = (Duration::ZERO, self.window);
        Ok(Stream { from, to, address, content, warm_up, window }.start()?)
    }

    fn both(
        &self,
        streams: &[RunningStream; 2],
        train: &PingTrain,
        attack: impl FnOnce() -> Result<Option<RunningAttack>, Error>,
    ) -> Result<[Disturbance; 2], Error> {
        let began = Instant::now();
        while streams.iter().any(|stream| stream.received() == 0) {
            interrupt::pause(TICK)?;
            if began.elapsed() > BEGIN {
                return Err(Error::Silent { what: "a stream beside attacks", way: "Strait".to_owned() });
            }
        }
        interrupt::pause(self.window.min(WARM_UP))?;
        let start = Instant::now();
        let mut before = self.measure(streams, || Ok(None))?;
        let middle = Instant::now();
        let mut attacked = self.measure(streams, attack)?;
        let end = Instant::now();
        while end.elapsed() < AFTER || train.answered_since(end).is_none() && end.elapsed() < BACK {
            interrupt::pause(TICK)?;
        }
        before.note(train, [start, middle, middle]);
        attacked.note(train, [middle, end, Instant::now()]);
        Ok([before, attacked])
    }

    /// What arrives in a window, and what that costs; an attack begins and ends with it.
    fn measure(
        &self,
        streams: &[RunningStream; 2],
        attack: impl FnOnce() -> Result<Option<RunningAttack>, Error>,
    ) -> Result<Disturbance, Error> {
        let received = || [streams[0].received(), streams[1].received()];
        let answers = || self.stranger.b.traffic().map(|traffic| traffic.sent_bytes);
        let busy = BusyWatch::start().map_err(Error::doing("watch the processors"))?;
        let (start, before, said) = (Instant::now(), received(), answers()?);
        let attack = attack()?;
        interrupt::pause(self.window)?;
        let sent = attack.map(RunningAttack::stop).transpose()?.unwrap_or_default();
        let (took, after) = (start.elapsed().as_secs_f64(), received());
        let busy = busy.share().map_err(Error::doing("watch the processors"))?;
        let goodput = [0, 1].map(|way| (after[way] - before[way]) as f64 * 8.0 / took / 1e6);
        Ok(Disturbance { goodput, busy, answers: answers()? - said, sent, ..Disturbance::default() })
    }
}

impl Disturbance {
    /// Adds what pings tell of a window, which is over at the second moment; until the third, silence counts.
    fn note(&mut self, train: &PingTrain, [start, end, last]: [Instant; 3]) {
        let milliseconds = |span: Duration| span.as_secs_f64() * 1000.0;
        self.silence = milliseconds(train.silence(start, last));
        self.back = train.answered_since(end).map_or(f64::NAN, |at| milliseconds(at - end));
        let (mut times, lost) = train.round_trips(start, end);
        times.extend(std::iter::repeat_n(f64::INFINITY, lost));
        self.round_trip = [within(&mut times, 50), within(&mut times, 95)];
    }
}
