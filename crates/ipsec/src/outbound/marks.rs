//! A watch over paths that clear the ECN marks of datagrams (RFC 9000 section 13.4.2). Such a path may also clear the mark of a router
//! that is congested: hosts would hear of no congestion, neither by marks nor by losses.

use strait_wire::delivery::Delivery;
use strait_wire::{Ecn, Tos};

/// Datagrams that arrived and had a mark when they left, from which on a path is judged; RFC 9000 appendix A.4 tests with about ten.
const EVIDENCE: u64 = 16;
/// Datagrams after which counting begins anew, whatever was sent: reports count modulo 2^16.
const COUNTED: u64 = 1 << 15;

/// The marks that left and arrived on one association.
#[derive(Debug, Default)]
pub(super) struct MarkWatch {
    sent: SentCount,
    counting: Option<Counting>,
    /// The path was seen to clear marks.
    cleared: bool,
    /// No datagram has one until another association or path is tried.
    withheld: bool,
}

/// Datagrams that left.
#[derive(Clone, Copy, Debug, Default)]
struct SentCount {
    /// The number of the last.
    last: u64,
    /// The number of those with a mark.
    marked: u64,
}

/// A count from some time on.
#[derive(Clone, Copy, Debug)]
struct Counting {
    sent: SentCount,
    /// Datagrams that had arrived, and how many of them marked, when all that had been sent had arrived or was lost.
    arrived: Option<(u64, u16)>,
}

impl MarkWatch {
    /// Another association, on which marks are tried again.
    pub(super) fn renew(&mut self) {
        *self = MarkWatch { cleared: self.cleared, ..MarkWatch::default() };
    }

    /// Another path.
    pub(super) fn new_path(&mut self) {
        (self.counting, self.cleared, self.withheld) = (None, false, false);
    }

    /// True if the path was seen to clear marks, and was not seen to leave them since.
    pub(super) const fn is_clearing(&self) -> bool {
        self.cleared
    }

    /// Returns the outer header's octet for a datagram that is to have `tos`.
    pub(super) fn outer(&self, tos: Tos) -> Tos {
        if self.withheld { tos.with_ecn(Ecn::NotEct) } else { tos }
    }

    /// `count` datagrams up to the number `last` left with the octet `tos`.
    pub(super) fn note_departed(&mut self, last: u64, count: usize, tos: Tos) {
        self.sent.last = self.sent.last.max(last);
        self.sent.marked += if tos.ecn() == Ecn::NotEct { 0 } else { count as u64 };
    }

    /// The peer reports what arrived.
    pub(super) fn take_report(&mut self, report: &Delivery) {
        let Some(marked) = report.marked else { return };
        let counting = self.counting.get_or_insert(Counting { sent: self.sent, arrived: None });
        if report.highest < counting.sent.last {
            return;
        }
        let (before, marked_before) = *counting.arrived.get_or_insert((report.datagrams, marked));
        let arrived = report.datagrams.saturating_sub(before);
        let sent = self.sent.last.saturating_sub(counting.sent.last);
        // All that left without a mark may be among what arrived; so many of those are not.
        let expected = arrived.saturating_sub(sent.saturating_sub(self.sent.marked - counting.sent.marked));
        if sent >= COUNTED {
            self.counting = None;
        } else if expected >= EVIDENCE {
            let clears = u64::from(marked.wrapping_sub(marked_before)) < expected / 2;
            (self.cleared, self.withheld, self.counting) = (clears, clears, None);
        }
    }
}

#[cfg(test)]
mod tests {
    use strait_wire::Spi;

    use super::*;

    const MARKED: Tos = Tos(0xb8 | Ecn::Ect0 as u8);
    const PLAIN: Tos = Tos(0xb8);

    /// A path on which every so manieth datagram is lost, and which clears marks or does not.
    struct TestPath {
        watch: MarkWatch,
        clears: bool,
        lost_each: u64,
        last: u64,
        report: Delivery,
    }

    impl TestPath {
        fn new(clears: bool, lost_each: u64) -> TestPath {
            let report = Delivery {
                spi: Spi(1),
                gaps: 0,
                datagrams: 0,
                bytes: 0,
                highest: 0,
                received_at: 0,
                marked: Some(65_530),
            };
            TestPath { watch: MarkWatch::default(), clears, lost_each, last: 0, report }
        }

        fn send(&mut self, tos: Tos) {
            let tos = self.watch.outer(tos);
            self.last += 1;
            self.watch.note_departed(self.last, 1, tos);
            if self.last.is_multiple_of(self.lost_each) {
                return;
            }
            let arrives_marked = tos.ecn() != Ecn::NotEct && !self.clears;
            self.report.datagrams += 1;
            self.report.highest = self.last;
            self.report.marked = self.report.marked.map(|marked| marked.wrapping_add(arrives_marked.into()));
        }

        /// Sends datagrams of which `of` in ten have a mark, while reports come a round trip later. Returns whether the path clears marks.
        fn carry(&mut self, datagrams: u64, of: u64) -> bool {
            let mut late = self.report;
            for number in 0..datagrams {
                self.send(if number % 10 < of { MARKED } else { PLAIN });
                if number % 7 == 0 {
                    self.watch.take_report(&core::mem::replace(&mut late, self.report));
                }
            }
            self.watch.is_clearing()
        }
    }

    #[test]
    fn a_path_that_leaves_marks_is_never_taken_for_one_that_clears_them() {
        for lost_each in [2, 3, 10, 1_000_000] {
            for of in 0..=10 {
                let mut path = TestPath::new(false, lost_each);
                for _ in 0..100 {
                    assert!(!path.carry(1_000, of), "{of} of ten, one in {lost_each} lost");
                }
                assert_eq!(path.watch.outer(MARKED), MARKED);
            }
        }
    }

    #[test]
    fn a_path_that_clears_marks_has_none_until_the_next_association() {
        for of in 7..=10 {
            let mut path = TestPath::new(true, 100);
            assert!(path.carry(1_000, of), "{of} of ten");
            assert_eq!((path.watch.outer(MARKED), path.watch.outer(PLAIN)), (PLAIN, PLAIN));
            // Nothing more is learned, and what was stays known.
            assert!(path.carry(100_000, of));
            path.watch.renew();
            (path.last, path.report.datagrams, path.report.highest, path.clears) = (0, 0, 0, false);
            assert!(path.watch.is_clearing() && path.watch.outer(MARKED) == MARKED, "it is tried");
            assert!(!path.carry(1_000, of));
        }
    }

    #[test]
    fn another_path_is_not_judged_by_the_one_before() {
        let mut path = TestPath::new(true, 100);
        assert!(path.carry(1_000, 10));
        path.watch.new_path();
        assert!(!path.watch.is_clearing() && path.watch.outer(MARKED) == MARKED);
        path.clears = false;
        assert!(!path.carry(1_000, 10));
    }

    #[test]
    fn reports_without_counts_judge_nothing() {
        let mut path = TestPath::new(true, 100);
        path.report.marked = None;
        assert!(!path.carry(1_000, 10));
    }
}
