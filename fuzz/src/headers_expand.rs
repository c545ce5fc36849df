//! Coded headers that a peer sent: any bytes, any cap, nothing beyond the cap, and packets that can be coded again.

use strait_compress::headers::{Coder, HeadersError, PACKETS_MAX};

use crate::headers_round_trip;

/// Bytes behind the output that must stay as they are.
const BEYOND: usize = 64;
/// What they hold.
const UNTOUCHED: u8 = 0xa5;

/// A cap of two bytes, then what was coded.
pub fn check(data: &[u8]) {
    let Some((&cap, coded)) = data.split_first_chunk() else { return };
    let cap = usize::from(u16::from_be_bytes(cap));
    let mut memory = vec![UNTOUCHED; cap + BEYOND];
    let (output, beyond) = memory.split_at_mut(cap);
    let expanded = Coder::new().expand(coded, output);
    assert!(beyond.iter().all(|byte| *byte == UNTOUCHED));
    match expanded {
        Ok(len) => headers_round_trip::check(&output[..len]),
        Err(HeadersError::TooLong { cap: said }) => assert_eq!(said, cap),
        Err(HeadersError::TooMany { most }) => assert_eq!(most, PACKETS_MAX),
        Err(HeadersError::Malformed) => {}
    }
}
