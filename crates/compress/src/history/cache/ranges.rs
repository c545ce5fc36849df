//! Which positions of a log are held.

use std::collections::VecDeque;
use std::ops::Range;

/// Ranges in order, none of which touches the next.
///
/// They grow at their end and are dropped from their front; in between only what was overtaken is put, so a queue is moved little.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Ranges {
    held: VecDeque<Range<u64>>,
    /// Bytes of all of them.
    bytes: u64,
}

/// What became of a range that was to be added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Added {
    /// It is held now.
    New,
    /// All of it was held before.
    Before,
    /// A part of it is held: nothing was added.
    Partly,
    /// There are as many ranges as may be: nothing was added.
    Full,
}

impl Ranges {
    /// Adds a range that is not empty, if there are no more than `most` ranges then.
    pub(super) fn add(&mut self, new: Range<u64>, most: usize) -> Added {
        let at = self.held.partition_point(|range| range.end < new.start);
        let here = self.held.get(at);
        if here.is_some_and(|range| range.start <= new.start && new.end <= range.end) {
            return Added::Before;
        }
        let joins_before = here.is_some_and(|range| range.end == new.start);
        let next = if joins_before { at + 1 } else { at };
        let len = new.end - new.start;
        let after = self.held.get(next).map(|range| (range.start, range.end));
        match after {
            Some((start, _)) if start < new.end => return Added::Partly,
            Some((start, end)) if start == new.end => self.join(at, joins_before, new.start, end),
            _ if joins_before => self.set_end(at, new.end),
            _ if self.held.len() >= most => return Added::Full,
            _ => self.held.insert(at, new),
        }
        self.bytes += len;
        Added::New
    }

    /// Joins the range that follows to what is before it.
    fn join(&mut self, at: usize, joins_before: bool, start: u64, end: u64) {
        if joins_before {
            self.held.remove(at + 1);
            self.set_end(at, end);
        } else if let Some(range) = self.held.get_mut(at) {
            range.start = start;
        }
    }

    fn set_end(&mut self, at: usize, end: u64) {
        if let Some(range) = self.held.get_mut(at) {
            range.end = end;
        }
    }

    /// Drops what is before a position.
    pub(super) fn drop_before(&mut self, position: u64) {
        while let Some(gone) = self.held.pop_front_if(|range| range.end <= position) {
            self.bytes -= gone.end - gone.start;
        }
        if let Some(front) = self.held.front_mut() {
            let start = front.start.max(position);
            self.bytes -= start - front.start;
            front.start = start;
        }
    }

    /// The range that has this position.
    pub(super) fn around(&self, position: u64) -> Option<Range<u64>> {
        self.at_or_after(position).filter(|range| range.start <= position)
    }

    /// The first range that ends behind this position.
    pub(super) fn at_or_after(&self, position: u64) -> Option<Range<u64>> {
        self.held.get(self.held.partition_point(|range| range.end <= position)).cloned()
    }

    /// Whether all of a range is held.
    pub(super) fn cover(&self, wanted: &Range<u64>) -> bool {
        self.around(wanted.start).is_some_and(|range| wanted.end <= range.end)
    }

    /// Bytes held.
    pub(super) const fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(super) fn clear(&mut self) {
        self.held.clear();
        self.bytes = 0;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MOST: usize = 6;

    proptest! {
        #[test]
        fn ranges_are_as_a_set_of_positions(steps in proptest::collection::vec((0..60_u64, 1..12_u64, any::<bool>()), 0..60)) {
            let (mut ranges, mut model) = (Ranges::default(), std::collections::BTreeSet::new());
            for (start, len, drop) in steps {
                let new = start..start + len;
                if drop {
                    ranges.drop_before(start / 2);
                    model.retain(|position| *position >= start / 2);
                } else {
                    let held = new.clone().filter(|position| model.contains(position)).count() as u64;
                    match ranges.add(new.clone(), MOST) {
                        Added::New => {
                            prop_assert_eq!(held, 0);
                            model.extend(new.clone());
                        }
                        Added::Before => prop_assert_eq!(held, len),
                        Added::Partly => prop_assert!(held > 0 && held < len),
                        Added::Full => prop_assert_eq!((held, ranges.held.len()), (0, MOST)),
                    }
                }
                prop_assert_eq!(ranges.bytes(), model.len() as u64);
                for position in 0..75 {
                    prop_assert_eq!(ranges.around(position).is_some(), model.contains(&position));
                }
                prop_assert!(ranges.held.iter().zip(ranges.held.iter().skip(1)).all(|(a, b)| a.start < a.end && a.end < b.start));
                prop_assert_eq!(ranges.cover(&new), new.clone().all(|position| model.contains(&position)));
            }
        }
    }
}
