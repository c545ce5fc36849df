//! The processes of a peer: one usually, and several where commands have nodes of their own with the same key.

use std::collections::VecDeque;
use std::net::SocketAddr;

/// Processes that are remembered: twice as many as have connections for streams at once.
const MOST: usize = 8;

/// The numbers that processes of a peer have said in handshakes, where each was, the latest last.
#[derive(Debug, Default)]
pub(crate) struct PeerProcesses(VecDeque<(SocketAddr, u32)>);

impl PeerProcesses {
    /// Takes the number of the process at `place`; true if it has followed another there, which is gone: no two have a port at once.
    pub(crate) fn note(&mut self, place: SocketAddr, number: u32) -> bool {
        let before = self.0.iter().position(|(its, _)| *its == place).and_then(|at| self.0.remove(at));
        if self.0.len() >= MOST {
            self.0.pop_front();
        }
        self.0.push_back((place, number));
        before.is_some_and(|(_, before)| before != number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_follows_another_only_in_its_place() {
        let mut processes = PeerProcesses::default();
        let place = |port| SocketAddr::from(([192, 0, 2, 1], port));
        for (port, number, follows) in [
            (1, 7, false),
            (2, 8, false),
            (1, 7, false),
            (3, 7, false),
            (1, 8, true),
            (1, 8, false),
            (2, 9, true),
        ] {
            assert_eq!(processes.note(place(port), number), follows, "{port} {number}");
        }
        // Those that were noted last are remembered.
        for port in 10..30 {
            assert!(!processes.note(place(port), 1));
        }
        assert_eq!(processes.0.len(), MOST);
        assert!(!processes.note(place(1), 9) && processes.note(place(29), 9));
    }
}
