//! What two Strait peers tell each other of what arrives: reports in AGGFRAG sub-type 1 (RFC 9347 section 6.1.2), and the rate
//! that is found out from them.

use core::time::Duration;

use strait_clock::Time;
use strait_scheduler::{self as scheduler, Estimate, Pace, Pacer, Rate};
use strait_wire::aggfrag::{self, CONGESTION_LEN};
use strait_wire::delivery::Delivery;
use strait_wire::{Protocol, Tos, esp};

use super::link::Link;
use super::train::Train;
use super::{CONTROL_TOS, Outlet, Way, Works};
use crate::Reason;
use crate::reports::{Heard, REPORT_LEN, Reception};
use crate::wrap::Head;

/// The share of the link that reports may take, and the least that is allowed on any: one a second.
const SHARE: f64 = 0.005;
const APART_MAX: f64 = 1.0;
/// What may be reported ahead while the link out was never seen to take no more: as long as a slow start takes from
/// 128 kbit/s to where half a percent is enough.
const AHEAD: Duration = Duration::from_secs(15);

/// What is known from reports of the way to a peer, and how much it may be told.
#[derive(Debug, Default)]
pub(super) struct Reports {
    /// Nothing where the peer does not report.
    path: Option<Box<scheduler::Path>>,
    estimate: Option<Estimate>,
    budget: Budget,
}

impl Reports {
    /// Another association, with a peer that reports or not.
    pub(super) fn renew(&mut self, reports: bool) {
        match (&mut self.path, reports) {
            (Some(path), true) => path.renew(),
            (path, true) => *path = Some(Box::default()),
            (path, false) => *path = None,
        }
    }

    /// The peer is somewhere else.
    pub(super) fn moved(&mut self) {
        if let Some(path) = &mut self.path {
            path.moved();
        }
    }
}

/// How often the peer may be told what arrived.
#[derive(Debug, Default)]
struct Budget {
    /// What was told so far is paid for at this time.
    paid_at: Time,
    /// Of what arrives: the association, bytes, when.
    before: Option<Delivery>,
    /// Bits a second that arrive.
    arriving: f64,
}

impl Budget {
    fn note(&mut self, delivery: &Delivery) {
        let before = self.before.replace(*delivery).filter(|before| before.spi == delivery.spi);
        let Some(before) = before else { return };
        let span = delivery.received_at.saturating_sub(before.received_at);
        if span > 0 {
            self.arriving = delivery.bytes.saturating_sub(before.bytes) as f64 * 8e6 / span as f64;
        }
    }

    /// Whether `bytes` may be sent over a link of `rate`; while that is not known, over one that is taken to be as
    /// fast as what arrives.
    fn allows(&mut self, bytes: usize, rate: Option<Rate>, now: Time) -> bool {
        let ahead = if rate.is_some() { Duration::ZERO } else { AHEAD };
        let bits = rate.map_or(self.arriving, |rate| rate.bits() as f64);
        let apart = (bytes as f64 * 8.0 / (bits.max(1.0) * SHARE)).min(APART_MAX);
        if self.paid_at > now + ahead {
            return false;
        }
        self.paid_at = self.paid_at.max(now) + Duration::from_secs_f64(apart);
        true
    }
}

impl Link {
    /// How it is paced from now on.
    pub(super) fn set_pace(&mut self, pace: Pace, now: Time) {
        let known = self.pacer.as_ref().map(Pacer::rate);
        match (pace, &mut self.reports.estimate) {
            (Pace::Estimated { at_most }, Some(estimate)) => estimate.set_ceiling(at_most),
            (Pace::Estimated { at_most }, estimate) => *estimate = Some(Estimate::new(known, at_most, now)),
            (_, estimate) => *estimate = None,
        }
        let rate = self.reports.estimate.as_ref().map(Estimate::pacing).or(pace.given());
        match (&mut self.pacer, rate) {
            (Some(pacer), Some(rate)) => pacer.set_rate(rate),
            (_, rate) => self.pacer = rate.map(|rate| Pacer::new(rate, now)),
        }
    }

    /// What the way to the peer takes, given or found out.
    pub(super) fn own_rate(&self) -> Option<Rate> {
        let estimated = self.reports.estimate.as_ref().map(Estimate::rate);
        estimated.or(self.pacer.as_ref().map(Pacer::rate))
    }

