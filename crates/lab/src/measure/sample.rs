//! Repeated measurements of one quantity: median and spread, and ratios of two.

use std::fmt;

use serde::Serialize;
use serde::ser::{SerializeStruct, Serializer};

/// The values of one quantity, one a run, in the order of the runs; not-a-number where a run gave none.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunValues(Vec<f64>);

/// What a sample comes down to.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Spread {
    /// The middle value.
    pub median: f64,
    /// The least.
    pub min: f64,
    /// The greatest.
    pub max: f64,
}

impl RunValues {
    /// Adds a run's value.
    pub fn push(&mut self, value: f64) {
        self.0.push(value);
    }

    /// Adds the values of other runs of the same.
    pub fn extend(&mut self, other: &RunValues) {
        self.0.extend_from_slice(&other.0);
    }

    /// The values in the order of the runs.
    pub fn values(&self) -> &[f64] {
        &self.0
    }

    /// Run by run, this divided by `other`: runs next to each other saw the same machine.
    pub fn over(&self, other: &RunValues) -> RunValues {
        self.pairs(other, |mine, theirs| mine / theirs)
    }

    /// Run by run, this less `other`.
    pub fn minus(&self, other: &RunValues) -> RunValues {
        self.pairs(other, |mine, theirs| mine - theirs)
    }

    /// Every run, less the least of `other`: a part of this that was measured alone, and in some of its runs perhaps
    /// on a busier machine.
    pub fn minus_least(&self, other: &RunValues) -> RunValues {
        let least = other.spread().map_or(0.0, |spread| spread.min);
        self.map(|mine| mine - least)
    }

    /// Run by run, this and `other` together; the other, where this has no runs.
    pub fn plus(&self, other: &RunValues) -> RunValues {
        if self.0.is_empty() { other.clone() } else { self.pairs(other, |mine, theirs| mine + theirs) }
    }

    fn pairs(&self, other: &RunValues, of: impl Fn(f64, f64) -> f64) -> RunValues {
        RunValues(self.0.iter().zip(&other.0).map(|(mine, theirs)| of(*mine, *theirs)).collect())
    }

    /// Each value changed alike.
    pub fn map(&self, of: impl Fn(f64) -> f64) -> RunValues {
        RunValues(self.0.iter().map(|value| of(*value)).collect())
    }

    /// Run by run, the greater of this and `other`.
    pub fn max(&self, other: &RunValues) -> RunValues {
        self.pairs(other, f64::max)
    }

    /// Median and spread, unless no run gave a value.
    pub fn spread(&self) -> Option<Spread> {
        let mut sorted: Vec<f64> = self.0.iter().copied().filter(|value| value.is_finite()).collect();
        sorted.sort_by(f64::total_cmp);
        let (min, max) = (*sorted.first()?, *sorted.last()?);
        let middle = sorted.len() / 2;
        let upper = *sorted.get(middle)?;
        let median =
            if sorted.len() % 2 == 1 { upper } else { f64::midpoint(*sorted.get(middle - 1)?, upper) };
        Some(Spread { median, min, max })
    }
}

impl FromIterator<f64> for RunValues {
    fn from_iter<I: IntoIterator<Item = f64>>(values: I) -> RunValues {
        RunValues(values.into_iter().collect())
    }
}

impl fmt::Display for RunValues {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.spread() {
            None => f.pad("-"),
            Some(Spread { median, min, max }) => {
                f.pad(&format!("{} ({}-{})", short(median), short(min), short(max)))
            }
        }
    }
}

impl Serialize for RunValues {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut out = serializer.serialize_struct("Sample", 2)?;
        out.serialize_field::<Option<Spread>>("spread", &self.spread())?;
        out.serialize_field("runs", self.values())?;
        out.end()
    }
}

/// Three digits that mean something, more only before the point.
pub fn short(value: f64) -> String {
    let magnitude = value.abs();
    let decimals = match magnitude {
        _ if magnitude >= 99.95 || magnitude == 0.0 => 0,
        _ if magnitude >= 9.995 => 1,
        _ if magnitude >= 0.9995 => 2,
        _ => 3,
    };
    format!("{value:.decimals$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(values: &[f64]) -> RunValues {
        values.iter().copied().collect()
    }

    #[test]
    fn median_and_spread() {
        for (values, expected) in [
            (&[][..], None),
            (&[f64::NAN], None),
            (&[3.0], Some((3.0, 3.0, 3.0))),
            (&[5.0, 1.0, 3.0], Some((3.0, 1.0, 5.0))),
            (&[4.0, 1.0, 2.0, 9.0], Some((3.0, 1.0, 9.0))),
            (&[4.0, f64::NAN, 2.0], Some((3.0, 2.0, 4.0))),
        ] {
            let spread = sample(values).spread().map(|it| (it.median, it.min, it.max));
            assert_eq!(spread, expected, "{values:?}");
        }
    }

    #[test]
    fn ratios_pair_neighbouring_runs() {
        let ratio = sample(&[10.0, 30.0]).over(&sample(&[5.0, 10.0]));
        assert_eq!(ratio, sample(&[2.0, 3.0]));
        assert_eq!(sample(&[3.0]).minus(&sample(&[1.0])), sample(&[2.0]));
        assert_eq!(sample(&[6.0, 5.0]).minus_least(&sample(&[9.0, 1.0])), sample(&[5.0, 4.0]));
        assert_eq!(sample(&[3.0, 1.0]).plus(&sample(&[2.0, 2.0])), sample(&[5.0, 3.0]));
        assert_eq!(RunValues::default().plus(&sample(&[2.0])), sample(&[2.0]));
        assert_eq!(sample(&[3.0, 1.0]).max(&sample(&[2.0, 2.0])), sample(&[3.0, 2.0]));
    }

    #[test]
    fn three_digits() {
        for (value, expected) in [
            (0.0, "0"),
            (0.1234, "0.123"),
            (1.0, "1.00"),
            (6.547, "6.55"),
            (12.34, "12.3"),
            (123.4, "123"),
            (45_678.9, "45679"),
            (-0.0312, "-0.031"),
        ] {
            assert_eq!(short(value), expected);
        }
        assert_eq!(sample(&[1.0, 3.0, 2.0]).to_string(), "2.00 (1.00-3.00)");
        assert_eq!(RunValues::default().to_string(), "-");
    }
}
