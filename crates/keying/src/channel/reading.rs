//! From stream bytes to messages.

use quinn_proto::{Dir, Event, ReadError, StreamEvent};

use super::{Channel, Closed, Signal};
use crate::message::{HEAD, MAX_LEN};
use crate::{Message, MessageError, Role};

impl Channel {
    /// What `event` means to the owner; nothing for most.
    pub(super) fn interpret(&mut self, event: Event, signals: &mut impl FnMut(Signal)) {
        match event {
            Event::Connected => {
                if self.role == Role::Initiator {
                    self.stream = self.connection.streams().open(Dir::Bi);
                }
                signals(Signal::Connected);
            }
            Event::Stream(StreamEvent::Opened { dir: Dir::Bi }) if self.stream.is_none() => {
                self.stream = self.connection.streams().accept(Dir::Bi);
                self.read(signals);
            }
            Event::Stream(StreamEvent::Readable { id }) if self.stream == Some(id) => self.read(signals),
            Event::Stream(StreamEvent::Finished { id }) if self.stream == Some(id) => {
                signals(Signal::Delivered)
            }
            Event::ConnectionLost { reason } => signals(Signal::Closed(Closed::of(&reason))),
            _ => {}
        }
    }

    /// Reads what there is, at most one message ahead of what was taken apart.
    fn read(&mut self, signals: &mut impl FnMut(Signal)) {
        let Some(stream) = self.stream else { return };
        let mut stream = self.connection.recv_stream(stream);
        let Ok(mut chunks) = stream.read(true) else { return };
        let outcome = loop {
            let room = (HEAD + MAX_LEN).saturating_sub(self.inbox.len());
            match chunks.next(room) {
                Ok(Some(chunk)) => self.inbox.extend_from_slice(&chunk.bytes),
                Ok(None) | Err(ReadError::Blocked | ReadError::Reset(_)) => break Ok(()),
            }
            if let Err(error) = take_apart(&mut self.inbox, signals) {
                break Err(error);
            }
        };
        // What this frees is announced with the next packet that leaves anyway.
        let _ = chunks.finalize();
        if let Err(error) = outcome {
            signals(Signal::Malformed(error));
        }
    }
}

/// Takes the complete messages out of `inbox`.
fn take_apart(inbox: &mut Vec<u8>, signals: &mut impl FnMut(Signal)) -> Result<(), MessageError> {
    while let Some((message, frame)) = Message::take_first(inbox)? {
        signals(Signal::Message(Box::new(message), frame));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fed(pieces: &[&[u8]]) -> (Vec<Message>, Option<MessageError>) {
        let (mut inbox, mut messages) = (Vec::new(), Vec::new());
        for piece in pieces {
            inbox.extend_from_slice(piece);
            let result = take_apart(&mut inbox, &mut |signal| {
                if let Signal::Message(message, frame) = signal {
                    assert_eq!(Message::parse(&frame[HEAD..]).as_ref(), Ok(&*message));
                    messages.push(*message);
                }
            });
            if let Err(error) = result {
                return (messages, Some(error));
            }
        }
        (messages, None)
    }

    #[test]
    fn messages_are_found_wherever_the_stream_is_cut() {
        let bytes = [Message::Confirm.emit(), Message::Confirm.emit()].concat();
        for cut in 0..=bytes.len() {
            let (first, second) = bytes.split_at(cut);
            assert_eq!(fed(&[first, second]), (vec![Message::Confirm; 2], None), "{cut}");
        }
    }

    #[test]
    fn a_length_beyond_the_limit_is_refused_before_the_bytes_come() {
        let most = u16::try_from(MAX_LEN).unwrap();
        assert_eq!(fed(&[&most.to_be_bytes()]), (Vec::new(), None));
        let (_, error) = fed(&[&(most + 1).to_be_bytes()]);
        assert_eq!(error, Some(MessageError::TooLong { given: MAX_LEN + 1 }));
        let (_, error) = fed(&[&[0, 0]]);
        assert_eq!(error, Some(MessageError::Truncated { at: 0, need: 2 }));
    }
}
