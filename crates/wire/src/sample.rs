//! Packets for the tests.

use crate::{Protocol, ip};

/// From 10.0.0.1 to 10.0.0.2, header checksum right.
pub(crate) fn v4(protocol: Protocol, payload: &[u8]) -> Vec<u8> {
    v4_with(protocol, 0, payload)
}

/// The same with flags and fragment offset as given.
pub(crate) fn v4_with(protocol: Protocol, fragment_word: u16, payload: &[u8]) -> Vec<u8> {
    let [l0, l1] = u16::try_from(20 + payload.len()).unwrap().to_be_bytes();
    let [f0, f1] = fragment_word.to_be_bytes();
    let mut header = [0x45, 0x2a, l0, l1, 0x12, 0x34, f0, f1, 61, protocol.0, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
    let checksum = ip::v4_header_checksum(&header).to_be_bytes();
    header[10..12].copy_from_slice(&checksum);
    [&header[..], payload].concat()
}

/// From 2001:db8::1 to 2001:db8::2.
pub(crate) fn v6(next: Protocol, payload: &[u8]) -> Vec<u8> {
    let [l0, l1] = u16::try_from(payload.len()).unwrap().to_be_bytes();
    let mut header = [0; 40];
    header[..8].copy_from_slice(&[0x62, 0xaf, 0xed, 0xcb, l0, l1, next.0, 62]);
    for (at, host) in [(8, 1), (24, 2)] {
        header[at..at + 4].copy_from_slice(&[0x20, 0x01, 0x0d, 0xb8]);
        header[at + 15] = host;
    }
    [&header[..], payload].concat()
}

/// Bytes from two digits each.
pub(crate) fn hex(digits: &str) -> Vec<u8> {
    let pairs = (0..digits.len()).step_by(2).map(|at| &digits[at..at + 2]);
    pairs.map(|pair| u8::from_str_radix(pair, 16).unwrap()).collect()
}
