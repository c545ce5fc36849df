//! Encoder and decoder over a channel that loses.

use std::collections::BTreeSet;

use proptest::collection::vec;
use proptest::prelude::*;

use strait_clock::{Random, Time};
use strait_testdata::thorough::all_or;
use strait_wire::{Esn, Protocol};

use super::amount::LossPattern;
use super::decoder::{SymbolDecoder, SymbolRefused};
use super::encoder::SymbolEncoder;
use super::{PAYLOAD_MAX, SOURCE_MAX};

const ROOM: usize = 1446;
const NONE: [u64; 0] = [];

/// The two states of Gilbert's channel.
struct Channel {
    pattern: LossPattern,
    random: Random,
    bad: bool,
}

impl Channel {
    fn new(pattern: LossPattern) -> Channel {
        Channel { pattern, random: Random::new(7), bad: false }
    }

    fn loses(&mut self) -> bool {
        let LossPattern { share, burst } = self.pattern;
        let end = 1.0 / burst.max(1.0 / (1.0 - share));
        let begin = end * share / (1.0 - share);
        let bad = if self.bad { self.random.unit() >= end } else { self.random.unit() < begin };
        self.bad = bad;
        bad
    }
}

fn payload(number: u64, len: usize) -> Vec<u8> {
    let mut random = Random::new(number);
    (0..len).map(|_| random.next_u64() as u8).collect()
}

/// What a transfer came to.
#[derive(Debug, Default)]
struct Outcome {
    sources: u64,
    symbols: u64,
    lost: u64,
    recovered: u64,
    /// Datagrams between a loss and its recovery, together.
    waited: u64,
}

/// Sends `count` payloads of `len` bytes with as many symbols as the pattern asks for where `slots` datagrams pass before a payload is
/// given up.
fn transfer(pattern: LossPattern, slots: usize, count: u64, len: usize) -> Outcome {
    let each = pattern.symbols_each(slots);
    let (mut encoder, mut decoder) = (SymbolEncoder::new(), SymbolDecoder::new());
    let (mut channel, mut outcome) = (Channel::new(pattern), Outcome::default());
    let apart = 145_000_000 / slots as u64;
    let mut missing = BTreeSet::new();
    let (mut number, mut credit) = (0, 0.0);
    while outcome.sources < count {
        number += 1;
        let now = Time::from_nanos(number * apart);
        if credit >= 1.0 {
            credit -= 1.0;
            outcome.symbols += 1;
            let planned = encoder.plan(number, ROOM, now);
            let mut bytes = vec![0xff; planned.payload()];
            encoder.write(&planned, &mut bytes);
            if !channel.loses() {
                // At this rate nothing is over the budget of work; what covers the window's first numbers is late.
                let _ = decoder.symbol(Esn(number), &bytes, now);
            }
        } else {
            credit += each;
            outcome.sources += 1;
            let bytes = payload(number, len);
            assert!(encoder.note(number, Protocol::IPIP, &bytes, now));
            if channel.loses() {
                missing.insert(number);
            } else {
                decoder.arrived(Esn(number), Protocol::IPIP, &bytes, now);
            }
        }
        while let Some((found, next, bytes)) = decoder.take() {
            assert_eq!((next, bytes), (Protocol::IPIP, &payload(found.0, len)[..]), "number {found}");
            assert!(missing.remove(&found.0), "it was lost, and recovered once");
            let waited = number - found.0;
            if waited <= slots as u64 {
                outcome.recovered += 1;
                outcome.waited += waited;
            } else {
                outcome.lost += 1;
            }
        }
    }
    outcome.lost += missing.len() as u64;
    outcome
}

#[test]
fn fewer_than_one_in_a_thousand_stay_lost() {
    // 25 datagrams of 1500 bytes pass a link of 2 Mbit/s in the time for a repair, 128 one of 10 Mbit/s.
    let losses = [(0.0025, 1.0), (0.01, 1.0), (0.03, 1.0), (0.05, 1.0), (0.1, 1.0)];
    let bursts = [(0.0025, 3.0), (0.01, 2.0), (0.01, 5.0), (0.03, 5.0), (0.1, 3.0), (0.05, 3.0)];
    let long = [(0.0025, 10.0), (0.01, 10.0)];
    let on = |slots: usize, losses: &[(f64, f64)]| -> Vec<_> {
        losses.iter().map(|&(share, burst)| (slots, LossPattern { share, burst })).collect()
    };
    let patterns = [on(25, &losses), on(128, &losses), on(128, &bursts), on(128, &long)].concat();
    let step = if all_or("every second pattern of losses") { 1 } else { 2 };
    for (slots, pattern) in patterns.into_iter().step_by(step) {
        let outcome = transfer(pattern, slots, 20_000, 4);
        let residual = outcome.lost as f64 / outcome.sources as f64;
        assert!(residual < 0.001, "{pattern:?} over {slots}: {residual}, {outcome:?}");
        assert!(outcome.symbols as f64 <= pattern.symbols_each(slots) * outcome.sources as f64 + 1.0);
        assert!(outcome.recovered > 0);
    }
}

