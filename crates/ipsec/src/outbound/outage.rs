//! TCP inside the tunnel during an outage: while nothing comes from the peer, the newest segment of each flow is kept, and leaves again
//! as soon as something authentic comes.
//!
//! The hosts' own timers double with each loss (RFC 6298 section 5.5): after an outage, a stream stands still for as long again. A copy
//! of its last segment is acknowledged, which lets it go on at once. TCP takes segments twice (RFC 9293 section 3.10.7.4), so that only
//! TCP is kept. Small probes find out that the path is back: both hosts may wait. They begin when a host sends again what it sent: where
//! traffic goes one way and arrives, none does.

use core::time::Duration;
use std::net::IpAddr;

use strait_clock::Time;
use strait_wire::flow::Flow;
use strait_wire::tcp::{Segment, TcpFlags};
use strait_wire::{Protocol, vnet};

use super::TxStages;
use super::context::{Outlet, TxContext};
use super::reporting::ReturnPath;
use crate::offload::SuperPacket;

/// Segments are kept once nothing came for so long after one: at a host's second retransmission, where round trips are short (its first
/// is after 200 ms, Linux's TCP_RTO_MIN).
const KEEP_AFTER: Duration = Duration::from_millis(500);
/// The least time that an answer has before the path is doubted: the shortest retransmission timeout of RFC 6298 (section 2.4).
const PATIENCE: Duration = Duration::from_secs(1);
/// Probes within the first minutes are so far apart: with their answer and the segment, a stream goes on within 1 s.
const PROBE_EVERY: Duration = Duration::from_millis(500);
/// Later ones are a 200th of the silence apart, which makes an outage that much longer: 0.5 %.
const PROBE_PART: u32 = 200;
/// The longest time between two: within it a stream goes on after an outage of any length.
const PROBE_SLOWLY: Duration = Duration::from_secs(5);
/// The time after which a segment that was not sent again is forgotten: the longest timer of a host that goes on trying (Linux's
/// TCP_RTO_MAX, 120 s), and a quarter.
const FORGET_AFTER: Duration = Duration::from_secs(150);
/// The most flows with a segment each, and the most bytes of these, per peer: so many full packets, and some small ones.
const FLOWS: usize = 64;
const BYTES: usize = 64 << 10;

/// One segment that waits for the end of an outage.
#[derive(Debug)]
pub(super) struct KeptSegment {
    sent: SentSegment,
    /// The whole IP packet.
    pub(super) bytes: Vec<u8>,
}

/// A segment that was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct SentSegment {
    flow: Flow,
    at: Time,
    /// The highest sequence number that its flow reached.
    end: u32,
}

/// The silence of one peer, and the segments that wait for its end.
#[derive(Debug, Default)]
pub(crate) struct Outage {
    /// Authentic datagrams of the peer until now.
    heard: u64,
    /// The first segment since then that wants an answer.
    first: Option<SentSegment>,
    kept: Vec<KeptSegment>,
    /// Bytes of these.
    bytes: usize,
    /// Probes since the path was doubted.
    probes: u32,
    /// The time of the next; nothing until a host sends again what was kept.
    probe_at: Option<Time>,
}

impl Outage {
    /// Takes note of a packet that leaves, after so many datagrams were `heard`.
    pub(super) fn note(
        &mut self,
        packet: &SuperPacket<'_>,
        path: impl Fn() -> ReturnPath,
        heard: u64,
        now: Time,
    ) {
        if self.heard != heard {
            if !self.kept.is_empty() {
                return;
            }
            *self = Outage { heard, ..Outage::default() };
        }
        // One that was never heard may have nothing that answers.
        if heard == 0 || self.first.is_some_and(|first| now.since(first.at) < KEEP_AFTER) {
            return;
        }
        let ip = packet.ip();
        if ip.protocol() != Protocol::TCP || ip.is_fragment() {
            return;
        }
        let Ok(segment) = Segment::parse(ip.payload()) else { return };
        if segment.flags().contains(TcpFlags::RST) {
            return self.forget(|kept| kept.sent.flow == ip.flow());
        }
        if !segment.wants_answer() {
            return;
        }
        let sent = SentSegment { flow: ip.flow(), at: now, end: segment.end() };
        match self.first {
            None => self.first = Some(sent),
            Some(first) => {
                let before = self.keep(packet, sent).or((first.flow == sent.flow).then_some(first.end));
                let again = before.is_some_and(|end| is_after(end, segment.seq()));
                if again && self.probe_at.is_none() && !self.kept.is_empty() {
                    self.probe_at = Some(now.max(first.at + path().patience(PATIENCE)));
                }
            }
        }
    }

    /// Keeps a packet in the place of the one before it in its flow; returns the end of that.
    fn keep(&mut self, packet: &SuperPacket<'_>, mut sent: SentSegment) -> Option<u32> {
        let len = packet.len(0);
        if len > BYTES / 4 {
            return None;
        }
        let before = self.kept.iter().position(|kept| kept.sent.flow == sent.flow);
        let before = before.map(|at| self.take_out(at).sent.end);
        sent.end = before.filter(|end| is_after(*end, sent.end)).unwrap_or(sent.end);
        while self.kept.len() >= FLOWS || self.bytes + len > BYTES {
            self.take_out(self.least_due(sent.flow.src));
        }
        let mut bytes = vec![0; len];
        packet.write(0, &mut bytes);
        self.bytes += len;
        self.kept.push(KeptSegment { sent, bytes });
        before
    }

