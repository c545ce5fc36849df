//! Associations whose key travels with their packets, wrapped, in a header that the key manager makes once.
//!
//! The sender puts the header in front of packets until the peer has bound the key to its SPI, and now and then after that. The receiver
//! compares headers with those that it knows; what is in a new one is the key manager's to find out. Parts: `outbound` the sender's half,
//! `inbound` the receiver's, `schedule` when headers and key packets are sent.

mod inbound;
mod outbound;
mod schedule;

pub(crate) use inbound::HeaderedIntake;
pub use inbound::{InboundHeader, KeyNumbers, RECEIVE_SLACK, SenderNumbers};
pub(crate) use outbound::HeaderLead;
pub use outbound::{HeaderChange, KeyPacketBeside, OutboundHeader};
pub use schedule::{HEADER_PACKETS, HEADER_PAUSE, KeyPacketSchedule, ReturnPath};
