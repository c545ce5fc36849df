//! On which side of the tunnel hosts are.

use std::collections::BTreeMap;
use std::net::IpAddr;

use ipnet::IpNet;
use strait_wire::Flow;

/// One of the two ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Near,
    Far,
}

impl Side {
    /// Its place in an array of both.
    pub(crate) const fn index(self) -> usize {
        self as usize
    }
}

/// Pairs of hosts that are told apart: what follows goes by the order of its addresses.
const PAIRS: usize = 65_536;

/// Who speaks first of two hosts is near, where nothing says what is.
#[derive(Debug, Default)]
pub(crate) struct Sides(BTreeMap<[IpAddr; 2], Side>);

impl Sides {
    /// From which side a packet comes; nothing when it does not cross the tunnel.
    pub(crate) fn of(&mut self, flow: &Flow, near: Option<&IpNet>) -> Option<Side> {
        match near {
            None => Some(self.first_speaker(flow)),
            Some(near) => match (near.contains(&flow.src), near.contains(&flow.dst)) {
                (true, false) => Some(Side::Near),
                (false, true) => Some(Side::Far),
                _ => None,
            },
        }
    }

    /// The side of the source; the map has that of the lower address.
    fn first_speaker(&mut self, flow: &Flow) -> Side {
        let lower = flow.src <= flow.dst;
        let pair = if lower { [flow.src, flow.dst] } else { [flow.dst, flow.src] };
        let first = if lower { Side::Near } else { Side::Far };
        let side = match self.0.get(&pair) {
            Some(side) => *side,
            None => {
                if self.0.len() < PAIRS {
                    self.0.insert(pair, first);
                }
                if self.0.contains_key(&pair) { first } else { Side::Near }
            }
        };
        match (side, lower) {
            (side, true) => side,
            (Side::Near, false) => Side::Far,
            (Side::Far, false) => Side::Near,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flow(src: u8, dst: u8) -> Flow {
        let [src, dst] = [src, dst].map(|host| IpAddr::from([10, 0, 0, host]));
        Flow { src, dst, protocol: strait_wire::Protocol::UDP, src_port: 1, dst_port: 2 }
    }

    #[test]
    fn who_speaks_first_of_two_hosts_is_near() {
        let mut sides = Sides::default();
        let mut side = |src, dst| sides.of(&flow(src, dst), None);
        for (src, dst, expected) in
            [(1, 2, Side::Near), (2, 1, Side::Far), (3, 1, Side::Near), (1, 3, Side::Far)]
        {
            assert_eq!(side(src, dst), Some(expected));
            assert_eq!(side(src, dst), Some(expected));
        }
    }

    #[test]
    fn a_network_says_what_is_near() {
        let near: IpNet = "10.0.0.1/32".parse().unwrap();
        let mut sides = Sides::default();
        let mut side = |src, dst| sides.of(&flow(src, dst), Some(&near));
        assert_eq!(
            [side(1, 2), side(2, 1), side(2, 3), side(1, 1)],
            [Some(Side::Near), Some(Side::Far), None, None]
        );
    }
}
