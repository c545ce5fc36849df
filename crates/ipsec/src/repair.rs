//! Repairing losses between two nodes before the hosts behind them notice: what both halves of the data plane share.
//!
//! The sender of a paced link keeps a copy of each payload for a while ([`PayloadStore`]). The receiver sees which sequence numbers are
//! missing, asks for them at once (AGGFRAG sub-type 0xF3), and holds back what comes behind, so that packets keep their order. The sender
//! sends the payloads again under new numbers (sub-type 0xF4). What need not wait for that is said by [`Urgency`].

mod store;
mod urgency;

use core::time::Duration;

use strait_wire::Protocol;
use strait_wire::aggfrag::{self, Subtype};
use strait_wire::block;

use crate::fec::HOLD_MAX;

pub use store::{PayloadStore, StoredPayload};
pub(crate) use urgency::{FlowRates, Urgency, is_pure_acknowledgement};

/// Whether a payload is kept, waits for its turn, and may come again: packets, and nothing that a peer has to say itself.
pub(crate) fn is_repeatable(next: Protocol, payload: &[u8]) -> bool {
    match next {
        Protocol::IPIP | Protocol::IPV6 => true,
        Protocol::AGGFRAG => match aggfrag::subtype(payload) {
            Some(Subtype::Plain | Subtype::Block | Subtype::Lone) => true,
            // A report that packets ride with.
            Some(Subtype::Congestion) => {
                payload.get(aggfrag::CONGESTION_LEN).is_some_and(|first| first >> 4 != 0)
            }
            _ => false,
        },
        _ => false,
    }
}

/// Whether a payload is there for the sake of repair: a request, a payload that is sent again or will not be, or a repair symbol.
pub(crate) fn is_of_repair(next: Protocol, payload: &[u8]) -> bool {
    let kind = Some(payload).filter(|_| next == Protocol::AGGFRAG).and_then(aggfrag::subtype);
    matches!(kind, Some(Subtype::Missing | Subtype::Repetition | Subtype::RepairSymbol))
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

/// How much shorter than what a receiver holds packets back for a round trip is, at which it still has the time to ask.
const MARGIN: Duration = Duration::from_millis(10);
/// The longest round trip on which what was lost is asked for and sent again; above it, only repair symbols come in time.
pub const REPAIR_ROUND_MAX: Duration = HOLD_MAX.saturating_sub(MARGIN);

/// What is done about losses of what this node sends to a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RepairState {
    /// Nothing: the two nodes did not agree on it.
    NotAgreed,
    /// Nothing: no rate is known, and what is not paced is only kept on a slow path that loses datagrams.
    NotPaced,
    /// Payloads are kept and sent again.
    Retransmission,
    /// Nothing: the round trip is too long to send payloads again, and too little is lost for repair symbols.
    FewLosses,
    /// Repair symbols are sent: the round trip is too long to send payloads again.
    ErrorCorrection,
}

impl RepairState {
    /// Every value, in the order of their declaration.
    pub const ALL: [RepairState; 5] = [
        RepairState::NotAgreed,
        RepairState::NotPaced,
        RepairState::Retransmission,
        RepairState::FewLosses,
        RepairState::ErrorCorrection,
    ];

    /// A name for tables, logs and JSON.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            RepairState::NotAgreed => "not-agreed",
            RepairState::NotPaced => "not-paced",
            RepairState::Retransmission => "retransmission",
            RepairState::FewLosses => "few-losses",
            RepairState::ErrorCorrection => "error-correction",
        }
    }
}
