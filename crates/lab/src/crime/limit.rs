//! Exact limits of a share of trials: Clopper and Pearson, *The use of confidence or fiducial limits illustrated in the case of the
//! binomial*, Biometrika 26 (1934).

/// How likely what lies beyond a limit is: one side, 95 %.
const BEYOND: f64 = 0.05;
/// Halvings of the range of a limit: to 15 decimal places.
const HALVINGS: usize = 50;

/// The largest share of which no more than `right` of `tried` are as likely as [`BEYOND`]; 1 where nothing was tried.
pub(super) fn upper(right: u64, tried: u64) -> f64 {
    if right >= tried {
        return 1.0;
    }
    halved(|share| at_most(right, tried, share) > BEYOND)
}

/// The smallest share of which `right` of `tried` or more are as likely as [`BEYOND`]; 0 where none was right.
pub(super) fn lower(right: u64, tried: u64) -> f64 {
    if right == 0 {
        return 0.0;
    }
    halved(|share| 1.0 - at_most(right - 1, tried, share) < BEYOND)
}

/// The share up to which `below` holds.
fn halved(below: impl Fn(f64) -> bool) -> f64 {
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..HALVINGS {
        let middle = f64::midpoint(low, high);
        if below(middle) {
            low = middle;
        } else {
            high = middle;
        }
    }
    high
}

/// How likely no more than `right` of `tried` are, where each is right with `share`, which is neither 0 nor 1.
fn at_most(right: u64, tried: u64, share: f64) -> f64 {
    let odds = (share / (1.0 - share)).ln();
    // The logarithm of the likelihood of none, then of one more each.
    let mut term = tried as f64 * (1.0 - share).ln();
    let mut sum = term.exp();
    for count in 0..right {
        term += odds + ((tried - count) as f64 / (count + 1) as f64).ln();
        sum += term.exp();
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_those_of_exact_sums() {
        // None of 10: 1 - 0.05^(1/10). 5 of 20: by the sum of exact binomial coefficients.
        assert!((upper(0, 10) - 0.258_866).abs() < 1e-6);
        assert!((lower(10, 10) - 0.741_134).abs() < 1e-6);
        assert!((upper(5, 20) - 0.455_582).abs() < 1e-6, "{}", upper(5, 20));
        assert!((lower(5, 20) - 0.104_081).abs() < 1e-4, "{}", lower(5, 20));
        assert_eq!((lower(0, 10), upper(10, 10), upper(0, 0)), (0.0, 1.0, 1.0));
    }

    #[test]
    fn limits_hold_the_share_and_close_in_on_it() {
        let width = |tried: u64| upper(tried / 16, tried) - lower(tried / 16, tried);
        assert!(lower(50, 800) < 0.0625 && upper(50, 800) > 0.0625);
        assert!(width(12_800) < width(1_600) && width(12_800) < 0.008, "{}", width(12_800));
    }
}
