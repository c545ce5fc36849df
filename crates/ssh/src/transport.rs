//! Packets, key exchange and authentication (RFC 4253, RFC 4252): what is below the channels.
//!
//! | part | what it does |
//! |---|---|
//! | `packet` | packets, and their encryption |
//! | `negotiation` | which algorithms |
//! | `exchange` | the key exchange, and keys from it |
//! | `randomness` | random bytes from a seed |

mod exchange;
mod negotiation;
mod packet;
mod randomness;

use crate::connection::Outgoing;
use crate::error::SshError;
use crate::fields::{Fields, PutFields};
use crate::host_key::HostKey;
use exchange::{ECDH_INIT, Exchanged, Said, exchange};
use negotiation::{Agreed, KEXINIT, agree, offer};
use packet::{Opener, PacketKey, Sealer};
pub use randomness::Randomness;

/// The server's first line. OpenSSH keeps its extensions, of which `eow@openssh.com` ends a command whose output is not read any
/// more, for servers whose name begins like this.
const VERSION: &[u8] = concat!("SSH-2.0-OpenSSH_compatible Strait_", env!("CARGO_PKG_VERSION")).as_bytes();
/// Longest line of a client (RFC 4253 section 4.2).
const LINE_MAX: usize = 255;

const DISCONNECT: u8 = 1;
const IGNORE: u8 = 2;
const UNIMPLEMENTED: u8 = 3;
const DEBUG: u8 = 4;
const SERVICE_REQUEST: u8 = 5;
const SERVICE_ACCEPT: u8 = 6;
const NEWKEYS: u8 = 21;
const USERAUTH_REQUEST: u8 = 50;
const USERAUTH_FAILURE: u8 = 51;
const USERAUTH_SUCCESS: u8 = 52;
/// `SSH_DISCONNECT_PROTOCOL_ERROR` (RFC 4253 section 11.1).
const PROTOCOL_ERROR: u32 = 2;
/// Messages of connections (RFC 4250 section 4.1.1), the first and the last.
const CONNECTION_FIRST: u8 = 80;
const CONNECTION_LAST: u8 = 127;

/// Where a key exchange is.
enum Exchange {
    /// None runs.
    Idle,
    /// The server has made its offer: the first exchange.
    Offered(Vec<u8>),
    /// Both have.
    Agreed { server_offer: Vec<u8>, client_offer: Vec<u8>, agreed: Agreed, guess: bool },
    /// The server has answered and has its new key; the client's direction gets this one with its next message.
    Answered(Box<PacketKey>),
}

/// A message for what is above.
pub(crate) enum Message {
    /// The client is let in, for this account.
    User(Vec<u8>),
    /// A message of the connection protocol.
    Connection(Vec<u8>),
}

/// The lower half of the server.
pub(crate) struct Transport {
    host: HostKey,
    random: Randomness,
    opener: Opener,
    sealer: Sealer,
    /// The client's first line, once it is there.
    client_version: Option<Vec<u8>>,
    exchange: Exchange,
    /// The hash of the first exchange.
    session: Option<Vec<u8>>,
    strict: bool,
    admitted: bool,
    /// The number of the next packet from the client.
    sequence: u32,
    /// Packets ready to be written.
    out: Vec<u8>,
    /// Messages that wait for the end of a key exchange.
    held: Vec<Vec<u8>>,
}

impl Transport {
    pub(crate) fn new(host: HostKey, mut random: Randomness) -> Result<Transport, SshError> {
        let mut out = [VERSION, b"\r\n"].concat();
        let mut sealer = Sealer::default();
        let offered = offer(&random.bytes());
        sealer.seal(&offered, &mut out)?;
        Ok(Transport {
            host,
            random,
            opener: Opener::default(),
            sealer,
            client_version: None,
            exchange: Exchange::Offered(offered),
            session: None,
            strict: false,
            admitted: false,
            sequence: 0,
            out,
            held: Vec::new(),
        })
    }

    pub(crate) fn received(&mut self, bytes: &[u8]) {
        self.opener.received(bytes);
    }

    /// What is ready to be written.
    pub(crate) fn out(&mut self) -> &mut Vec<u8> {
        &mut self.out
    }

    /// Says what is wrong and that this is the end (RFC 4253 section 11.1).
    pub(crate) fn disconnect(&mut self, error: &SshError) {
        let mut message = vec![DISCONNECT];
        message.put_number(PROTOCOL_ERROR);
        message.put_string(error.to_string().as_bytes());
        message.put_string(b"");
        // There is no way left to say that this did not go out.
        let _ = self.sealer.seal(&message, &mut self.out);
    }

    /// The next message for what is above, of what has arrived.
    pub(crate) fn next(&mut self) -> Result<Option<Message>, SshError> {
        if self.client_version.is_none() {
            let Some(line) = self.opener.line(LINE_MAX)? else { return Ok(None) };
            if !line.starts_with(b"SSH-2.0-") {
                return Err(SshError::NotSsh);
            }
            self.client_version = Some(line);
        }
        while let Some(payload) = self.opener.next()? {
            let sequence = self.sequence;
            self.sequence = self.sequence.wrapping_add(1);
            if let Some(message) = self.packet(payload, sequence)? {
                return Ok(Some(message));
            }
        }
        Ok(None)
    }

