//! What happened on a path between two reports.

use strait_clock::Time;

/// The path between two delivery reports.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PathSample {
    /// Wire bytes that arrived, of those sent with the numbers in between.
    pub bytes: f64,
    /// Seconds between the first and the last of them, on the far end's clock.
    pub span: f64,
    /// Wire bytes sent with the numbers in between.
    pub sent: f64,
    /// Seconds it took to send them.
    pub sent_span: f64,
    /// Wire bytes that the pacer would have let pass in that time.
    pub allowed: f64,
    /// When the first of them was sent.
    pub sent_from: Time,
    /// When the last of them was sent.
    pub sent_at: Time,
    /// Sequence numbers that passed.
    pub numbers: f64,
    /// How many of them did not arrive.
    pub lost: f64,
    /// Seconds that the last took beyond the minimum one-way delay.
    pub delay: f64,
    /// Wire bytes sent after the last, still in flight.
    pub unreported: f64,
    /// Seconds from sending the last until now, when no queue delays it.
    pub due: f64,
}

impl PathSample {
    /// What happened in this and then in `next`.
    #[must_use]
    pub(super) fn and(&self, next: &PathSample) -> PathSample {
        PathSample {
            bytes: self.bytes + next.bytes,
            span: self.span + next.span,
            sent: self.sent + next.sent,
            sent_span: self.sent_span + next.sent_span,
            allowed: self.allowed + next.allowed,
            sent_from: self.sent_from,
            numbers: self.numbers + next.numbers,
            lost: self.lost + next.lost,
            ..*next
        }
    }
}
