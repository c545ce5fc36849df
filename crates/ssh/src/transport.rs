//! Packets, key exchange and authentication (RFC 4253, RFC 4252): what is below the channels.
//!
//! | part | what it does |
//! |---|---|
//! | `packet` | packets, and their encryption |
//! | `negotiation` | which algorithms |
//! | `exchange` | the key exchange, and keys from it |
//! | `randomness` | random bytes from a seed |
//!
//! The first exchange of keys is in the clear, and nothing but the exchange is taken before its keys are in use. In a later one nothing
//! comes that RFC 4253 section 7.1 forbids. A message has its number (RFC 4250 section 4.1.2) and is taken, ignored, answered as
//! unknown, or ends the connection; `lax` is ignored, unless the client has asked for a strict exchange (draft-miller-sshm-strict-kex),
//! which it ends. The first three columns are of the first exchange, the last two of a later one.
//!
//! | message | offered | agreed | answered | keyed | asked | admitted | agreed again | answered again |
//! |---|---|---|---|---|---|---|---|---|
//! | 0 | ends | ends | ends | unknown | unknown | unknown | ends | ends |
//! | 1 | ends | ends | ends | ends | ends | ends | ends | ends |
//! | 2-4 | lax | lax | lax | ignored | ignored | ignored | ignored | ignored |
//! | 5 | ends | ends | ends | taken | ends | ends | ends | ends |
//! | 6 | ends | ends | ends | unknown | unknown | unknown | ends | ends |
//! | 7-19 | ends | ends | ends | unknown | unknown | unknown | unknown | unknown |
//! | 20 | taken | ends | ends | taken | taken | taken | ends | ends |
//! | 21 | ends | ends | taken | ends | ends | ends | ends | taken |
//! | 22-29 | ends | ends | ends | unknown | unknown | unknown | unknown | unknown |
//! | 30 | ends | taken | ends | ends | ends | ends | taken | ends |
//! | 31-49 | ends | ends | ends | unknown | unknown | unknown | unknown | unknown |
//! | 50 | ends | ends | ends | ends | taken | ignored | ends | ends |
//! | 51-79 | ends | ends | ends | unknown | unknown | unknown | ends | ends |
//! | 80-127 | ends | ends | ends | ends | ends | taken | ends | ends |
//! | 128-255 | ends | ends | ends | unknown | unknown | unknown | ends | ends |

mod exchange;
mod negotiation;
mod packet;
mod randomness;
#[cfg(test)]
mod tests;

use crate::connection::{CHANNELS_MAX, Outgoing};
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
/// Messages of a method of key exchange (RFC 4250 section 4.1.1), the first and the last.
const METHOD_FIRST: u8 = 30;
const METHOD_LAST: u8 = 49;
/// Messages of connections, the first and the last.
const CONNECTION_FIRST: u8 = 80;
const CONNECTION_LAST: u8 = 127;
/// Messages that wait for the end of an exchange at most: eight of each channel (answers, windows, ends), and as many channels again.
const HELD_MAX: usize = 16 * CHANNELS_MAX;

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

/// A message of another time.
const UNTIMELY: SshError = SshError::Protocol("it comes before its time, or after");
/// The first message that a client may send within an exchange that is no part of one, nor known (RFC 4253 section 7.1).
const FREE_FIRST: u8 = 7;

/// True if a message is of a method of key exchange, as the one that a client guesses is.
const fn is_of_method(kind: u8) -> bool {
    METHOD_FIRST <= kind && kind <= METHOD_LAST
}

/// The stage that the client has reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// It speaks in the clear.
    Clear,
    /// Keys are in use.
    Keyed,
    /// It has asked for authentication.
    Asked,
    /// It is let in.
    Admitted,
}

/// The fate of a message.
enum Verdict {
    Taken,
    Ignored,
    Unknown,
    Untimely,
}

