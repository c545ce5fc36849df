//! When compression pays, headers left aside: the inequality of section 6.2, and where its two sides meet.

use crate::{BitRate, Ratio, Seconds};

/// What is done to every byte, at which rates; nothing for what is not done or takes no time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ByteRates {
    /// `R_E`.
    pub encrypt: Option<BitRate>,
    /// `R_D`.
    pub decrypt: Option<BitRate>,
    /// `R_HC`.
    pub compute: Option<BitRate>,
    /// `R_HV`.
    pub verify: Option<BitRate>,
    /// `R_SECNET`: what of the network can be used.
    pub network: Option<BitRate>,
    /// Bus, disk, protocol processing: whatever else takes its time for every byte sent (end of section 6.2).
    pub further: Seconds,
}

/// A codec, by its rates.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LinkRates {
    /// `R_COMP`: bytes that go in.
    pub compress: BitRate,
    /// `R_DECOMP`: bytes that come out.
    pub decompress: BitRate,
}

/// Where one variable stands when both sides are equal, the others as they are.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum BreakEven<T> {
    /// Compression pays whatever the variable.
    Always,
    /// It never does.
    Never,
    /// It pays on one side of this, which the function that gives it names.
    At(T),
}

impl ByteRates {
    /// K: how long all of this takes a byte.
    #[must_use]
    pub fn byte(&self) -> Seconds {
        self.but_the_network() + self.network.map_or(Seconds(0.0), BitRate::byte)
    }

    fn but_the_network(&self) -> Seconds {
        let rates = [self.encrypt, self.decrypt, self.compute, self.verify];
        rates.into_iter().flatten().map(BitRate::byte).sum::<Seconds>() + self.further
    }

    /// Whether K (1 - 1/X) is at least 1/`R_COMP` + 1/`R_DECOMP`.
    #[must_use]
    pub fn pays(&self, ratio: Ratio, rates: &LinkRates) -> bool {
        self.byte() * ratio.saving() >= rates.byte()
    }

    /// S as in Figure 5.
    #[must_use]
    pub fn gain(&self, ratio: Ratio, rates: &LinkRates) -> f64 {
        self.byte() / (self.byte() * (1.0 / ratio.get()) + rates.byte())
    }

    /// The network's rate up to which compression pays.
    #[must_use]
    pub fn network_up_to(&self, ratio: Ratio, rates: &LinkRates) -> BreakEven<BitRate> {
        if ratio.saving() <= 0.0 {
            return BreakEven::Never;
        }
        // What the network must take from a byte at least.
        let least = rates.byte() * (1.0 / ratio.saving()) - self.but_the_network();
        if least.0 <= 0.0 { BreakEven::Always } else { at(BitRate::of_a_byte(least)) }
    }

    /// The ratio from which on compression pays.
    #[must_use]
    pub fn ratio_from(&self, rates: &LinkRates) -> BreakEven<Ratio> {
        let spent = rates.byte() / self.byte();
        // 1 - 1/X stays below 1; where nothing else takes time, `spent` is infinite.
        if spent < 1.0 { at(Ratio::new(1.0 / (1.0 - spent))) } else { BreakEven::Never }
    }

    /// The rate of compressing from which on it pays.
    #[must_use]
    pub fn compress_from(&self, ratio: Ratio, decompress: BitRate) -> BreakEven<BitRate> {
        let left = self.byte() * ratio.saving() - decompress.byte();
        if left.0 > 0.0 { at(BitRate::of_a_byte(left)) } else { BreakEven::Never }
    }

    /// The rate of decompressing from which on it pays.
    #[must_use]
    pub fn decompress_from(&self, ratio: Ratio, compress: BitRate) -> BreakEven<BitRate> {
        // The two stand for each other in the inequality.
        self.compress_from(ratio, compress)
    }
}

impl LinkRates {
    fn byte(&self) -> Seconds {
        self.compress.byte() + self.decompress.byte()
    }
}

