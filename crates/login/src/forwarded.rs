//! The bytes of one forwarded connection.

use crate::message::{Channel, LoginMessage, MAX_UNIT};
use crate::stream_end::StreamEnd;
use crate::{LoginError, Refusal};

/// Bytes that wait for the stream at most: two units.
const WAITING: usize = 2 * MAX_UNIT;

/// What one end of a forwarded connection hears.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ForwardedEvent {
    /// The server has the connection: told once, at the client alone.
    Opened,
    /// Bytes: 1 byte to 64 KiB.
    Data(Vec<u8>),
    /// The other end writes no more.
    End,
    /// The server refused: told at the client alone. Nothing follows.
    Refused(Refusal),
}

/// One end of a forwarded connection: bytes both ways, compressed where that shrinks them; each direction ends by itself. What holds the
/// sender back is the stream alone: an end that cannot pass bytes on takes no event, and reads no more of the stream. It does not survive
/// its stream.
#[derive(Debug)]
pub struct Forwarded {
    stream: StreamEnd,
    waiting: Vec<u8>,
    /// Whether the client is still to be told of the connection, or to hear of it.
    opens: bool,
    is_client: bool,
    /// Whether this end writes no more, and whether that was said.
    ended: bool,
    end_said: bool,
    /// Whether the other end writes no more.
    heard_end: bool,
}

impl Forwarded {
    fn new(is_client: bool, rate_bits: Option<u64>) -> Forwarded {
        Forwarded {
            stream: StreamEnd::new(rate_bits),
            waiting: Vec::new(),
            opens: true,
            is_client,
            ended: false,
            end_said: false,
            heard_end: false,
        }
    }

    /// The end of the client, after its [`Request`](crate::Request) was sent. `rate_bits`: the link's in bit/s, if it is known.
    #[must_use]
    pub fn client(rate_bits: Option<u64>) -> Forwarded {
        Forwarded::new(true, rate_bits)
    }

    /// The end of the server, which has the connection: it tells the client so.
    #[must_use]
    pub fn server(rate_bits: Option<u64>) -> Forwarded {
        Forwarded::new(false, rate_bits)
    }

    /// Takes bytes of the connection: as many as it says.
    pub fn write(&mut self, bytes: &[u8]) -> usize {
        let taken = &bytes[..bytes.len().min(self.room())];
        self.waiting.extend_from_slice(taken);
        taken.len()
    }

    /// Bytes that [`Forwarded::write`] takes.
    #[must_use]
    pub fn room(&self) -> usize {
        if self.ended { 0 } else { WAITING.saturating_sub(self.waiting.len()) }
    }

    /// The connection writes no more.
    pub fn end(&mut self) {
        self.ended = true;
    }

    /// Appends at most `room` bytes for the stream. What does not fit follows with the next call.
    pub fn send(&mut self, into: &mut Vec<u8>, room: usize) {
        let mut room = room;
        loop {
            room = self.stream.give(into, room);
            if room == 0 || self.stream.has_more() || !self.make() {
                return;
            }
        }
    }

    fn make(&mut self) -> bool {
        if self.opens && !self.is_client {
            self.opens = false;
            self.stream.put(&LoginMessage::Opened, 0);
        } else if !self.waiting.is_empty() {
            let unit = self.waiting.len().min(MAX_UNIT);
            self.stream.put_unit(Channel::Forwarded, &self.waiting[..unit], 0);
            self.waiting.drain(..unit);
        } else if self.ended && !self.end_said {
            self.end_said = true;
            self.stream.put(&LoginMessage::End(Channel::Forwarded), 0);
        } else {
            return false;
        }
        true
    }

    /// Whether [`Forwarded::send`] has anything.
    #[must_use]
    pub fn wants_to_send(&self) -> bool {
        let opens = self.opens && !self.is_client;
        opens || self.stream.has_more() || !self.waiting.is_empty() || self.ended && !self.end_said
    }

