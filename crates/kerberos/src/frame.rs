//! Tokens on a stream of bytes.
//!
//! A frame is a byte for its kind, the length of what follows in two bytes, big-endian, and that.

use crate::KerberosError;

/// Bytes of a token at most. Tickets with the groups of a large directory have less than 48,000.
pub const TOKEN_MAX: usize = 65_535;
/// Bytes before the token.
const HEADER_LEN: usize = 3;
/// Bytes of a text at most, as in refusals of logins.
const TEXT_MAX: usize = 512;
const TEXT_OVER: usize = TEXT_MAX + 1;

/// What can be printed of a text on one line.
fn printable(text: &str) -> String {
    text.chars().filter(|letter| !letter.is_control()).collect()
}

/// What an end sends to the other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TokenFrame {
    /// A token of the exchange.
    Token(Vec<u8>),
    /// The sender has accepted: the initiator waits for this before it sends anything else.
    Accepted,
    /// The sender refuses. A token that says why to the library, or nothing.
    Refused(Vec<u8>),
    /// Why it refuses, for a person; a refusal follows. See [`TokenFrame::said`].
    Told(Vec<u8>),
}

impl TokenFrame {
    /// A text for a person: what can be printed on one line, and no more than there is room for.
    #[must_use]
    pub fn told(text: &str) -> TokenFrame {
        let mut text = printable(text);
        text.truncate(text.floor_char_boundary(TEXT_MAX));
        TokenFrame::Told(text.into_bytes())
    }

    /// The text of [`TokenFrame::Told`], as it can be printed; the sender may have sent any bytes.
    #[must_use]
    pub fn said(&self) -> Option<String> {
        match self {
            TokenFrame::Told(text) => Some(printable(&String::from_utf8_lossy(text))),
            _ => None,
        }
    }

    /// Appends the frame to `into`.
    ///
    /// # Errors
    /// [`KerberosError::TokenLength`]
    pub fn write(&self, into: &mut Vec<u8>) -> Result<(), KerberosError> {
        let (kind, token): (u8, &[u8]) = match self {
            TokenFrame::Token(token) if token.is_empty() => return Err(KerberosError::TokenLength(0)),
            TokenFrame::Token(token) => (0, token),
            TokenFrame::Accepted => (1, &[]),
            TokenFrame::Refused(token) => (2, token),
            TokenFrame::Told(text) if text.len() > TEXT_MAX => {
                return Err(KerberosError::TokenLength(text.len()));
            }
            TokenFrame::Told(text) => (3, text),
        };
        let len = u16::try_from(token.len()).map_err(|_| KerberosError::TokenLength(token.len()))?;
        into.push(kind);
        into.extend_from_slice(&len.to_be_bytes());
        into.extend_from_slice(token);
        Ok(())
    }
}

/// Reads frames from a stream that is cut anywhere. Keeps one frame at most.
#[derive(Debug, Default)]
pub struct TokenReader {
    partial: Vec<u8>,
}

impl TokenReader {
    /// Takes bytes from the front of `bytes` until a frame is whole, and gives it. None: all were taken, and more are needed.
    ///
    /// # Errors
    /// [`KerberosError::UnknownFrame`] and [`KerberosError::TokenLength`]: the stream cannot be read any further.
    pub fn read(&mut self, bytes: &mut &[u8]) -> Result<Option<TokenFrame>, KerberosError> {
        self.fill(HEADER_LEN, bytes);
        let [kind, high, low, ..] = self.partial[..] else { return Ok(None) };
        let len = usize::from(u16::from_be_bytes([high, low]));
        match (kind, len) {
            (0, 0) => return Err(KerberosError::TokenLength(0)),
            (1, 1..) => return Err(KerberosError::TokenLength(len)),
            (3, TEXT_OVER..) => return Err(KerberosError::TokenLength(len)),
            (0..=3, _) => {}
            _ => return Err(KerberosError::UnknownFrame(kind)),
        }
        self.fill(HEADER_LEN + len, bytes);
        if self.partial.len() < HEADER_LEN + len {
            return Ok(None);
        }
        let token = self.partial.split_off(HEADER_LEN);
        self.partial.clear();
        Ok(Some(match kind {
            0 => TokenFrame::Token(token),
            1 => TokenFrame::Accepted,
            2 => TokenFrame::Refused(token),
            _ => TokenFrame::Told(token),
        }))
    }