    fn packet(&mut self, payload: Vec<u8>, sequence: u32) -> Result<Option<Message>, SshError> {
        let kind = *payload.first().ok_or(SshError::Protocol("it is empty"))?;
        if let Exchange::Agreed { guess: guess @ true, .. } = &mut self.exchange {
            *guess = false;
            return Ok(None);
        }
        match kind {
            DISCONNECT => return Err(disconnected(&payload)),
            // In the first exchange of careful ends nothing else may come.
            IGNORE | UNIMPLEMENTED | DEBUG if self.session.is_some() || !self.strict => {}
            KEXINIT => self.begin(payload)?,
            ECDH_INIT => self.answer(&payload)?,
            NEWKEYS => self.take_new_keys()?,
            SERVICE_REQUEST if self.session.is_some() => self.service(&payload)?,
            USERAUTH_REQUEST if self.session.is_some() => return self.authenticate(&payload),
            CONNECTION_FIRST..=CONNECTION_LAST if self.admitted => {
                return Ok(Some(Message::Connection(payload)));
            }
            _ if self.session.is_some() => {
                let mut answer = vec![UNIMPLEMENTED];
                answer.put_number(sequence);
                self.send(answer)?;
            }
            _ => return Err(SshError::Protocol("it comes before its time")),
        }
        Ok(None)
    }

    /// The client's offer.
    fn begin(&mut self, client_offer: Vec<u8>) -> Result<(), SshError> {
        let server_offer = match std::mem::replace(&mut self.exchange, Exchange::Idle) {
            Exchange::Offered(offered) => offered,
            Exchange::Idle => {
                let offered = offer(&self.random.bytes());
                self.sealer.seal(&offered, &mut self.out)?;
                offered
            }
            _ => return Err(SshError::Protocol("a key exchange begins within another")),
        };
        let agreed = agree(&client_offer)?;
        // Only the first exchange decides.
        if self.session.is_none() {
            self.strict = agreed.strict;
            if self.strict && self.sequence != 1 {
                return Err(SshError::Protocol("something comes before the key exchange"));
            }
        }
        let guess = agreed.guess_ignored;
        self.exchange = Exchange::Agreed { server_offer, client_offer, agreed, guess };
        Ok(())
    }

    /// The client's public key.
    fn answer(&mut self, payload: &[u8]) -> Result<(), SshError> {
        let Exchange::Agreed { server_offer, client_offer, agreed, .. } = &self.exchange else {
            return Err(SshError::Protocol("a public key comes before its time"));
        };
        let mut fields = Fields::new(payload);
        fields.byte()?;
        let said = Said {
            client_version: self.client_version.as_deref().unwrap_or_default(),
            server_version: VERSION,
            client_offer,
            server_offer,
        };
        let done: Exchanged = exchange(&said, fields.string()?, &self.host, &self.random.bytes())?;
        let session = self.session.get_or_insert_with(|| done.hash.clone());
        let [client, server] = done.keys(agreed, session)?;
        self.sealer.seal(&done.reply, &mut self.out)?;
        self.sealer.seal(&[NEWKEYS], &mut self.out)?;
        self.sealer.set_key(server);
        self.exchange = Exchange::Answered(Box::new(client));
        Ok(())
    }

    /// The client has its new keys.
    fn take_new_keys(&mut self) -> Result<(), SshError> {
        let Exchange::Answered(key) = std::mem::replace(&mut self.exchange, Exchange::Idle) else {
            return Err(SshError::Protocol("new keys come before their time"));
        };
        self.opener.set_key(*key);
        if self.strict {
            self.sequence = 0;
        }
        for message in std::mem::take(&mut self.held) {
            self.sealer.seal(&message, &mut self.out)?;
        }
        Ok(())
    }

    fn service(&mut self, payload: &[u8]) -> Result<(), SshError> {
        let mut fields = Fields::new(&payload[1..]);
        let service = fields.string()?;
        if service != b"ssh-userauth" {
            return Err(SshError::Protocol("it asks for an unknown service"));
        }
        let mut answer = vec![SERVICE_ACCEPT];
        answer.put_string(service);
        self.send(answer)
    }

    /// Lets the client in with method `none` (RFC 4252 section 5.2): it holds the other end of the pipe.
    fn authenticate(&mut self, payload: &[u8]) -> Result<Option<Message>, SshError> {
        let mut fields = Fields::new(&payload[1..]);
        let (user, service, method) = (fields.string()?, fields.string()?, fields.string()?);
        if self.admitted {
            // RFC 4252 section 5.1: silently ignored.
            return Ok(None);
        }
        if service != b"ssh-connection" || method != b"none" {
            let mut answer = vec![USERAUTH_FAILURE];
            answer.put_string(b"none");
            answer.put_boolean(false);
            self.send(answer)?;
            return Ok(None);
        }
        self.admitted = true;
        self.send(vec![USERAUTH_SUCCESS])?;
        Ok(Some(Message::User(user.to_vec())))
    }
}

impl Outgoing for Transport {
    fn send(&mut self, message: Vec<u8>) -> Result<(), SshError> {
        // RFC 4253 section 7.1: none of these between the offer and the new keys.
        if self.is_open() {
            self.sealer.seal(&message, &mut self.out)
        } else {
            self.held.push(message);
            Ok(())
        }
    }

    fn is_open(&self) -> bool {
        matches!(self.exchange, Exchange::Idle)
    }

    fn waiting(&self) -> usize {
        self.out.len()
    }
}

/// Why the client leaves.
fn disconnected(payload: &[u8]) -> SshError {
    let mut fields = Fields::new(payload.get(1..).unwrap_or_default());
    let text = fields.number().and_then(|_| fields.string()).unwrap_or_default();
    SshError::Disconnected(String::from_utf8_lossy(text).chars().filter(|it| !it.is_control()).collect())
}
