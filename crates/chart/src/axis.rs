//! Axes: where a value stands, and what is written beside it.

/// How values are spread over an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scale {
    Linear,
    Logarithmic,
}

/// How an axis writes its values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AxisLabels {
    Plain,
    /// With a prefix of the SI before this unit.
    Prefixed(&'static str),
}

/// An axis, as long as its values need unless it is told its ends.
#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    title: String,
    scale: Scale,
    labels: AxisLabels,
    reference: Option<f64>,
    ends: Option<(f64, f64)>,
}

/// Ticks on an axis at most, but for both ends of a logarithmic one.
const TICKS: usize = 10;
/// Decades on a logarithmic axis up to which 2 and 5 are marked as well.
const FINE: i32 = 3;
/// No axis goes further, nor a logarithmic one nearer to zero than its inverse: differences and powers of ten of such
/// values are numbers.
const LARGEST: f64 = 1e100;
/// The prefixes of the SI from 10^-9, a step a factor of 1,000.
const PREFIXES: [&str; 9] = ["n", "µ", "m", "", "k", "M", "G", "T", "P"];
const UNIT_PREFIX: i32 = 3;

impl Axis {
    /// An axis on which equal differences are equally long.
    #[must_use]
    pub fn linear(title: impl Into<String>) -> Axis {
        Axis {
            title: title.into(),
            scale: Scale::Linear,
            labels: AxisLabels::Plain,
            reference: None,
            ends: None,
        }
    }

    /// An axis on which equal factors are equally long. Only values above zero stand on it.
    #[must_use]
    pub fn logarithmic(title: impl Into<String>) -> Axis {
        Axis { scale: Scale::Logarithmic, ..Axis::linear(title) }
    }

    /// Writes values with a prefix of the SI instead of zeros: those of bars with the unit, such as "bit/s", and those beside
    /// the axis without it, as its title says what it is.
    #[must_use]
    pub fn prefixed(mut self, unit: &'static str) -> Axis {
        self.labels = AxisLabels::Prefixed(unit);
        self
    }

    /// Draws a line of reference at this value; bars begin there, and otherwise at 0 or at the lower end.
    #[must_use]
    pub fn at(mut self, reference: f64) -> Axis {
        self.reference = Some(reference);
        self
    }

    /// Begins and ends here, whatever the values are.
    #[must_use]
    pub fn between(mut self, low: f64, high: f64) -> Axis {
        self.ends = Some((low, high));
        self
    }

    pub(crate) fn title(&self) -> &str {
        &self.title
    }

    pub(crate) fn reference(&self) -> Option<f64> {
        self.reference.filter(|value| self.carries(*value))
    }

    /// Whether a value can stand on this axis.
    pub(crate) fn carries(&self, value: f64) -> bool {
        let stands = |magnitude: f64| magnitude <= LARGEST;
        stands(value.abs()) && (self.scale == Scale::Linear || stands(1.0 / value) && value > 0.0)
    }

    /// The axis with its ends, for these values.
    pub(crate) fn span(&self, values: impl Iterator<Item = f64>) -> Span<'_> {
        let baseline = (self.scale == Scale::Linear).then_some(0.0);
        let told = self.ends.filter(|(low, high)| self.carries(*low) && self.carries(*high) && low < high);
        let fitting = || {
            let all = values.chain(self.reference).chain(baseline).filter(|value| self.carries(*value));
            let (low, high) = all.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| {
                (value.min(low), value.max(high))
            });
            self.rounded(low, high)
        };
        let (low, high) = told.unwrap_or_else(fitting);
        Span { axis: self, low, high }
    }

    /// Ends that are round numbers; some where there are no values.
    fn rounded(&self, low: f64, high: f64) -> (f64, f64) {
        if low > high {
            return if self.scale == Scale::Linear { (0.0, 1.0) } else { (0.1, 10.0) };
        }
        match self.scale {
            Scale::Linear => {
                let step = step(if high > low { high - low } else { 1.0 });
                let high = if high > low { high } else { low + step };
                ((low / step).floor() * step, (high / step).ceil() * step)
            }
            Scale::Logarithmic => {
                let below = round_numbers(low).rev().find(|it| *it <= low * NEARLY).unwrap_or(low);
                let above = round_numbers(high).find(|it| *it >= high / NEARLY && *it > below);
                (below, above.unwrap_or(high * 10.0))
            }
        }
    }
}

