//! Channels (RFC 4254): who opens them, their windows, what is asked of sessions.
//!
//! | part | what it does |
//! |---|---|
//! | `channel` | one channel: windows, what was said and heard |
//! | `request` | what is asked of a session, and of the connection |
//! | `speak` | what is said to `ssh` |

mod channel;
mod request;
mod speak;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, VecDeque};

use crate::error::SshError;
use crate::event::SshEvent;
use crate::fields::{Fields, PutFields};
use channel::{Channel, Kind, State};

const GLOBAL_REQUEST: u8 = 80;
const REQUEST_SUCCESS: u8 = 81;
const REQUEST_FAILURE: u8 = 82;
const OPEN: u8 = 90;
const OPEN_CONFIRMATION: u8 = 91;
const OPEN_FAILURE: u8 = 92;
const WINDOW_ADJUST: u8 = 93;
const DATA: u8 = 94;
const EXTENDED_DATA: u8 = 95;
const EOF: u8 = 96;
const CLOSE: u8 = 97;
const REQUEST: u8 = 98;
const SUCCESS: u8 = 99;
const FAILURE: u8 = 100;

/// Channels at once: as many as streams that a peer may have open on one connection.
pub(crate) const CHANNELS_MAX: usize = 64;
/// `SSH_EXTENDED_DATA_STDERR` (RFC 4254 section 5.2).
const STDERR: u32 = 1;
/// Bytes that wait to be written to `ssh` before channels have no more room: a few packets, so that none waits long behind others.
const OUT_MAX: usize = 256 * 1024;

/// Why a channel is not opened (RFC 4254 section 5.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenRefusal {
    /// It is not allowed.
    Prohibited = 1,
    /// The other end of what is forwarded cannot be reached.
    ConnectFailed = 2,
    /// There is no such kind of channel.
    UnknownKind = 3,
    /// There are too many.
    Shortage = 4,
}

/// A channel. No number comes twice in a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ChannelNumber(pub(crate) u32);

/// What carries messages to `ssh`.
pub trait Outgoing {
    /// Sends a message.
    ///
    /// # Errors
    /// [`SshError`] if that is not possible any more.
    fn send(&mut self, message: Vec<u8>) -> Result<(), SshError>;
    /// Whether messages go out now, and do not wait for new keys.
    fn is_open(&self) -> bool;
    /// Bytes that wait to be written.
    fn waiting(&self) -> usize;
}

/// All channels, without what is below them: messages of RFC 4254 in, messages and events out. Every error is one of [`Outgoing`]'s,
/// or of what `ssh` sends where a message of its is taken; the connection is over then.
#[derive(Debug, Default)]
pub struct Connection {
    channels: BTreeMap<ChannelNumber, Channel>,
    next_number: u32,
    events: VecDeque<SshEvent>,
}

impl Connection {
    /// What `ssh` asks for or says next.
    pub fn next_event(&mut self) -> Option<SshEvent> {
        self.events.pop_front()
    }

    /// It asks for this account.
    pub fn admit(&mut self, user: Vec<u8>) {
        self.events.push_back(SshEvent::User(user));
    }

    /// Takes a message of `ssh`.
    ///
    /// # Errors
    /// [`SshError`] for what breaks RFC 4254.
    pub fn take(&mut self, message: &[u8], out: &mut impl Outgoing) -> Result<(), SshError> {
        let mut fields = Fields::new(message);
        match fields.byte()? {
            GLOBAL_REQUEST => self.global(fields, out),
            OPEN => self.open(fields, out),
            // What the server asks, it asks without wanting to know.
            REQUEST_SUCCESS | REQUEST_FAILURE | SUCCESS | FAILURE => Ok(()),
            kind @ (OPEN_CONFIRMATION..=OPEN_FAILURE | WINDOW_ADJUST..=REQUEST) => {
                let number = ChannelNumber(fields.number()?);
                self.of_channel(kind, number, fields, out)
            }
            _ => Err(SshError::Protocol("it is an unknown message of a connection")),
        }
    }

    fn of_channel(
        &mut self,
        kind: u8,
        number: ChannelNumber,
        mut fields: Fields<'_>,
        out: &mut impl Outgoing,
    ) -> Result<(), SshError> {
        let channel = self
            .channels
            .get_mut(&number)
            .ok_or(SshError::Protocol("it names a channel that is not there"))?;
        match kind {
            OPEN_CONFIRMATION => {
                channel.confirmed(fields.number()?, fields.number()?, fields.number()?)?;
                self.events.push_back(SshEvent::Opened(number));
            }
            OPEN_FAILURE => {
                channel.expect(State::Asked)?;
                self.channels.remove(&number);
                self.events.push_back(SshEvent::OpenFailed(number));
            }
            WINDOW_ADJUST => channel.may_send(fields.number()?)?,
            DATA => {
                let bytes = fields.string()?;
                channel.arrived(bytes.len())?;
                self.events.push_back(SshEvent::Data(number, bytes.to_vec()));
            }
            EXTENDED_DATA => {
                // Nothing that a client sends has a second kind of bytes; they are taken, and lost.
                fields.number()?;
                let count = fields.string()?.len();
                channel.arrived(count)?;
                self.taken(number, count, out)?;
            }
            EOF => {
                channel.hears()?;
                self.events.push_back(SshEvent::Eof(number));
            }
            CLOSE => {
                channel.hears()?;
                channel.close_got = true;
                if channel.close_sent {
                    self.channels.remove(&number);
                }
                self.events.push_back(SshEvent::Closed(number));
            }
            _ => {
                channel.hears()?;
                self.session_request(number, fields, out)?;
            }
        }
        Ok(())
    }

    /// `ssh` opens a channel.
    fn open(&mut self, mut fields: Fields<'_>, out: &mut impl Outgoing) -> Result<(), SshError> {
        let kind = fields.string()?;
        let (remote, window, packet) = (fields.number()?, fields.number()?, fields.number()?);
        let refusal = match kind {
            _ if self.channels.len() >= CHANNELS_MAX => {
                (OpenRefusal::Shortage, "there are too many channels")
            }
            b"session" => {
                let number = self.add(Channel::offered(Kind::Session, remote, window, packet));
                self.confirm(number, out)?;
                self.events.push_back(SshEvent::OpenSession(number));
                return Ok(());
            }
            b"direct-tcpip" => {
                let (host, port) = (fields.string()?.to_vec(), fields.number()?);
                let channel = self.add(Channel::offered(Kind::Tcp, remote, window, packet));
                self.events.push_back(SshEvent::OpenTcp { channel, host, port });
                return Ok(());
            }
            b"direct-streamlocal@openssh.com" => (OpenRefusal::Prohibited, "strait forwards no Unix sockets"),
            b"x11" | b"tun@openssh.com" => {
                (OpenRefusal::Prohibited, "strait forwards neither X11 nor devices")
            }
            _ => (OpenRefusal::UnknownKind, "there is no such kind of channel"),
        };
        out.send(refused(remote, refusal.0, refusal.1))
    }

    fn add(&mut self, channel: Channel) -> ChannelNumber {
        let number = ChannelNumber(self.next_number);
        self.next_number += 1;
        self.channels.insert(number, channel);
        number
    }
}

/// The message that a channel is not opened.
fn refused(remote: u32, why: OpenRefusal, text: &str) -> Vec<u8> {
    let mut message = vec![OPEN_FAILURE];
    message.put_number(remote);
    message.put_number(why as u32);
    message.put_string(text.as_bytes());
    message.put_string(b"");
    message
}
