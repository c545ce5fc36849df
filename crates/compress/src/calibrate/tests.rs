use super::*;

/// A clock that a reading moves on by what `step` says of its number.
fn clock(step: impl Fn(u64) -> u64) -> impl FnMut() -> u64 {
    let (mut now, mut readings) = (0, 0);
    move || {
        now += step(readings);
        readings += 1;
        now
    }
}

/// Readings of a whole round: three for each size, and one to see what it took.
const A_ROUND: u64 = 3 * 2 + 1;
/// Readings of a method whose rounds all take place.
const A_METHOD: u64 = 1 + A_ROUND * ROUNDS as u64;

#[test]
fn the_sample_is_as_compressible_as_mixed_text() {
    let measured = calibrate(&mut Codecs::new(), || 0);
    let ratio = measured.of(zstd(1)).unwrap().ratio[1].get();
    assert!((2.3..2.8).contains(&ratio), "{ratio}");
    // The same text everywhere, but the libraries may come to write it a little shorter.
    for (measured, assumed) in measured.figures().iter().zip(&ASSUMED) {
        let all = |figures: &MethodFigures| [figures.ratio, figures.ratio_behind].concat();
        for (measured, assumed) in all(measured).iter().zip(&all(assumed)) {
            assert!((measured.get() / assumed.get() - 1.0).abs() < 0.02, "{measured:?} {assumed:?}");
        }
    }
}

#[test]
fn candidates_are_ordered_fastest_first() {
    let packet = |figures: &MethodFigures| figures.compress.of(Bytes(SIZES[0] as u64));
    let assumed = Calibration::assumed();
    assert!(assumed.figures().is_sorted_by_key(packet), "{assumed:?}");
    assert_eq!(assumed.of(Method::ZSTD).map(|figures| figures.method), Some(Method::ZSTD));
    assert_eq!(assumed.of(Method::NONE), None);
}

#[test]
fn times_are_a_line_through_both_sizes() {
    // Every reading a microsecond after the last: 16 small blocks in one, 4 large blocks in one.
    let calibration = calibrate(&mut Codecs::new(), clock(|_| 1_000));
    let line = Cost::through((Bytes(1_400), Seconds(1e-6 / 16.0)), (Bytes(16_384), Seconds(1e-6 / 4.0)));
    for figures in calibration.figures() {
        assert_eq!((figures.compress, figures.expand), (line, line), "{}", figures.method);
    }
}

#[test]
fn calibration_keeps_the_fastest_round() {
    let even = calibrate(&mut Codecs::new(), clock(|_| 1_000));
    // Something else had the machine in all rounds but the third.
    let disturbed = |reading: u64| {
        if reading > A_METHOD * CANDIDATES.len() as u64 {
            return 1_000;
        }
        let round = (reading % A_METHOD).saturating_sub(1) / A_ROUND;
        if round == 2 { 1_000 } else { 9_000 + reading }
    };
    assert_eq!(calibrate(&mut Codecs::new(), clock(disturbed)), even);
}

#[test]
fn a_slow_machine_stops_at_its_budget() {
    // 10 ms a reading: the first round is past the budget.
    let mut readings = 0;
    let calibration = calibrate(&mut Codecs::new(), || {
        readings += 1;
        readings * 10_000_000
    });
    // And one block behind history with each level of Zstandard.
    let levels = CANDIDATES.iter().filter(|method| method.codec == Codec::Zstd).count() as u64;
    assert_eq!(readings, CANDIDATES.len() as u64 * (1 + A_ROUND) + 2 * levels);
    let slow = calibration.of(Method::LZ4).unwrap().compress.of(Bytes(16_384));
    assert!((slow.0 / (0.01 / 4.0) - 1.0).abs() < 1e-9, "{slow:?}");
}

#[test]
fn stopped_clock_calibrates_to_zero_cost() {
    let calibration = calibrate(&mut Codecs::new(), || 42);
    for figures in calibration.figures() {
        assert_eq!((figures.compress, figures.expand), (Cost::FREE, Cost::FREE), "{}", figures.method);
    }
}

#[test]
fn a_real_clock_measures_something() {
    #[allow(clippy::disallowed_methods, reason = "the one test that wants real time")]
    let start = std::time::Instant::now();
    let calibration = calibrate(&mut Codecs::new(), || u64::try_from(start.elapsed().as_nanos()).unwrap());
    for figures in calibration.figures() {
        let bytes = Bytes(SIZES[1] as u64);
        assert!(figures.compress.of(bytes) > Seconds(0.0), "{}", figures.method);
        assert!(figures.expand.of(bytes) > Seconds(0.0), "{}", figures.method);
    }
}

#[test]
fn figures_go_into_a_file_and_come_back() {
    let assumed = Calibration::assumed();
    assert_eq!(Calibration::from_numbers(&assumed.numbers()), Some(assumed.clone()));
    for place in 0..NUMBERS {
        for wrong in [f64::NAN, f64::INFINITY, -1.0] {
            let mut numbers = assumed.numbers();
            numbers[4][place] = wrong;
            assert_eq!(Calibration::from_numbers(&numbers), None, "{wrong} at {place}");
        }
    }
}