    /// A train left at `now`.
    pub(super) fn note_departed(&mut self, train: &Train<'_>, now: Time) {
        let (Some(path), Some(sa)) = (&mut self.reports.path, &self.sa) else { return };
        let Some(Ok((header, _))) = train.datagrams().last().map(esp::Header::parse) else { return };
        // What was sealed with the association before is of no use.
        if header.spi == sa.spi {
            let last = sa.numbers.last();
            let behind = last.low().0.wrapping_sub(header.seq.0);
            let limit = self.pacer.as_ref().map(Pacer::rate);
            path.sent(last.0.saturating_sub(behind.into()), train.bytes.len() as u64, limit, now);
        }
    }

    /// The rate of the link out, as far as that is known: it was given, or was seen to take no more.
    fn known_rate(&self, up: Option<Rate>) -> Option<Rate> {
        let own = match &self.reports.estimate {
            Some(estimate) => estimate.is_found().then(|| estimate.rate()),
            None => self.pacer.as_ref().map(Pacer::rate),
        };
        own.into_iter().chain(up).min()
    }
}

impl Works {
    /// The peer says what arrived.
    pub(super) fn delivered(&self, link: &mut Link, heard: &Heard, now: Time) {
        let around = link.outer_len() + usize::from(self.settings.overhead);
        let current = link.sa.as_ref().is_some_and(|sa| sa.spi == heard.delivery.spi);
        let Some(path) = link.reports.path.as_mut().filter(|_| current) else { return };
        link.spec.counters.reports_in.add(1);
        let Heard { delivery, tval } = heard;
        // Both are the low half of the same clock.
        let held = tval.wrapping_sub(delivery.received_at as u32);
        let said = scheduler::Delivery {
            datagrams: delivery.datagrams,
            bytes: delivery.bytes,
            highest: delivery.highest,
            received_at: delivery.received_at,
            held: Duration::from_micros(held.into()),
        };
        match (path.report(&said, around, now), &mut link.reports.estimate) {
            (Ok(Some(sample)), Some(estimate)) => {
                estimate.sample(&sample, now);
                if let Some(pacer) = &mut link.pacer {
                    pacer.set_rate(estimate.pacing());
                }
            }
            (Err(scheduler::Refused::Absurd), _) => return self.counters.refuse(Reason::AbsurdReport),
            (Ok(_) | Err(scheduler::Refused::Late), _) => {}
        }
        link.loss = path.loss();
        link.spec.counters.path.show(path, link.reports.estimate.as_ref());
    }

    /// Tells a peer what arrived from it, unless it was told enough.
    pub(super) fn tell_received(&mut self, way: &mut Way<'_, impl Outlet>, reception: &Reception) {
        if !way.link.takes_blocks() || way.link.endpoint.is_none() {
            return;
        }
        let Some(sa) = &way.link.sa else { return };
        let sealed = sa.sealed_len(sa.front_len(Head::Fresh(Tos(0))), REPORT_LEN);
        let bytes = sealed + way.link.outer_len() + usize::from(self.settings.overhead);
        let rate = way.link.known_rate(self.settings.up);
        let budget = &mut way.link.reports.budget;
        budget.note(&reception.delivery);
        if !budget.allows(bytes, rate, way.now) {
            return;
        }
        let report = congestion(way.link, reception, way.now);
        self.train_of = Some(way.link.spec.id);
        let told = self.emit(way, Protocol::AGGFRAG, REPORT_LEN, CONTROL_TOS, |payload| {
            let _ = aggfrag::emit_congestion(payload, 0, &report);
            let _ = reception.delivery.emit(payload.get_mut(CONGESTION_LEN..).unwrap_or_default());
        });
        way.link.spec.counters.reports_out.add(u64::from(told.is_ok()));
        self.depart(way);
    }
}

/// What RFC 9347 has fields for.
fn congestion(link: &Link, reception: &Reception, now: Time) -> aggfrag::Report {
    let micros = |span: Duration| u32::try_from(span.as_micros()).unwrap_or(u32::MAX);
    let (techo, echo_delay) = reception.echo.map_or((0, 0), |(tval, came)| (tval, micros(now.since(came))));
    aggfrag::Report {
        plpmtud: link.path.is_searching(),
        congestion: reception.marked,
        loss_event_rate: reception.loss_event_rate,
        rtt: link.reports.path.as_ref().and_then(|path| path.round_trip()).map_or(0, micros),
        echo_delay,
        transmit_delay: link.own_rate().map_or(0, |rate| micros(rate.time_for(link.path.outer().into()))),
        // The low half of this clock.
        tval: (now.as_nanos() / 1000) as u32,
        techo,
    }
}