/// A value is a round number when it is one but for the error of its logarithm.
const NEARLY: f64 = 1.0 + 1e-9;

/// 1, 2 and 5 times powers of ten about a value, rising.
fn round_numbers(about: f64) -> impl DoubleEndedIterator<Item = f64> {
    let decade = about.log10().floor() as i32;
    (decade - 1..=decade + 1).flat_map(|decade| [1.0, 2.0, 5.0].map(|digit| digit * 10_f64.powi(decade)))
}

/// A step of 1, 2 or 5 times a power of ten that divides a length into at most [`TICKS`].
fn step(length: f64) -> f64 {
    let least = length / TICKS as f64;
    round_numbers(least).find(|step| *step >= least).unwrap_or(length)
}

/// An axis with two ends.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Span<'a> {
    pub(crate) axis: &'a Axis,
    low: f64,
    high: f64,
}

impl Span<'_> {
    /// Where a value stands between the lower end, 0, and the upper, 1; nothing where it cannot.
    pub(crate) fn place(&self, value: f64) -> Option<f64> {
        let share = |value: f64, low: f64, high: f64| (value - low) / (high - low);
        self.axis.carries(value).then(|| match self.axis.scale {
            Scale::Linear => share(value, self.low, self.high),
            Scale::Logarithmic => share(value.log10(), self.low.log10(), self.high.log10()),
        })
    }

    /// Where bars begin.
    pub(crate) fn baseline(&self) -> f64 {
        let zero = if self.axis.scale == Scale::Linear { 0.0 } else { self.low };
        self.place(self.axis.reference().unwrap_or(zero)).unwrap_or(0.0).clamp(0.0, 1.0)
    }

    /// Values to mark, with their labels.
    pub(crate) fn ticks(&self) -> Vec<(f64, String)> {
        let values = match self.axis.scale {
            Scale::Linear => self.linear_ticks(),
            Scale::Logarithmic => self.logarithmic_ticks(),
        };
        values.into_iter().map(|value| (value, self.label(value, ""))).collect()
    }

    fn linear_ticks(&self) -> Vec<f64> {
        let step = step(self.high - self.low);
        let first = (self.low / step / NEARLY).ceil();
        let count = ((self.high / step - first) * NEARLY).floor().clamp(0.0, TICKS as f64 + 1.0) as u32;
        (0..=count).map(|at| (first + f64::from(at)) * step).collect()
    }

    fn logarithmic_ticks(&self) -> Vec<f64> {
        let (first, last) = (self.low.log10().floor() as i32, self.high.log10().ceil() as i32);
        let digits: &[f64] = if last - first <= FINE { &[1.0, 2.0, 5.0] } else { &[1.0] };
        let every = (last - first).unsigned_abs() as usize / TICKS + 1;
        (first..=last)
            .filter(|decade| (decade.unsigned_abs() as usize).is_multiple_of(every))
            .flat_map(|decade| digits.iter().map(move |digit| digit * 10_f64.powi(decade)))
            .filter(|value| (self.low / NEARLY..=self.high * NEARLY).contains(value))
            .collect()
    }

    /// A value with its unit, as bars have it: `982 kB`.
    pub(crate) fn value(&self, value: f64) -> String {
        match self.axis.labels {
            AxisLabels::Plain => plain(value),
            AxisLabels::Prefixed(unit) => self.label(value, unit),
        }
    }

    fn label(&self, value: f64, unit: &str) -> String {
        if self.axis.labels == AxisLabels::Plain {
            return plain(value);
        }
        if value == 0.0 {
            return format!("0 {unit}").trim_end().to_owned();
        }
        // What rounds to 1,000 has the next prefix.
        let thousands = (value.abs() * 1.0005).log10() / 3.0;
        let at = (thousands.floor() as i32 + UNIT_PREFIX).clamp(0, PREFIXES.len() as i32 - 1);
        let scaled = value / 10_f64.powi(3 * (at - UNIT_PREFIX));
        format!("{} {}{unit}", plain(scaled), PREFIXES[at as usize]).trim_end().to_owned()
    }
}

/// A number with three digits that mean something at most, in few letters however large or small it is.
pub(crate) fn plain(value: f64) -> String {
    let magnitude = value.abs();
    if value == 0.0 {
        return "0".to_owned();
    }
    if (1e-4..1e7).contains(&magnitude) {
        let places = (2 - magnitude.log10().floor() as i32).clamp(0, 6) as usize;
        return trimmed(&format!("{value:.places$}")).to_owned();
    }
    let text = format!("{value:.2e}");
    text.split_once('e').map_or(String::new(), |(digits, power)| format!("{}e{power}", trimmed(digits)))
}