    /// Returns the place of the segment that gives way to one from `newcomer`: the oldest one of the host that has most.
    fn least_due(&self, newcomer: IpAddr) -> usize {
        // One with half of them has most, and is soon found: a flood of one host is quick.
        let of_it = |kept: &KeptSegment| kept.sent.flow.src == newcomer;
        if 2 * self.kept.iter().filter(|kept| of_it(kept)).count() >= self.kept.len()
            && let Some(at) = self.kept.iter().position(of_it)
        {
            return at;
        }
        let share = |host: IpAddr| {
            self.kept.iter().filter(|kept| kept.sent.flow.src == host).count() + usize::from(host == newcomer)
        };
        let mut least = (0, 0);
        for (at, kept) in self.kept.iter().enumerate() {
            // They are in the order of their age.
            let share = share(kept.sent.flow.src);
            if share > least.0 {
                least = (share, at);
            }
        }
        least.1
    }

    fn take_out(&mut self, at: usize) -> KeptSegment {
        let kept = self.kept.remove(at);
        self.bytes -= kept.bytes.len();
        kept
    }

    /// Forgets some segments, and the silence with the last of them.
    fn forget(&mut self, which: impl Fn(&KeptSegment) -> bool) {
        self.kept.retain(|kept| !which(kept));
        let bytes = self.kept.iter().map(|kept| kept.bytes.len()).sum();
        let before = core::mem::replace(&mut self.bytes, bytes);
        if before > 0 && bytes == 0 {
            *self = Outage { heard: self.heard, ..Outage::default() };
        }
    }

    /// Returns true if the peer was heard while segments waited.
    pub(super) fn is_over(&self, heard: u64) -> bool {
        self.heard != heard && !self.kept.is_empty()
    }

    /// Returns the time of the next probe, or at which all segments that wait are forgotten; nothing while none does.
    pub(super) fn due(&self) -> Option<Time> {
        // They are in the order of their age.
        let newest = self.kept.last()?.sent.at;
        Some(self.probe_at.unwrap_or(newest + FORGET_AFTER))
    }

    /// The peer has new keys, which is as good as being heard.
    pub(super) const fn renew(&mut self) {
        self.heard = u64::MAX;
    }

    /// Takes that the peer was heard; returns what leaves again. Where the first probe was answered there was no outage.
    pub(super) fn end(&mut self, heard: u64, now: Time) -> Vec<KeptSegment> {
        let mut before = core::mem::replace(self, Outage { heard, ..Outage::default() });
        before.forget(|kept| kept.sent.at + FORGET_AFTER <= now);
        if before.probes > 1 { before.kept } else { Vec::new() }
    }

    /// Returns true if a probe is due, which leaves now.
    pub(super) fn asks(&mut self, now: Time) -> bool {
        if self.due().is_none_or(|at| at > now) {
            return false;
        }
        self.forget(|kept| kept.sent.at + FORGET_AFTER <= now);
        !self.kept.is_empty()
    }

    /// A probe that took so many bytes of the link has left.
    pub(super) fn asked(&mut self, bytes: usize, path: ReturnPath, now: Time) {
        let silence = self.first.map_or(Duration::ZERO, |first| now.since(first.at));
        let pause = match self.probes {
            0 => path.patience(PATIENCE),
            _ => (silence / PROBE_PART).clamp(PROBE_EVERY, PROBE_SLOWLY),
        };
        self.probes = self.probes.saturating_add(1);
        self.probe_at = Some(now + pause.max(path.apart(bytes)));
    }
}

/// Returns true if one sequence number is after another.
const fn is_after(one: u32, other: u32) -> bool {
    one.wrapping_sub(other).cast_signed() > 0
}

impl TxStages {
    /// Sends the kept segments if the outage has ended, or a probe that is due to find that out.
    pub(super) fn attend_outage(&mut self, tx: &mut TxContext<'_, impl Outlet>) {
        let heard = tx.link.spec.counters.in_datagrams.get();
        if tx.link.outage.is_over(heard) {
            return self.end_outage(tx);
        }
        if !tx.own.quiet && tx.link.outage.asks(tx.now) {
            let before = tx.link.sealed.wire;
            self.transmitter.ask(tx);
            let (bytes, path) = (tx.link.sealed.wire - before, tx.link.pacing.return_path(tx.own.rate));
            tx.link.outage.asked(bytes, path, tx.now);
        }
    }

    /// Sends the segments that waited once more.
    pub(super) fn end_outage(&mut self, tx: &mut TxContext<'_, impl Outlet>) {
        let heard = tx.link.spec.counters.in_datagrams.get();
        self.transmitter.departure.begin_train(tx.link.spec.id);
        for kept in tx.link.outage.end(heard, tx.now) {
            let Ok(packet) = SuperPacket::new(&kept.bytes, &vnet::Header::PLAIN) else { continue };
            tx.link.spec.counters.queue.resent.add(1);
            let sent = self.accept(tx, &packet, &vnet::Header::PLAIN).map(|()| true);
            self.transmitter.departure.note_lost(sent);
        }
        self.transmitter.departure.depart(tx);
    }
}

#[cfg(test)]
mod tests;
