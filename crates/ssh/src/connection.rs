//! Channels (RFC 4254): who opens them, their windows, what is asked of sessions.
//!
//! | part | what it does |
//! |---|---|
//! | [`channel`] | one channel: windows, what was said and heard |
//! | [`request`] | what is asked of a session, and of the connection |

mod channel;
mod request;

use std::collections::{BTreeMap, VecDeque};

use crate::error::SshError;
use crate::event::{OutputStream, SshEvent};
use crate::fields::{Fields, PutFields};
use crate::transport::Transport;
use channel::{Channel, Kind, PACKET, State, WINDOW};

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
const CHANNELS_MAX: usize = 64;
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

/// All channels.
#[derive(Debug, Default)]
pub(crate) struct Connection {
    channels: BTreeMap<ChannelNumber, Channel>,
    next_number: u32,
    pub(crate) events: VecDeque<SshEvent>,
}

impl Connection {
    /// Takes a message of `ssh`.
    pub(crate) fn take(&mut self, message: &[u8], transport: &mut Transport) -> Result<(), SshError> {
        let mut fields = Fields::new(message);
        match fields.byte()? {
            GLOBAL_REQUEST => self.global(fields, transport),
            OPEN => self.open(fields, transport),
            // What the server asks, it asks without wanting to know.
            REQUEST_SUCCESS | REQUEST_FAILURE | SUCCESS | FAILURE => Ok(()),
            kind @ (OPEN_CONFIRMATION..=OPEN_FAILURE | WINDOW_ADJUST..=REQUEST) => {
                let number = ChannelNumber(fields.number()?);
                self.of_channel(kind, number, fields, transport)
            }
            _ => Err(SshError::Protocol("it is an unknown message of a connection")),
        }
    }

    fn of_channel(
        &mut self,
        kind: u8,
        number: ChannelNumber,
        mut fields: Fields<'_>,
        transport: &mut Transport,
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
                self.taken(number, count, transport)?;
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
                self.session_request(number, fields, transport)?;
            }
        }
        Ok(())
    }

    /// `ssh` opens a channel.
    fn open(&mut self, mut fields: Fields<'_>, transport: &mut Transport) -> Result<(), SshError> {
        let kind = fields.string()?;
        let (remote, window, packet) = (fields.number()?, fields.number()?, fields.number()?);
        let refusal = match kind {
            _ if self.channels.len() >= CHANNELS_MAX => {
                (OpenRefusal::Shortage, "there are too many channels")
            }
            b"session" => {
                let number = self.add(Channel::offered(Kind::Session, remote, window, packet));
                self.confirm(number, transport)?;
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
        transport.send(refused(remote, refusal.0, refusal.1))
    }

    fn add(&mut self, channel: Channel) -> ChannelNumber {
        let number = ChannelNumber(self.next_number);
        self.next_number += 1;
        self.channels.insert(number, channel);
        number
    }

    /// Opens a channel to the user's agent.
    pub(crate) fn open_agent(
        &mut self,
        transport: &mut Transport,
    ) -> Result<Option<ChannelNumber>, SshError> {
        if self.channels.len() >= CHANNELS_MAX {
            return Ok(None);
        }
        let number = self.add(Channel::asked());
        let mut message = vec![OPEN];
        message.put_string(b"auth-agent@openssh.com");
        for field in [number.0, WINDOW, PACKET] {
            message.put_number(field);
        }
        transport.send(message)?;
        Ok(Some(number))
    }

    /// Lets a channel be opened.
    pub(crate) fn confirm(
        &mut self,
        number: ChannelNumber,
        transport: &mut Transport,
    ) -> Result<(), SshError> {
        let Some(channel) = self.channels.get_mut(&number).filter(|it| it.state == State::Offered) else {
            return Ok(());
        };
        channel.state = State::Open;
        let mut message = channel.message(OPEN_CONFIRMATION);
        for field in [number.0, WINDOW, PACKET] {
            message.put_number(field);
        }
        transport.send(message)
    }

    /// Does not let it.
    pub(crate) fn refuse(
        &mut self,
        number: ChannelNumber,
        why: OpenRefusal,
        text: &str,
        transport: &mut Transport,
    ) -> Result<(), SshError> {
        match self.channels.get(&number) {
            Some(channel) if channel.state == State::Offered => {
                let message = refused(channel.remote, why, text);
                self.channels.remove(&number);
                transport.send(message)
            }
            _ => Ok(()),
        }
    }

    /// How many bytes may be sent on a channel now.
    pub(crate) fn room(&self, number: ChannelNumber, transport: &mut Transport) -> usize {
        if !transport.is_open() || transport.out().len() >= OUT_MAX {
            return 0;
        }
        self.channels.get(&number).map_or(0, Channel::room)
    }

    /// Sends as many of `bytes` as there is room for.
    pub(crate) fn data(
        &mut self,
        number: ChannelNumber,
        stream: OutputStream,
        bytes: &[u8],
        transport: &mut Transport,
    ) -> Result<usize, SshError> {
        let mut sent = 0;
        loop {
            let room = self.room(number, transport);
            let Some(channel) = self.channels.get_mut(&number) else { return Ok(sent) };
            let part = (bytes.len() - sent).min(room).min(channel.packet_max());
            if part == 0 {
                return Ok(sent);
            }
            let mut message = match stream {
                OutputStream::Out => channel.message(DATA),
                OutputStream::Err => {
                    let mut message = channel.message(EXTENDED_DATA);
                    message.put_number(STDERR);
                    message
                }
            };
            message.put_string(&bytes[sent..sent + part]);
            channel.sent(part);
            transport.send(message)?;
            sent += part;
        }
    }

    /// Grants more once half of the window was taken.
    pub(crate) fn taken(
        &mut self,
        number: ChannelNumber,
        count: usize,
        transport: &mut Transport,
    ) -> Result<(), SshError> {
        let Some(channel) = self.channels.get_mut(&number) else { return Ok(()) };
        match channel.grant(count) {
            0 => Ok(()),
            more => {
                let mut message = channel.message(WINDOW_ADJUST);
                message.put_number(more);
                transport.send(message)
            }
        }
    }

    /// No more bytes follow on a channel.
    pub(crate) fn eof(&mut self, number: ChannelNumber, transport: &mut Transport) -> Result<(), SshError> {
        match self.channels.get_mut(&number) {
            Some(channel) if channel.is_speaking() && !channel.eof_sent && !channel.close_got => {
                channel.eof_sent = true;
                transport.send(channel.message(EOF))
            }
            _ => Ok(()),
        }
    }

    /// Sends a request about a session that `ssh` does not answer: its name, then what `fields` appends.
    pub(crate) fn tell(
        &mut self,
        number: ChannelNumber,
        name: &[u8],
        fields: impl FnOnce(&mut Vec<u8>),
        transport: &mut Transport,
    ) -> Result<(), SshError> {
        match self.channels.get(&number) {
            Some(channel) if channel.is_speaking() => {
                let mut message = channel.message(REQUEST);
                message.put_string(name);
                message.put_boolean(false);
                fields(&mut message);
                transport.send(message)
            }
            _ => Ok(()),
        }
    }

    /// The channel ends.
    pub(crate) fn close(&mut self, number: ChannelNumber, transport: &mut Transport) -> Result<(), SshError> {
        match self.channels.get_mut(&number) {
            Some(channel) if channel.is_speaking() => {
                channel.close_sent = true;
                let message = channel.message(CLOSE);
                if channel.close_got {
                    self.channels.remove(&number);
                }
                transport.send(message)
            }
            _ => Ok(()),
        }
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
