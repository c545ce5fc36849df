//! Frames of tokens on a stream, read and written where waiting is allowed.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;

use strait_kerberos::{TokenFrame, TokenReader};

use super::Refused;
use crate::services::say_last;

/// The next frame, and nothing behind it, which is another process's to read.
pub(super) fn read(mut stream: &UnixStream, reader: &mut TokenReader) -> Result<TokenFrame, Refused> {
    let mut bytes = vec![0; strait_kerberos::TOKEN_MAX];
    loop {
        let wanted = reader.wanted().min(bytes.len());
        let room = bytes.get_mut(..wanted).unwrap_or_default();
        let length = match stream.read(room) {
            Ok(0) => return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into()),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            read => read?,
        };
        if let Some(frame) = reader.read(&mut bytes.get(..length).unwrap_or_default())? {
            return Ok(frame);
        }
    }
}

pub(super) fn write(mut stream: &UnixStream, frame: &TokenFrame) -> io::Result<()> {
    let mut bytes = Vec::new();
    frame.write(&mut bytes).map_err(io::Error::other)?;
    stream.write_all(&bytes)
}

/// Tells a client why it is refused.
pub(super) fn refuse(stream: &UnixStream, text: &str, token: Vec<u8>) {
    say_last(stream, &refusal(text, token));
}

fn refusal(text: &str, token: Vec<u8>) -> Vec<u8> {
    let mut bytes = Vec::new();
    for frame in [TokenFrame::told(text), TokenFrame::Refused(token)] {
        // Both are within their bounds.
        let _ = frame.write(&mut bytes);
    }
    bytes
}

/// What a client is told, which awaits frames, and is refused before any exchange.
#[must_use]
pub fn refused_before_kerberos(text: &str) -> Vec<u8> {
    refusal(text, Vec::new())
}