/// A message for what is above.
#[cfg_attr(test, derive(Debug, PartialEq, Eq))]
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
    stage: Stage,
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
            stage: Stage::Clear,
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
            // In the first exchange it may not come round (draft-miller-sshm-strict-kex).
            let next = sequence.checked_add(1).or((self.stage != Stage::Clear).then_some(0));
            self.sequence = next.ok_or(UNTIMELY)?;
            if let Some(message) = self.packet(payload, sequence)? {
                return Ok(Some(message));
            }
        }
        Ok(None)
    }

    fn packet(&mut self, payload: Vec<u8>, sequence: u32) -> Result<Option<Message>, SshError> {
        let kind = *payload.first().ok_or(SshError::Protocol("it is empty"))?;
        let verdict = self.verdict(kind);
        if let Exchange::Agreed { guess, .. } = &mut self.exchange {
            *guess &= !is_of_method(kind);
        }
        match verdict {
            Verdict::Taken => self.take(kind, payload),
            Verdict::Ignored => Ok(None),
            Verdict::Unknown => self.unknown(sequence).map(|()| None),
            Verdict::Untimely => Err(UNTIMELY),
        }
    }

    /// The table of this module.
    fn verdict(&self, kind: u8) -> Verdict {
        let clear = self.stage == Stage::Clear;
        match (&self.exchange, kind) {
            (_, DISCONNECT) => Verdict::Taken,
            (_, IGNORE | UNIMPLEMENTED | DEBUG) if !(clear && self.strict) => Verdict::Ignored,
            (Exchange::Agreed { guess: true, .. }, _) if is_of_method(kind) => Verdict::Ignored,
            (Exchange::Offered(_) | Exchange::Idle, KEXINIT)
            | (Exchange::Agreed { .. }, ECDH_INIT)
            | (Exchange::Answered(_), NEWKEYS) => Verdict::Taken,
            (Exchange::Idle, _) => self.verdict_without_exchange(kind),
            (_, KEXINIT | NEWKEYS | ECDH_INIT) => Verdict::Untimely,
            (_, FREE_FIRST..=METHOD_LAST) if !clear => Verdict::Unknown,
            _ => Verdict::Untimely,
        }
    }

    const fn verdict_without_exchange(&self, kind: u8) -> Verdict {
        match (self.stage, kind) {
            (Stage::Keyed, SERVICE_REQUEST)
            | (Stage::Asked, USERAUTH_REQUEST)
            | (Stage::Admitted, CONNECTION_FIRST..=CONNECTION_LAST) => Verdict::Taken,
            // RFC 4252 section 5.1.
            (Stage::Admitted, USERAUTH_REQUEST) => Verdict::Ignored,
            (_, SERVICE_REQUEST | USERAUTH_REQUEST | CONNECTION_FIRST..=CONNECTION_LAST)
            | (_, NEWKEYS | ECDH_INIT) => Verdict::Untimely,
            _ => Verdict::Unknown,
        }
    }

    fn take(&mut self, kind: u8, payload: Vec<u8>) -> Result<Option<Message>, SshError> {
        match kind {
            DISCONNECT => return Err(disconnected(&payload)),
            KEXINIT => self.begin(payload)?,
            ECDH_INIT => self.answer(&payload)?,
            NEWKEYS => self.take_new_keys()?,
            SERVICE_REQUEST => self.service(&payload)?,
            USERAUTH_REQUEST => return self.authenticate(&payload),
            _ => return Ok(Some(Message::Connection(payload))),
        }
        Ok(None)
    }

    /// Says that a message is not known, also within an exchange, where this may be said.
    fn unknown(&mut self, sequence: u32) -> Result<(), SshError> {
        let mut answer = vec![UNIMPLEMENTED];
        answer.put_number(sequence);
        self.sealer.seal(&answer, &mut self.out)
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
            _ => return Err(UNTIMELY),
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
            return Err(UNTIMELY);
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
            return Err(UNTIMELY);
        };
        self.opener.set_key(*key);
        if self.stage == Stage::Clear {
            self.stage = Stage::Keyed;
        }
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
        self.stage = Stage::Asked;
        let mut answer = vec![SERVICE_ACCEPT];
        answer.put_string(service);
        self.send(answer)
    }

    /// Lets the client in with method `none` (RFC 4252 section 5.2): it holds the other end of the pipe.
    fn authenticate(&mut self, payload: &[u8]) -> Result<Option<Message>, SshError> {
        let mut fields = Fields::new(&payload[1..]);
        let (user, service, method) = (fields.string()?, fields.string()?, fields.string()?);
        if service != b"ssh-connection" || method != b"none" {
            let mut answer = vec![USERAUTH_FAILURE];
            answer.put_string(b"none");
            answer.put_boolean(false);
            self.send(answer)?;
            return Ok(None);
        }
        self.stage = Stage::Admitted;
        self.send(vec![USERAUTH_SUCCESS])?;
        Ok(Some(Message::User(user.to_vec())))
    }
}

impl Outgoing for Transport {
    fn send(&mut self, message: Vec<u8>) -> Result<(), SshError> {
        // RFC 4253 section 7.1: none of these between the offer and the new keys.
        if self.is_open() {
            return self.sealer.seal(&message, &mut self.out);
        }
        if self.held.len() >= HELD_MAX {
            return Err(SshError::Protocol("new keys are begun, and withheld"));
        }
        self.held.push(message);
        Ok(())
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