/// A break-even beyond what numbers can say is none that is ever met.
fn at<T>(place: Option<T>) -> BreakEven<T> {
    place.map_or(BreakEven::Never, BreakEven::At)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn rate(megabits: f64) -> BitRate {
        BitRate::megabits(megabits).unwrap()
    }

    fn ratio(x: f64) -> Ratio {
        Ratio::new(x).unwrap()
    }

    fn path(cipher: f64, network: f64) -> ByteRates {
        let cipher = Some(rate(cipher));
        ByteRates { encrypt: cipher, decrypt: cipher, network: Some(rate(network)), ..ByteRates::default() }
    }

    #[test]
    fn break_even_rates_match_hand_calculation() {
        // In us a byte: ciphers 0.08 each, network 0.8; K = 0.96. The codec takes 0.04 + 0.02.
        let path = path(100.0, 10.0);
        let rates = LinkRates { compress: rate(200.0), decompress: rate(400.0) };
        assert!((path.byte().0 - 0.96e-6).abs() < 1e-18);
        // 1 - 1/X = 0.06 / 0.96 = 1/16.
        let BreakEven::At(x) = path.ratio_from(&rates) else { panic!("no ratio") };
        assert!((x.get() - 16.0 / 15.0).abs() < 1e-9);
        // With X = 2, 0.12 us would do: 0.16 are there without the network.
        assert_eq!(path.network_up_to(ratio(2.0), &rates), BreakEven::Always);
        // With X = 1.25, 0.30 us are needed: 0.14 of them from the network, 57.1 Mbit/s.
        let BreakEven::At(network) = path.network_up_to(ratio(1.25), &rates) else { panic!("no rate") };
        assert!((network.as_bits() - 8e6 / 0.14).abs() < 1.0);
        // With X = 1.25 there are 0.192 us for both, so 0.172 for compressing: 46.5 Mbit/s.
        let BreakEven::At(compress) = path.compress_from(ratio(1.25), rates.decompress) else {
            panic!("no rate")
        };
        assert!((compress.as_bits() - 8e6 / 0.172).abs() < 1.0);
        assert_eq!(path.decompress_from(ratio(1.25), rate(40.0)), BreakEven::Never);
    }

    #[test]
    fn what_never_pays() {
        let rates = LinkRates { compress: rate(1.0), decompress: rate(1.0) };
        assert_eq!(path(100.0, 1.0).network_up_to(Ratio::ONE, &rates), BreakEven::Never);
        assert_eq!(ByteRates::default().ratio_from(&rates), BreakEven::Never);
        assert!(!ByteRates::default().pays(ratio(30.0), &rates));
        assert!(!path(100.0, 1000.0).pays(ratio(0.9), &rates));
    }

    proptest! {
        #[test]
        fn the_inequality_and_the_equation_agree(
            cipher in 1.0_f64..1e5, network in 0.05_f64..1e5, x in 0.5_f64..50.0, comp in 1.0_f64..1e4, dec in 1.0_f64..1e4,
        ) {
            let (path, rates) = (path(cipher, network), LinkRates { compress: rate(comp), decompress: rate(dec) });
            let gain = path.gain(ratio(x), &rates);
            prop_assume!((gain - 1.0).abs() > 1e-9);
            prop_assert_eq!(path.pays(ratio(x), &rates), gain > 1.0, "gain {}", gain);
            // S never exceeds X, and grows with it.
            prop_assert!(gain < x);
            prop_assert!(path.gain(ratio(x * 1.1), &rates) > gain);
        }

        #[test]
        fn each_break_even_divides(
            cipher in 1.0_f64..1e5, network in 0.05_f64..1e5, x in 1.01_f64..50.0, comp in 1.0_f64..1e4, dec in 1.0_f64..1e4,
        ) {
            let rates = LinkRates { compress: rate(comp), decompress: rate(dec) };
            let it = path(cipher, network);
            let (a_little_less, a_little_more) = (0.999, 1.001);
            match it.network_up_to(ratio(x), &rates) {
                BreakEven::At(most) => {
                    let at = |share| ByteRates { network: most.share(share), ..it };
                    prop_assert!(at(a_little_less).pays(ratio(x), &rates) && !at(a_little_more).pays(ratio(x), &rates));
                }
                always => prop_assert!(always == BreakEven::Always && it.pays(ratio(x), &rates)),
            }
            match it.ratio_from(&rates) {
                BreakEven::At(least) => {
                    let at = |share: f64| it.pays(ratio(1.0 + (least.get() - 1.0) * share), &rates);
                    prop_assert!(at(a_little_more) && !at(a_little_less), "{:?}", least);
                }
                never => prop_assert!(never == BreakEven::Never && !it.pays(ratio(1e12), &rates)),
            }
            match it.compress_from(ratio(x), rates.decompress) {
                BreakEven::At(least) => {
                    let at = |share| {
                        it.pays(ratio(x), &LinkRates { compress: least.share(share).unwrap(), ..rates })
                    };
                    prop_assert!(at(a_little_more) && !at(a_little_less));
                }
                never => {
                    let at_once = LinkRates { compress: rate(1e15), ..rates };
                    prop_assert!(never == BreakEven::Never && !it.pays(ratio(x), &at_once));
                }
            }
        }
    }
}
