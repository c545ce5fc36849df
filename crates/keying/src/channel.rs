//! One QUIC connection (RFC 9000) with one stream of messages on it.

pub(crate) mod admission;
mod answers;
mod endpoint;
mod lent;
mod reading;
mod restraint;
mod table;
#[cfg(test)]
mod tests;
mod transport;

use std::net::{IpAddr, SocketAddr};

use quinn_proto::{
    ApplicationClose, Connection, ConnectionError, ConnectionHandle, StreamId, TransportErrorCode, VarInt,
};
use rustls::pki_types::CertificateDer;
use strait_clock::Time;
use strait_ipsec::{Place, Source};
use zeroize::Zeroizing;

use crate::agreement::{EXPORT_LEN, LABEL};
use crate::{Message, MessageError, PublicKey, Role};
use admission::Address;

use answers::wire_len;
pub(crate) use endpoint::{CannotConnect, Channels, OutgoingDatagram};
pub use lent::{LentConnection, LentEvent, StreamTransport};
use restraint::Restraint;
pub(crate) use transport::CID_LEN;
pub use transport::Epoch;

/// A connection's number within one node, never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ChannelId(u64);

#[cfg(test)]
impl ChannelId {
    /// The channel with this number, for tests that have no connection.
    pub(crate) const fn numbered(number: u64) -> ChannelId {
        ChannelId(number)
    }
}

/// What happened on a channel.
#[derive(Debug)]
pub(crate) enum Signal {
    /// The other end proved its key; of an initiator, it has not judged ours yet (RFC 8446 section 4.4).
    Connected,
    /// A message, and its bytes as they came, length included.
    Message(Box<Message>, Vec<u8>),
    /// Bytes that are no message.
    Malformed(MessageError),
    /// All that was sent has arrived.
    Delivered,
    /// It is over; nothing follows.
    Closed(Closed),
}

/// How a channel ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Closed {
    /// The other end closed it with one of our codes.
    ByPeer(CloseCode),
    /// The other end has another key than it should.
    WrongKey,
    /// The other end refuses our key.
    RefusedThere,
    /// The other end gave it up before the handshake was over, when it cannot say why yet (RFC 9000 section 10.2.3).
    GivenUp,
    /// Nothing came for too long.
    TimedOut,
    /// Anything else QUIC can end with.
    Broken(String),
}

/// Why a channel is closed: QUIC's application error code (RFC 9000 section 20.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CloseCode {
    /// All is said.
    Done = 0,
    /// The other end's own handshake goes first.
    Yield = 1,
    /// A message was wrong.
    Malformed = 2,
    /// There is no common suite.
    NoSuite = 3,
    /// The key is no longer allowed.
    Stranger = 4,
    /// A newer handshake took its place.
    Superseded = 5,
    /// It took too long.
    GaveUp = 6,
    /// Something in here failed.
    Internal = 7,
    /// More handshakes than a peer may complete.
    TooOften = 8,
    /// No room for another node that the configuration does not list.
    Full = 9,
}

impl CloseCode {
    const ALL: [CloseCode; 10] = [
        CloseCode::Done,
        CloseCode::Yield,
        CloseCode::Malformed,
        CloseCode::NoSuite,
        CloseCode::Stranger,
        CloseCode::Superseded,
        CloseCode::GaveUp,
        CloseCode::Internal,
        CloseCode::TooOften,
        CloseCode::Full,
    ];

    const fn number(self) -> u32 {
        self as u32
    }

    /// The text of the code; a peer's own words are not repeated in a log.
    pub(crate) const fn text(self) -> &'static str {
        match self {
            CloseCode::Done => "done",
            CloseCode::Yield => "another handshake is in progress",
            CloseCode::Malformed => "malformed message from this node",
            CloseCode::NoSuite => "no cipher suite is allowed at both ends",
            CloseCode::Stranger => "this node's public key is no longer configured there",
            CloseCode::Superseded => "superseded by a newer handshake",
            CloseCode::GaveUp => "handshake timeout",
            CloseCode::Internal => "internal error",
            CloseCode::TooOften => "too many handshakes from this node",
            CloseCode::Full => "it has no room for another node that it does not list; try again in a minute",
        }
    }
}

/// Keys were asked for before there are any, or a second time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NoExport;

/// Whether keys were taken from a connection; they are taken once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Export {
    Fresh,
    Taken,
}

