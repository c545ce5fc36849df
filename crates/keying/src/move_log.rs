//! Which moves of a peer have a line in the log.

use strait_clock::Time;
use strait_scheduler::Budget;

/// Decides which moves of a peer get a line in the log: the first at once, then one a second at most, each with the number
/// of moves that it leaves out. A peer, or who copies its datagrams to other addresses, decides how many there are.
#[derive(Debug)]
pub struct MoveLog {
    /// Moves up to this number are logged, or counted in a line.
    logged: u64,
    lines: Budget,
}

impl Default for MoveLog {
    fn default() -> MoveLog {
        MoveLog { logged: 0, lines: Budget::new(1, 1) }
    }
}

impl MoveLog {
    /// The peer has moved so often by now, as [`moves`](strait_ipsec::LatestEndpoint::moves) says: whether that is worth a
    /// line, and how many moves before the last have none.
    pub fn line(&mut self, moves: u64, now: Time) -> Option<u64> {
        let before = moves.checked_sub(self.logged)?.checked_sub(1)?;
        self.lines.take(1, now).then(|| {
            self.logged = moves;
            before
        })
    }

    /// The moves up to now need no line.
    pub const fn skip(&mut self, moves: u64) {
        self.logged = moves;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_line_a_second_counts_the_moves_without_one() {
        let mut log = MoveLog::default();
        let start = Time::from_millis(5000);
        let at = |millis| start + core::time::Duration::from_millis(millis);
        assert_eq!(log.line(0, start), None);
        assert_eq!(log.line(1, start), Some(0));
        assert_eq!((2..1500).filter_map(|moves| log.line(moves, at(moves / 2))).count(), 0);
        assert_eq!(log.line(1500, at(1000)), Some(1498));
        assert_eq!(log.line(1500, at(9000)), None);
        log.skip(1501);
        assert_eq!(log.line(1501, at(9000)), None);
    }
}
