//! Acknowledgements that need not leave, since a newer one tells all that they do (RFC 3449 section 5.2.1).
//!
//! A packet that comes while a pure acknowledgement of its flow is the last that waits takes its place, if it acknowledges more and
//! nothing is lost with the other: [`Acknowledgement::tells_all_of`]. Then nothing leaves later than it would have. Acknowledgements
//! that repeat one another stay, three of each number, since a sender counts them (RFC 5681 section 3.2); of those that follow, each
//! with its ranges, the last stays.

use strait_wire::tcp::Acknowledgement;
use strait_wire::vnet;

use crate::offload::SuperPacket;

/// Flows of which the last acknowledgement is remembered, by their hashes; of two with one place, the one that came last.
const FLOWS: usize = 256;
/// After so many repeats a sender takes the segment behind the number for lost (RFC 5681 section 3.2).
const REPEATS: u8 = 3;

/// Which acknowledgements a newer one may replace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum AckRank {
    /// None: it is no pure one, or one of the first three repeats, or nothing is known of those before it.
    #[default]
    Kept,
    /// The first with its number: one with a higher number.
    First,
    /// A repeat with ranges behind the third: one with a higher number, or the same and more ranges.
    Repeat,
}

impl AckRank {
    /// Whether `newer` may take the place of `older`, which is of this rank and right before it in its flow.
    pub(super) fn yields(self, older: &Acknowledgement, newer: &Acknowledgement) -> bool {
        let tells_more = match self {
            AckRank::Kept => false,
            AckRank::First => newer.advances(older),
            AckRank::Repeat => newer.advances(older) || newer.repeats(older) && newer.has_ranges(),
        };
        tells_more && newer.tells_all_of(older)
    }
}

/// The acknowledgement in a packet, if its receiver is going to believe it; the host's own checksums are made later.
pub(super) fn acknowledgement(packet: &SuperPacket<'_>, offload: &vnet::Header) -> Option<Acknowledgement> {
    let ack = Acknowledgement::of(packet.ip())?;
    let is_own = offload.flags & vnet::NEEDS_CSUM != 0;
    (is_own || Acknowledgement::is_intact(packet.ip())).then_some(ack)
}

/// The last acknowledgements of flows.
#[derive(Debug, Default)]
pub(super) struct AckFlows {
    /// Made with the first acknowledgement.
    flows: Vec<AckFlow>,
}

/// The last acknowledgement of a flow.
#[derive(Clone, Copy, Debug)]
struct AckFlow {
    hash: u64,
    last: Option<Acknowledgement>,
    repeats: u8,
}

impl AckFlow {
    const NONE: AckFlow = AckFlow { hash: 0, last: None, repeats: 0 };
}

impl AckFlows {
    /// Takes the acknowledgement of a packet of the flow with this hash; its rank.
    pub(super) fn note(&mut self, hash: u64, ack: &Acknowledgement) -> AckRank {
        if self.flows.is_empty() {
            self.flows = vec![AckFlow::NONE; FLOWS];
        }
        let place = self.flows.get_mut((hash % FLOWS as u64) as usize);
        place.map_or(AckRank::Kept, |flow| {
            if flow.hash != hash {
                *flow = AckFlow { hash, ..AckFlow::NONE };
            }
            flow.note(ack)
        })
    }
}

impl AckFlow {
    fn note(&mut self, ack: &Acknowledgement) -> AckRank {
        let Some(last) = self.last else {
            self.last = Some(*ack);
            return AckRank::Kept;
        };
        if ack.advances(&last) {
            (self.last, self.repeats) = (Some(*ack), 0);
            return if ack.is_pure() { AckRank::First } else { AckRank::Kept };
        }
        if ack.repeats(&last) {
            (self.last, self.repeats) = (Some(*ack), self.repeats.saturating_add(1));
            let counted = self.repeats > REPEATS && ack.has_ranges();
            return if counted { AckRank::Repeat } else { AckRank::Kept };
        }
        // Data, a change of the window, or one that was overtaken. What repeats it has its window.
        if ack.number() == last.number() {
            self.last = Some(*ack);
        }
        AckRank::Kept
    }
}

#[cfg(test)]
mod tests;
