use std::collections::VecDeque;

use super::*;

/// Packets by number, with the time at which each came and its length.
#[derive(Default)]
struct Fifo {
    packets: VecDeque<(u32, Time, usize)>,
    now: Time,
    /// Every so many packets can be marked.
    marks: u32,
    struck: Vec<(u32, bool)>,
}

impl Fifo {
    fn bytes(&self) -> usize {
        self.packets.iter().map(|(.., len)| len).sum()
    }

    fn can_mark(&self, packet: u32) -> bool {
        self.marks > 0 && packet.is_multiple_of(self.marks)
    }
}

impl CodelQueue for Fifo {
    type Packet = u32;

    fn take(&mut self) -> Option<(u32, Duration, usize)> {
        let (packet, came, _) = self.packets.pop_front()?;
        Some((packet, self.now.since(came), self.bytes()))
    }

    fn strike(&mut self, packet: u32) -> Option<u32> {
        let marked = self.can_mark(packet);
        self.struck.push((packet, marked));
        marked.then_some(packet)
    }
}

/// The pseudo-code of RFC 8289 section 5, line by line, in seconds; marks as in RFC 8290 section 4.2 and Linux's `codel_impl.h`.
struct Published {
    queue: Fifo,
    terms: CodelTerms,
    first_above_time: f64,
    drop_next: f64,
    count: u32,
    lastcount: u32,
    dropping: bool,
}

struct DodequeueResult {
    p: Option<u32>,
    ok_to_drop: bool,
}

impl Published {
    fn control_law(&self, t: f64, count: u32) -> f64 {
        t + self.terms.interval.as_secs_f64() / f64::from(count).sqrt()
    }

    fn dodequeue(&mut self, now: f64) -> DodequeueResult {
        let mut r = DodequeueResult { p: None, ok_to_drop: false };
        let Some((p, came, _)) = self.queue.packets.pop_front() else {
            self.first_above_time = 0.0;
            return r;
        };
        r.p = Some(p);
        let sojourn_time = self.queue.now.since(came);
        if sojourn_time < self.terms.target || self.queue.bytes() <= self.terms.least {
            self.first_above_time = 0.0;
        } else if self.first_above_time == 0.0 {
            self.first_above_time = now + self.terms.interval.as_secs_f64();
        } else if now >= self.first_above_time {
            r.ok_to_drop = true;
        }
        r
    }

    fn dequeue(&mut self, now: Time) -> Option<u32> {
        self.queue.now = now;
        let now = seconds(now);
        let mut r = self.dodequeue(now);
        if r.p.is_none() {
            self.dropping = false;
            return r.p;
        }
        if self.dropping {
            if !r.ok_to_drop {
                self.dropping = false;
            }
            while now >= self.drop_next && self.dropping {
                self.count += 1;
                if self.queue.strike(r.p?).is_some() {
                    self.drop_next = self.control_law(self.drop_next, self.count);
                    return r.p;
                }
                r = self.dodequeue(now);
                if r.ok_to_drop {
                    self.drop_next = self.control_law(self.drop_next, self.count);
                } else {
                    self.dropping = false;
                }
            }
        } else if r.ok_to_drop {
            if self.queue.strike(r.p?).is_none() {
                r = self.dodequeue(now);
            }
            self.dropping = true;
            let delta = self.count - self.lastcount;
            self.count = 1;
            if delta > 1 && now - self.drop_next < 16.0 * self.terms.interval.as_secs_f64() {
                self.count = delta;
            }
            self.drop_next = self.control_law(now, self.count);
            self.lastcount = self.count;
        }
        r.p
    }
}

fn seconds(time: Time) -> f64 {
    time.since(Time::ZERO).as_secs_f64()
}

/// Bursts and pauses through a link of 1.5 Mbit/s, by both; what was struck.
fn compare(seed: u64, marks: u32) -> usize {
    let rate = Rate::from_bits(1_500_000).expect("in range");
    let terms = CodelTerms::new(Some(rate), 1_500, Duration::ZERO);
    let queue = |marks| Fifo { marks, ..Fifo::default() };
    let mut ours = (Codel::default(), queue(marks));
    let mut theirs = Published {
        queue: queue(marks),
        terms,
        first_above_time: 0.0,
        drop_next: 0.0,
        count: 0,
        lastcount: 0,
        dropping: false,
    };
    let mut random = strait_clock::Random::new(seed);
    let (mut arrival, mut sent) = (Time::from_millis(1), 0_u32);
    let mut now = arrival;
    for _ in 0..4_000 {
        while arrival <= now {
            let packet = (sent, arrival, 40 + usize::try_from(random.below(1_460)).expect("small"));
            ours.1.packets.push_back(packet);
            theirs.queue.packets.push_back(packet);
            sent += 1;
            // Offered is twice the link for a while, then half of it.
            let gap = if (sent / 300) % 2 == 0 { 4_000_000 } else { 9_000_000 };
            arrival += Duration::from_nanos(random.below(gap));
        }
        ours.1.now = now;
        let packet = ours.0.dequeue(&mut ours.1, now, &terms);
        assert_eq!(packet, theirs.dequeue(now), "seed {seed} at {now:?}");
        assert_eq!(ours.1.struck, theirs.queue.struck);
        now += rate.time_for(750).mul_f64(0.5 + random.unit());
    }
    ours.1.struck.len()
}

