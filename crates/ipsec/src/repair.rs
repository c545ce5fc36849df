//! Repairing losses between two nodes before the hosts behind them notice: what both halves of the data plane share.
//!
//! The sender of a paced link keeps a copy of each payload for a while ([`PayloadStore`]). The receiver sees which sequence numbers are
//! missing, asks for them at once (AGGFRAG sub-type 0xF3), and holds back what comes behind, so that packets keep their order. The sender
//! sends the payloads again under new numbers (sub-type 0xF4). What need not wait for that is said by [`Urgency`].

mod store;
mod urgency;

use strait_wire::Protocol;
use strait_wire::aggfrag::{self, Subtype};
use strait_wire::block;

pub use store::{PayloadStore, StoredPayload};
pub(crate) use urgency::{FlowRates, Urgency, is_pure_acknowledgement};

/// Whether a payload is kept, waits for its turn, and may come again: packets, and nothing that a peer has to say itself.
pub(crate) fn is_repeatable(next: Protocol, payload: &[u8]) -> bool {
    match next {
        Protocol::IPIP | Protocol::IPV6 => true,
        Protocol::AGGFRAG => match aggfrag::subtype(payload) {
            Some(Subtype::Plain | Subtype::Block) => true,
            // A report that packets ride with.
            Some(Subtype::Congestion) => {
                payload.get(aggfrag::CONGESTION_LEN).is_some_and(|first| first >> 4 != 0)
            }
            _ => false,
        },
        _ => false,
    }
}

/// Whether an AGGFRAG payload is a block that its sender marked as one whose packets need not wait for others.
pub(crate) fn is_prompt_block(payload: &[u8]) -> bool {
    block::Header::parse(payload)
        .is_ok_and(|(header, _)| header.parts == 1 && header.codec & block::PROMPT != 0)
}

/// What two nodes have agreed on the losses of an association.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RepairTerms {
    /// They are not repaired.
    #[default]
    Off,
    /// They are repaired once the sender says that it keeps what it sends: while it paces.
    OnNotice,
    /// The sender has a rate that is given, so it keeps what it sends from the first datagram on.
    Kept,
}
