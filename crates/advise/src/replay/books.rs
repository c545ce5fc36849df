//! Whose the bytes on the wire are: those of a unit are shared among its packets by their lengths.

use std::collections::VecDeque;

use crate::Way;
use crate::classes::{Classes, Figures, Places, place_of};
use crate::sample::{Sampler, is_wanted};
use crate::tunnel::{BLOCK_MAX, Ledger, Unit};

/// Where a tunnel's units are written down.
pub(super) struct Books<'a> {
    pub(super) classes: &'a mut Classes,
    pub(super) way: Way,
    /// Room for the packets of a unit.
    pub(super) packets: &'a mut Vec<(Places, usize)>,
    /// For the way whose units are tried with all codecs.
    pub(super) samples: Option<&'a mut Samples>,
}

impl Ledger<Places> for Books<'_> {
    fn sent(&mut self, unit: &Unit, packets: &mut dyn Iterator<Item = (Places, usize)>) {
        self.packets.clear();
        self.packets.extend(packets);
        let (way, method) = (self.way.index(), place_of(unit.method));
        for ((places, len), wire) in shares(unit.wire, self.packets) {
            self.classes.add(*places, |figures| {
                if let Some(sum) = figures.wire.get_mut(way) {
                    *sum += wire;
                }
                if let Some(sum) = figures.methods.get_mut(method).filter(|_| way == Way::Both.index()) {
                    *sum += *len as u64;
                }
            });
        }
        if let Some(samples) = &mut self.samples {
            samples.consider(self.classes, self.packets, unit);
        }
    }
}

/// The packets of a unit with what each has of `wire` bytes: all together have all of them.
fn shares(wire: u64, packets: &[(Places, usize)]) -> impl Iterator<Item = (&(Places, usize), u64)> {
    let total: u64 = packets.iter().map(|(_, len)| *len as u64).sum();
    let up_to = move |sum: u64| {
        let share = u128::from(wire) * u128::from(sum) / u128::from(total.max(1));
        u64::try_from(share).unwrap_or(wire)
    };
    let mut sum = 0;
    packets.iter().map(move |packet| {
        let before = up_to(sum);
        sum += packet.1 as u64;
        (packet, up_to(sum) - before)
    })
}

/// The bytes of packets in waiting, so that what leaves together can be tried together.
#[derive(Debug)]
pub(super) struct Samples {
    sampler: Sampler,
    waiting: VecDeque<u8>,
    /// The unit that leaves.
    block: Vec<u8>,
}

impl Samples {
    /// Nothing waits; datagrams take packets of `mtu` bytes.
    pub(super) fn new(mtu: usize) -> Samples {
        let longest = BLOCK_MAX as usize;
        let (sampler, block) = (Sampler::new(longest, mtu), Vec::with_capacity(longest));
        Samples { sampler, waiting: VecDeque::new(), block }
    }

    /// A packet begins to wait.
    pub(super) fn push(&mut self, packet: &[u8]) {
        self.waiting.extend(packet);
    }

    /// Tries the unit that leaves with every candidate, if there is not enough yet of what its first packet is.
    fn consider(&mut self, classes: &mut Classes, packets: &[(Places, usize)], unit: &Unit) {
        let len: usize = packets.iter().map(|(_, len)| len).sum();
        let compressed = unit.method.is_some();
        let wanted = |figures: &Figures| is_wanted(figures.bytes, figures.together.before, compressed);
        if packets.first().is_some_and(|(first, _)| {
            wanted(classes.services.at(first.service)) || wanted(classes.pairs.at(first.pair))
        }) {
            self.block.clear();
            let (first, second) = self.waiting.as_slices();
            self.block.extend(first.iter().chain(second).take(len));
            self.compare(classes, packets);
        }
        self.waiting.drain(..len.min(self.waiting.len()));
    }

    /// Tries the block, and each of its packets alone.
    fn compare(&mut self, classes: &mut Classes, packets: &[(Places, usize)]) {
        let together = self.sampler.one(&self.block);
        let mut rest = self.block.as_slice();
        for (places, len) in packets {
            let (packet, behind) = rest.split_at_checked(*len).unwrap_or((rest, &[]));
            rest = behind;
            let alone = if packets.len() > 1 { self.sampler.one(packet) } else { together };
            let share = together.share(*len as u64);
            classes.add(*places, |figures| {
                figures.alone.merge(&alone);
                figures.together.merge(&share);
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_by_length_and_none_is_lost() {
        let mut classes = Classes::new();
        let flow = strait_wire::Flow {
            src: [10, 0, 0, 1].into(),
            dst: [10, 0, 0, 2].into(),
            protocol: strait_wire::Protocol::UDP,
            src_port: 1,
            dst_port: 2,
        };
        let places = classes.places(&flow, None);
        let split = |wire, lens: &[usize]| {
            let packets: Vec<_> = lens.iter().map(|len| (places, *len)).collect();
            shares(wire, &packets).map(|(_, share)| share).collect::<Vec<_>>()
        };
        assert_eq!(split(100, &[40, 60]), [40, 60]);
        assert_eq!(split(10, &[1, 1, 1]), [3, 3, 4]);
        assert_eq!(split(0, &[5]), [0]);
        assert_eq!(split(u64::MAX, &[7, 9]).iter().sum::<u64>(), u64::MAX);
    }
}