/// A decoder that has the payloads `present` of 1 to 20, and symbols over all of these under the numbers from 21 on.
fn decoder_with(present: impl Fn(u64) -> bool, symbols: usize) -> (SymbolDecoder, Vec<(Esn, Vec<u8>)>) {
    let (mut encoder, mut decoder) = (SymbolEncoder::new(), SymbolDecoder::new());
    for number in 1..=20 {
        let bytes = payload(number, number as usize * 7);
        assert!(encoder.note(number, Protocol::AGGFRAG, &bytes, Time::ZERO));
        if present(number) {
            decoder.arrived(Esn(number), Protocol::AGGFRAG, &bytes, Time::ZERO);
        }
    }
    let symbols = (21..21 + symbols as u64).map(|number| {
        let planned = encoder.plan(number, ROOM, Time::ZERO);
        assert_eq!(planned.sources(), 20);
        let mut bytes = vec![0; planned.payload()];
        encoder.write(&planned, &mut bytes);
        (Esn(number), bytes)
    });
    (decoder, symbols.collect())
}

fn recovered(decoder: &mut SymbolDecoder) -> Vec<u64> {
    let mut numbers: Vec<_> = core::iter::from_fn(|| {
        let (number, next, bytes) = decoder.take()?;
        assert_eq!((next, bytes), (Protocol::AGGFRAG, &payload(number.0, number.0 as usize * 7)[..]));
        Some(number.0)
    })
    .collect();
    numbers.sort_unstable();
    numbers
}

#[test]
fn as_many_payloads_come_back_as_symbols_came_and_not_before() {
    for lost in [1, 2, 7, 16] {
        let (mut decoder, symbols) = decoder_with(|number| number <= 3 || number > 3 + lost, 18);
        for (count, (number, bytes)) in (1..).zip(&symbols) {
            assert_eq!(decoder.symbol(*number, bytes, Time::ZERO), Ok(()));
            let expected: Vec<u64> = if count == lost { (4..=3 + lost).collect() } else { Vec::new() };
            assert_eq!(recovered(&mut decoder), expected, "{lost} lost, symbol {count}");
        }
    }
}

#[test]
fn payload_that_comes_late_is_worth_a_symbol() {
    let (mut decoder, symbols) = decoder_with(|number| !(5..8).contains(&number), 2);
    for (number, bytes) in &symbols {
        decoder.symbol(*number, bytes, Time::ZERO).unwrap();
    }
    assert_eq!(recovered(&mut decoder), NONE);
    decoder.arrived(Esn(6), Protocol::AGGFRAG, &payload(6, 42), Time::ZERO);
    assert_eq!(recovered(&mut decoder), [5, 7]);
    decoder.arrived(Esn(5), Protocol::AGGFRAG, &payload(5, 35), Time::ZERO);
    assert_eq!(recovered(&mut decoder), NONE, "it is there already");
}

#[test]
fn symbols_that_do_not_fit_recover_nothing() {
    let (mut decoder, symbols) = decoder_with(|number| number != 9, 2);
    let (number, good) = &symbols[0];
    let check = |decoder: &mut SymbolDecoder, number: u64, bytes: &[u8], refused| {
        assert_eq!(decoder.symbol(Esn(number), bytes, Time::ZERO), Err(refused), "{number}");
        assert_eq!(recovered(decoder), NONE);
    };
    check(&mut decoder, 21, &good[..good.len() - 1], SymbolRefused::Malformed);
    check(&mut decoder, 21, &[], SymbolRefused::Malformed);
    let mut long = good.clone();
    long.resize(SOURCE_MAX + 20, 0);
    check(&mut decoder, 21, &long, SymbolRefused::Malformed);
    // One byte is different: what is solved is no source symbol, as its padding is not zeros.
    let mut wrong = good.clone();
    *wrong.last_mut().unwrap() ^= 1;
    check(&mut decoder, 21, &wrong, SymbolRefused::Malformed);
    decoder.symbol(*number, good, Time::ZERO).unwrap();
    assert_eq!(recovered(&mut decoder), [9]);
    let far = Esn(10_000);
    assert_eq!(decoder.symbol(far, good, Time::ZERO), Ok(()), "all that it covers is unknown");
    check(&mut decoder, 22, &symbols[1].1, SymbolRefused::Late);
}

#[test]
fn symbols_that_contradict_each_other_recover_nothing() {
    let (mut decoder, mut symbols) = decoder_with(|number| !(5..7).contains(&number), 3);
    *symbols[1].1.last_mut().unwrap() ^= 1;
    assert_eq!(decoder.symbol(symbols[0].0, &symbols[0].1, Time::ZERO), Ok(()));
    assert_eq!(decoder.symbol(symbols[1].0, &symbols[1].1, Time::ZERO), Err(SymbolRefused::Malformed));
    assert_eq!(decoder.take(), None);
}

