//! Messages between clients and a broker: what reads is written the same, alone and in a stream, wherever the stream is cut.

use std::fmt::Debug;
use std::io::{self, Read};

use strait_transfer::broker::message::{BrokerAnswer, BrokerRequest};
use strait_transfer::message::{MessageReader, WireMessage, frame};

/// A type and a body, and a stream of messages, of each side.
pub fn check(data: &[u8]) {
    side::<BrokerRequest>(data);
    side::<BrokerAnswer>(data);
}

fn side<M: WireMessage + Debug + PartialEq>(data: &[u8]) {
    if let Some((kind, body)) = data.split_first() {
        match M::parse(*kind, body) {
            Ok(message) => {
                let mut again = Vec::new();
                message.emit(&mut again);
                assert_eq!((message.kind(), &again[..]), (*kind, body));
            }
            Err(error) => assert!(!error.to_string().is_empty()),
        }
    }
    let whole = taken::<M>(data, data.len().max(1));
    assert_eq!(taken::<M>(data, 3), whole);
    let mut stream = Vec::new();
    whole.0.iter().for_each(|message| frame(message, &mut stream));
    assert!(data.starts_with(&stream));
}

/// The messages of a stream that gives so many bytes at once, and why it ended.
fn taken<M: WireMessage>(data: &[u8], step: usize) -> (Vec<M>, Option<io::ErrorKind>) {
    let mut reader = MessageReader::new(Steps { data, step });
    let mut messages = Vec::new();
    loop {
        match reader.next_message() {
            Ok(Some(message)) => messages.push(message),
            Ok(None) => return (messages, None),
            Err(error) => return (messages, Some(error.kind())),
        }
    }
}

/// A reader that gives few bytes at once.
struct Steps<'a> {
    data: &'a [u8],
    step: usize,
}

impl Read for Steps<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let count = self.step.min(out.len()).min(self.data.len());
        let (now, later) = self.data.split_at(count);
        out[..count].copy_from_slice(now);
        self.data = later;
        Ok(count)
    }
}
