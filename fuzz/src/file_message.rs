//! Messages of a file transfer: what reads is written the same, alone and in a stream, wherever the stream is cut.

use std::io::{self, Read};

use strait_transfer::message::{FileMessage, MessageReader, WireMessage, frame};

/// A type and a body, and a stream of messages.
pub fn check(data: &[u8]) {
    if let Some((kind, body)) = data.split_first() {
        match FileMessage::parse(*kind, body) {
            Ok(message) => {
                let mut again = Vec::new();
                message.emit(&mut again);
                assert_eq!((message.kind(), &again[..]), (*kind, body));
            }
            Err(error) => assert!(!error.to_string().is_empty()),
        }
    }
    let whole = taken(data, data.len().max(1));
    assert_eq!(taken(data, 3), whole);
    let mut stream = Vec::new();
    whole.0.iter().for_each(|message| frame(message, &mut stream));
    assert!(data.starts_with(&stream));
}

/// The messages of a stream that gives so many bytes at once, and why it ended.
fn taken(data: &[u8], step: usize) -> (Vec<FileMessage>, Option<io::ErrorKind>) {
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

struct Steps<'a> {
    data: &'a [u8],
    step: usize,
}

impl Read for Steps<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let now = self.step.min(buffer.len());
        let mut part = &self.data[..self.data.len().min(now)];
        let got = part.read(buffer)?;
        self.data = &self.data[got..];
        Ok(got)
    }
}
