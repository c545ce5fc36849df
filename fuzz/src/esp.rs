//! The ESP header, and the trailer as it is after decryption.

use strait_wire::{Protocol, esp};

/// One buffer, read as a packet and as a plaintext.
pub fn check(data: &[u8]) {
    if let Ok((header, rest)) = esp::Header::parse(data) {
        let mut bytes = vec![0; esp::HEADER_LEN];
        header.emit(&mut bytes).unwrap();
        bytes.extend_from_slice(rest);
        assert_eq!(bytes, data);
    }
    if let Ok((payload, next)) = esp::parse_trailer(data) {
        let mut plaintext = vec![0; data.len()];
        plaintext[..payload.len()].copy_from_slice(payload);
        esp::emit_trailer(&mut plaintext[payload.len()..], next).unwrap();
        assert_eq!(plaintext, data);
    }
    if let Some((align, payload)) = data.split_first() {
        check_padding(payload, usize::from(*align));
    }
}

/// Any payload can be padded to any alignment, and comes back.
fn check_padding(payload: &[u8], align: usize) {
    let pad = esp::pad_len(payload.len(), align);
    assert!(pad < align.max(1));
    assert_eq!((payload.len() + pad + 2) % align.max(1), 0);
    let mut plaintext = payload.to_vec();
    plaintext.resize(payload.len() + pad + 2, 0xff);
    esp::emit_trailer(&mut plaintext[payload.len()..], Protocol::IPIP).unwrap();
    assert_eq!(esp::parse_trailer(&plaintext), Ok((payload, Protocol::IPIP)));
}
