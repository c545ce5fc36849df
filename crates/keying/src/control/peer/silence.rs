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
/// The same in a conversation, where answers came until then: three times the shortest retransmission timeout of TCP (RFC 6298
/// section 2.4); eight round trips, if that is longer.
const INTERRUPTED: Duration = Duration::from_secs(3);
/// Looks, a second apart, at which packets had gone both ways: a conversation. One that goes on is interrupted when as many find that
/// something was sent; a single packet is no sign.
const CONVERSATION: u8 = 3;
/// The time that an answer to the probe has at least before the peer counts as one that does not answer: TCP's shortest retransmission
/// timeout (RFC 6298 section 2.4). It has three round trips, if that is longer.
const PROBE_LEAST: Duration = Duration::from_secs(1);
/// How long the probe has (with the former, `WireGuard`'s KEEPALIVE_TIMEOUT + REKEY_TIMEOUT).
const PROBED: Duration = Duration::from_secs(5);
/// The longest time between two handshakes that nothing under ESP followed: the longest pause between attempts.
const FRUITLESS: Duration = Duration::from_secs(60);

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

/// The silence of a peer that this node speaks to. Packets that it sends by itself, as keepalives, want no answer and count
/// for nothing.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Silence {
    /// Inner packets sent so far, and when the last of them was.
    sent: (u64, Time),
    /// Inner packets sent before this silence was found.
    before: u64,
    /// The first packet after the last that was heard.
    since: Option<Time>,
    /// When the peer was probed.
    probed: Option<Time>,
    /// When it was last looked.
    looked: Time,
    /// Inner packets received until then.
    packets: u64,
    /// Looks at which packets had gone both ways since the one before, and answers had come soon.
    talks: u8,
    /// Looks of this silence at which something had been sent since the one before.
    sends: u8,
    /// True once the peer has not answered the probe in time.
    unanswered: bool,
}

/// What a silence calls for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SilenceAnswer {
    Nothing,
    Probe,
    Handshake,
}

impl Silence {
    /// Takes how many inner packets were sent, and when anything was; returns when the last of them was, at the latest.
    fn note_sent(&mut self, packets: u64, last: Time) -> Time {
        if packets != self.sent.0 {
            self.sent = (packets, last);
        }
        self.sent.1
    }

    /// Takes when something was last sent and last heard. Silence grows only while packets are sent: the
    /// last word of a conversation needs no answer, or two idle nodes would probe each other for ever.
    fn note(
        &mut self,
        sent: Time,
        heard: Time,
        (packets, round_trip): (u64, Duration),
        now: Time,
    ) -> SilenceAnswer {
        let before = core::mem::replace(&mut self.looked, now);
        if self.since.is_none_or(|since| heard >= since) {
            // Neither an answer to a probe nor a late one is a conversation.
            let soon = self.since.is_none_or(|since| heard < since + INTERRUPTED);
            let talked = sent > before && packets > self.packets;
            let talks = if soon && self.probed.is_none() { self.talks } else { 0 };
            let since = (sent > heard).then_some(sent);
            *self = Silence {
                sent: self.sent,
                before: self.sent.0,
                since,
                talks: talks.saturating_add(u8::from(talked)),
                looked: now,
                packets,
                ..Silence::default()
            };
        }
        let Some(since) = self.since else { return SilenceAnswer::Nothing };
        self.sends = self.sends.saturating_add(u8::from(sent > before));
        let interrupted = self.talks >= CONVERSATION && self.sends >= CONVERSATION;
        let deaf = if interrupted { INTERRUPTED.max(8 * round_trip) } else { DEAF };
        let answer = (3 * round_trip).clamp(PROBE_LEAST, PROBED);
        self.unanswered = self.probed.is_some_and(|probed| probed + answer <= now);
        match self.probed {
            None if sent >= since + deaf => {
                self.probed = Some(now);
                SilenceAnswer::Probe
            }
            // Each tick calls again while packets are still sent, and the backoff spaces the attempts.
            Some(probed) if now >= probed + PROBED && sent + DEAF + PROBED > now => SilenceAnswer::Handshake,
            _ => SilenceAnswer::Nothing,
        }
    }