#[test]
fn drops_what_the_pseudo_code_of_the_rfc_drops() {
    assert!((0..40).all(|seed| compare(seed, 0) > 20));
    assert!((40..60).all(|seed| compare(seed, 1) > 20 && compare(seed, 3) > 20));
}

#[test]
fn targets_of_slow_and_of_fast_links() {
    let terms = |bits| CodelTerms::new(Rate::from_bits(bits), 1_500, Duration::ZERO);
    let millis = Duration::from_millis;
    assert_eq!((terms(100_000_000).target, terms(100_000_000).interval), (millis(5), millis(100)));
    assert_eq!((terms(1_500_000).target, terms(1_500_000).interval), (millis(12), millis(100)));
    // A datagram takes 120 ms.
    assert_eq!((terms(100_000).target, terms(100_000).interval), (millis(180), millis(360)));
    assert_eq!(CodelTerms::new(None, 1_500, Duration::ZERO).target, millis(5));
}

#[test]
fn target_and_interval_follow_the_round_trip() {
    let millis = Duration::from_millis;
    let terms = |bits, trip| CodelTerms::new(Rate::from_bits(bits), 1_500, millis(trip));
    let pair = |terms: CodelTerms| (terms.target, terms.interval);
    assert_eq!(pair(terms(10_000_000, 0)), (millis(5), millis(100)));
    assert_eq!(pair(terms(10_000_000, 100)), (millis(45), millis(200)));
    assert_eq!(pair(terms(10_000_000, 600)), (millis(245), millis(700)));
    // What a datagram takes is still no queue.
    assert_eq!(pair(terms(100_000, 60)), (millis(180), millis(360)));
    for trip in [0, 1, 20, 60, 300, 600, 2_000] {
        let CodelTerms { target, interval, .. } = terms(100_000_000, trip);
        assert!(target * 2 <= interval, "{trip} ms: {target:?} {interval:?}");
    }
}

/// A queue that a sender keeps at `waits` of packets, and when each was struck, in milliseconds.
fn struck_at(round_trip: u64, waits: u64) -> Vec<u64> {
    let millis = Duration::from_millis;
    let terms = CodelTerms::new(Rate::from_bits(10_000_000), 1_500, millis(round_trip));
    let (mut codel, mut fifo, mut struck) = (Codel::default(), Fifo::default(), Vec::new());
    for at in waits..20_000 {
        let now = Time::from_millis(at);
        fifo.packets = (0..waits).map(|age| (0, Time::from_millis(at - waits + age), 1_250)).collect();
        fifo.now = now;
        let before = fifo.struck.len();
        codel.dequeue(&mut fifo, now, &terms);
        struck.extend((before..fifo.struck.len()).map(|_| at));
    }
    struck
}

#[test]
fn each_signal_has_time_for_a_reaction_and_a_sender_without_one_meets_the_law() {
    let struck = struck_at(600, 400);
    let apart: Vec<u64> = struck.windows(2).map(|two| two[1] - two[0]).collect();
    // Two round trips, and what waited at the signal and what waits behind it; and that twice.
    assert_eq!(apart[..2], [2_000, 2_000], "{struck:?}");
    assert!(apart[2..].iter().all(|apart| *apart <= 700) && apart.len() > 20, "{apart:?}");
    // Without a round trip the law holds from the first.
    let law = struck_at(0, 400);
    assert!(law.windows(2).all(|two| two[1] - two[0] <= 101), "{law:?}");
}

#[test]
fn a_queue_of_one_datagram_is_left_alone_however_long_it_stands() {
    let terms = CodelTerms::new(None, 1_500, Duration::ZERO);
    let (mut codel, mut fifo) = (Codel::default(), Fifo::default());
    fifo.packets = (0..1_000).map(|packet| (packet, Time::ZERO, 1_500)).collect();
    for second in 1.. {
        let now = Time::from_millis(1_000 * second);
        fifo.now = now;
        if codel.dequeue(&mut fifo, now, &terms).is_none() {
            break;
        }
    }
    // Some hundred were dropped, but neither of the last two.
    assert!(fifo.struck.len() > 100 && fifo.struck.iter().all(|(packet, _)| *packet < 998));
}