    /// How many bytes the next frame lacks at least: one who reads no more from a stream leaves what is behind the frame there.
    #[must_use]
    pub fn wanted(&self) -> usize {
        let whole = match self.partial[..] {
            [_, high, low, ..] => HEADER_LEN + usize::from(u16::from_be_bytes([high, low])),
            _ => HEADER_LEN,
        };
        whole - self.partial.len()
    }

    fn fill(&mut self, len: usize, bytes: &mut &[u8]) {
        let missing = len.saturating_sub(self.partial.len()).min(bytes.len());
        let (front, rest) = bytes.split_at(missing);
        self.partial.extend_from_slice(front);
        *bytes = rest;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn frames() -> impl Strategy<Value = Vec<TokenFrame>> {
        let token = || prop::collection::vec(any::<u8>(), 1..40);
        let frame = prop_oneof![
            token().prop_map(TokenFrame::Token),
            Just(TokenFrame::Accepted),
            Just(TokenFrame::Refused(Vec::new())),
            token().prop_map(TokenFrame::Refused),
            token().prop_map(TokenFrame::Told),
        ];
        prop::collection::vec(frame, 0..5)
    }

    proptest! {
        #[test]
        fn frames_come_back_however_the_stream_is_cut(frames in frames(), cut in 1usize..50) {
            let mut bytes = Vec::new();
            for frame in &frames {
                frame.write(&mut bytes).unwrap();
            }
            let (mut reader, mut read) = (TokenReader::default(), Vec::new());
            for mut part in bytes.chunks(cut) {
                while let Some(frame) = reader.read(&mut part).unwrap() {
                    read.push(frame);
                }
                prop_assert!(part.is_empty());
            }
            prop_assert_eq!(read, frames);
            prop_assert!(reader.partial.is_empty());
        }

        #[test]
        fn what_is_wanted_ends_with_the_frame(frames in frames()) {
            let mut bytes = Vec::new();
            for frame in &frames {
                frame.write(&mut bytes).unwrap();
            }
            let (mut reader, mut read, mut at) = (TokenReader::default(), Vec::new(), 0);
            while at < bytes.len() {
                let wanted = reader.wanted();
                prop_assert!(wanted > 0);
                let mut part = &bytes[at..at + wanted];
                at += wanted;
                // A header alone is a frame, if nothing follows it.
                read.extend(reader.read(&mut part).unwrap());
            }
            prop_assert_eq!((read, reader.wanted()), (frames, HEADER_LEN));
        }

        #[test]
        fn a_frame_that_is_cut_short_is_waited_for(frames in frames()) {
            let mut bytes = Vec::new();
            if let Some(frame) = frames.first() {
                frame.write(&mut bytes).unwrap();
            }
            for end in 0..bytes.len() {
                prop_assert_eq!(TokenReader::default().read(&mut &bytes[..end]), Ok(None));
            }
        }
    }

    #[test]
    fn what_is_no_frame_is_refused() {
        let read = |bytes: &[u8]| TokenReader::default().read(&mut &bytes[..]);
        assert_eq!(read(&[4, 0, 0]), Err(KerberosError::UnknownFrame(4)));
        assert_eq!(read(&[3, 2, 1]), Err(KerberosError::TokenLength(513)));
        assert_eq!(read(&[0, 0, 0]), Err(KerberosError::TokenLength(0)));
        assert_eq!(read(&[1, 0, 2]), Err(KerberosError::TokenLength(2)));
        let mut out = Vec::new();
        assert_eq!(TokenFrame::Token(Vec::new()).write(&mut out), Err(KerberosError::TokenLength(0)));
        let long = vec![0; TOKEN_MAX + 1];
        assert_eq!(TokenFrame::Refused(long).write(&mut out), Err(KerberosError::TokenLength(TOKEN_MAX + 1)));
        let told = TokenFrame::Told(vec![b'a'; TEXT_MAX + 1]);
        assert_eq!(told.write(&mut out), Err(KerberosError::TokenLength(TEXT_MAX + 1)));
        assert!(out.is_empty());
    }

    #[test]
    fn texts_are_one_line_that_can_be_printed() {
        let told = TokenFrame::told(&format!("no\n\x1b[2J{}", "\u{20ac}".repeat(400)));
        assert!(told.write(&mut Vec::new()).is_ok());
        assert!(told.said().unwrap().starts_with("no[2J\u{20ac}"));
        assert_eq!(TokenFrame::Told(b"a\x07\xff".to_vec()).said().unwrap(), "a\u{fffd}");
        assert_eq!(TokenFrame::Accepted.said(), None);
    }
}
