//! Messages of the control stream: whatever can be read is written so that it reads the same.

use strait_keying::Message;

/// A message without the length before it.
pub fn check(data: &[u8]) {
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
