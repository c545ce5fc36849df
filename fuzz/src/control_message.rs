//! Messages of the control stream: whatever can be read is written so that it reads the same, wherever the stream is cut.

use strait_keying::{Message, MessageError};

/// A message without the length before it, and a stream of messages.
pub fn check(data: &[u8]) {
    assert_eq!(taken(data.chunks(7)), taken([data].into_iter()));
    match Message::parse(data) {
        Ok(message) => {
            let frame = message.emit();
            let Some((head, body)) = frame.split_first_chunk() else { panic!("a message without a length") };
            assert_eq!(usize::from(u16::from_be_bytes(*head)), body.len());
            assert_eq!(Message::parse(body), Ok(message));
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

/// The messages that a stream in `pieces` has, how many of its bytes they took, and why it ended.
fn taken<'a>(pieces: impl Iterator<Item = &'a [u8]>) -> (Vec<Message>, usize, Option<MessageError>) {
    let (mut inbox, mut messages, mut took) = (Vec::new(), Vec::new(), 0);
    for piece in pieces {
        inbox.extend_from_slice(piece);
        loop {
            match Message::take_first(&mut inbox) {
                Ok(Some((message, frame))) => {
                    assert_eq!(Message::parse(&frame[2..]).as_ref(), Ok(&message));
                    took += frame.len();
                    messages.push(message);
                }
                Ok(None) => break,
                Err(error) => return (messages, took, Some(error)),
            }
        }
    }
    (messages, took, None)
}
