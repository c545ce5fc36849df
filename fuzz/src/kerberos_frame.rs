//! Frames of tokens that a peer sent: any bytes as a stream.

use strait_kerberos::{TOKEN_MAX, TokenReader};

/// A stream of frames, whole and byte by byte.
pub fn check(data: &[u8]) {
    let (mut reader, mut rest, mut frames, mut written) =
        (TokenReader::default(), data, Vec::new(), Vec::new());
    let failed = loop {
        match reader.read(&mut rest) {
            Ok(Some(frame)) => {
                frame.write(&mut written).unwrap();
                frames.push(frame);
            }
            Ok(None) => break None,
            Err(error) => break Some(error),
        }
    };
    assert!(
        written.len() <= data.len() && data[..written.len()] == written,
        "what was read is what was there"
    );
    assert!(failed.is_some() || data.len() - written.len() < 3 + TOKEN_MAX);

    let (mut reader, mut again) = (TokenReader::default(), Vec::new());
    let mut ended = None;
    for byte in data {
        match reader.read(&mut &[*byte][..]) {
            Ok(frame) => again.extend(frame),
            Err(error) => {
                ended = Some(error);
                break;
            }
        }
    }
    assert_eq!((again, ended), (frames, failed));
}