    /// Takes bytes of the stream, cut anywhere.
    pub fn received(&mut self, bytes: &[u8]) {
        self.stream.framer.push(bytes);
    }

    /// The next event of the bytes that were received.
    ///
    /// # Errors
    /// [`LoginError`] for what the other end does not write; the stream is of no use then.
    pub fn next_event(&mut self) -> Result<Option<ForwardedEvent>, LoginError> {
        let Some((ack, message)) = self.stream.framer.next_message()? else { return Ok(None) };
        if ack != 0 {
            return Err(LoginError::Acknowledged);
        }
        let awaited = self.opens && self.is_client;
        let event = match message {
            LoginMessage::Opened if awaited => {
                self.opens = false;
                ForwardedEvent::Opened
            }
            LoginMessage::Refused(refusal) if awaited => {
                (self.opens, self.ended, self.end_said, self.heard_end) = (false, true, true, true);
                self.waiting.clear();
                ForwardedEvent::Refused(refusal)
            }
            LoginMessage::Unit(Channel::Forwarded, unit) if !awaited && !self.heard_end => {
                ForwardedEvent::Data(self.stream.expander.expand(&unit)?)
            }
            LoginMessage::End(Channel::Forwarded) if !awaited && !self.heard_end => {
                self.heard_end = true;
                ForwardedEvent::End
            }
            _ => return Err(LoginError::Order),
        };
        Ok(Some(event))
    }

    /// Whether both directions have ended and this end has sent everything.
    #[must_use]
    pub fn finished(&self) -> bool {
        self.end_said && self.heard_end && !self.stream.has_more()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{RefusedReason, refusal};

    /// Passes bytes from one end to the other, `step` at once, and gives the events.
    fn pass(from: &mut Forwarded, to: &mut Forwarded, step: usize) -> Vec<ForwardedEvent> {
        let (mut bytes, mut events) = (Vec::new(), Vec::new());
        while from.wants_to_send() {
            bytes.clear();
            from.send(&mut bytes, step);
            assert!(!bytes.is_empty() && bytes.len() <= step);
            to.received(&bytes);
            while let Some(event) = to.next_event().unwrap() {
                events.push(event);
            }
        }
        events
    }

    fn data(events: &[ForwardedEvent]) -> Vec<u8> {
        let data = events.iter().filter_map(|event| match event {
            ForwardedEvent::Data(bytes) => Some(bytes.as_slice()),
            _ => None,
        });
        data.collect::<Vec<_>>().concat()
    }

    #[test]
    fn each_direction_ends_by_itself() {
        let (mut client, mut server) = (Forwarded::client(None), Forwarded::server(Some(1_500_000)));
        let text = b"GET / HTTP/1.1\r\nHost: example.org\r\n\r\n".repeat(2000);
        assert_eq!(client.write(&text), text.len());
        client.end();
        assert_eq!((client.room(), client.write(b"x")), (0, 0));
        let events = pass(&mut client, &mut server, 700);
        assert_eq!(data(&events), text);
        assert_eq!(events.last(), Some(&ForwardedEvent::End));
        assert!(!server.finished() && !client.finished());
        server.write(b"answer");
        server.end();
        let events = pass(&mut server, &mut client, 1);
        assert_eq!(events[0], ForwardedEvent::Opened);
        assert_eq!(data(&events), b"answer");
        assert!(server.finished() && client.finished());
    }

    #[test]
    fn a_refusal_ends_it_and_nothing_else_comes_first() {
        let told = Refusal { reason: RefusedReason::NotAllowed, text: "no ports".to_owned() };
        let mut client = Forwarded::client(None);
        client.write(b"early");
        client.received(&refusal(&told));
        assert_eq!(client.next_event(), Ok(Some(ForwardedEvent::Refused(told))));
        assert!(client.finished());
        let mut early = Forwarded::client(None);
        let mut bytes = Vec::new();
        LoginMessage::End(Channel::Forwarded).put(0, &mut bytes);
        early.received(&bytes);
        assert_eq!(early.next_event(), Err(LoginError::Order));
    }
}