/// Digits without zeros at the end of a fraction.
fn trimmed(digits: &str) -> &str {
    if digits.contains('.') { digits.trim_end_matches('0').trim_end_matches('.') } else { digits }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn labels(span: &Span<'_>) -> Vec<String> {
        span.ticks().into_iter().map(|(_, label)| label).collect()
    }

    #[test]
    fn ends_and_ticks_are_round() {
        let axis = Axis::linear("y");
        let span = axis.span([3.0, 47.0].into_iter());
        assert_eq!((span.low, span.high), (0.0, 50.0));
        assert_eq!(labels(&span), ["0", "5", "10", "15", "20", "25", "30", "35", "40", "45", "50"]);
        let axis = Axis::logarithmic("y").at(1.0);
        let span = axis.span([0.34, 18.0].into_iter());
        assert_eq!((span.low, span.high), (0.2, 20.0));
        assert_eq!(labels(&span), ["0.2", "0.5", "1", "2", "5", "10", "20"]);
        let span = axis.span([0.7, 3.0].into_iter());
        assert_eq!(labels(&span), ["0.5", "1", "2", "5"]);
    }

    #[test]
    fn rates_have_prefixes() {
        let axis = Axis::logarithmic("bit/s").prefixed("bit/s").between(1e4, 1e11);
        let expected = ["10 k", "100 k", "1 M", "10 M", "100 M", "1 G", "10 G", "100 G"];
        assert_eq!(labels(&axis.span(std::iter::empty())), expected);
        let axis = Axis::linear("s").prefixed("s");
        assert_eq!(labels(&axis.span([0.004].into_iter()))[1], "500 µ");
    }

    #[test]
    fn values_of_bars_have_units() {
        let value = |axis: Axis, value: f64| axis.span(std::iter::once(value)).value(value);
        for (number, text) in
            [(982_216.0, "982 kB"), (999_700.0, "1 MB"), (40.0, "40 B"), (0.0, "0 B"), (-1_500.0, "-1.5 kB")]
        {
            assert_eq!(value(Axis::linear("bytes").prefixed("B"), number), text);
        }
        assert_eq!(value(Axis::logarithmic("bit/s").prefixed("bit/s"), 8.91e8), "891 Mbit/s");
        assert_eq!(value(Axis::linear("ratio"), 3.456), "3.46");
    }

    #[test]
    fn numbers_in_few_letters() {
        for (value, text) in
            [(0.0, "0"), (0.3333, "0.333"), (1.0, "1"), (12.34, "12.3"), (1234.5, "1234"), (-0.5, "-0.5")]
        {
            assert_eq!(plain(value), text);
        }
        assert_eq!((plain(1e9).as_str(), plain(2.5e-9).as_str()), ("1e9", "2.5e-9"));
    }

    #[test]
    fn what_cannot_stand_on_an_axis_has_no_place() {
        let (linear, logarithmic) = (Axis::linear(""), Axis::logarithmic("").at(-1.0));
        assert_eq!(linear.span([4.0].into_iter()).place(2.0), Some(0.5));
        for value in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e-200, 1e200] {
            assert_eq!(logarithmic.span([value].into_iter()).place(value), None, "{value}");
        }
        assert_eq!(logarithmic.reference(), None);
        assert_eq!(Axis::linear("").at(f64::NAN).reference(), None);
    }

    proptest! {
        #[test]
        fn every_value_is_between_the_ends_and_ticks_are_few(
            values in proptest::collection::vec(1e-9_f64..1e12, 0..6),
            logarithmic: bool,
        ) {
            let axis = if logarithmic { Axis::logarithmic("") } else { Axis::linear("") };
            let span = axis.span(values.iter().copied());
            for value in &values {
                let place = span.place(*value).unwrap();
                prop_assert!((-1e-6..=1.0 + 1e-6).contains(&place), "{value} stands at {place} on {span:?}");
            }
            let ticks = span.ticks();
            prop_assert!((2..=TICKS + 3).contains(&ticks.len()), "{ticks:?} of {span:?}");
            prop_assert!(ticks.windows(2).all(|pair| pair[0].0 < pair[1].0 && pair[0].1 != pair[1].1), "{ticks:?}");
        }
    }
}
