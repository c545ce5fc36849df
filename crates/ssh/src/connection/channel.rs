//! One channel: its windows, and what was said and heard.

use crate::error::SshError;
use crate::fields::PutFields;

/// Bytes that `ssh` may send before some were taken: they wait here if the other end is slow. The pipe has no delay to speak of, so
/// more would not be faster.
pub(super) const WINDOW: u32 = 256 * 1024;
/// Most bytes in a packet, as OpenSSH's own.
pub(super) const PACKET: u32 = 32 * 1024;

/// What a channel is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Session,
    Tcp,
    Agent,
}

/// How far its opening is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// `ssh` opens it and waits for an answer.
    Offered,
    /// The server has asked for it.
    Asked,
    Open,
}

/// A channel.
#[derive(Debug)]
pub(super) struct Channel {
    pub(super) kind: Kind,
    pub(super) state: State,
    /// The number that `ssh` gave it.
    pub(super) remote: u32,
    /// A session runs something already.
    pub(super) started: bool,
    pub(super) eof_sent: bool,
    pub(super) close_sent: bool,
    /// `ssh` says and takes nothing more; how a program ended it still hears.
    pub(super) close_got: bool,
    /// How much may be sent, in all and in one packet.
    send_window: u32,
    send_packet: u32,
    /// How much `ssh` may send, and what was taken that it was not told of.
    receive_window: u32,
    ungranted: u32,
}

impl Channel {
    /// One that `ssh` opens.
    pub(super) const fn offered(kind: Kind, remote: u32, window: u32, packet: u32) -> Channel {
        Channel {
            kind,
            state: State::Offered,
            remote,
            started: false,
            eof_sent: false,
            close_sent: false,
            close_got: false,
            send_window: window,
            send_packet: packet,
            receive_window: WINDOW,
            ungranted: 0,
        }
    }

    /// One that the server asks for.
    pub(super) const fn asked() -> Channel {
        Channel { state: State::Asked, ..Channel::offered(Kind::Agent, 0, 0, 0) }
    }

    /// # Errors
    /// [`SshError::Protocol`] in another state.
    pub(super) fn expect(&self, state: State) -> Result<(), SshError> {
        if self.state == state { Ok(()) } else { Err(SshError::Protocol("the channel is not so far")) }
    }

    /// `ssh` opens what was asked for.
    pub(super) fn confirmed(&mut self, remote: u32, window: u32, packet: u32) -> Result<(), SshError> {
        self.expect(State::Asked)?;
        (self.state, self.remote) = (State::Open, remote);
        (self.send_window, self.send_packet) = (window, packet);
        Ok(())
    }

    /// Whether `ssh` may still say something.
    ///
    /// # Errors
    /// [`SshError::Protocol`] if not.
    pub(super) fn hears(&self) -> Result<(), SshError> {
        self.expect(State::Open)?;
        if self.close_got { Err(SshError::Protocol("the channel is closed")) } else { Ok(()) }
    }

    /// Whether anything may still be said.
    pub(super) fn is_speaking(&self) -> bool {
        self.state == State::Open && !self.close_sent
    }

    /// Bytes that may be sent.
    pub(super) fn room(&self) -> usize {
        let open = self.is_speaking() && !self.eof_sent && !self.close_got;
        if open { usize::try_from(self.send_window).unwrap_or(usize::MAX) } else { 0 }
    }

    /// Bytes that fit a packet.
    pub(super) fn packet_max(&self) -> usize {
        usize::try_from(self.send_packet.min(PACKET)).unwrap_or(0)
    }

    pub(super) fn sent(&mut self, count: usize) {
        self.send_window = self.send_window.saturating_sub(u32::try_from(count).unwrap_or(u32::MAX));
    }

    /// `ssh` lets more be sent.
    pub(super) fn may_send(&mut self, more: u32) -> Result<(), SshError> {
        self.expect(State::Open)?;
        self.send_window = self
            .send_window
            .checked_add(more)
            .ok_or(SshError::Protocol("its window grows beyond all bounds"))?;
        Ok(())
    }

    /// Bytes have arrived, which the window has to have room for.
    pub(super) fn arrived(&mut self, count: usize) -> Result<(), SshError> {
        self.hears()?;
        let left = u32::try_from(count).ok().and_then(|count| self.receive_window.checked_sub(count));
        self.receive_window = left.ok_or(SshError::Protocol("it has more than the window allows"))?;
        Ok(())
    }

    /// Bytes were taken: how many more `ssh` is to be allowed now.
    pub(super) fn grant(&mut self, count: usize) -> u32 {
        self.ungranted = self.ungranted.saturating_add(u32::try_from(count).unwrap_or(u32::MAX));
        if self.ungranted < WINDOW / 2 || !self.is_speaking() || self.close_got {
            return 0;
        }
        let more = std::mem::take(&mut self.ungranted).min(WINDOW - self.receive_window);
        self.receive_window += more;
        more
    }

    /// The begin of a message to `ssh` about it.
    pub(super) fn message(&self, kind: u8) -> Vec<u8> {
        let mut message = vec![kind];
        message.put_number(self.remote);
        message
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_is_granted_as_half_of_the_window_was_taken_and_not_before() {
        let mut channel = Channel { state: State::Open, ..Channel::offered(Kind::Session, 5, 10, 10) };
        channel.arrived(200_000).unwrap();
        assert_eq!(channel.grant(100_000), 0);
        assert_eq!(channel.grant(100_000), 200_000);
        channel.arrived(262_144).unwrap();
        assert!(channel.arrived(1).is_err());
        // What never arrived is not granted.
        assert_eq!(channel.grant(1 << 30), 262_144);
    }

    #[test]
    fn no_more_is_sent_than_allowed_and_nothing_behind_the_end() {
        let mut channel = Channel { state: State::Open, ..Channel::offered(Kind::Session, 5, 10, 4) };
        assert_eq!((channel.room(), channel.packet_max()), (10, 4));
        channel.sent(10);
        assert_eq!(channel.room(), 0);
        channel.may_send(7).unwrap();
        assert_eq!(channel.room(), 7);
        assert!(channel.may_send(u32::MAX).is_err());
        channel.close_got = true;
        assert_eq!(channel.room(), 0);
        assert!(channel.arrived(1).is_err());
        channel.close_got = false;
        channel.eof_sent = true;
        assert_eq!(channel.room(), 0);
    }
}
