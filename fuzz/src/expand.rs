//! Expanding what a peer sent: any bytes, any cap, and nothing beyond the cap.

use strait_compress::{Codec, Codecs, ExpandError};

/// Bytes behind the output that must stay as they are.
const BEYOND: usize = 64;
/// What they hold.
const UNTOUCHED: u8 = 0xa5;

/// A codec byte, a cap of two bytes, then a block.
pub fn check(data: &[u8]) {
    let Some((&[codec, high, low], block)) = data.split_first_chunk() else { return };
    // Codecs repeat over the byte, so that most inputs reach one.
    let Some(codec) = Codec::from_id(codec % 5) else { return };
    let cap = usize::from(u16::from_be_bytes([high, low]));
    let mut memory = vec![UNTOUCHED; cap + BEYOND];
    let (output, beyond) = memory.split_at_mut(cap);
    match Codecs::new().expand(codec, block, output) {
        Ok(len) => assert!(len <= cap),
        Err(ExpandError::TooLong { cap: said }) => assert_eq!(said, cap),
        Err(ExpandError::Malformed { codec: said }) => assert_eq!(said, codec),
    }
    assert!(beyond.iter().all(|byte| *byte == UNTOUCHED));
}