/// Whether a channel still says anything to its owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Voice {
    Speaking,
    Silent,
    /// Nor to the other end, unless that speaks.
    Abandoned,
}

/// The sender of a handshake that was let in, until it proves its key.
#[derive(Clone, Copy, Debug)]
struct ChannelGuest {
    source: Source,
    address: Address,
    /// Bytes on the wire that are paid for.
    paid: u64,
}

struct Channel {
    handle: ConnectionHandle,
    connection: Connection,
    role: Role,
    /// Of a handshake that was begun elsewhere.
    guest: Option<ChannelGuest>,
    /// The address of this host that datagrams leave with, once it is known.
    local: Option<IpAddr>,
    stream: Option<StreamId>,
    /// Bytes of a message that is not complete.
    inbox: Vec<u8>,
    export: Export,
    voice: Voice,
    opened: Time,
    due: Option<Time>,
    restraint: Restraint,
}

impl Channel {
    fn new(
        handle: ConnectionHandle,
        connection: Connection,
        guest: Option<ChannelGuest>,
        local: Option<IpAddr>,
        now: Time,
    ) -> Channel {
        Channel {
            handle,
            connection,
            role: if guest.is_some() { Role::Responder } else { Role::Initiator },
            guest,
            local,
            stream: None,
            inbox: Vec::new(),
            export: Export::Fresh,
            voice: Voice::Speaking,
            opened: now,
            due: None,
            restraint: Restraint::default(),
        }
    }

    /// Whether its other end has not proved a key.
    fn is_strangers(&self) -> bool {
        self.guest.is_some() && self.connection.is_handshaking()
    }

    fn remote(&self) -> SocketAddr {
        self.connection.remote_address()
    }

    fn place(&self) -> Place {
        Place { remote: self.remote(), local: self.local }
    }

    /// The key that TLS has verified at the other end.
    fn peer_key(&self) -> Option<PublicKey> {
        let identity = self.connection.crypto_session().peer_identity()?;
        let spki = identity.downcast::<Vec<CertificateDer<'static>>>().ok()?;
        PublicKey::from_spki(spki.first()?)
    }

    /// Key material bound to `context`; the second time there is none.
    fn export(&mut self, context: &[u8]) -> Result<Zeroizing<[u8; EXPORT_LEN]>, NoExport> {
        if self.export == Export::Taken || self.connection.is_handshaking() {
            return Err(NoExport);
        }
        self.export = Export::Taken;
        let mut material = Zeroizing::new([0; EXPORT_LEN]);
        let session = self.connection.crypto_session();
        session.export_keying_material(material.as_mut_slice(), LABEL, context).map_err(|_| NoExport)?;
        Ok(material)
    }
}

impl Closed {
    /// Why, for a log or a user.
    pub(crate) fn text(&self) -> String {
        match self {
            Closed::ByPeer(code) => code.text().to_owned(),
            Closed::WrongKey => "the node there has another key".to_owned(),
            Closed::RefusedThere => "this node's key is refused there".to_owned(),
            Closed::GivenUp => "the node there gave up".to_owned(),
            Closed::TimedOut => "no answer in time".to_owned(),
            Closed::Broken(how) => how.clone(),
        }
    }

    fn of(error: &ConnectionError) -> Closed {
        /// TLS alert `access_denied` (RFC 8446 section 6.2): a key that is not allowed.
        const ACCESS_DENIED: u8 = 49;
        match error {
            ConnectionError::ApplicationClosed(ApplicationClose { error_code, .. }) => {
                let known =
                    CloseCode::ALL.into_iter().find(|code| VarInt::from_u32(code.number()) == *error_code);
                known.map_or_else(|| Closed::Broken(format!("with code {error_code}")), Closed::ByPeer)
            }
            ConnectionError::TransportError(error)
                if error.code == TransportErrorCode::crypto(ACCESS_DENIED) =>
            {
                Closed::WrongKey
            }
            ConnectionError::ConnectionClosed(close)
                if close.error_code == TransportErrorCode::crypto(ACCESS_DENIED) =>
            {
                Closed::RefusedThere
            }
            ConnectionError::ConnectionClosed(close)
                if close.error_code == TransportErrorCode::APPLICATION_ERROR =>
            {
                Closed::GivenUp
            }
            ConnectionError::ConnectionClosed(close) => Closed::Broken(close.error_code.to_string()),
            ConnectionError::TimedOut => Closed::TimedOut,
            other => Closed::Broken(other.to_string()),
        }
    }
}
