//! A limit to what a connection sends that has sent more than a handshake takes.
//!
//! QUIC begins its pauses anew with each acknowledgement (RFC 9002 section 6.2.1), and answers whatever comes after the end (RFC 9000
//! section 10.2.1). Where probes arrive and what they stand for is lost each time, as with losses strictly by turns, that is a datagram
//! each few milliseconds for as long as the connection lives. Pauses that grow end the turns as well.

use core::time::Duration;

use strait_clock::Time;

/// Datagrams of one end that leave as QUIC wants: eight times those of a handshake without losses (a test counts them). With half as many,
/// fewer handshakes succeed within their 10 s where half of the datagrams are lost: 41 instead of 48 of 100 in virtual time.
const FREE: u32 = 64;
/// The pause after these: what QUIC's first probe waits where a round trip takes 30 ms (RFC 9002 section 6.2.1). It doubles so often.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const DOUBLED: u32 = 4;

/// See the head of this module.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Restraint {
    sent: u32,
    not_before: Time,
}

impl Restraint {
    /// Returns true if a datagram may leave now, and counts it.
    pub(super) fn lets_go(&mut self, now: Time) -> bool {
        if now < self.not_before {
            return false;
        }
        self.sent = self.sent.saturating_add(1);
        if let Some(beyond) = self.sent.checked_sub(FREE) {
            self.not_before = now + FIRST_PAUSE * (1 << beyond.min(DOUBLED));
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_after_a_handshake_and_are_a_second_and_a_half_in_the_end() {
        let mut restraint = Restraint::default();
        let at: Vec<_> =
            (0..15_000).filter(|millis| restraint.lets_go(Time::from_millis(1000 + millis))).collect();
        assert_eq!(at[..70], [&(0..64).collect::<Vec<_>>()[..], &[163, 363, 763, 1563, 3163, 4763]].concat());
        assert!(at.len() < 78, "{}", at.len());
    }
}
