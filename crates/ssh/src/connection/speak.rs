//! What is said to `ssh`.

use super::channel::{Channel, PACKET, State, WINDOW};
use super::{
    CHANNELS_MAX, CLOSE, ChannelNumber, Connection, DATA, EOF, EXTENDED_DATA, OPEN, OPEN_CONFIRMATION,
    OUT_MAX, OpenRefusal, Outgoing, REQUEST, STDERR, WINDOW_ADJUST, refused,
};
use crate::error::SshError;
use crate::event::OutputStream;
use crate::fields::PutFields;

impl Connection {
    /// Opens a channel to the user's agent.
    pub fn open_agent(&mut self, out: &mut impl Outgoing) -> Result<Option<ChannelNumber>, SshError> {
        if self.channels.len() >= CHANNELS_MAX {
            return Ok(None);
        }
        let number = self.add(Channel::asked());
        let mut message = vec![OPEN];
        message.put_string(b"auth-agent@openssh.com");
        for field in [number.0, WINDOW, PACKET] {
            message.put_number(field);
        }
        out.send(message)?;
        Ok(Some(number))
    }

    /// Lets a channel be opened.
    pub fn confirm(&mut self, number: ChannelNumber, out: &mut impl Outgoing) -> Result<(), SshError> {
        let Some(channel) = self.channels.get_mut(&number).filter(|it| it.state == State::Offered) else {
            return Ok(());
        };
        channel.state = State::Open;
        let mut message = channel.message(OPEN_CONFIRMATION);
        for field in [number.0, WINDOW, PACKET] {
            message.put_number(field);
        }
        out.send(message)
    }

    /// Does not let it.
    pub fn refuse(
        &mut self,
        number: ChannelNumber,
        why: OpenRefusal,
        text: &str,
        out: &mut impl Outgoing,
    ) -> Result<(), SshError> {
        match self.channels.get(&number) {
            Some(channel) if channel.state == State::Offered => {
                let message = refused(channel.remote, why, text);
                self.channels.remove(&number);
                out.send(message)
            }
            _ => Ok(()),
        }
    }

    /// How many bytes may be sent on a channel now.
    pub fn room(&self, number: ChannelNumber, out: &mut impl Outgoing) -> usize {
        if !out.is_open() || out.waiting() >= OUT_MAX {
            return 0;
        }
        self.channels.get(&number).map_or(0, Channel::room)
    }

    /// Sends as many of `bytes` as there is room for.
    pub fn data(
        &mut self,
        number: ChannelNumber,
        stream: OutputStream,
        bytes: &[u8],
        out: &mut impl Outgoing,
    ) -> Result<usize, SshError> {
        let mut sent = 0;
        loop {
            let room = self.room(number, out);
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
            out.send(message)?;
            sent += part;
        }
    }

    /// Grants more once half of the window was taken.
    pub fn taken(
        &mut self,
        number: ChannelNumber,
        count: usize,
        out: &mut impl Outgoing,
    ) -> Result<(), SshError> {
        let Some(channel) = self.channels.get_mut(&number) else { return Ok(()) };
        match channel.grant(count) {
            0 => Ok(()),
            more => {
                let mut message = channel.message(WINDOW_ADJUST);
                message.put_number(more);
                out.send(message)
            }
        }
    }

    /// No more bytes follow on a channel.
    pub fn eof(&mut self, number: ChannelNumber, out: &mut impl Outgoing) -> Result<(), SshError> {
        match self.channels.get_mut(&number) {
            Some(channel) if channel.is_speaking() && !channel.eof_sent && !channel.close_got => {
                channel.eof_sent = true;
                out.send(channel.message(EOF))
            }
            _ => Ok(()),
        }
    }

    /// Sends a request about a session that `ssh` does not answer: its name, then what `fields` appends.
    pub fn tell(
        &mut self,
        number: ChannelNumber,
        name: &[u8],
        fields: impl FnOnce(&mut Vec<u8>),
        out: &mut impl Outgoing,
    ) -> Result<(), SshError> {
        match self.channels.get(&number) {
            Some(channel) if channel.is_speaking() => {
                let mut message = channel.message(REQUEST);
                message.put_string(name);
                message.put_boolean(false);
                fields(&mut message);
                out.send(message)
            }
            _ => Ok(()),
        }
    }

    /// The channel ends.
    pub fn close(&mut self, number: ChannelNumber, out: &mut impl Outgoing) -> Result<(), SshError> {
        match self.channels.get_mut(&number) {
            Some(channel) if channel.is_speaking() => {
                channel.close_sent = true;
                let message = channel.message(CLOSE);
                if channel.close_got {
                    self.channels.remove(&number);
                }
                out.send(message)
            }
            _ => Ok(()),
        }
    }
}
