//! When a sender makes repair symbols.

use core::time::Duration;

use strait_clock::Time;
use strait_wire::Protocol;
use strait_wire::symbol::{self, SOURCE_HEADER_LEN};

use super::amount::LossPattern;
use super::encoder::{PlannedSymbol, SymbolEncoder};

/// Payloads that a symbol covers at least. Where fewer leave in the time that a repair may take, they get none: a symbol for a few
/// would cost more than other tunnels take. Not more, or the first small windows of a transfer are not covered: at 2 Mbit/s and 600 ms,
/// text whose window was cut to 10 datagrams by an early loss got none with 10, and stayed at a quarter of the rate for a minute.
const SOURCES_MIN: u32 = 5;
/// A pause after which the last payloads get their symbols at once: longer than between datagrams of a busy link above 1 Mbit/s.
const PAUSE: Duration = Duration::from_millis(15);
/// Numbers that a symbol has room for beside those of payloads that it covers: of reports and what else is not covered.
const OTHERS: u32 = 8;
/// Numbers that a symbol has room for at least: what 2 Mbit/s carry in the time for a repair.
const NUMBERS_MIN: u32 = 32;
/// The weight of a new measurement of how many datagrams a window has.
const SMOOTH: f64 = 1.0 / 8.0;
/// How much the pattern of losses or the window changes before the share of symbols is computed again.
const CHANGED: f64 = 0.1;

/// Makes repair symbols towards a peer.
#[derive(Debug)]
pub(crate) struct SymbolSender {
    encoder: SymbolEncoder,
    pattern: LossPattern,
    /// Datagrams that leave in the time that a repair may take.
    slots: f64,
    /// The pattern and the datagrams that `each` follows from.
    computed: (LossPattern, f64),
    /// Symbols for each payload.
    each: f64,
    /// Symbols that are due, and a part of the next.
    credit: f64,
    /// Payloads since the last pause.
    since_pause: f64,
    /// When the last payload left that no symbol was made for in a pause.
    last: Option<Time>,
}

impl SymbolSender {
    /// Towards a peer on a path that loses so.
    pub(crate) fn new(pattern: LossPattern) -> SymbolSender {
        SymbolSender {
            encoder: SymbolEncoder::new(),
            pattern,
            slots: f64::from(SOURCES_MIN),
            computed: (LossPattern::NONE, 0.0),
            each: 0.0,
            credit: 0.0,
            since_pause: 0.0,
            last: None,
        }
    }

    /// The path loses so from now on.
    pub(crate) const fn set_pattern(&mut self, pattern: LossPattern) {
        self.pattern = pattern;
    }

    /// Another association, with numbers of its own: nothing that left before is covered any more.
    pub(crate) fn renew(&mut self) {
        let SymbolSender { pattern, slots, computed, each, .. } = *self;
        *self = SymbolSender { slots, computed, each, ..SymbolSender::new(pattern) };
    }

    /// Symbols for each payload.
    pub(crate) const fn each(&self) -> f64 {
        self.each
    }

    /// Bytes of a datagram's payload that other payloads leave free, so that the symbols over them fit.
    pub(crate) fn reserve(&self) -> usize {
        let numbers = (self.slots as u32).saturating_add(OTHERS).clamp(NUMBERS_MIN, u128::BITS);
        symbol::header_len(u128::MAX << (u128::BITS - numbers)) + SOURCE_HEADER_LEN
    }

    /// A payload leaves under `number`.
    pub(crate) fn note(&mut self, number: u64, next: Protocol, payload: &[u8], now: Time) {
        if self.encoder.note(number, next, payload, now) {
            self.credit += self.each;
            self.since_pause += 1.0;
            self.last = Some(now);
        }
    }

    /// A symbol that is due, to leave under `number` in a payload of at most `room` bytes.
    pub(crate) fn next(&mut self, number: u64, room: usize, now: Time) -> Option<PlannedSymbol> {
        if self.credit < 1.0 && self.each > 0.0 {
            return None;
        }
        let planned = self.encoder.plan(number, room, now);
        self.measure(planned.sources());
        if self.credit < 1.0 {
            return None;
        }
        let enough = planned.sources() >= SOURCES_MIN;
        // Traffic that is too sparse for a symbol now does not get two later.
        self.credit = if enough { self.credit - 1.0 } else { 0.0 };
        enough.then_some(planned)
    }

    /// Writes the payload of a planned symbol.
    pub(crate) fn write(&self, planned: &PlannedSymbol, payload: &mut [u8]) {
        self.encoder.write(planned, payload);
    }

    /// When the last payloads get their symbols, if nothing else leaves before.
    pub(crate) fn pause_at(&self) -> Option<Time> {
        self.last.filter(|_| self.each > 0.0).map(|last| last + PAUSE)
    }

    /// Nothing left for a while: the last payloads get symbols now, which would come with later ones. Of a window, a half is covered by
    /// symbols that left already.
    pub(crate) fn pause(&mut self, now: Time) {
        if self.pause_at().is_none_or(|at| at > now) {
            return;
        }
        let window = self.slots / (1.0 + self.each);
        self.credit += self.each * self.since_pause.min(window) / 2.0;
        (self.last, self.since_pause) = (None, 0.0);
    }

