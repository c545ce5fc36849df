//! What the associations' counters say: limits and silence.

use core::time::Duration;

use strait_clock::Time;
use strait_ipsec::{UNANSWERED, outbound};

use super::super::context::ControlContext;
use super::{ATTEMPT, PeerRecord};
use crate::ControlEvent;

/// Sending for this long without hearing anything is answered with a probe (`WireGuard`'s
/// KEEPALIVE_TIMEOUT).
const DEAF: Duration = Duration::from_secs(10);
/// How long the probe has (with the former, `WireGuard`'s KEEPALIVE_TIMEOUT + REKEY_TIMEOUT).
const PROBED: Duration = Duration::from_secs(5);

/// Since when packets come that nothing was sent after.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Unanswered {
    /// Inner packets received so far.
    packets: u64,
    since: Option<Time>,
    /// When it was last looked.
    looked: Time,
}

impl Unanswered {
    /// Takes how many inner packets have come and when something was last sent; true when the peer is to hear of this end. What
    /// keeps a tunnel alive is no packet, so it is not answered.
    fn note(&mut self, packets: u64, sent: Option<Time>, now: Time) -> bool {
        let before = core::mem::replace(&mut self.looked, now);
        // What was sent since the last look may have been the answer: if it was not, more comes.
        let answered = sent.is_some_and(|sent| sent > before);
        if core::mem::replace(&mut self.packets, packets) != packets && !answered {
            self.since.get_or_insert(now);
        }
        let since = self.since.filter(|since| sent.is_none_or(|sent| sent < *since));
        let due = since.is_some_and(|since| since + UNANSWERED <= now);
        self.since = if due { None } else { since };
        due
    }
}

/// Since when this node speaks and hears nothing.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Silence {
    /// The first packet after the last that was heard.
    since: Option<Time>,
    /// When the peer was probed.
    probed: Option<Time>,
}

/// What a silence calls for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SilenceAnswer {
    Nothing,
    Probe,
    Handshake,
}

impl Silence {
    /// Takes when something was last sent and last heard. Silence grows only while packets are sent: the
    /// last word of a conversation needs no answer, or two idle nodes would probe each other for ever.
    fn note(&mut self, sent: Time, heard: Time, now: Time) -> SilenceAnswer {
        if self.since.is_none_or(|since| heard >= since) {
            *self = Silence { since: (sent > heard).then_some(sent), probed: None };
        }
        let Some(since) = self.since else { return SilenceAnswer::Nothing };
        match self.probed {
            None if sent >= since + DEAF => {
                self.probed = Some(now);
                SilenceAnswer::Probe
            }
            // Each tick calls again while packets are still sent, and the backoff spaces the attempts.
            Some(probed) if now >= probed + PROBED && sent + DEAF + PROBED > now => SilenceAnswer::Handshake,
            _ => SilenceAnswer::Nothing,
        }
    }
}

impl PeerRecord {
    /// Withdraws a pair that reached its end; wants a successor for one that is due and in use.
    pub(crate) fn check_limits(&mut self, now: Time, context: &mut ControlContext) {
        if let Some(pair) = self.pairs.take_expired(now) {
            let outbound = pair.outbound.spi;
            context.order_out(outbound::Order::Withdraw(self.id(), outbound));
            context.withdraw_inbound(pair.inbound.spi);
            context.log(ControlEvent::Expired { peer: self.id(), outbound });
        } else if let Some(pair) = self.pairs.in_use()
            && pair.needs_successor(context.node.lifetime, now)
        {
            self.initiation.want(now + ATTEMPT);
        }
    }

    /// Lets a peer whose packets were not answered for a while hear that they arrive.
    pub(crate) fn check_unanswered(&mut self, now: Time, context: &mut ControlContext) {
        let packets = self.config.spec.counters.in_packets.get();
        let Some(pair) = self.pairs.in_use() else { return };
        if self.unanswered.note(packets, pair.outbound.usage.last(), now) {
            context.order_out(outbound::Order::Alive(self.id()));
        }
    }

    /// Probes a peer that answers nothing, then wants a handshake with it.
    pub(crate) fn check_silence(&mut self, now: Time, context: &mut ControlContext) {
        let Some(pair) = self.pairs.in_use() else { return };
        let Some(sent) = pair.outbound.usage.last() else { return };
        let established = pair.established;
        let heard = self.pairs.last_heard().map_or(established, |heard| heard.max(established));
        match self.silence.note(sent, heard, now) {
            SilenceAnswer::Nothing => {}
            SilenceAnswer::Probe => {
                context.order_out(outbound::Order::Probe(self.id()));
                context.log(ControlEvent::Silent { peer: self.id() });
            }
            SilenceAnswer::Handshake => {
                if !self.initiation.is_under_way() {
                    self.initiation.distrust_address();
                }
                self.initiation.want(now + ATTEMPT);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Packets that come in these seconds, and packets that are sent; when the peer hears of this end.
    fn heard(come: impl Fn(u64) -> bool, sent: impl Fn(u64) -> bool, seconds: u64) -> Vec<u64> {
        let (mut unanswered, mut packets, mut last) = (Unanswered::default(), 0, None);
        let mut at = Vec::new();
        for second in 1..=seconds {
            let now = Time::from_millis(second * 1000);
            packets += u64::from(come(second));
            // Before the tick.
            last = if sent(second) { Some(Time::from_millis(second * 1000 - 1)) } else { last };
            if unanswered.note(packets, last, now) {
                last = Some(now);
                at.push(second);
            }
        }
        at
    }

    #[test]
    fn peer_hears_of_packets_that_nothing_answers_once_in_eight_seconds() {
        assert_eq!(heard(|_| true, |_| false, 30), [8, 16, 24]);
        assert_eq!(heard(|second| second == 5, |_| false, 100), [12], "one packet");
        assert_eq!(heard(|second| second == 5, |second| second == 5, 100), [], "and its answer");
        assert_eq!(heard(|second| second >= 5, |second| second == 5, 15), [13], "packets go on");
        assert_eq!(heard(|_| true, |second| second % 5 == 0, 100), [], "answers tell it");
        assert_eq!(heard(|second| second == 5, |second| second == 7, 100), []);
        assert_eq!(heard(|_| false, |_| false, 100), [], "nothing came");
    }
}