#[test]
fn symbols_cover_what_is_in_time_and_fits() {
    let mut encoder = SymbolEncoder::new();
    assert_eq!(encoder.plan(1, ROOM, Time::ZERO).sources(), 0);
    for number in 1..=300 {
        let len = if number == 280 { 1430 } else { 1400 };
        assert!(encoder.note(number, Protocol::IPIP, &payload(number, len), Time::from_millis(number)));
    }
    let sources = |room: usize, number: u64, now: u64| {
        let planned = encoder.plan(number, room, Time::from_millis(now));
        assert!(planned.sources() == 0 || planned.payload() <= room, "{planned:?}");
        planned.sources()
    };
    assert_eq!(sources(1450, 301, 300), 128);
    assert_eq!(sources(1446, 301, 300), 96, "the map takes 12 bytes of 1446 beside 1434");
    assert_eq!(sources(1420, 301, 300), 20, "the longest is too long");
    assert_eq!(sources(1404, 301, 300), 0);
    assert_eq!(sources(1450, 301, 420), 26, "those of the last 145 ms");
    assert_eq!(sources(1450, 301, 1000), 0);
    assert!(!encoder.note(301, Protocol::IPIP, &[0; PAYLOAD_MAX + 1], Time::ZERO));
    assert!(!encoder.note(301, Protocol::NO_NEXT, &[0; 9], Time::ZERO));
}

#[test]
fn work_for_symbols_has_a_budget() {
    let mut decoder = SymbolDecoder::new();
    decoder.arrived(Esn(1), Protocol::IPIP, &[0; 9], Time::ZERO);
    let mut bytes = vec![0xff; 2 + 16 + SOURCE_MAX];
    (bytes[0], bytes[1]) = (0xf5, 16);
    let mut numbers = 130..;
    let over = numbers
        .by_ref()
        .find(|number| decoder.symbol(Esn(*number), &bytes, Time::ZERO) == Err(SymbolRefused::OverBudget));
    // Each costs at most 129 passes over 2048 bytes, of 10 MB.
    assert!(over.is_some_and(|number| (130 + 37..130 + 1000).contains(&number)), "{over:?}");
    let next = numbers.next().unwrap();
    assert_ne!(decoder.symbol(Esn(next), &bytes, Time::from_millis(10)), Err(SymbolRefused::OverBudget));
}

#[test]
fn short_symbols_over_long_equations_pay_for_what_they_take() {
    let mut decoder = SymbolDecoder::new();
    decoder.arrived(Esn(1), Protocol::IPIP, &[0; 9], Time::ZERO);
    let symbol = |len: usize| [&[0xf5, 16][..], &[0xff; 16], &vec![0x5a; len]].concat();
    let (long, short) = (symbol(SOURCE_MAX), symbol(2));
    // As many equations as are kept, each as long as can be.
    for number in 130..194 {
        decoder.symbol(Esn(number), &long, Time::from_millis(number * 1_000)).unwrap();
    }
    let now = Time::from_millis(1_000 * 1_000);
    let over = (194..10_000)
        .find(|number| decoder.symbol(Esn(*number), &short, now) == Err(SymbolRefused::OverBudget));
    // Each is a pass over the sums of 64 equations and another back, of 2 KiB each: 297 kB of the 10 MB that may come at once.
    assert!(over.is_some_and(|number| number < 194 + 40), "{over:?}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn whatever_comes_it_stays_within_bounds(
        steps in vec((0u64..600, 0u8..4, vec(any::<u8>(), 0..40)), 0..200)
    ) {
        let mut decoder = SymbolDecoder::new();
        for (number, kind, mut bytes) in steps {
            match kind {
                0 => decoder.arrived(Esn(number), Protocol::IPV6, &bytes, Time::ZERO),
                1 => {
                    let _ = decoder.symbol(Esn(number), &bytes, Time::ZERO);
                }
                _ => {
                    bytes.splice(..0, [0xf5, 2]);
                    let _ = decoder.symbol(Esn(number), &bytes, Time::ZERO);
                }
            }
            while let Some((_, _, bytes)) = decoder.take() {
                prop_assert!(bytes.len() <= PAYLOAD_MAX);
            }
        }
    }

    #[test]
    fn payloads_come_back_in_whatever_order_all_came(
        lost in proptest::collection::btree_set(2u64..=20, 1..8),
        order in Just((0..30usize).collect::<Vec<_>>()).prop_shuffle(),
    ) {
        let (_, symbols) = decoder_with(|_| true, lost.len());
        let mut decoder = SymbolDecoder::new();
        decoder.arrived(Esn(1), Protocol::AGGFRAG, &payload(1, 7), Time::ZERO);
        for step in order {
            let number = step as u64 + 2;
            if number <= 20 && !lost.contains(&number) {
                decoder.arrived(Esn(number), Protocol::AGGFRAG, &payload(number, step * 7 + 14), Time::ZERO);
            } else if let Some((number, bytes)) = step.checked_sub(20).and_then(|index| symbols.get(index)) {
                decoder.symbol(*number, bytes, Time::ZERO).unwrap();
            }
        }
        let found = recovered(&mut decoder);
        prop_assert!(lost.iter().all(|number| found.contains(number)), "{found:?} of {lost:?}");
    }
}