    /// A symbol would cover so many payloads.
    fn measure(&mut self, sources: u32) {
        let slots = f64::from(sources) * (1.0 + self.each);
        self.slots += (slots - self.slots) * SMOOTH;
        let (pattern, slots) = self.computed;
        let differs = |one: f64, other: f64| (one - other).abs() > CHANGED * other;
        if differs(self.pattern.share, pattern.share)
            || differs(self.pattern.burst, pattern.burst)
            || differs(self.slots, slots)
        {
            self.computed = (self.pattern, self.slots);
            self.each = self.pattern.symbols_each(self.slots.round() as usize);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROOM: usize = 1446;
    const PATTERN: LossPattern = LossPattern { share: 0.01, burst: 1.0 };

    /// A sender, the last number that it used, and the time.
    struct Course {
        sender: SymbolSender,
        number: u64,
        now: u64,
    }

    impl Course {
        fn new() -> Course {
            Course { sender: SymbolSender::new(PATTERN), number: 0, now: 1000 }
        }

        /// Payloads of 1,000 bytes every `apart` ms for `span` ms; how many payloads and symbols left.
        fn run(&mut self, apart: u64, span: u64) -> (u64, u64) {
            let (mut sources, mut symbols) = (0, 0);
            for _ in 0..span / apart {
                self.now += apart;
                self.number += 1;
                let now = Time::from_millis(self.now);
                self.sender.note(self.number, Protocol::IPIP, &[7; 1000], now);
                sources += 1;
                if self.sender.next(self.number + 1, ROOM, now).is_some() {
                    self.number += 1;
                    symbols += 1;
                }
            }
            (sources, symbols)
        }
    }

    #[test]
    fn busy_traffic_gets_the_share_that_the_path_asks_for() {
        let mut course = Course::new();
        course.run(5, 1000);
        let (sources, symbols) = course.run(5, 10_000);
        let expected = PATTERN.symbols_each(32) * sources as f64;
        assert!(
            (symbols as f64 - expected).abs() < 0.15 * expected,
            "{symbols} of {sources}, not {expected}"
        );
        // Twice as many in the same time need fewer for each.
        let (more, same) = course.run(2, 10_000);
        assert!(same * sources < symbols * more, "{same} of {more}");
        course.sender.set_pattern(LossPattern { share: 0.03, burst: 1.0 });
        assert!(course.run(2, 10_000).1 > same * 2);
    }

    #[test]
    fn sparse_traffic_gets_none() {
        let mut course = Course::new();
        assert_eq!(course.run(40, 10_000), (250, 0), "25 a second");
        course.run(5, 2000);
        // A window of the busy time is left.
        course.run(40, 300);
        assert_eq!(course.run(40, 10_000).1, 0);
    }

    #[test]
    fn last_payloads_before_a_pause_get_theirs_at_once() {
        let mut course = Course::new();
        course.run(5, 1000);
        let Course { mut sender, number, now } = course;
        let at = sender.pause_at().unwrap();
        assert_eq!(at, Time::from_millis(now) + PAUSE);
        sender.pause(Time::from_millis(now + 5));
        assert!(sender.next(number + 1, ROOM, Time::from_millis(now + 5)).is_none(), "no pause yet");
        sender.pause(at);
        let symbols = (number + 1..).map_while(|number| sender.next(number, ROOM, at)).count();
        assert!((1..=3).contains(&symbols), "{symbols}");
        assert_eq!(sender.pause_at(), None);
    }

    #[test]
    fn pauses_again_and_again_cost_half_as_much_more() {
        let [mut course, mut paused] = [Course::new(), Course::new()];
        course.run(5, 10_000);
        let (_, symbols) = course.run(5, 10_000);
        paused.run(5, 10_000);
        let mut more = 0;
        for _ in 0..1000 {
            more += paused.run(5, 10).1;
            let at = paused.sender.pause_at().unwrap();
            paused.sender.pause(at);
        }
        assert!(more <= symbols * 8 / 5, "{more} and {symbols}");
    }

    #[test]
    fn symbols_fit_beside_payloads_that_leave_the_reserve() {
        let mut sender = SymbolSender::new(PATTERN);
        assert_eq!(sender.reserve(), 8);
        let mut number = 0;
        for at in 0..2000 {
            let now = Time::from_nanos(at * 2_000_000);
            number += 1;
            sender.note(number, Protocol::IPIP, &vec![1; ROOM - sender.reserve()], now);
            if let Some(planned) = sender.next(number + 1, ROOM, now) {
                number += 1;
                assert!(planned.payload() <= ROOM);
                sender.write(&planned, &mut vec![0; planned.payload()]);
            }
        }
        let (reserve, each) = (sender.reserve(), sender.each());
        assert!((12..=15).contains(&reserve) && (0.02..0.06).contains(&each), "{reserve} {each}");
        sender.renew();
        assert!(sender.each() > 0.02);
        assert_eq!(sender.next(9000, ROOM, Time::from_millis(4000)), None);
    }
}
