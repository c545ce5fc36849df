//! Who a node is, whom it trusts, and which keys its packets use: identities, the QUIC control
//! channel, sessions and rekeying.
//!
//! A node drives one [`Control`]: QUIC datagrams enter at [`Control::datagram`], what the data plane
//! noticed at [`Control::notice`], addresses that were looked up at [`Control::resolved`], and time at
//! [`Control::timeout`]. What has to be done leaves through [`Control::poll_action`]. Nothing here reads
//! a clock, a socket or a file; the handshake's own ephemeral keys alone come from the TLS provider's
//! generator.
//!
//! One connection makes one pair of security associations: two nodes prove their Ed25519 keys in TLS 1.3
//! (RFC 8446) with raw public keys (RFC 7250), exchange an [`Offer`](Message::Offer), an
//! [`Accept`](Message::Accept) and a [`Confirm`](Message::Confirm), export the ESP keys once (RFC 5705)
//! and close. Every rekey is a new connection, so nothing that could derive a key again outlives it.
//!
//! What this crate refuses: certificates, resumption, early data, unauthenticated peers and a second
//! export from one connection.

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod action;
mod agreement;
mod base64;
mod channel;
mod control;
pub mod directory;
mod event;
mod identity;
mod kdf;
mod keystream;
pub mod manual;
mod message;
mod move_log;
mod openssh;
pub mod sessionless;
mod settings;
mod signed_fields;
mod status;
mod tls;
mod token;
mod x25519;

pub use action::{Action, DangerKey, SaDirection};
pub use channel::{Epoch, LentConnection, LentEvent, StreamTransport};
pub use control::{
    ATTEMPT_DELAY, Control, MOST_ADDRESSES, MarkOwner, SessionlessSettings, SessionlessStatus,
    SessionlessTerms, WallClock, in_turn,
};
pub use event::{ControlEvent, HandshakeFailure, Refusal};
pub use identity::{KeyRole, ParseKeyError, PrivateKey, PublicKey, SIGNATURE_LEN};
pub use kdf::derive_key;
pub use message::{
    Capabilities, DeliveryReporting, DirectEsp, Expansion, LossRepair, Message, MessageError, PayloadFormat,
    SessionTerms,
};
pub use move_log::MoveLog;
pub use openssh::{OpenSshError, SSH_BLOB_LEN, SSH_KEY_TYPE};
pub use settings::{
    CarrierMode, ControlSettings, KeyExport, Lifetime, PeerConfig, RepairMode, SetupError, Start, Where,
};
pub use status::{AssociationStatus, PeerState, PeerStatus, Role, SaStatus};
pub use token::PresharedToken;
pub use x25519::{x25519, x25519_public};
