//! Whose the bytes on the wire are: those of a unit are shared among its packets by their lengths.

use crate::TunnelVariant;
use crate::classes::{ClassFigures, Classes, FigurePlaces, place_of};
use crate::sample::{Sampler, is_wanted};
use crate::tunnel::{BLOCK_MAX, Ledger, MeteredUnit};

/// Where a tunnel's units are written down.
pub(super) struct Books<'a> {
    pub(super) classes: &'a mut Classes,
    pub(super) way: TunnelVariant,
    /// For the way whose units are tried with all codecs.
    pub(super) samples: Option<&'a mut Samples>,
}

impl Ledger<FigurePlaces> for Books<'_> {
    fn sent(&mut self, unit: &MeteredUnit, bytes: &[u8], packets: &[(FigurePlaces, usize)]) {
        let (way, method) = (self.way.index(), place_of(unit.method));
        for ((places, len), wire) in shares(unit.wire, packets) {
            self.classes.add(*places, |figures| {
                if let Some(sum) = figures.wire.get_mut(way) {
                    *sum += wire;
                }
                if let Some(sum) =
                    figures.methods.get_mut(method).filter(|_| way == TunnelVariant::Both.index())
                {
                    *sum += *len as u64;
                }
            });
        }
        if let Some(samples) = &mut self.samples {
            samples.consider(self.classes, bytes, packets, unit.method.is_some());
        }
    }
}

/// The packets of a unit with what each has of `wire` bytes: all together have all of them.
fn shares(
    wire: u64,
    packets: &[(FigurePlaces, usize)],
) -> impl Iterator<Item = (&(FigurePlaces, usize), u64)> {
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

/// Units that are tried with every candidate.
#[derive(Debug)]
pub(super) struct Samples(Sampler);

impl Samples {
    /// Nothing was tried; datagrams take packets of `mtu` bytes.
    pub(super) fn new(mtu: usize) -> Samples {
        Samples(Sampler::new(BLOCK_MAX as usize, mtu))
    }

    /// Tries the unit that leaves, if there is not enough yet of what its first packet is.
    fn consider(
        &mut self,
        classes: &mut Classes,
        bytes: &[u8],
        packets: &[(FigurePlaces, usize)],
        compressed: bool,
    ) {
        let wanted = |figures: &ClassFigures| is_wanted(figures.bytes, figures.together.before, compressed);
        if packets.first().is_some_and(|(first, _)| {
            wanted(classes.services.at(first.service)) || wanted(classes.pairs.at(first.pair))
        }) {
            self.compare(classes, bytes, packets);
        }
    }

    /// Tries the block, and each of its packets alone.
    fn compare(&mut self, classes: &mut Classes, block: &[u8], packets: &[(FigurePlaces, usize)]) {
        let together = self.0.one(block);
        let mut rest = block;
        for (places, len) in packets {
            let (packet, behind) = rest.split_at_checked(*len).unwrap_or((rest, &[]));
            rest = behind;
            let alone = if packets.len() > 1 { self.0.one(packet) } else { together };
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