    /// The first packet that the peer, last heard at `heard`, has not answered, and neither a probe after it.
    fn unanswered_since(&self, heard: Time) -> Option<Time> {
        self.since.filter(|since| self.unanswered && heard < *since)
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
            && pair.needs_successor(context.node.lifetime, self.config.keepalive.is_some(), now)
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

    /// Returns the time at which it was last heard, its last handshake included.
    fn heard(&self) -> Option<Time> {
        self.pairs.last_heard().max(self.pairs.in_use().map(|pair| pair.established))
    }

    /// Counts the handshakes in a row after which packets left and nothing came under ESP, now that there is another. Where handshakes
    /// pass and ESP does not, they help nothing.
    pub(super) fn count_fruitless(&mut self) {
        let fruitless = self.pairs.in_use().map(|pair| pair.established).is_some_and(|at| {
            self.silence.since.is_some_and(|since| since > at)
                && self.pairs.last_heard().is_none_or(|heard| heard < at)
        });
        self.fruitless = if fruitless { self.fruitless.saturating_add(1) } else { 0 };
    }

    /// Returns the time from which silence is a reason for a handshake: the pause after the last one doubles with each that helped
    /// nothing.
    fn next_fruitful(&self) -> Option<Time> {
        let at = self.pairs.in_use()?.established;
        let heard = self.pairs.last_heard().is_some_and(|heard| heard >= at);
        let pause = (DEAF + PROBED).saturating_mul(1 << self.fruitless.min(4)).min(FRUITLESS);
        (self.fruitless > 0 && !heard).then_some(at + pause)
    }

    /// The first packet that it has not answered, if it does not answer.
    pub(super) fn unanswered_since(&self) -> Option<Time> {
        self.silence.unanswered_since(self.heard()?)
    }

    /// Returns the least number of inner packets that it has not answered, if it does not answer: the first, and those that were sent
    /// since the look, of one a second, that found it.
    pub(super) fn unanswered_packets(&self) -> Option<u64> {
        self.unanswered_since()?;
        Some(self.config.spec.counters.out_packets.get().saturating_sub(self.silence.before) + 1)
    }

    /// Probes a peer that answers nothing, then wants a handshake with it.
    pub(crate) fn check_silence(&mut self, now: Time, context: &mut ControlContext) {
        let Some(pair) = self.pairs.in_use() else { return };
        let (Some(sent), Some(heard)) = (pair.outbound.usage.last(), self.heard()) else { return };
        let counters = &self.config.spec.counters;
        let sent = self.silence.note_sent(counters.out_packets.get(), sent);
        let round_trip = counters.path.get().and_then(|path| path.round_trip).unwrap_or_default();
        match self.silence.note(sent, heard, (counters.in_packets.get(), round_trip), now) {
            SilenceAnswer::Nothing => {}
            SilenceAnswer::Probe => {
                context.order_out(outbound::Order::Probe(self.id()));
                context.log(ControlEvent::Silent { peer: self.id() });
            }
            SilenceAnswer::Handshake if self.next_fruitful().is_some_and(|at| now < at) => {}
            SilenceAnswer::Handshake => {
                if !self.initiation.is_under_way() {
                    self.initiation.distrust_address();
                }
                // Packets are sent into the silence, which is as good as waiting.
                self.initiation.await_until(now + ATTEMPT);
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

    /// When a peer that hears nothing any more from the tenth second on is probed, when it counts as one that does not answer, and when a
    /// handshake is wanted with it, if it is sent packets in these seconds, and answers where both are true.
    fn course(sends: impl Fn(u64) -> bool, answers: impl Fn(u64) -> bool) -> [Option<u64>; 3] {
        let (mut silence, mut sent, mut heard) = (Silence::default(), Time::ZERO, Time::ZERO);
        let (mut course, mut packets) = ([None; 3], 0);
        for second in 1..=40 {
            let now = Time::from_millis(second * 1000);
            if sends(second) {
                sent = Time::from_millis(second * 1000 - 500);
                heard = if answers(second) { Time::from_millis(second * 1000 - 400) } else { heard };
            }
            packets += u64::from(sends(second) && answers(second));
            let answer = silence.note(sent, heard, (packets, Duration::from_millis(100)), now);
            let unanswered = silence.unanswered_since(heard).is_some();
            let now = [answer == SilenceAnswer::Probe, unanswered, answer == SilenceAnswer::Handshake];
            for (at, is) in course.iter_mut().zip(now) {
                *at = at.or_else(|| is.then_some(second));
            }
        }
        course
    }

    #[test]
    fn peer_that_answered_until_now_is_missed_sooner() {
        let dies = |second| second < 10;
        assert_eq!(course(|_| true, dies), [Some(13), Some(14), Some(18)]);
        assert_eq!(course(|_| true, |_| false), [Some(11), Some(12), Some(16)], "none answered before");
        assert_eq!(course(|_| true, |_| true), [None; 3]);
        assert_eq!(course(|second| second <= 10, dies), [None; 3], "the last word needs no answer");
        assert_eq!(course(|second| second % 5 == 0, |_| true), [None; 3]);
        let rare = course(|second| second % 5 == 0, dies);
        assert_eq!(rare, [Some(20), Some(21), Some(25)], "too few packets for a conversation");
    }

    #[test]
    fn answer_to_a_probe_is_no_conversation() {
        let (mut silence, mut probes) = (Silence::default(), 0);
        let mut heard = Time::ZERO;
        for second in 1..=120 {
            let now = Time::from_millis(second * 1000);
            let sent = Time::from_millis(second * 1000 - 500);
            if silence.note(sent, heard, (0, Duration::from_millis(100)), now) == SilenceAnswer::Probe {
                (heard, probes) = (Time::from_millis(second * 1000 + 100), probes + 1);
            }
        }
        assert!((10..=12).contains(&probes), "{probes} probes of 120 s");
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
