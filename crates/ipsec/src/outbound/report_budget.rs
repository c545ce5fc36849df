//! How often the peer may be sent a delivery report.

use core::time::Duration;

use strait_clock::Time;
use strait_scheduler::Rate;
use strait_wire::delivery::Delivery;

/// The share of the link that reports may take, and the least that is allowed on any: one a second.
const SHARE: f64 = 0.005;
const APART_MAX: f64 = 1.0;
/// What may be reported ahead while the link out was never seen to take no more: as long as a slow start takes from
/// 128 kbit/s to where half a percent is enough.
const AHEAD: Duration = Duration::from_secs(15);

/// What reports to one peer may cost.
#[derive(Debug, Default)]
pub(super) struct ReportBudget {
    /// When the reports sent so far are paid for.
    paid_at: Time,
    /// Of what arrives: the association, bytes, when.
    before: Option<Delivery>,
    /// Bits a second that arrive.
    arriving: f64,
}

impl ReportBudget {
    pub(super) fn note(&mut self, delivery: &Delivery) {
        let before = self.before.replace(*delivery).filter(|before| before.spi == delivery.spi);
        let Some(before) = before else { return };
        let span = delivery.received_at.saturating_sub(before.received_at);
        if span > 0 {
            self.arriving = delivery.bytes.saturating_sub(before.bytes) as f64 * 8e6 / span as f64;
        }
    }

    /// Whether `bytes` may be sent over a link of `rate`; while that is not known, over one that is taken to be as
    /// fast as what arrives.
    pub(super) fn allows(&mut self, bytes: usize, rate: Option<Rate>, now: Time) -> bool {
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
