//! A budget that many sources share, of which none takes all.

use strait_clock::Time;

use super::Budget;

/// Parts that sources fall into by a hash. Two that share one compete for it; with one source that floods, each other
/// meets it with a chance of 1 in 64. Many sources that flood fill all parts, whatever the hash: it needs no secret.
const PARTS: usize = 64;

/// A [`Budget`] that many sources share, and of which each may take no more than a part: one source that floods leaves
/// the rest to others.
#[derive(Clone, Debug)]
pub struct SourceBudget {
    all: Budget,
    parts: Box<[Budget; PARTS]>,
}

impl SourceBudget {
    /// The part of the rate that one source can take: a fourth.
    const PART: u64 = 4;

    /// A full budget of `per_second` units a second, with room for `burst` units at once. One source may take a fourth of
    /// the rate and `burst_of_one` units at once.
    #[must_use]
    pub fn new(per_second: u64, burst: u64, burst_of_one: u64) -> SourceBudget {
        let part = Budget::new(per_second / SourceBudget::PART, burst_of_one);
        SourceBudget { all: Budget::new(per_second, burst), parts: Box::new([part; PARTS]) }
    }

    /// Another rate and other bursts from now on; what was taken stays taken.
    pub fn set(&mut self, per_second: u64, burst: u64, burst_of_one: u64, now: Time) {
        self.all.set(per_second, burst, now);
        for part in self.parts.iter_mut() {
            part.set(per_second / SourceBudget::PART, burst_of_one, now);
        }
    }

    /// Takes `units` for `source` at `now` if that many are left for it; otherwise none, and false.
    #[must_use]
    pub fn take(&mut self, source: u64, units: u64, now: Time) -> bool {
        let Some(part) = self.parts.get_mut(place(source)) else { return false };
        part.has_room(units, now) && self.all.take(units, now) && part.take(units, now)
    }

    /// Whether [`SourceBudget::take`] would be true.
    #[must_use]
    pub fn has_room(&self, source: u64, units: u64, now: Time) -> bool {
        let has = |part: &Budget| part.has_room(units, now);
        self.parts.get(place(source)).is_some_and(has) && has(&self.all)
    }
}

/// The part that a source falls into.
fn place(source: u64) -> usize {
    // Fibonacci hashing: the upper bits of the product depend on all bits of the source.
    let place = source.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (u64::BITS - PARTS.ilog2());
    usize::try_from(place).unwrap_or(PARTS)
}

#[cfg(test)]
mod tests {
    use core::time::Duration;

    use super::*;

    const START: Time = Time::from_millis(1000);

    #[test]
    fn one_source_that_floods_leaves_the_rest_to_others() {
        let mut budget = SourceBudget::new(400, 40, 20);
        let (mut flooder, mut others) = (0, 0);
        for ms in 0..10_000_u64 {
            let now = START + Duration::from_millis(ms);
            flooder += (0..10).filter(|_| budget.take(1, 1, now)).count();
            // A hundred and fifty a second from as many sources.
            others += usize::from(ms % 20 < 3 && budget.take(1000 + ms, 1, now));
        }
        assert!((900..=1100).contains(&flooder), "a fourth of 400 a second in 10 s: {flooder}");
        // Those that share the flooder's part lose what they ask for: one in 64.
        assert!(others >= 1500 * 95 / 100, "{others} of 1500");
    }

    #[test]
    fn there_is_room_as_long_as_something_can_be_taken() {
        let mut budget = SourceBudget::new(400, 40, 20);
        for number in 0..1000_u64 {
            let (source, now) = (number % 3, START + Duration::from_millis(number / 10));
            let had_room = budget.has_room(source, 1, now);
            assert_eq!(budget.take(source, 1, now), had_room, "{number}");
        }
    }

    #[test]
    fn all_sources_together_stay_within_the_budget() {
        let mut budget = SourceBudget::new(100, 10, 10);
        let taken = (0..100_000_u64)
            .filter(|number| budget.take(*number, 1, START + Duration::from_micros(number * 100)));
        let taken = taken.count();
        assert!((1000..=1011).contains(&taken), "{taken}");
    }
}
